//! Writes the desired state to the cluster: garbage collection, references, composed resources,
//! status.

use std::collections::BTreeMap;

use biplane_cluster::cluster::Optional;
use biplane_cluster::{Apply, Cluster, Delete, Propagation, WriteError};
use biplane_model::condition::{conditions, set_conditions};
use biplane_model::names;
use biplane_model::owner::controller_of;
use biplane_model::{Object, Value};
use biplane_proto::function::v1::State;

use super::desired::Desired;
use super::observe::Observed;
use super::outcome::{ComposeError, Composed};
use super::report::Report;
use crate::failure::{Attempted, Failure};
use biplane_go::fmt::quote;
use biplane_model::labels;
use biplane_model::layout::{Layout, Reference};

/// The field manager of the references and the status of composite resources.
const COMPOSITE_MANAGER: &str = "apiextensions.crossplane.io/composite";
/// The prefix of the field managers of composed resources.
pub(super) const COMPOSED_MANAGER: &str = "apiextensions.crossplane.io/composed";

/// The field manager of the composed resources of one composite resource.
pub fn composed_manager(xr: &Object) -> String {
    let kind = xr.gvk().group_kind();
    format!("{COMPOSED_MANAGER}/{}", names::sha256([xr.name().as_bytes(), kind.as_bytes()]))
}

/// Deletes observed resources that the composite resource controls and that are no longer desired.
pub(super) async fn collect_garbage(
    cluster: &dyn Cluster,
    xr: &Object,
    observed: &BTreeMap<String, Observed>,
    desired: &BTreeMap<String, Desired>,
) -> Result<(), Failure> {
    for (name, existing) in observed.iter().filter(|(name, _)| !desired.contains_key(*name)) {
        // A resource without a controller is not deleted.
        let Some(controller) = controller_of(&existing.object) else { continue };
        if controller.uid != xr.uid() {
            return Err(Failure::new(format!(
                "refusing to delete composed resource {} that is controlled by {} {}",
                quote(name),
                controller.kind,
                quote(&controller.name)
            )));
        }
        let mut object = existing.object.clone();
        if let Some(mut labels) = object.texts("labels") {
            for label in [labels::COMPOSITE, labels::CLAIM_NAME, labels::CLAIM_NAMESPACE] {
                labels.remove(label);
            }
            object.set_at(&["metadata", "labels"], labels);
        }
        let described = || format!("{} (a {} named {})", quote(name), object.kind(), object.name());
        cluster.update(&object).await.optional().attempted(format_args!(
            "cannot cleanup composed resource labels of resource {}",
            described()
        ))?;
        let how = Delete { propagation: Propagation::Foreground, uid: object.uid().to_owned() };
        cluster
            .delete(&object.id(), &how)
            .await
            .optional()
            .attempted(format_args!("cannot delete composed resource {}", described()))?;
    }
    Ok(())
}

/// Writes the references before the resources exist, so that no resource is ever lost.
pub(super) async fn apply_references(
    cluster: &dyn Cluster,
    layout: Layout,
    xr: &Object,
    desired: &BTreeMap<String, Desired>,
) -> Result<(), Failure> {
    let namespaced = !xr.namespace().is_empty();
    let mut references: Vec<_> = desired
        .values()
        .map(|Desired { object, .. }| Reference {
            api_version: object.api_version().into(),
            kind: object.kind().into(),
            name: object.name().into(),
            namespace: if namespaced { String::new() } else { object.namespace().into() },
            uid: object.uid().into(),
            ..Reference::default()
        })
        .collect();
    references
        .sort_by_cached_key(|r| format!("{}{}{}{}", r.api_version, r.kind, r.name, r.namespace));
    let mut intent = identity(xr);
    layout.set_resources(&mut intent, &references);
    cluster.apply(&intent, &Apply::forced(COMPOSITE_MANAGER)).await?;
    Ok(())
}

/// The identity of an object, to apply to it.
fn identity(xr: &Object) -> Object {
    let mut intent = Object::new();
    intent.set_at(&["apiVersion"], xr.api_version());
    intent.set_at(&["kind"], xr.kind());
    intent.set_meta("namespace", xr.namespace());
    intent.set_meta("name", xr.name());
    intent
}

/// Applies all resources. An invalid one does not stop the others.
pub(super) async fn apply_composed(
    cluster: &dyn Cluster,
    xr: &Object,
    desired: &BTreeMap<String, Desired>,
    report: &mut Report,
) -> Result<Vec<Composed>, ComposeError> {
    let how = Apply::forced(composed_manager(xr));
    let mut all = Vec::with_capacity(desired.len());
    for (name, Desired { object, ready }) in desired {
        let text = || format!("cannot apply composed resource {}", quote(name));
        let synced = match cluster.apply(object, &how).await {
            Ok(_) => true,
            Err(WriteError::Invalid(why)) => {
                report.warn("ComposeResources", format!("{}: {why}", text()));
                false
            }
            Err(error) => {
                return Err(ComposeError::resource(Failure::from(error).wrap(text()), object));
            }
        };
        all.push(Composed { name: name.clone(), ready: *ready, synced });
    }
    Ok(all)
}

/// Replaces the status by the desired one and keeps conditions. Returns the stored composite
/// resource.
pub(super) async fn apply_status(
    cluster: &dyn Cluster,
    xr: &Object,
    desired: Option<&State>,
) -> Result<Object, Failure> {
    let wanted = desired
        .and_then(|state| state.composite.as_ref())
        .and_then(|composite| composite.resource.as_ref());
    let mut intent: Object = wanted.map(|s| s.object().clone()).unwrap_or_default();
    intent.set_at(&["apiVersion"], xr.api_version());
    intent.set_at(&["kind"], xr.kind());
    for (key, value) in [("namespace", xr.namespace()), ("name", xr.name()), ("uid", xr.uid())] {
        intent.set_meta(key, value);
    }
    let pending = conditions(xr);
    if !pending.is_empty() {
        set_conditions(&mut intent, pending);
    }
    // An apply must not set conditions to null.
    if intent.at(&["status", "conditions"]).is_some_and(Value::is_null) {
        intent.remove_at(&["status", "conditions"]);
    }
    Ok(cluster.apply_status(&intent, &Apply::forced(COMPOSITE_MANAGER)).await?)
}

//! Writes what a composite resource composes: garbage collection, references, composed resources.

use std::borrow::Cow;
use std::collections::BTreeMap;

use biplane_cluster::{
    Applied, Apply, Delete, Effect, Optional, Part, Patch, Precondition, Propagation, Write,
    WriteError,
};
use biplane_go::fmt::quote;
use biplane_model::condition::{conditions, set_conditions};
use biplane_model::layout::Reference;
use biplane_model::owner::controller_of;
use biplane_model::{Object, Value, labels, names};
use biplane_proto::function::v1::State;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::json;

use super::behaviour::Writing;
use super::desired::Desired;
use super::observe::Observed;
use super::outcome::{ComposeError, Composed};
use super::pass::{Pass, XR};
use super::persist::{self, COMPOSITE_MANAGER, MANAGER, identity};
use super::report::Report;
use crate::failure::{Attempted, Failure};

/// The prefix of the field managers of composed resources.
pub(super) const COMPOSED_MANAGER: &str = "apiextensions.crossplane.io/composed";

/// The field manager of the composed resources of one composite resource.
pub fn composed_manager(xr: &Object) -> String {
    let kind = xr.gvk().group_kind();
    format!("{COMPOSED_MANAGER}/{}", names::sha256([xr.name().as_bytes(), kind.as_bytes()]))
}

/// The labels that say who composes a resource.
const OWNING: [&str; 3] = [labels::COMPOSITE, labels::CLAIM_NAME, labels::CLAIM_NAMESPACE];

/// Deletes observed resources that the composite resource controls and that are no longer desired.
/// Returns whether there were any.
pub(super) async fn collect_garbage(
    pass: &Pass<'_>,
    xr: &Object,
    observed: &BTreeMap<String, Observed>,
    desired: &BTreeMap<String, Desired>,
) -> Result<bool, Failure> {
    let cluster = pass.cluster();
    let mut any = false;
    for (name, existing) in observed.iter().filter(|(name, _)| !desired.contains_key(*name)) {
        let object = &existing.object;
        let controller = controller_of(object);
        // A resource without a controller is not deleted.
        if controller.is_none() && !pass.behaviour().release.is_v1() {
            continue;
        }
        if let Some(controller) = controller.filter(|controller| controller.uid != xr.uid()) {
            return Err(Failure::new(format!(
                "refusing to delete composed resource {} that is controlled by {} {}",
                quote(name),
                controller.kind,
                quote(&controller.name)
            )));
        }
        let described = || format!("{} (a {} named {})", quote(name), object.kind(), object.name());
        disown(pass, object).await.attempted(format_args!(
            "cannot cleanup composed resource labels of resource {}",
            described()
        ))?;
        let how = Delete {
            propagation: Propagation::Foreground,
            only_if: Precondition::same(object),
            ..Delete::default()
        };
        cluster
            .delete(&object.id(), &how, pass.by)
            .await
            .optional()
            .attempted(format_args!("cannot delete composed resource {}", described()))?;
        any = true;
    }
    Ok(any)
}

/// Removes the labels that say who composes a resource.
pub(super) async fn disown(pass: &Pass<'_>, object: &Object) -> Result<(), Failure> {
    let how = Write::by(MANAGER);
    match pass.behaviour().writing {
        Writing::Stepwise => {
            let mut object = object.clone();
            if let Some(mut labels) = object.texts("labels") {
                for label in OWNING {
                    labels.remove(label);
                }
                object.set_at_or_ignore(&["metadata", "labels"], labels);
            }
            pass.cluster().update(&object, Part::Main, &how, pass.by).await.optional()?;
        }
        Writing::AtOnce { .. } => {
            let owned = OWNING.into_iter().filter(|label| !object.label(label).is_empty());
            let removed: serde_json::Map<_, _> =
                owned.map(|label| (label.to_owned(), Value::Null)).collect();
            if removed.is_empty() {
                return Ok(());
            }
            let patch = Patch::Merge(json!({"metadata": {"labels": removed}}));
            let how = how.only_if(Precondition::same(object));
            let id = object.id();
            pass.cluster().patch(&id, Part::Main, &patch, &how, pass.by).await.optional()?;
        }
    }
    Ok(())
}

/// Writes the references before the resources exist, so that no resource is ever lost.
pub(super) async fn write_references(
    pass: &Pass<'_>,
    xr: &mut XR,
    desired: &BTreeMap<String, Desired>,
) -> Result<(), Failure> {
    let layout = pass.layout();
    let references = references(&xr.object, desired);
    match pass.behaviour().writing {
        Writing::Stepwise => {
            let mut intent = identity(&xr.object);
            layout.set_resources(&mut intent, &references)?;
            let how = Apply::forced(COMPOSITE_MANAGER);
            pass.cluster().apply(&intent, Part::Main, None, &how, pass.by).await?;
            Ok(())
        }
        Writing::AtOnce { .. } => {
            // A server prunes the UID from references, so it would look like a change every time.
            let references: Vec<_> = references
                .into_iter()
                .map(|reference| Reference { uid: String::new(), ..reference })
                .collect();
            let before = layout.resources(&xr.object);
            if before != references || (references.is_empty() && !layout.has_resources(&xr.object))
            {
                layout.set_resources(&mut xr.object, &references)?;
            }
            persist::write(pass, xr, pass.by).await
        }
    }
}

fn references(xr: &Object, desired: &BTreeMap<String, Desired>) -> Vec<Reference> {
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
    references
}

/// Applies all resources. An invalid one does not stop the others. Returns the results, and whether
/// anything changed.
pub(super) async fn apply_composed(
    pass: &Pass<'_>,
    xr: &Object,
    observed: &BTreeMap<String, Observed>,
    desired: &BTreeMap<String, Desired>,
    report: &mut Report,
) -> Result<(Vec<Composed>, bool), ComposeError> {
    let how = &Apply::forced(composed_manager(xr));
    // Boxed, because the compiler cannot tell otherwise that these futures may move to other threads.
    let requests: Vec<BoxFuture<'_, _>> = desired
        .iter()
        .map(|(name, Desired { object, ready })| {
            let known = observed.get(name).map(|observed| &observed.object);
            let how = fenced(pass, how, object, known);
            let answer = async move {
                let applied = pass.cluster().apply(object, Part::Main, known, &how, pass.by).await;
                (name.as_str(), *ready, object, applied)
            };
            Box::pin(answer) as BoxFuture<'_, _>
        })
        .collect();
    let mut all = Vec::with_capacity(desired.len());
    let mut news = false;
    let parallel = match pass.behaviour().writing {
        Writing::Stepwise => 1,
        Writing::AtOnce { parallel } => parallel.max(1),
    };
    // The answers come in the order of the names, whichever is first.
    let mut answers = stream::iter(requests).buffered(parallel);
    while let Some((name, ready, object, applied)) = answers.next().await {
        let text = || format!("cannot apply composed resource {}", quote(name));
        let synced = match applied {
            Ok(Applied { effect, .. }) => {
                news |= matches!(effect, Effect::Created | Effect::Changed);
                true
            }
            Err(WriteError::Invalid(why)) => {
                report.warn("ComposeResources", format!("{}: {why}", text()));
                false
            }
            Err(error) => {
                return Err(ComposeError::resource(Failure::from(error).wrap(text()), object));
            }
        };
        all.push(Composed { name: name.to_owned(), ready, synced });
    }
    Ok((all, news))
}

/// Applies to the very object that was observed, not to another one that got its name meanwhile.
fn fenced<'a>(
    pass: &Pass<'_>,
    how: &'a Apply,
    intent: &Object,
    known: Option<&Object>,
) -> Cow<'a, Apply> {
    match known {
        Some(known) if pass.behaviour().writing != Writing::Stepwise && known.same_id(intent) => {
            Cow::Owned(how.clone().only_if(Precondition::same(known)))
        }
        _ => Cow::Borrowed(how),
    }
}

/// The status that functions desire, with the conditions of the composite resource.
pub(super) fn status_intent(xr: &Object, desired: Option<&State>) -> Object {
    let wanted = desired
        .and_then(|state| state.composite.as_ref())
        .and_then(|composite| composite.resource.as_ref());
    let mut intent: Object = wanted.map(|s| s.object().clone()).unwrap_or_default();
    for (key, value) in [("apiVersion", xr.api_version()), ("kind", xr.kind())] {
        intent.make_mut().insert(key.to_owned(), value.into());
    }
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
    intent
}

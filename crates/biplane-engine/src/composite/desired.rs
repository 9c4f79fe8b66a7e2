//! Prepares the desired state of the pipeline for applying: metadata, names, ownership, validation.

use std::collections::BTreeMap;

use biplane_cluster::{Cluster, Optional, Source};
use biplane_model::names;
use biplane_model::owner::{OwnerReference, controller_of, set_controller};
use biplane_model::{Object, ObjectId};
use biplane_proto::Struct;
use biplane_proto::function::v1::{Ready, Resource};

use super::observe::Observed;
use super::outcome::ComposeError;
use super::pass::Pass;
use super::report::Report;
use crate::failure::{Attempted, Failure};
use crate::sources::Ids;
use biplane_go::fmt::quote;
use biplane_model::labels;
use tokio::time::Instant;

/// A composed resource that should exist.
#[derive(Clone, Debug)]
pub(super) struct Desired {
    /// The object to apply.
    pub(super) object: Object,
    /// Whether the pipeline reports it as ready.
    pub(super) ready: bool,
}

/// Prepares all desired resources, or fails before anything is written.
pub(super) async fn load(
    pass: &Pass<'_>,
    xr: &Object,
    wanted: BTreeMap<String, Resource>,
    observed: &BTreeMap<String, Observed>,
    report: &mut Report,
) -> Result<BTreeMap<String, Desired>, ComposeError> {
    let marks = if pass.behaviour().release.is_v1() { Marks::always(xr) } else { Marks::of(xr) };
    let mut all = BTreeMap::new();
    for (name, resource) in wanted {
        let ready = resource.ready == i32::from(Ready::True);
        let mut object = resource.resource.map(Struct::into_object).unwrap_or_default();
        // A function cannot rename or move an existing resource.
        if let Some(existing) = observed.get(&name) {
            object.set_meta("namespace", existing.object.namespace());
            object.set_meta("name", existing.object.name());
            object.set_meta("generateName", existing.object.generate_name());
        }
        check_namespace(pass, xr, &name, &object, report).await?;
        marks.put_on(&name, &mut object).attempted(format_args!(
            "cannot render metadata for composed resource {}",
            quote(&name)
        ))?;
        if object.name().is_empty() {
            generate_name(pass.cluster(), &*pass.context().ids, &mut object, pass.by)
                .await
                .map_err(|failure| {
                    let text =
                        format!("cannot generate a name for composed resource {}", quote(&name));
                    ComposeError::resource(failure.wrap(text), &object)
                })?;
        }
        let gvk = object.gvk();
        if !names::is_valid_for(object.name(), &gvk.group, &gvk.kind) {
            return Err(Failure::new(format!(
                "cannot apply composed resource {} because it has an invalid name {}. Must be a valid RFC 1123 subdomain name.",
                quote(&name),
                quote(object.name())
            ))
            .into());
        }
        // An object without a kind, or with a malformed apiVersion, has an empty identity when it
        // is applied.
        if gvk.version.is_empty() || gvk.kind.is_empty() {
            object.set_at_or_ignore(&["apiVersion"], gvk.api_version());
            object.set_at_or_ignore(&["kind"], gvk.kind);
        }
        all.insert(name, Desired { object, ready });
    }
    Ok(all)
}

/// Checks that a namespaced composite resource composes only in its own namespace.
async fn check_namespace(
    pass: &Pass<'_>,
    xr: &Object,
    name: &str,
    object: &Object,
    report: &mut Report,
) -> Result<(), Failure> {
    if xr.namespace().is_empty() || object.namespace() == xr.namespace() {
        return Ok(());
    }
    let described = || format!("{} (a {} named {})", quote(name), object.kind(), object.name());
    if object.namespace().is_empty() {
        let namespaced =
            pass.cluster().is_namespaced(&object.gvk(), pass.by).await.attempted(format_args!(
                "cannot check if composed resource {} is namespaced (a {} named {})",
                quote(name),
                object.kind(),
                object.name()
            ))?;
        if !namespaced {
            return Err(Failure::new(format!(
                "cannot apply cluster scoped composed resource {} for a namespaced composite resource.",
                described()
            )));
        }
        return Ok(());
    }
    report.warn(
        "NamespaceOverridden",
        format!(
            "cannot create composed resource {} in namespace {}, using XR namespace {} instead",
            quote(name),
            quote(object.namespace()),
            quote(xr.namespace())
        ),
    );
    Ok(())
}

/// The metadata shared by all composed resources of one composite resource.
pub(super) struct Marks<'a> {
    root: &'a str,
    /// Name and namespace of the claim, if there is one.
    claim: Option<(&'a str, &'a str)>,
    namespace: &'a str,
    owner: OwnerReference,
    /// Whether a resource that has a name also gets the prefix for one.
    always: bool,
}

impl<'a> Marks<'a> {
    fn of(xr: &'a Object) -> Self {
        let claim = (xr.label(labels::CLAIM_NAME), xr.label(labels::CLAIM_NAMESPACE));
        Self {
            root: xr.label(labels::COMPOSITE),
            claim: Some(claim)
                .filter(|(name, namespace)| !name.is_empty() && !namespace.is_empty()),
            namespace: xr.namespace(),
            owner: OwnerReference::controller(xr),
            always: false,
        }
    }

    /// As in v1: every resource gets the prefix of names and the labels of a claim, if only empty
    /// ones.
    pub(super) fn always(xr: &'a Object) -> Self {
        let claim = (xr.label(labels::CLAIM_NAME), xr.label(labels::CLAIM_NAMESPACE));
        Self { claim: Some(claim), always: true, ..Self::of(xr) }
    }

    pub(super) fn put_on(&self, name: &str, object: &mut Object) -> Result<(), Failure> {
        if self.root.is_empty() {
            return Err(Failure::new(format!(
                "cannot find top-level composite resource name label \"{}\" in composite resource metadata",
                labels::COMPOSITE
            )));
        }
        if self.always || (object.name().is_empty() && object.generate_name().is_empty()) {
            object.set_meta("generateName", &format!("{}-", self.root));
        }
        if !self.namespace.is_empty() {
            object.set_meta("namespace", self.namespace);
        }
        if !name.is_empty() {
            object.add_texts("annotations", [(labels::RESOURCE_NAME, name)]);
        }
        object.add_texts("labels", [(labels::COMPOSITE, self.root)]);
        if let Some((claim, namespace)) = self.claim {
            let labels = [(labels::CLAIM_NAME, claim), (labels::CLAIM_NAMESPACE, namespace)];
            object.add_texts("labels", labels);
        }
        set_controller(object, self.owner.clone())
            .map_err(|e| Failure::new(format!("cannot set controller reference: {e}")))
    }
}

/// The number of attempts to find a free random name.
const TRIES: usize = 10;

/// Generates a name: deterministic if the object has a controller, otherwise random.
pub async fn generate_name(
    cluster: &dyn Cluster,
    ids: &dyn Ids,
    object: &mut Object,
    by: Instant,
) -> Result<(), Failure> {
    if !object.name().is_empty() || object.generate_name().is_empty() {
        return Ok(());
    }
    let resource = object.annotation(labels::RESOURCE_NAME);
    if let Some(controller) = controller_of(object).filter(|c| !c.uid.is_empty())
        && !resource.is_empty()
    {
        let name = names::child(object.generate_name(), &controller.uid, resource);
        object.set_meta("name", &name);
        return Ok(());
    }
    for _ in 0..TRIES {
        let name = names::generated(object.generate_name(), names::spread(ids.number()));
        let id = ObjectId::new(object.gvk(), object.namespace(), &name);
        if cluster.get(&id, Source::Cache, by).await.optional()?.is_none() {
            object.set_meta("name", &name);
            return Ok(());
        }
    }
    Err(Failure::new("cannot generate a name for a resource"))
}

//! Renders a composite resource: runs its reconciler with the request's data in place of a live
//! control plane.

use std::sync::Arc;
use std::time::Duration;

use biplane_model::condition::{Condition, set_conditions};
use biplane_model::owner::controller_of;
use biplane_model::typed::{self, Names, tables};
use biplane_model::{Gvk, Object, names};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{CompositeInput, CompositeOutput};
use biplane_runner::FunctionRunner;
use uuid::Uuid;

use super::environment::{RenderEnvironment, RenderFixtures};
use super::{Partial, Rendered, Settings};
use crate::composite::environment::{VERSIONS, is_config};
use crate::composite::revision::Revision;
use crate::composite::{Behaviour, Layout, Reconciler, Release, Selection, Writing};
use crate::failure::{Failure, join};
use crate::reconcile::ReconcileError;
use biplane_go::fmt::quote;
use biplane_model::labels;
use biplane_model::layout::Reference;

pub(super) async fn render(
    request: CompositeInput,
    runner: Arc<dyn FunctionRunner>,
    settings: &Settings,
) -> Rendered<CompositeOutput> {
    let mut xr = request.composite_resource.map(Struct::into_object).unwrap_or_default();
    let gvk = xr.gvk();
    let definition = request.composite_resource_definition.map(Struct::into_object);
    let layout = layout(&gvk, definition.as_ref(), settings.release)
        .map_err(|e| format!("cannot select composite resource schema: {e}"))?;
    let uid = composite_uid(&xr);
    xr.set_meta("uid", &uid);
    xr.set_meta("resourceVersion", "999");
    let mut observed: Vec<_> =
        request.observed_resources.into_iter().map(Struct::into_object).collect();
    if !settings.release.is_v1() {
        check_observed(&xr, &observed).map_err(|e| format!("invalid observed resources: {e}"))?;
    }
    let id = xr.id();
    // The composite resource is seeded separately, and never composes itself.
    observed.retain(|object| object.id() != id);
    if !settings.release.is_v1() {
        refer_to(layout, &mut xr, &observed);
    } else if layout.resources(&xr).is_empty() {
        // The order of references matters, and not everything observed is composed.
        let is_ours = |object: &&Object| controller_of(object).is_some_and(|c| c.uid == uid);
        let ours: Vec<_> = observed.iter().filter(is_ours).cloned().collect();
        refer_to(layout, &mut xr, &ours);
    }
    let composition = request.composition.map(Struct::into_object).unwrap_or_default();
    let name = composition.name().to_owned();
    let revision = revision(composition, settings.release)
        .map_err(|e| format!("cannot convert composition from protobuf: {e}"))?;

    let mut required = request.required_resources;
    if settings.environments {
        add_versions(&mut required);
    }
    let fixtures = RenderFixtures {
        required,
        credentials: request.credentials,
        documents: request.required_schemas,
    };
    let objects = std::iter::once(revision.object.clone()).chain(observed);
    let environment = RenderEnvironment::new(xr, objects, fixtures, runner, settings);
    let behaviour = Behaviour {
        controller: "render".into(),
        writing: Writing::Stepwise,
        release: settings.release,
        resources_mode: settings.resources_mode,
        environments: settings.environments,
        selection: Selection::Given { composition: name, revision: Box::new(revision) },
        finalizer: false,
        publish: None,
        upgrade: false,
        // Crossplane's output does not contain it.
        remembers_requests: false,
        realtime: false,
        min_poll_interval: Duration::ZERO,
        timeout: settings.timeout,
        ..Behaviour::live(gvk, layout, "")
    };
    let reconciler = Reconciler::new(environment.context.clone(), behaviour);
    let reconciled = reconciler.reconcile(&id.namespace, &id.name).await;

    let (outcome, required_resources, required_schemas) = environment.outcome(&id);
    let output = CompositeOutput {
        composite_resource: outcome.main,
        composed_resources: outcome.applied,
        deleted_resources: outcome.deleted,
        events: outcome.events,
        required_resources,
        required_schemas,
    };
    match reconciled {
        Ok(_) => Ok(output),
        Err(ReconcileError { text, fatal: Some(fatal), .. }) => {
            Err(Partial::Fatal(fatal, text, output))
        }
        Err(error) => Err(Partial::Failed(format!("reconcile failed: {error}"))),
    }
}

/// Returns the layout that the definition (XRD) specifies. Without one, it is that of the release.
pub fn layout(gvk: &Gvk, definition: Option<&Object>, release: Release) -> Result<Layout, String> {
    const V1: &str = "apiextensions.crossplane.io/v1";
    const V2: &str = "apiextensions.crossplane.io/v2";
    let Some(definition) = definition else {
        return Ok(if release.is_v1() { Layout::Legacy } else { Layout::Modern });
    };
    let name = quote(definition.name());
    let version = match definition.api_version() {
        V1 => "v1",
        V2 => "v2",
        other => {
            return Err(format!(
                "CompositeResourceDefinition {name} has unrecognized apiVersion {} (expected one of [{V1} {V2}])",
                quote(other)
            ));
        }
    };
    typed::restored(definition, tables::DEFINITION)
        .map_err(|e| format!("cannot decode {version} CompositeResourceDefinition {name}: {e}"))?;
    let group = definition.str_at(&["spec", "group"]);
    let kind = definition.str_at(&["spec", "names", "kind"]);
    if group != gvk.group || kind != gvk.kind {
        return Err(format!(
            "CompositeResourceDefinition {name} (composite Group={group} Kind={kind}) does not match the input XR's Group={} Kind={}",
            gvk.group, gvk.kind
        ));
    }
    Ok(Layout::of_definition(definition))
}

/// Returns the UID that a composite resource has in a render: its own, or else a generated one.
pub fn composite_uid(xr: &Object) -> String {
    match xr.uid() {
        "" => uid(&xr.gvk(), xr.namespace(), xr.name()),
        given => given.to_owned(),
    }
}

/// Generates a UID from the name, so that composed resources get the same names every time.
pub fn uid(gvk: &Gvk, namespace: &str, name: &str) -> String {
    let text = format!("{gvk}\0{namespace}\0{name}");
    Uuid::new_v5(&Uuid::nil(), text.as_bytes()).to_string()
}

/// Fails if a composite resource cannot have composed these resources.
pub fn check_observed(xr: &Object, observed: &[Object]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for object in observed {
        let name = object.name();
        if controller_of(object).is_some_and(|controller| controller.uid != xr.uid()) {
            wrong.push(format!(
                "observed resource {name} has a controller ref but is not controlled by the XR"
            ));
        }
        if !xr.namespace().is_empty() && object.namespace() != xr.namespace() {
            wrong.push(format!("observed resource {name} is not in the same namespace as the XR"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(join(&wrong)) }
}

/// Adds references to the observed resources, so that the reconciler finds them.
fn refer_to(layout: Layout, xr: &mut Object, observed: &[Object]) {
    if observed.is_empty() {
        return;
    }
    let namespaced = !xr.namespace().is_empty();
    let references: Vec<_> = observed
        .iter()
        .map(|object| Reference {
            api_version: object.api_version().into(),
            kind: object.kind().into(),
            name: object.name().into(),
            namespace: if namespaced { String::new() } else { object.namespace().into() },
            ..Reference::default()
        })
        .collect();
    // A spec that is not an object is rendered as it is.
    let _ = layout.set_resources(xr, &references);
}

/// Adds EnvironmentConfigs in the versions that they were not given in, as a server would serve them.
fn add_versions(objects: &mut Vec<Struct>) {
    let given: Vec<Object> =
        objects.iter().map(|object| object.object().clone()).filter(is_config).collect();
    for config in &given {
        for version in VERSIONS {
            let mut other = config.clone();
            other.set_at_or_ignore(&["apiVersion"], version);
            if !given.iter().any(|config| config.id() == other.id()) {
                objects.push(other.into());
            }
        }
    }
}

/// Builds the revision of a Composition, or fails if the Composition cannot be read.
pub fn revision(composition: Object, release: Release) -> Result<Revision, Failure> {
    let (table, names) = if release.is_v1() {
        (tables::v1::COMPOSITION, Names::COMPOSITION_V1)
    } else {
        (tables::COMPOSITION, Names::COMPOSITION)
    };
    typed::decoded(&composition, table, names)
        .map_err(|why| Failure::new(why.text).wrap("cannot unmarshal JSON to object"))?;
    Revision::try_from(revision_object(composition))
}

/// The revision's name is never printed, so it does not depend on the content.
fn revision_object(composition: Object) -> Object {
    let name = composition.name().to_owned();
    let hash = names::sha256([name.as_bytes()]);
    let spec = composition.into_map().remove("spec").unwrap_or_default();
    let mut revision = Object::new();
    revision.set_at_or_ignore(&["apiVersion"], "apiextensions.crossplane.io/v1");
    revision.set_at_or_ignore(&["kind"], "CompositionRevision");
    revision.set_meta("name", &format!("{name}-{}", &hash[..7]));
    revision.set_at_or_ignore(&["metadata", "labels", labels::COMPOSITION_NAME], name);
    revision.set_at_or_ignore(&["spec"], spec);
    // A spec that is not an object is kept, so that it is refused later.
    if !revision.get("spec").is_some_and(|spec| !spec.is_object() && !spec.is_null()) {
        revision.set_at_or_ignore(&["spec", "revision"], 1);
    }
    set_conditions(&mut revision, [Condition::new("ValidPipeline", "True", "ValidPipeline")]);
    revision
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_derived_from_kind_namespace_and_name() {
        // RE-12, T-77
        for (version, kind, namespace, name, want) in [
            (
                "example.org/v1alpha1",
                "XBucket",
                "",
                "my-bucket",
                "f70ef0ce-2b73-5b7b-a497-0ba62f7c6f04",
            ),
            (
                "example.org/v1alpha1",
                "XModernResource",
                "default",
                "my-xr",
                "6ca6696e-4135-5475-ad53-40843d379b20",
            ),
            (
                "example.crossplane.io/v1",
                "XBucket",
                "",
                "example-render",
                "4045bff9-7fa1-5286-82d9-f54719d8b9a6",
            ),
        ] {
            assert_eq!(uid(&Gvk::new(version, kind), namespace, name), want);
        }
    }
}

//! Composes the resources of a Composition of mode Resources, which is deprecated: from templates and
//! patches, without functions.
//!
//! Unlike a pipeline, it deletes what has no template any more before anything is rendered, keeps
//! references in the order of templates, and writes resources with merge patches. A resource that
//! cannot be rendered is left as it is and does not stop the others.

mod apply;
mod associate;
mod render;

use biplane_cluster::{Apply, Part};
use biplane_function::Budget;
use biplane_go::fmt::quote;
use biplane_model::fieldpath::{self, FieldPath, Segment};
use biplane_model::layout::Reference;
use biplane_model::{Map, Object};
use biplane_patch::document::Document;
use biplane_patch::prepared::{Patch, PatchKind};
use biplane_patch::{connection, patch, readiness};

use super::behaviour::{Release, Writing};
use super::compose::Outcome;
use super::observe;
use super::outcome::{ComposeError, Composed};
use super::pass::{Pass, XR};
use super::persist::{self, COMPOSITE_MANAGER, identity};
use super::revision::Revision;
use super::v1_spec::environment::Configuration;
use super::v1_spec::templates::Template;
use crate::failure::{Attempted, Failure};

/// A template with what is known of its resource.
#[derive(Debug)]
struct Slot<'a> {
    template: &'a Template,
    /// Its name for people.
    name: String,
    /// The reference that the composite resource had, or an empty one.
    reference: Reference,
    /// The object, as it was read.
    current: Option<Object>,
    /// The object to write. `None` if it cannot be rendered, or if the server refuses it.
    rendered: Option<Object>,
}

/// Composes. Afterwards `xr` has what patches have written.
pub(super) async fn compose(
    pass: &Pass<'_>,
    xr: &mut XR,
    revision: &Revision,
    environment: Option<Object>,
) -> Result<Outcome, ComposeError> {
    let budget = Budget::until(Some(pass.by.into_std()));
    let mut outcome = Outcome::default();
    let templates = revision.spec.templates.templates();
    let templates = templates.attempted("cannot inline Composition patch sets")?;
    let associated = associate::associate(pass, &xr.object, templates).await;
    let (mut slots, deleted) = associated
        .attempted("cannot associate composed resources with Composition resource templates")?;
    outcome.wrote = deleted;

    let mut written = Written::default();
    let status = xr.object.get("status").cloned();
    // Data is decoded from JSON, so every number is a double.
    let mut environment = environment.map(Document::from_wire);
    if let (Some(data), Some(configuration)) = (&mut environment, &revision.spec.environment) {
        patch_environment(xr, data, configuration, &mut written, &budget)?;
    }
    let rendered =
        render::render(pass, &xr.object, &mut slots, environment, &mut outcome.report, &budget);
    let references = rendered.await?;
    outcome.tracked.composed = render::identities(&xr.object, &references);
    if pass.behaviour().release == Release::V1_17 {
        // There, the answer to the write of the references took the place of what patches between
        // the composite resource and the environment had written into the status.
        match status {
            Some(status) => xr.object.make_mut().insert("status".to_owned(), status),
            None => xr.object.make_mut().remove("status"),
        };
    }
    write_references(pass, xr, &references).await?;

    outcome.wrote |= apply::apply(pass, &xr.object, &mut slots, &mut outcome.report).await?;
    observe(pass, xr, &slots, &mut written, &mut outcome, &budget).await?;
    write_patched(pass, xr, templates, &references, &written).await?;
    Ok(outcome)
}

/// Runs the patches between the composite resource and the environment.
fn patch_environment(
    xr: &mut XR,
    environment: &mut Document,
    configuration: &Configuration,
    written: &mut Written,
    budget: &Budget,
) -> Result<(), Failure> {
    let mut composite = Document::from_json(xr.object.clone());
    for (index, patch) in configuration.patches.iter().enumerate() {
        let result = match patch.kind {
            PatchKind::FromComposite => {
                patch::transfer(patch, &composite, environment, budget).map(|_| false)
            }
            PatchKind::ToComposite => patch::transfer(patch, environment, &mut composite, budget),
            _ => Ok(false),
        };
        let wrote = result.map_err(|error| {
            Failure::new(error.to_string())
                .wrap(format_args!("cannot apply environment patch at index {index}"))
        })?;
        if wrote {
            written.note(patch);
        }
    }
    if !written.0.is_empty() {
        xr.object = composite.into_object();
        xr.changed();
    }
    Ok(())
}

/// Stores the references before the resources exist, so that no resource is ever lost.
async fn write_references(
    pass: &Pass<'_>,
    xr: &mut XR,
    references: &[Reference],
) -> Result<(), Failure> {
    let layout = pass.layout();
    if layout.resources(&xr.object) != references || !layout.has_resources(&xr.object) {
        layout.set_resources(&mut xr.object, references)?;
        xr.changed();
    }
    match pass.behaviour().writing {
        // Everything is written at the end.
        Writing::Stepwise => Ok(()),
        Writing::AtOnce { .. } => persist::write(pass, xr, pass.by).await,
    }
}

/// Reads back what was written: patches to the composite resource, connection details, readiness.
async fn observe(
    pass: &Pass<'_>,
    xr: &mut XR,
    slots: &[Slot<'_>],
    written: &mut Written,
    outcome: &mut Outcome,
    budget: &Budget,
) -> Result<(), ComposeError> {
    let mut composite = Document::from_json(xr.object.clone());
    for slot in slots {
        let name = slot.name.clone();
        let Some(object) = &slot.rendered else {
            outcome.composed.push(Composed { name, ready: false, synced: false });
            continue;
        };
        let live = Document::from_json(object.clone());
        for (index, patch) in slot.template.patches.iter().enumerate() {
            if patch.kind != PatchKind::ToComposite {
                continue;
            }
            let wrote = patch::transfer(patch, &live, &mut composite, budget).map_err(|error| {
                Failure::new(error.to_string()).wrap(patched(patch, index)).wrap(format_args!(
                    "cannot render ToComposite patches for composed resource {}",
                    quote(&name)
                ))
            })?;
            if wrote {
                written.note(patch);
            }
        }
        let secret = observe::details(pass, object).await;
        let secret = secret.attempted("cannot fetch connection details")?;
        for detail in &slot.template.details {
            let extracted = detail.as_ref().map_err(Clone::clone).and_then(|detail| {
                let wanted = std::slice::from_ref(detail);
                connection::extract(object, &secret, wanted, budget).map_err(|e| e.to_string())
            });
            outcome.details.extend(extracted.map_err(Failure::new).attempted(format_args!(
                "cannot extract composite resource connection details from composed resource {}",
                quote(&name)
            ))?);
        }
        let ready = readiness::is_ready(object, &slot.template.checks, budget);
        let ready = ready.map_err(Failure::new).attempted(format_args!(
            "cannot check whether composed resource {} is ready",
            quote(&name)
        ))?;
        outcome.composed.push(Composed { name, ready, synced: true });
    }
    let patched = composite.into_object();
    if !patched.same(&xr.object) {
        xr.object = patched;
        xr.changed();
    }
    if let (Writing::AtOnce { .. }, Some(schema)) =
        (pass.behaviour().writing, &pass.behaviour().schema)
    {
        // A server drops them, so they would look like a change every time.
        let undeclared = schema.prune_status(&mut xr.object);
        if !undeclared.is_empty() {
            outcome.report.warn("ComposeResources", super::compose::undeclared(&undeclared));
        }
    }
    Ok(())
}

/// Says which patch of a template failed.
fn patched(patch: &Patch, index: usize) -> String {
    format!("cannot apply the {} patch at index {index}", quote(&patch.kind_name))
}

/// Writes what patches have changed in the composite resource, its status aside.
async fn write_patched(
    pass: &Pass<'_>,
    xr: &mut XR,
    templates: &[Template],
    references: &[Reference],
    written: &Written,
) -> Result<(), Failure> {
    let live = match pass.behaviour().writing {
        Writing::Stepwise => {
            let mut intent = written.values(&xr.object);
            let layout = pass.layout();
            layout.set_resources(&mut intent, references)?;
            let environment = layout.environment_configs(&xr.object);
            if !environment.is_empty() {
                layout.set_environment_configs(&mut intent, &environment)?;
            }
            let how = Apply::forced(COMPOSITE_MANAGER);
            let applied = pass.cluster().apply(&intent, Part::Main, None, &how, pass.by).await;
            applied.attempted("cannot update composite resource")?;
            return Ok(());
        }
        Writing::AtOnce { .. } => Document::from_json(xr.stored.clone()),
    };
    let mut desired = Document::from_json(xr.object.clone());
    let patches = templates.iter().flat_map(|template| template.patches.iter());
    for patch in patches.filter(|patch| patch.kind == PatchKind::ToComposite) {
        let merged = patch::merge_live(patch, &live, &mut desired);
        merged.map_err(|error| {
            Failure::new(error.to_string()).wrap("cannot update composite resource")
        })?;
    }
    xr.object = desired.into_object();
    persist::write(pass, xr, pass.by).await
}

/// The fields of the composite resource that patches have written.
#[derive(Debug, Default)]
struct Written(Vec<FieldPath>);

impl Written {
    fn note(&mut self, patch: &Patch) {
        self.0.extend(patch.to.clone());
    }

    /// An object with nothing but these fields. Of a list, it has everything.
    fn values(&self, xr: &Object) -> Object {
        let mut only = identity(xr).into_map();
        for path in &self.0 {
            let fields = path.segments().iter().take_while(|segment| match segment {
                Segment::Field(name) => name != "*",
                Segment::Index(_) => false,
            });
            let fields: Vec<_> = fields.cloned().collect();
            let Ok(path) = FieldPath::parse(&fieldpath::print(&fields)) else { continue };
            if let Ok(value) = path.get(xr) {
                // The fields above are objects, so that this does not fail.
                let _ = path.set(&mut only, value.clone());
            }
        }
        without_status(only)
    }
}

/// The status is written on its own.
fn without_status(mut map: Map<String, biplane_model::Value>) -> Object {
    map.remove("status");
    map.into()
}

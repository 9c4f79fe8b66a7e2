//! Renders templates: base, patches, metadata, name.

use biplane_function::Budget;
use biplane_go::fmt::quote;
use biplane_model::layout::Reference;
use biplane_model::{Gvk, Object, ObjectId};
use biplane_patch::document::Document;
use biplane_patch::patch;
use biplane_patch::prepared::PatchKind;

use super::{Slot, patched};
use crate::composite::desired::{Marks, generate_name};
use crate::composite::pass::Pass;
use crate::composite::report::Report;
use crate::failure::{Attempted, Failure};

/// Renders every template and returns a reference for each, in order. What cannot be rendered is
/// reported and left out, but it keeps its reference.
pub(super) async fn render(
    pass: &Pass<'_>,
    xr: &Object,
    slots: &mut [Slot<'_>],
    mut environment: Option<Document>,
    report: &mut Report,
    budget: &Budget,
) -> Result<Vec<Reference>, Failure> {
    let composite = Document::from_json(xr.clone());
    let marks = Marks::always(xr);
    let what = match environment {
        Some(_) => "FromComposite or environment patches",
        None => "FromComposite patches",
    };
    let mut references = Vec::with_capacity(slots.len());
    for slot in slots {
        let of = format!("for composed resource {}", quote(&slot.name));
        let base = base(slot).attempted(format_args!(
            "cannot parse base template of composed resource {}",
            quote(&slot.name)
        ))?;
        let mut desired = Document::from_json(base);
        let mut fine = true;
        let mut warn = |what: String| {
            report.warn("ComposeResources", what);
            fine = false;
        };
        if let Err(why) = patches(slot, &composite, &mut desired, environment.as_mut(), budget) {
            warn(format!("cannot render {what} {of}: {why}"));
        }
        let mut object = desired.into_object();
        if let Err(why) = marks.put_on(&slot.template.name, &mut object) {
            warn(format!("cannot render metadata {of}: {why}"));
        }
        let ids = &*pass.context().ids;
        if let Err(why) = generate_name(pass.cluster(), ids, &mut object, pass.by).await {
            warn(format!("cannot generate a name {of}: {why}"));
        }
        references.push(Reference {
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            name: object.name().to_owned(),
            namespace: match xr.namespace() {
                "" => object.namespace().to_owned(),
                _ => String::new(),
            },
            ..Reference::default()
        });
        slot.rendered = fine.then_some(object);
    }
    Ok(references)
}

/// The base of a template, with the name and namespace of the resource that exists.
fn base(slot: &Slot<'_>) -> Result<Object, Failure> {
    let base = slot.template.base.as_ref().map_err(|why| Failure::new(why.clone()));
    let mut object = base.attempted("cannot unmarshal JSON data")?.clone();
    let reference = &slot.reference;
    object.set_meta("name", &reference.name);
    object.set_meta("namespace", &reference.namespace);
    let (was, is) = (Gvk::new(&reference.api_version, &reference.kind), object.gvk());
    if !was.kind.is_empty() && was.kind != is.kind {
        return Err(Failure::new(format!(
            "cannot change the kind of a composed resource from {was} to {is} (possible composed resource template mismatch)"
        )));
    }
    Ok(object)
}

/// Runs the patches of a template that take part in rendering, up to the first that fails.
fn patches(
    slot: &Slot<'_>,
    composite: &Document,
    desired: &mut Document,
    mut environment: Option<&mut Document>,
    budget: &Budget,
) -> Result<(), Failure> {
    for (index, patch) in slot.template.patches.iter().enumerate() {
        let result = match (patch.kind, environment.as_deref_mut()) {
            (PatchKind::FromComposite, _) => patch::transfer(patch, composite, desired, budget),
            (PatchKind::FromEnvironment, Some(environment)) => {
                patch::transfer(patch, environment, desired, budget)
            }
            (PatchKind::ToEnvironment, Some(environment)) => {
                patch::transfer(patch, desired, environment, budget)
            }
            _ => Ok(false),
        };
        result.map_err(|error| Failure::new(error.to_string()).wrap(patched(patch, index)))?;
    }
    Ok(())
}

/// The resources that references name.
pub(super) fn identities(xr: &Object, references: &[Reference]) -> Vec<ObjectId> {
    let named = references.iter().filter(|reference| !reference.name.is_empty());
    let identity = |reference: &Reference| {
        let gvk = Gvk::new(&reference.api_version, &reference.kind);
        let namespace =
            if xr.namespace().is_empty() { &reference.namespace } else { xr.namespace() };
        ObjectId::new(gvk, namespace, &reference.name)
    };
    named.map(identity).collect()
}

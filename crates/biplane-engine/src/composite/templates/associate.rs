//! Finds out which existing resource belongs to which template, and deletes those that belong to
//! none.

use biplane_cluster::{Delete, Optional, Precondition, Propagation};
use biplane_go::fmt::quote;
use biplane_model::layout::Reference;
use biplane_model::owner::controller_of;
use biplane_model::{Gvk, Object, ObjectId, labels};

use super::Slot;
use crate::composite::pass::Pass;
use crate::composite::v1_spec::templates::Template;
use crate::composite::{observe, write};
use crate::failure::{Attempted, Failure};

/// Associates templates with resources. Returns also whether any was deleted.
///
/// Named templates are found by the annotation of their resources. If there are anonymous ones, or
/// a resource without the annotation, the order of the references decides, and nothing is deleted.
pub(super) async fn associate<'a>(
    pass: &Pass<'_>,
    xr: &Object,
    templates: &'a [Template],
) -> Result<(Vec<Slot<'a>>, bool), Failure> {
    let references = pass.layout().resources(xr);
    if templates.iter().any(|template| template.name.is_empty()) {
        return Ok((by_order(pass, xr, templates, references).await?, false));
    }
    let mut slots = slots(templates);
    let mut garbage = Vec::new();
    for reference in &references {
        let Some(object) = existing(pass, xr, reference).await? else { continue };
        let name = object.annotation(labels::RESOURCE_NAME).to_owned();
        if name.is_empty() {
            return Ok((by_order(pass, xr, templates, references).await?, false));
        }
        match slots.iter_mut().find(|slot| slot.template.name == name) {
            Some(slot) => {
                slot.reference = reference.clone();
                slot.current = Some(object);
            }
            None => garbage.push((name, object)),
        }
    }
    for (name, object) in &garbage {
        collect(pass, xr, name, object).await?;
    }
    Ok((slots, !garbage.is_empty()))
}

fn slots(templates: &[Template]) -> Vec<Slot<'_>> {
    let named = |index: usize, template: &Template| match template.name.as_str() {
        "" => format!("resource {}", index + 1),
        name => name.to_owned(),
    };
    let all = templates.iter().enumerate();
    all.map(|(index, template)| Slot {
        name: named(index, template),
        template,
        reference: Reference::default(),
        current: None,
        rendered: None,
    })
    .collect()
}

async fn by_order<'a>(
    pass: &Pass<'_>,
    xr: &Object,
    templates: &'a [Template],
    references: Vec<Reference>,
) -> Result<Vec<Slot<'a>>, Failure> {
    let mut slots = slots(templates);
    for (slot, reference) in slots.iter_mut().zip(references) {
        slot.current = existing(pass, xr, &reference).await?;
        slot.reference = reference;
    }
    Ok(slots)
}

/// The object of a reference, if it exists.
async fn existing(
    pass: &Pass<'_>,
    xr: &Object,
    reference: &Reference,
) -> Result<Option<Object>, Failure> {
    if reference.name.is_empty() {
        return Ok(None);
    }
    let namespace = if xr.namespace().is_empty() { &reference.namespace } else { xr.namespace() };
    let gvk = Gvk::new(&reference.api_version, &reference.kind);
    let id = ObjectId::new(gvk, namespace, &reference.name);
    observe::get(pass, &id).await.attempted("cannot get composed resource")
}

/// Deletes a resource that has no template any more.
async fn collect(pass: &Pass<'_>, xr: &Object, name: &str, object: &Object) -> Result<(), Failure> {
    if let Some(controller) = controller_of(object).filter(|owner| owner.uid != xr.uid()) {
        return Err(Failure::new(format!(
            "refusing to delete composed resource {} that is controlled by {} {}",
            quote(name),
            controller.kind,
            quote(&controller.name)
        )));
    }
    write::disown(pass, object)
        .await
        .attempted("cannot cleanup composed resource labels before garbage collection")?;
    let how = Delete {
        propagation: Propagation::Foreground,
        only_if: Precondition::same(object),
        ..Delete::default()
    };
    let deleted = pass.cluster().delete(&object.id(), &how, pass.by).await.optional();
    deleted.attempted("cannot garbage collect composed resource")?;
    Ok(())
}

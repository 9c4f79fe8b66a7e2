//! Explains errors about observed resources that have another controller than the composite
//! resource. They were copied from a cluster where its UID is not the one in the file, or they
//! belong to a nested composite resource.

use std::fmt::Write as _;

use anyhow::{Error, anyhow};
use biplane_engine::render::composite_uid;
use biplane_model::Object;
use biplane_model::owner::{OwnerReference, controller_of};

/// How many resources are named. The rest are counted.
const NAMED: usize = 3;

/// The owners of the resources and advice; `None` if all of them may be observed. `nests` is set if
/// nested composite resources are also rendered.
fn by_others(composite: &Object, observed: &[Object], nests: bool) -> Option<String> {
    let uid = composite_uid(composite);
    let theirs: Vec<_> = observed
        .iter()
        .filter_map(|object| Some((object, controller_of(object)?)))
        .filter(|(_, controller)| controller.uid != uid)
        .collect();
    let (_, first) = theirs.first()?;
    let mut text = String::new();
    for (object, controller) in theirs.iter().take(NAMED) {
        let (kind, name) = (&controller.kind, &controller.name);
        let uid = match controller.uid.as_str() {
            "" => "without a uid".to_owned(),
            uid => format!("of uid {uid}"),
        };
        let _ = write!(text, "\n{} is controlled by {kind} {name} {uid}.", object.id());
    }
    if theirs.len() > NAMED {
        let _ = write!(text, "\nSo are {} more by others.", theirs.len() - NAMED);
    }
    let (kind, name) = (composite.kind(), composite.name());
    let made = if composite.uid().is_empty() { ", made from its name" } else { "" };
    let _ = write!(text, "\nThe XR, {kind} {name}, is rendered with uid {uid}{made}.");
    // All of them have the same UID, and it may be the XR's UID.
    let is_ours = theirs.iter().all(|(_, controller)| {
        controller.uid == first.uid && controller.kind == kind && controller.name == name
    });
    if is_ours && first.uid.is_empty() {
        // Crossplane v1 printed them without a UID.
        text.push_str(" Remove the owner references from the observed resources.");
    } else if is_ours {
        let _ = write!(
            text,
            " Set metadata.uid of the XR to {}, or remove the owner references from the observed resources.",
            first.uid
        );
    } else if let Some(advice) = nested(composite, observed, &theirs, nests) {
        text.push_str(&advice);
    } else {
        text.push_str(
            " Leave out what belongs to others; of what is the XR's, remove the owner references or set metadata.uid of the XR to the uid in them.",
        );
    }
    Some(text)
}

/// Advice for resources of a nested composite resource that is not among the observed ones.
fn nested(
    composite: &Object,
    observed: &[Object],
    theirs: &[(&Object, OwnerReference)],
    nests: bool,
) -> Option<String> {
    let (_, owner) = theirs.first()?;
    let same = |other: &OwnerReference| other.kind == owner.kind && other.name == owner.name;
    let is_observed = |o: &Object| o.kind() == owner.kind && o.name() == owner.name;
    if owner.kind == composite.kind()
        || !theirs.iter().all(|(_, owner)| same(owner))
        || observed.iter().any(is_observed)
    {
        return None;
    }
    let (kind, name) = (&owner.kind, &owner.name);
    Some(if nests {
        format!(
            " If it composes {kind} {name}, add {kind} {name} itself to the observed resources; otherwise leave out what belongs to {kind} {name}."
        )
    } else {
        format!(
            " Leave out what belongs to {kind} {name}. If the XR composes {kind} {name}, render both with --until-stable and --compositions, and add {kind} {name} itself to the observed resources."
        )
    })
}

/// Adds the explanation to the error of an engine, which rejects such resources first.
pub(super) fn explain(error: Error, composite: &Object, observed: &[Object], nests: bool) -> Error {
    match by_others(composite, observed, nests) {
        Some(hint) => anyhow!("{error:#}{hint}"),
        None => error,
    }
}

//! Observed resources that belong to someone else, as those do that were copied from a cluster where
//! the composite resource has another UID than in the file.

use std::fmt::Write as _;

use anyhow::{Error, anyhow};
use biplane_engine::render::composite_uid;
use biplane_model::Object;
use biplane_model::owner::controller_of;

/// What every engine says about them.
const REFUSED: &str = "has a controller ref but is not controlled by the XR";
/// How many are named; the others are counted.
const NAMED: usize = 3;

/// Whose they are, and what to do about it; none if all of them may be observed.
fn by_others(composite: &Object, observed: &[Object]) -> Option<String> {
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
    // One UID for all of them, and nothing that speaks against it being the XR's.
    let is_ours = theirs.iter().all(|(_, controller)| {
        controller.uid == first.uid && controller.kind == kind && controller.name == name
    });
    if is_ours && first.uid.is_empty() {
        // The v1 line printed them so.
        text.push_str(" Remove the owner references from the observed resources.");
    } else if is_ours {
        let _ = write!(
            text,
            " Set metadata.uid of the XR to {}, or remove the owner references from the observed resources.",
            first.uid
        );
    } else {
        text.push_str(
            " Leave out what belongs to others; of what is the XR's, remove the owner references or set metadata.uid of the XR to the uid in them.",
        );
    }
    Some(text)
}

/// Adds that to the error of an engine that refused them.
pub(super) fn explain(error: Error, composite: &Object, observed: &[Object]) -> Error {
    let text = format!("{error:#}");
    match by_others(composite, observed) {
        Some(hint) if text.contains(REFUSED) => anyhow!("{text}{hint}"),
        _ => error,
    }
}

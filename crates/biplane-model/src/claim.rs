//! Claims and their composite resources: what flows from one to the other.

use biplane_go::fmt::quote;
use serde_json::json;

use crate::labels::{CLAIM_NAME, CLAIM_NAMESPACE, EXTERNAL_NAME};
use crate::layout::{Layout, Reference};
use crate::{Gvk, Map, Object, Value, names};

/// The namespace of a claim without a namespace.
const DEFAULT_NAMESPACE: &str = "default";
/// Fields that belong only to the claim, or only to the composite resource.
const NOT_COPIED: [&str; 6] = [
    "claimRef",
    "compositeDeletePolicy",
    "compositionRevisionRef",
    "resourceRef",
    "resourceRefs",
    "writeConnectionSecretToRef",
];
/// Status fields that a composite resource and its claim have each for itself.
const MACHINERY_STATUS: [&str; 4] =
    ["claimConditionTypes", "conditions", "connectionDetails", "lastHandledReconcileAt"];

/// Why a claim and its composite resource cannot be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The definition does not offer claims.
    #[error("Only LegacyCluster composite resources can offer claims")]
    NotOffered,
    /// The claim has no spec.
    #[error("claim spec was not an object")]
    NoSpec,
    /// The composite resource has a status that is not an object.
    #[error("composite resource status was not an object")]
    NoStatus,
}

/// Whether an object is a claim of the kind that a definition (XRD) defines.
pub fn is_claim(object: &Object, definition: &Object) -> bool {
    let kind = definition.str_at(&["spec", "claimNames", "kind"]);
    !kind.is_empty()
        && kind == object.kind()
        && definition.str_at(&["spec", "group"]) == object.gvk().group
}

/// The composite resource of a claim.
///
/// A control plane would give it a random name. Here the name is derived from the claim, so that
/// the same claim always renders the same output.
pub fn composite(claim: &Object, definition: &Object) -> Result<Object, ClaimError> {
    if Layout::of_definition(definition) != Layout::Legacy {
        return Err(ClaimError::NotOffered);
    }
    let kind = Gvk::new(claim.api_version(), definition.str_at(&["spec", "names", "kind"]));
    let name = match bound_to(claim) {
        "" => derived_name(claim),
        name => name.to_owned(),
    };
    intent(claim, &kind, &name, is_enforced(definition), None)
}

/// Whether a definition says which Composition to use, whatever a claim says.
pub fn is_enforced(definition: &Object) -> bool {
    definition.at(&["spec", "enforcedCompositionRef"]).is_some_and(|value| !value.is_null())
}

/// The name of the composite resource that a claim is bound to. Empty if there is none yet.
pub fn bound_to(claim: &Object) -> &str {
    claim.str_at(&["spec", "resourceRef", "name"])
}

/// The reference to a claim that its composite resource has.
pub fn reference(claim: &Object) -> Reference {
    Reference {
        api_version: claim.api_version().to_owned(),
        kind: claim.kind().to_owned(),
        namespace: namespace(claim).to_owned(),
        name: claim.name().to_owned(),
        ..Reference::default()
    }
}

/// The claim that a composite resource refers to, by the fields that identify it.
pub fn claim_of(xr: &Object) -> Option<Reference> {
    let Reference { api_version, kind, namespace, name, .. } = Layout::Legacy.claim(xr)?;
    Some(Reference { api_version, kind, namespace, name, ..Reference::default() })
}

/// Everything that a claim says about its composite resource. `xr` is the composite resource as it
/// is, if it exists.
pub fn intent(
    claim: &Object,
    kind: &Gvk,
    name: &str,
    enforced: bool,
    xr: Option<&Object>,
) -> Result<Object, ClaimError> {
    let spec = claim.get("spec").and_then(Value::as_object);
    let spec = spec.ok_or(ClaimError::NoSpec)?;
    let mut intent = Object::new();
    intent.set_at_or_ignore(&["apiVersion"], kind.api_version());
    intent.set_at_or_ignore(&["kind"], kind.kind.as_str());
    intent.set_meta("name", name);
    let mut annotations = copied(claim, "annotations");
    // An existing composite resource is not renamed.
    let external_name = xr.map(|xr| xr.annotation(EXTERNAL_NAME)).unwrap_or_default();
    if !external_name.is_empty() {
        annotations.insert(EXTERNAL_NAME.to_owned(), external_name.into());
    }
    if !annotations.is_empty() {
        intent.set_at_or_ignore(&["metadata", "annotations"], annotations);
    }
    let mut labels = copied(claim, "labels");
    labels.insert(CLAIM_NAME.to_owned(), claim.name().into());
    labels.insert(CLAIM_NAMESPACE.to_owned(), namespace(claim).into());
    intent.set_at_or_ignore(&["metadata", "labels"], labels);

    let manual = xr.is_some_and(|xr| Layout::Legacy.update_policy(xr) == "Manual");
    let is_dropped = |key: &str| match key {
        "compositionRef" => enforced,
        "compositionRevisionRef" => !manual,
        key => NOT_COPIED.contains(&key),
    };
    let mut spec: Map<_, _> = spec.clone();
    spec.retain(|key, _| !is_dropped(key));
    let reference = serde_json::to_value(reference(claim)).unwrap_or(Value::Null);
    spec.insert("claimRef".to_owned(), reference);
    intent.set_at_or_ignore(&["spec"], spec);
    Ok(intent)
}

/// Binds a claim to the composite resource with this kind and name.
pub fn bind(claim: &mut Object, kind: &Gvk, name: &str) {
    let reference =
        json!({"apiVersion": kind.api_version(), "kind": kind.kind.as_str(), "name": name});
    claim.set_at_or_ignore(&["spec", "resourceRef"], reference);
}

/// Takes over what the composite resource decides: its external name, its Composition, the labels
/// of its revision and, if it follows new revisions by itself, the revision.
pub fn follow(claim: &mut Object, xr: &Object, enforced: bool) {
    let external_name = xr.annotation(EXTERNAL_NAME);
    if !external_name.is_empty() && claim.annotation(EXTERNAL_NAME) != external_name {
        claim.add_texts("annotations", [(EXTERNAL_NAME, external_name)]);
    }
    let automatic = Layout::Legacy.update_policy(xr) == "Automatic";
    for (field, wins) in [
        ("compositionRef", enforced),
        ("compositionRevisionSelector", false),
        ("compositionRevisionRef", automatic),
    ] {
        let path = ["spec", field];
        let own = claim.at(&path).is_some_and(|value| !value.is_null());
        // Which revision is used is for one of the two to say, never for both.
        let takes = wins || (!own && field != "compositionRevisionRef");
        if let Some(value) = xr.at(&path).filter(|value| value.is_object() && takes) {
            claim.set_at_or_ignore(&path, value.clone());
        }
    }
}

/// The status fields of a composite resource that users define.
pub fn status_of(xr: &Object) -> Result<Option<Map<String, Value>>, ClaimError> {
    match xr.get("status") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(status)) => {
            let mut status = status.clone();
            status.retain(|key, _| !MACHINERY_STATUS.contains(&key.as_str()));
            Ok(Some(status))
        }
        Some(_) => Err(ClaimError::NoStatus),
    }
}

/// Replaces the status fields that users define. Conditions and the time when connection details
/// were published belong to the claim itself.
pub fn replace_status(claim: &mut Object, mut status: Map<String, Value>) {
    for own in ["conditions", "connectionDetails"] {
        if let Some(value) = claim.at(&["status", own]) {
            status.insert(own.to_owned(), value.clone());
        }
    }
    claim.set_at_or_ignore(&["status"], status);
}

/// Merges a spec into that of a claim, without the fields that belong to composite resources only.
/// Fields that the claim has already are kept.
pub fn fill_spec(claim: &mut Object, spec: &Map<String, Value>) {
    let mut filled = claim.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut spec = spec.clone();
    spec.retain(|key, _| !NOT_COPIED.contains(&key.as_str()));
    fill(&mut filled, &spec, false);
    claim.set_at_or_ignore(&["spec"], filled);
}

/// Merges a status into that of a claim. Fields that only the claim has are kept.
pub fn merge_status(claim: &mut Object, status: &Map<String, Value>) {
    let mut merged = claim.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    fill(&mut merged, status, true);
    claim.set_at_or_ignore(&["status"], merged);
}

/// Merges `from` into `into`. Values that are there are kept unless they are empty, or unless `from`
/// wins.
fn fill(into: &mut Map<String, Value>, from: &Map<String, Value>, wins: bool) {
    for (key, value) in from.iter().filter(|(_, value)| !value.is_null()) {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => fill(into, from, wins),
            (Some(there), _) if wins || is_empty(there) => *there = value.clone(),
            (Some(_), _) => {}
            (None, _) => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The action for the error message when a claim cannot be converted.
pub fn attempted(claim: &Object) -> String {
    format!("cannot make a composite resource of {} {}", claim.kind(), quote(claim.name()))
}

/// The labels or annotations of a claim, without those about the claim itself.
fn copied(claim: &Object, which: &str) -> Map<String, Value> {
    let all = claim.at(&["metadata", which]).and_then(Value::as_object);
    let mut all = all.cloned().unwrap_or_default();
    all.retain(|key, _| {
        let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
        !prefix.ends_with("kubernetes.io") && !prefix.ends_with("k8s.io")
    });
    all
}

fn namespace(claim: &Object) -> &str {
    match claim.namespace() {
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    }
}

/// A name that depends on the claim only.
fn derived_name(claim: &Object) -> String {
    let id = format!("{}\0{}\0{}", claim.gvk(), namespace(claim), claim.name());
    let hash = names::sha256([id.as_bytes()]);
    let byte = |at: usize| {
        let digits = hash.get(at * 2..at * 2 + 2).unwrap_or_default();
        u8::from_str_radix(digits, 16).unwrap_or_default()
    };
    names::generated(&prefix(claim), std::array::from_fn(byte))
}

/// What the name of a claim's composite resource begins with.
pub fn prefix(claim: &Object) -> String {
    format!("{}-", claim.name())
}

#[cfg(test)]
mod tests;

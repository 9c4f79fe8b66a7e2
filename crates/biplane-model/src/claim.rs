//! Claims: the composite resource that the control plane would make of one.

use biplane_go::fmt::quote;
use serde_json::json;

use crate::labels::{CLAIM_NAME, CLAIM_NAMESPACE};
use crate::layout::Layout;
use crate::{Map, Object, Value, names};

/// Where a claim is made that does not say where.
const DEFAULT_NAMESPACE: &str = "default";
/// What belongs to the claim alone, or to the composite resource alone.
const NOT_COPIED: [&str; 6] = [
    "claimRef",
    "compositeDeletePolicy",
    "compositionRevisionRef",
    "resourceRef",
    "resourceRefs",
    "writeConnectionSecretToRef",
];

/// Why there is no composite resource of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The definition is not of the kind that can be claimed.
    #[error("Only LegacyCluster composite resources can offer claims")]
    NotOffered,
    /// The claim says nothing.
    #[error("claim spec was not an object")]
    NoSpec,
}

/// Whether an object is a claim for what a definition defines.
pub fn is_claim(object: &Object, definition: &Object) -> bool {
    let kind = definition.str_at(&["spec", "claimNames", "kind"]);
    !kind.is_empty()
        && kind == object.kind()
        && definition.str_at(&["spec", "group"]) == object.gvk().group
}

/// The composite resource that a claim becomes.
///
/// A server would give it a random name; here the name follows from the claim, so that the same
/// claim is always rendered the same.
pub fn composite(claim: &Object, definition: &Object) -> Result<Object, ClaimError> {
    if Layout::of_definition(definition) != Layout::Legacy {
        return Err(ClaimError::NotOffered);
    }
    let spec = claim.get("spec").and_then(Value::as_object);
    let spec = spec.ok_or(ClaimError::NoSpec)?;
    let namespace = match claim.namespace() {
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    };
    let mut xr = Object::new();
    xr.set_at(&["apiVersion"], claim.api_version());
    xr.set_at(&["kind"], definition.str_at(&["spec", "names", "kind"]));
    xr.set_meta("name", &name(claim, namespace));
    let annotations = copied(claim, "annotations");
    if !annotations.is_empty() {
        xr.set_at(&["metadata", "annotations"], annotations);
    }
    let mut labels = copied(claim, "labels");
    labels.insert(CLAIM_NAME.to_owned(), claim.name().into());
    labels.insert(CLAIM_NAMESPACE.to_owned(), namespace.into());
    xr.set_at(&["metadata", "labels"], labels);

    let enforced = definition.at(&["spec", "enforcedCompositionRef"]).is_some();
    let is_dropped = |key: &str| NOT_COPIED.contains(&key) || (enforced && key == "compositionRef");
    let mut spec: Map<_, _> = spec.clone();
    spec.retain(|key, _| !is_dropped(key));
    spec.insert(
        "claimRef".to_owned(),
        json!({
            "apiVersion": claim.api_version(),
            "kind": claim.kind(),
            "namespace": namespace,
            "name": claim.name(),
        }),
    );
    xr.set_at(&["spec"], spec);
    Ok(xr)
}

/// What was attempted when a claim could not be turned into a composite resource.
pub fn attempted(claim: &Object) -> String {
    format!("cannot make a composite resource of {} {}", claim.kind(), quote(claim.name()))
}

/// Labels or annotations without those that are about the claim itself.
fn copied(claim: &Object, which: &str) -> Map<String, Value> {
    let all = claim.at(&["metadata", which]).and_then(Value::as_object);
    let mut all = all.cloned().unwrap_or_default();
    all.retain(|key, _| {
        let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
        !prefix.ends_with("kubernetes.io") && !prefix.ends_with("k8s.io")
    });
    all
}

/// The name that the claim asks for, or else one that follows from it.
fn name(claim: &Object, namespace: &str) -> String {
    let bound = claim.str_at(&["spec", "resourceRef", "name"]);
    if !bound.is_empty() {
        return bound.to_owned();
    }
    let id = format!("{}\0{namespace}\0{}", claim.gvk(), claim.name());
    let hash = names::sha256([id.as_bytes()]);
    let byte = |at: usize| {
        let digits = hash.get(at * 2..at * 2 + 2).unwrap_or_default();
        u8::from_str_radix(digits, 16).unwrap_or_default()
    };
    names::generated(&format!("{}-", claim.name()), std::array::from_fn(byte))
}

#[cfg(test)]
mod tests;

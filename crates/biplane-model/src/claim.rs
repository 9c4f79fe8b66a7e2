//! Converts a claim to the composite resource that the control plane would create for it.

use biplane_go::fmt::quote;
use serde_json::json;

use crate::labels::{CLAIM_NAME, CLAIM_NAMESPACE};
use crate::layout::Layout;
use crate::{Map, Object, Value, names};

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

/// The reason why a claim cannot be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The definition does not offer claims.
    #[error("Only LegacyCluster composite resources can offer claims")]
    NotOffered,
    /// The claim has no spec.
    #[error("claim spec was not an object")]
    NoSpec,
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
    let spec = claim.get("spec").and_then(Value::as_object);
    let spec = spec.ok_or(ClaimError::NoSpec)?;
    let namespace = match claim.namespace() {
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    };
    let mut xr = Object::new();
    xr.set_at_or_ignore(&["apiVersion"], claim.api_version());
    xr.set_at_or_ignore(&["kind"], definition.str_at(&["spec", "names", "kind"]));
    xr.set_meta("name", &name(claim, namespace));
    let annotations = copied(claim, "annotations");
    if !annotations.is_empty() {
        xr.set_at_or_ignore(&["metadata", "annotations"], annotations);
    }
    let mut labels = copied(claim, "labels");
    labels.insert(CLAIM_NAME.to_owned(), claim.name().into());
    labels.insert(CLAIM_NAMESPACE.to_owned(), namespace.into());
    xr.set_at_or_ignore(&["metadata", "labels"], labels);

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
    xr.set_at_or_ignore(&["spec"], spec);
    Ok(xr)
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

/// The name that the claim requests, or else a name derived from the claim.
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

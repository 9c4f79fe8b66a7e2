//! Fills in what the definition of a composite resource says about fields that it leaves out.
//!
//! The schema is that of the CRD which the control plane would make from the definition: the
//! definition decides about `spec` and `status` alone.

use anyhow::{Context, Result, anyhow, bail};
use biplane_model::schema::Schema;
use biplane_model::{Map, Object, Value, gojson::quote};
use serde_json::json;

/// What the control plane has below `spec` of a legacy composite resource, beside its update policy.
const LEGACY_SPEC: [&str; 7] = [
    "claimRef",
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "resourceRefs",
    "writeConnectionSecretToRef",
];
/// What it has below `status`, beside conditions.
const LEGACY_STATUS: [&str; 2] = ["claimConditionTypes", "connectionDetails"];

/// Applies the defaults of a definition to a composite resource.
pub(super) fn apply(composite: &mut Object, definition: &Object) -> Result<()> {
    let schema = schema(composite.api_version(), definition);
    let schema = schema
        .with_context(|| format!("cannot apply XRD defaults to XR {}", quote(composite.name())))?;
    schema.default(composite);
    Ok(())
}

fn schema(api_version: &str, definition: &Object) -> Result<Schema> {
    let attempted = || format!("cannot derive CRD from XRD {}", quote(definition.name()));
    let group = definition.str_at(&["spec", "group"]);
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array);
    let mut found = None;
    for version in versions.into_iter().flatten() {
        let schema = version.pointer("/schema/openAPIV3Schema").filter(|s| s.is_object());
        let schema = schema.ok_or_else(|| anyhow!("custom resource validation cannot be nil"));
        let schema = schema.with_context(attempted)?;
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        if format!("{group}/{name}") == api_version && found.is_none() {
            found = Some(schema);
        }
    }
    let Some(schema) = found else {
        bail!("the specified API version '{api_version}' does not exist in the XRD");
    };
    let properties = |part: &str| {
        let properties = schema.pointer(&format!("/properties/{part}/properties"));
        properties.and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (mut spec, mut status) = (properties("spec"), properties("status"));
    // Fields of the control plane win over fields of the same name, and only one has a default.
    let policy = definition.at(&["spec", "defaultCompositionUpdatePolicy"]);
    let policy = match policy.filter(|policy| !policy.is_null()) {
        Some(policy) => json!({"type": "string", "default": policy}),
        None => json!({}),
    };
    let policy = ("compositionUpdatePolicy".to_owned(), policy);
    status.insert("conditions".to_owned(), json!({}));
    if has_legacy_fields(definition) {
        spec.extend(LEGACY_SPEC.map(without_default));
        spec.extend([policy]);
        status.extend(LEGACY_STATUS.map(without_default));
    } else {
        let machinery = Map::from_iter([policy]);
        spec.insert("crossplane".into(), json!({"type": "object", "properties": machinery}));
    }
    Ok(Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec},
        "status": {"type": "object", "properties": status},
    }}))?)
}

fn without_default(field: &str) -> (String, Value) {
    (field.to_owned(), json!({}))
}

/// Whether the fields of the control plane stand right below `spec`. The reference reads every
/// definition as one of version 1 before it makes a CRD, and there they do if nothing is said.
fn has_legacy_fields(definition: &Object) -> bool {
    match definition.at(&["spec", "scope"]) {
        None | Some(Value::Null) => true,
        Some(scope) => scope == "LegacyCluster",
    }
}

/// Whether the control plane takes composite resources of a definition for legacy ones.
pub(super) fn is_legacy(definition: &Object) -> bool {
    match definition.str_at(&["spec", "scope"]) {
        "" => definition.api_version() != "apiextensions.crossplane.io/v2",
        scope => scope == "LegacyCluster",
    }
}

#[cfg(test)]
mod tests;

//! The schema of composite resources: that of the CRD which a control plane generates from a
//! CompositeResourceDefinition (XRD). The definition only controls `spec` and `status`.

use biplane_go::fmt::quote;
use biplane_model::{Map, Object, Value};
use serde_json::json;

use crate::structural::{Schema, SchemaError};

/// The fields of the control plane below `spec` of a legacy composite resource, besides its update
/// policy.
const LEGACY_SPEC: [&str; 7] = [
    "claimRef",
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "resourceRefs",
    "writeConnectionSecretToRef",
];
/// The fields of the control plane below `status`, besides conditions.
const LEGACY_STATUS: [&str; 2] = ["claimConditionTypes", "connectionDetails"];

/// Why a definition gives no schema.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// A version has no schema.
    #[error("cannot derive CRD from XRD {}: custom resource validation cannot be nil", quote(.definition))]
    NoSchema {
        /// The definition's name.
        definition: String,
        /// The position of the version in `spec.versions`.
        version: usize,
    },
    /// It does not define the version.
    #[error("the specified API version '{0}' does not exist in the XRD")]
    NoVersion(String),
    /// The schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Returns the schema of the composite resources of a version, given as group and version.
pub fn schema(definition: &Object, api_version: &str) -> Result<Schema, DefinitionError> {
    let group = definition.str_at(&["spec", "group"]);
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array);
    let mut found = None;
    for (index, version) in versions.into_iter().flatten().enumerate() {
        let schema = version.pointer("/schema/openAPIV3Schema").filter(|s| s.is_object());
        let schema = schema.ok_or_else(|| DefinitionError::NoSchema {
            definition: definition.name().to_owned(),
            version: index,
        })?;
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        if format!("{group}/{name}") == api_version && found.is_none() {
            found = Some(schema);
        }
    }
    let schema = found.ok_or_else(|| DefinitionError::NoVersion(api_version.to_owned()))?;
    let properties = |part: &str| {
        let properties = schema.pointer(&format!("/properties/{part}/properties"));
        properties.and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (mut spec, mut status) = (properties("spec"), properties("status"));
    // Fields of the control plane override fields of the same name. Only one of them has a default.
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

/// Whether the fields of the control plane are directly below `spec`. Upstream reads every
/// definition as version 1 before it generates a CRD, and version 1 has them there by default.
fn has_legacy_fields(definition: &Object) -> bool {
    match definition.at(&["spec", "scope"]) {
        None | Some(Value::Null) => true,
        Some(scope) => scope == "LegacyCluster",
    }
}

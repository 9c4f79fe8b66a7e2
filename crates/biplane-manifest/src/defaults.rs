//! Applies the defaults of a definition (XRD) to fields that a composite resource leaves out.
//!
//! The schema is that of the CRD which the control plane would generate from the definition. The
//! definition only controls `spec` and `status`.

use std::collections::BTreeMap;

use biplane_go::fmt::quote;
use biplane_model::{Map, Object, Value};
use biplane_schema::structural::Schema;
use serde_json::json;

use crate::misfit::Misfit;

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

/// Applies the defaults of a definition to a composite resource.
pub fn apply(composite: &mut Object, definition: &Object) -> Result<(), Misfit> {
    Defaults::of(definition).apply(composite)
}

/// The defaults of a definition, to be applied to many composite resources.
#[derive(Debug)]
pub struct Defaults<'a> {
    definition: &'a Object,
    /// The schemas by version, built when they are first needed.
    schemas: BTreeMap<String, Schema>,
}

impl<'a> Defaults<'a> {
    pub fn of(definition: &'a Object) -> Self {
        Self { definition, schemas: BTreeMap::new() }
    }

    /// Applies the defaults to a composite resource.
    pub fn apply(&mut self, composite: &mut Object) -> Result<(), Misfit> {
        let version = composite.api_version();
        if !self.schemas.contains_key(version) {
            let schema = schema(version, self.definition).map_err(|misfit| {
                let name = quote(composite.name());
                let text = format!("cannot apply XRD defaults to XR {name}: {}", misfit.text);
                Misfit { text, ..misfit }
            })?;
            self.schemas.insert(version.to_owned(), schema);
        }
        if let Some(schema) = self.schemas.get(composite.api_version()) {
            schema.default(composite);
        }
        Ok(())
    }
}

fn schema(api_version: &str, definition: &Object) -> Result<Schema, Misfit> {
    let at = ["spec", "versions"];
    let group = definition.str_at(&["spec", "group"]);
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array);
    let mut found = None;
    for (index, version) in versions.into_iter().flatten().enumerate() {
        let schema = version.pointer("/schema/openAPIV3Schema").filter(|s| s.is_object());
        let schema = schema.ok_or_else(|| {
            let name = quote(definition.name());
            let text = format!(
                "cannot derive CRD from XRD {name}: custom resource validation cannot be nil"
            );
            let index = index.to_string();
            Misfit::new(text, None, Some(&["spec", "versions", &index, "schema"]))
        })?;
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        if format!("{group}/{name}") == api_version && found.is_none() {
            found = Some(schema);
        }
    }
    let Some(schema) = found else {
        let text = format!("the specified API version '{api_version}' does not exist in the XRD");
        return Err(Misfit::new(text, Some(&["apiVersion"]), Some(&at)));
    };
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
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec},
        "status": {"type": "object", "properties": status},
    }});
    Schema::parse(&schema).map_err(|error| Misfit::new(error.to_string(), None, Some(&at)))
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

#[cfg(test)]
mod tests;

//! What an API server decides about CustomResourceDefinitions: defaults, their name, their rules, and
//! whether they are established.

use biplane_model::condition::condition;
use biplane_model::{Object, Value};
use serde_json::json;

use crate::definition;
use crate::structural::{FieldError, Problem};

/// The kind.
pub const KIND: &str = "CustomResourceDefinition";
/// The API version.
pub const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// Sets the defaults of an API server.
pub fn default(crd: &mut Object) {
    let kind = crd.str_at(&["spec", "names", "kind"]).to_owned();
    if crd.str_at(&["spec", "names", "singular"]).is_empty() {
        crd.set_at_or_ignore(&["spec", "names", "singular"], kind.to_lowercase());
    }
    if crd.str_at(&["spec", "names", "listKind"]).is_empty() {
        crd.set_at_or_ignore(&["spec", "names", "listKind"], format!("{kind}List"));
    }
    if crd.at(&["spec", "conversion"]).is_none_or(Value::is_null) {
        crd.set_at_or_ignore(&["spec", "conversion"], json!({"strategy": "None"}));
    }
    let port = ["spec", "conversion", "webhook", "clientConfig", "service", "port"];
    if crd.at(&port[..5]).is_some_and(Value::is_object) && crd.at(&port).is_none_or(Value::is_null)
    {
        crd.set_at_or_ignore(&port, 443);
    }
}

/// Reports a name that does not follow from the names of the kind, and rules that are faulty or may
/// cost too much. If the definition before an update is given, rules of schemas that did not change
/// may cost more.
pub fn validate(crd: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let text = |path: &[&str]| crd.str_at(path).to_owned();
    let (plural, group) = (text(&["spec", "names", "plural"]), text(&["spec", "group"]));
    let mut errors = Vec::new();
    if old.is_none() && crd.name() != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::new(Problem::Invalid, "metadata.name", crd.name(), detail));
    }
    let schemas = schemas(crd);
    // One schema for all versions has a place of its own.
    let shared = match schemas.as_slice() {
        [(_, Some(first)), rest @ ..] => rest.iter().all(|(_, schema)| schema == &Some(*first)),
        _ => false,
    };
    let before = old.map(self::schemas).unwrap_or_default();
    for (place, (name, schema)) in schemas.iter().enumerate() {
        let Some(schema) = schema else { continue };
        let unchanged = before.iter().any(|(old, had)| old == name && had == &Some(*schema));
        let at = if shared {
            "spec.validation".to_owned()
        } else {
            format!("spec.versions[{place}].schema")
        };
        errors.extend(definition::refused(schema, &format!("{at}.openAPIV3Schema"), unchanged));
        if shared {
            break;
        }
    }
    errors
}

/// The versions with their schemas.
fn schemas(crd: &Object) -> Vec<(&str, Option<&Value>)> {
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array);
    versions.into_iter().flatten().map(|version| (name_of(version), schema_of(version))).collect()
}

fn name_of(version: &Value) -> &str {
    version.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn schema_of(version: &Value) -> Option<&Value> {
    version.get("schema")?.get("openAPIV3Schema")
}

/// Whether objects of the kind can be stored.
pub fn is_established(crd: &Object) -> bool {
    condition(crd, "Established").status == "True"
}

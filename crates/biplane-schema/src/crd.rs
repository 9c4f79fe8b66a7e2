//! What an API server decides about CustomResourceDefinitions: defaults, their name, and whether
//! they are established.

use biplane_model::condition::condition;
use biplane_model::{Object, Value};
use serde_json::json;

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

/// Reports a name that does not follow from the names of the kind.
pub fn validate(crd: &Object) -> Vec<FieldError> {
    let text = |path: &[&str]| crd.str_at(path).to_owned();
    let (plural, group) = (text(&["spec", "names", "plural"]), text(&["spec", "group"]));
    if crd.name() == format!("{plural}.{group}") {
        return Vec::new();
    }
    let detail = "must be spec.names.plural+\".\"+spec.group";
    vec![FieldError::new(Problem::Invalid, "metadata.name", crd.name(), detail)]
}

/// Whether objects of the kind can be stored.
pub fn is_established(crd: &Object) -> bool {
    condition(crd, "Established").status == "True"
}

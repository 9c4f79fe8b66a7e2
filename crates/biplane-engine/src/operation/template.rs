//! Decodes the `operationTemplate` of a CronOperation or WatchOperation.
//!
//! Unknown fields are dropped. Required fields are added if the template omits them.

use biplane_model::typed::{self, Names, tables};
use biplane_model::{Object, Value};
use serde_json::json;

/// The template does not match its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(pub String);

/// Returns the Operation of a template, without a name.
pub(super) fn from(parent: &Object) -> Result<Object, TemplateError> {
    let names = if parent.kind() == "CronOperation" {
        Names::CRON_OPERATION
    } else {
        Names::WATCH_OPERATION
    };
    typed::decoded(parent, tables::MAKER, names)
        .map_err(|why| TemplateError(format!("cannot unmarshal JSON to object: {why}")))?;
    let template = parent.at(&["spec", "operationTemplate"]).and_then(Value::as_object);
    let template = template.cloned().unwrap_or_default();
    let mut operation = Object::from(typed::normal(&template, tables::TEMPLATE));
    operation.set_at_or_ignore(&["status"], json!({}));
    Ok(operation)
}

/// Appends to the list at two nested keys, and creates the list if it is missing.
pub(super) fn push(value: &mut Value, outer: &str, inner: &str, item: Value) {
    if !value.is_object() {
        *value = json!({});
    }
    if !value[outer].is_object() {
        value[outer] = json!({});
    }
    match &mut value[outer][inner] {
        Value::Array(items) => items.push(item),
        slot => *slot = json!([item]),
    }
}

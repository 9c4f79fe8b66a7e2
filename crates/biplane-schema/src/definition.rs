//! What an API server refuses about the schema of a CRD when it is stored.
//!
//! [`structure`] wants every field to be described outside of `allOf` and the like, [`keywords`] looks
//! at each part by itself, and [`rules`] at the rules, which can only be judged in a schema that is in
//! order. Defaults are not validated here.

mod keywords;
mod rules;
mod structure;

use biplane_model::Value;

use crate::structural::{FieldError, Problem};

/// Reports what is wrong with an `openAPIV3Schema` at a path. A schema that did not change may have
/// single rules that cost too much.
pub(crate) fn refused(schema: &Value, at: &str, unchanged: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_true(schema, "nullable") {
        let path = format!("{at}.nullable");
        errors.push(forbidden(path, "nullable cannot be true at the root"));
    }
    let structure = structure::check(schema, at);
    let compiles = structure.as_ref().is_some_and(Vec::is_empty);
    errors.extend(structure.unwrap_or_default());
    errors.extend(rules::check(schema, at, unchanged, compiles));
    errors
}

fn forbidden(path: impl Into<String>, detail: &str) -> FieldError {
    FieldError::new(Problem::Forbidden, path, "", detail)
}

fn required(path: impl Into<String>, detail: &str) -> FieldError {
    FieldError::new(Problem::Required, path, "", detail)
}

fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: &str) -> FieldError {
    FieldError::new(Problem::Invalid, path, value, detail)
}

fn not_supported(path: String, value: &str, supported: &[&str]) -> FieldError {
    let supported: Vec<String> = supported.iter().map(|known| format!("\"{known}\"")).collect();
    let detail = format!("supported values: {}", supported.join(", "));
    FieldError::new(Problem::NotSupported, path, value, detail)
}

fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A part of a schema that is a schema.
fn part<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get(name).filter(|part| part.is_object())
}

/// The schemas of a list such as `allOf`.
fn parts<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The schemas of properties, by name.
fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Whether a member has a value that is not the zero value of Go.
fn is_set(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    }
}

//! Checks the keywords of one part of a schema by themselves.

use biplane_model::Value;

use super::{forbidden, invalid, is_set, is_true, not_supported, part, properties, required, text};
use crate::structural::FieldError;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Where a part of a schema stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// Why there may be no default here.
    pub(super) no_default: Option<&'static str>,
    /// Whether it describes the metadata of a resource.
    pub(super) in_metadata: bool,
}

/// What is wrong with the keywords of a part.
pub(super) fn check(schema: &Value, context: Context, at: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let path = |name: &str| format!("{at}.{name}");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(not_supported(path("type"), kind, &TYPES));
    }
    if let Some(reason) = context.no_default
        && schema.get("default").is_some_and(|default| !default.is_null())
    {
        errors.push(forbidden(path("default"), &format!("must not be set {reason}")));
    }
    for name in ["id", "patternProperties", "definitions", "dependencies", "$ref"] {
        if is_set(schema, name) {
            errors.push(forbidden(path(name), &format!("{name} is not supported")));
        }
    }
    if schema.get("additionalItems").is_some_and(|items| !items.is_null()) {
        errors.push(forbidden(path("additionalItems"), "additionalItems is not supported"));
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(forbidden(path("type"), detail));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(forbidden(path("items"), detail));
    }
    if context.in_metadata && is_true(schema, "x-kubernetes-embedded-resource") {
        let name = "x-kubernetes-embedded-resource";
        errors.push(forbidden(path(name), "must not be used inside of resource meta"));
    }
    if is_true(schema, "uniqueItems") {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(forbidden(path("uniqueItems"), detail));
    }
    let additional = schema.get("additionalProperties");
    if matches!(additional, Some(Value::Bool(false) | Value::Object(_)))
        && properties(schema).next().is_some()
    {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(forbidden(path("additionalProperties"), detail));
    }
}

/// What is wrong with the keywords that say how lists and maps are merged.
pub(super) fn check_merging(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    const LIST: &str = "x-kubernetes-list-type";
    const MAP: &str = "x-kubernetes-map-type";
    const KEYS: &str = "x-kubernetes-list-map-keys";
    let path = |name: &str| format!("{at}.{name}");
    let given = |name: &str| schema.get(name).and_then(Value::as_str);
    let kind = text(schema, "type");
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserve) == Some(&Value::Bool(false)) {
        errors.push(invalid(path(preserve), false, "must be true or undefined"));
    }
    for (name, wanted) in [(MAP, "object"), (LIST, "array")] {
        if given(name).is_some() && kind != wanted {
            let detail = format!("must be {wanted} if {name} is specified");
            errors.push(match kind {
                "" => required(path("type"), &detail),
                kind => invalid(path("type"), kind, &detail),
            });
        }
        let known: &[&str] =
            if name == MAP { &["atomic", "granular"] } else { &["atomic", "set", "map"] };
        if let Some(other) = given(name).filter(|name| !known.contains(name)) {
            errors.push(not_supported(path(name), other, known));
        }
    }
    let items = part(schema, "items");
    let list = given(LIST).unwrap_or_default();
    if let (Some(items), "set", "array") = (items, list, kind) {
        let given = |name: &str| items.get(name).and_then(Value::as_str);
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        // The server shows the type of the list of items, even for a map.
        let shown = items.get(LIST).cloned().unwrap_or_default();
        if text(items, "type") == "array" && given(LIST).is_some_and(|list| list != "atomic") {
            errors.push(invalid(format!("{at}.items.{LIST}"), shown, detail));
        } else if text(items, "type") == "object" && given(MAP) != Some("atomic") {
            errors.push(invalid(format!("{at}.items.{MAP}"), shown, detail));
        }
    }
    let keys: Vec<&str> = super::parts(schema, KEYS).iter().filter_map(Value::as_str).collect();
    if !keys.is_empty() && list != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match given(LIST) {
            None => required(path(LIST), detail),
            Some(other) => invalid(path(LIST), other, detail),
        });
    }
    if list == "map" {
        keyed(schema, &keys, at, errors);
    }
    if let (Some(items), "set" | "map") = (items, list)
        && is_true(items, "nullable")
    {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list}");
        errors.push(forbidden(format!("{at}.items.nullable"), &detail));
    }
    if let (Some(items), "map") = (items, list) {
        required_keys(items, &keys, at, errors);
    }
}

/// Checks a list whose items have keys.
fn keyed(schema: &Value, keys: &[&str], at: &str, errors: &mut Vec<FieldError>) {
    let name = "x-kubernetes-list-map-keys";
    let path = format!("{at}.{name}");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(required(&path, detail));
    }
    let Some(items) = part(schema, "items") else {
        if schema.get("items").is_none_or(Value::is_null) {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(required(format!("{at}.items"), detail));
        }
        return;
    };
    let kind = text(items, "type");
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(invalid(format!("{at}.items.type"), kind, detail));
        return;
    }
    let shown = || schema.get(name).cloned().unwrap_or_default();
    let mut seen = Vec::new();
    for key in keys {
        match part(items, "properties").and_then(|properties| properties.get(key)) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let path = format!("{at}.items.properties[{key}].type");
                errors.push(invalid(path, kind, detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(invalid(&path, shown(), detail));
            }
        }
        if seen.contains(&key) {
            errors.push(invalid(&path, shown(), "must not contain duplicate entries"));
        }
        seen.push(key);
    }
}

/// Checks that every item has its keys.
fn required_keys(items: &Value, keys: &[&str], at: &str, errors: &mut Vec<FieldError>) {
    let needed = super::parts(items, "required");
    for key in keys {
        let property = part(items, "properties").and_then(|properties| properties.get(key));
        let Some(property) = property else { continue };
        let at = format!("{at}.items.properties[{key}]");
        let is_required = needed.iter().any(|needed| needed.as_str() == Some(key));
        let has_default = property.get("default").is_some_and(|default| !default.is_null());
        if !is_required && !has_default {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(required(format!("{at}.default"), detail));
        }
        if is_true(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(forbidden(format!("{at}.nullable"), detail));
        }
    }
}

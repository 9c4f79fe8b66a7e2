//! Whether a schema is structural: every field has a type outside of `allOf`, `anyOf`, `oneOf` and
//! `not`, which only restrict what is described elsewhere.

use biplane_go::regex::GoRegex;
use biplane_model::Value;
use serde_json::json;

use super::{forbidden, invalid, is_set, is_true, part, parts, properties, required, text};
use crate::structural::FieldError;

/// What is not structural. `None` if the schema has something that no structural schema has, which
/// is reported as such.
pub(super) fn check(schema: &Value, at: &str) -> Option<Vec<FieldError>> {
    if !is_supported(schema) {
        return None;
    }
    let mut errors = Vec::new();
    invariants(schema, Level::Root, at, &mut errors);
    for (name, value) in restrictions(schema) {
        complete(value, Some(schema), at, &format!("{at}.{name}"), &mut errors);
    }
    errors.sort_by_key(ToString::to_string);
    Some(errors)
}

/// Where a part of a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Whether a schema has nothing that makes it impossible to look at its structure.
fn is_supported(schema: &Value) -> bool {
    const UNSUPPORTED: [&str; 6] =
        ["id", "$schema", "$ref", "patternProperties", "dependencies", "definitions"];
    let odd = UNSUPPORTED.iter().any(|name| is_set(schema, name))
        || schema.get("additionalItems").is_some_and(|items| !items.is_null())
        || schema.get("items").is_some_and(Value::is_array)
        || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false));
    let inner = ["items", "additionalProperties", "not"];
    !odd && inner.iter().filter_map(|name| part(schema, name)).all(is_supported)
        && ["allOf", "anyOf", "oneOf"]
            .iter()
            .all(|name| parts(schema, name).iter().all(is_supported))
        && properties(schema).all(|(_, property)| is_supported(property))
}

fn invariants(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    match part(schema, "items") {
        Some(items) => invariants(items, Level::Item, &format!("{at}.items"), errors),
        None if kind == "array" => {
            errors.push(required(format!("{at}.items"), "must be specified"));
        }
        None => {}
    }
    for (name, property) in properties(schema) {
        invariants(property, Level::Field, &format!("{at}.properties[{name}]"), errors);
    }
    let additional = schema.get("additionalProperties").filter(|inner| !inner.is_null());
    let inner = format!("{at}.additionalProperties");
    if additional.is_some() && level == Level::Root {
        errors.push(forbidden(&inner, "must not be used at the root"));
    }
    if let Some(additional) = additional.filter(|additional| additional.is_object()) {
        invariants(additional, Level::Field, &inner, errors);
    }
    let (int_or_string, embedded, preserve) = (
        is_true(schema, "x-kubernetes-int-or-string"),
        is_true(schema, "x-kubernetes-embedded-resource"),
        is_true(schema, "x-kubernetes-preserve-unknown-fields"),
    );
    for (name, set) in [
        ("x-kubernetes-preserve-unknown-fields", preserve),
        ("x-kubernetes-embedded-resource", embedded),
    ] {
        if int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(invalid(format!("{at}.{name}"), true, detail));
        }
    }
    restricted(schema, is_either(schema.get("anyOf")), at, errors);

    let at_type = format!("{at}.type");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => required(at_type.clone(), detail),
            kind => invalid(at_type.clone(), kind, detail),
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(required(at_type.clone(), detail));
    }
    if embedded && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(forbidden(inner, detail));
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        errors.push(invalid(at_type, kind, "must be object at the root"));
    }
    metadata(schema, level, level == Level::Root || embedded, at, errors);
    if embedded && !preserve && properties(schema).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(required(format!("{at}.properties"), detail));
    }
}

/// Checks the fields that every resource has.
fn metadata(
    schema: &Value,
    level: Level,
    is_resource: bool,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let property = |name: &str| part(schema, "properties").and_then(|all| all.get(name));
    for name in ["kind", "apiVersion"] {
        if let Some(kind) = property(name).map(|property| text(property, "type"))
            && is_resource
            && kind != "string"
        {
            let path = format!("{at}.properties[{name}].type");
            errors.push(invalid(path, kind, "must be string"));
        }
    }
    let Some(metadata) = property("metadata") else { return };
    let at = format!("{at}.properties[metadata]");
    let kind = text(metadata, "type");
    if is_resource && kind != "object" {
        errors.push(invalid(format!("{at}.type"), kind, "must be object"));
    }
    let others = metadata.as_object().into_iter().flatten().any(|(name, _)| {
        !matches!(name.as_str(), "type" | "default" | "properties") && is_set(metadata, name)
    });
    let fields = properties(metadata).all(|(name, _)| matches!(&**name, "name" | "generateName"));
    if level == Level::Root && (others || !fields) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(forbidden(at, detail));
    }
}

/// The members that restrict what is described elsewhere, with their names.
fn restrictions(schema: &Value) -> Vec<(String, &Value)> {
    let mut all: Vec<(String, &Value)> = Vec::new();
    all.extend(part(schema, "not").map(|not| ("not".to_owned(), not)));
    for name in ["allOf", "anyOf", "oneOf"] {
        let listed = parts(schema, name).iter().enumerate();
        all.extend(listed.map(|(place, value)| (format!("{name}[{place}]"), value)));
    }
    all
}

/// Whether something is the list that allows integers and strings.
fn is_either(any_of: Option<&Value>) -> bool {
    any_of == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

/// Checks the members of a schema that restrict it, and its pattern.
fn restricted(schema: &Value, skips_any_of: bool, at: &str, errors: &mut Vec<FieldError>) {
    for (name, value) in restrictions(schema) {
        if skips_any_of && name.starts_with("anyOf") {
            continue;
        }
        let skips = name == "allOf[0]" && is_either(value.get("anyOf"));
        restriction(value, skips, &format!("{at}.{name}"), errors);
    }
    let pattern = text(schema, "pattern");
    if let Err(error) = GoRegex::new(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(invalid(format!("{at}.pattern"), pattern, &detail));
    }
}

/// Checks a schema that only restricts what is described elsewhere.
fn restriction(schema: &Value, skips_any_of: bool, at: &str, errors: &mut Vec<FieldError>) {
    const FORBIDDEN: [(&str, &str); 13] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    restricted(schema, skips_any_of, at, errors);
    if let Some(items) = part(schema, "items") {
        restriction(items, false, &format!("{at}.items"), errors);
    }
    for (name, property) in properties(schema) {
        restriction(property, false, &format!("{at}.properties[{name}]"), errors);
    }
    for (name, detail) in FORBIDDEN {
        let set = match name {
            "default" => schema.get(name).is_some_and(|default| !default.is_null()),
            // An empty schema allows something too.
            "additionalProperties" => part(schema, name).is_some() || is_true(schema, name),
            name => is_set(schema, name),
        };
        if set {
            errors.push(forbidden(format!("{at}.{name}"), detail));
        }
    }
    if properties(schema).any(|(name, _)| name == "metadata") {
        let path = format!("{at}.properties[metadata]");
        errors.push(forbidden(path, "must not be specified in a nested context"));
    }
}

/// Checks that everything that is restricted is described.
fn complete(
    restriction: &Value,
    described: Option<&Value>,
    at: &str,
    restricted_at: &str,
    errors: &mut Vec<FieldError>,
) {
    let because = |at: &str| format!("because it is defined in {at}");
    let Some(described) = described else {
        errors.push(required(at, &because(restricted_at)));
        return;
    };
    for (name, value) in restrictions(restriction) {
        complete(value, Some(described), at, &format!("{restricted_at}.{name}"), errors);
    }
    if let Some(items) = part(restriction, "items") {
        let inner = part(described, "items");
        complete(items, inner, &format!("{at}.items"), &format!("{restricted_at}.items"), errors);
    }
    for (name, property) in properties(restriction) {
        let inner = part(described, "properties").and_then(|properties| properties.get(name));
        let path = format!("properties[{name}]");
        let restricted_at = format!("{restricted_at}.{path}");
        complete(property, inner, &format!("{at}.{path}"), &restricted_at, errors);
    }
}

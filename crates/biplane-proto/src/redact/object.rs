//! Redacts Secrets: an object that is one and, if asked for, those inside other objects.

use serde_json::{Map, Value};

use super::path::{At, Found};
use super::{MARKER, Mode};

/// The annotation in which `kubectl apply` keeps a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How the annotations of other tools that do the same end.
const LAST_APPLIED_SUFFIX: &str = "last-applied-configuration";

const VALUES: [&str; 2] = ["data", "stringData"];

fn is_of_kind(object: &Map<String, Value>, kind: &str) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    text("apiVersion") == Some("v1") && text("kind") == Some(kind)
}

fn is_secret(object: &Map<String, Value>) -> bool {
    is_of_kind(object, "Secret")
}

/// Whether an object may have to be changed. An object that is shared is not copied otherwise.
pub(super) fn may_change(object: &Map<String, Value>, mode: Mode) -> bool {
    match mode {
        Mode::None => false,
        Mode::Shipped | Mode::Clear => is_secret(object),
        Mode::Deep => has_secret(object),
    }
}

fn has_secret(object: &Map<String, Value>) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Object(object) => has_secret(object),
            Value::Array(items) => items.iter().any(within),
            _ => false,
        }
    }
    is_secret(object)
        || is_of_kind(object, "SecretList")
        || object.iter().any(|(key, value)| match value {
            Value::String(_) => key.ends_with(LAST_APPLIED_SUFFIX),
            value => within(value),
        })
}

/// Redacts an object in place.
pub(super) fn redact(object: &mut Map<String, Value>, mode: Mode, at: &At<'_>, found: &mut Found) {
    match mode {
        Mode::None => {}
        Mode::Shipped | Mode::Clear => {
            if is_secret(object) {
                secret(object, mode, at, found);
            }
        }
        Mode::Deep => deep(object, at, found),
    }
}

/// Redacts every Secret in a value.
pub(super) fn deep_value(value: &mut Value, at: &At<'_>, found: &mut Found) {
    match value {
        Value::Object(object) => deep(object, at, found),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                deep_value(item, &at.index(index), found);
            }
        }
        _ => {}
    }
}

fn deep(object: &mut Map<String, Value>, at: &At<'_>, found: &mut Found) {
    if is_secret(object) {
        secret(object, Mode::Deep, at, found);
        return;
    }
    // The items of a list of Secrets need not repeat what they are.
    let of_secrets = is_of_kind(object, "SecretList");
    for (key, value) in object.iter_mut() {
        let at = at.field(key);
        match value {
            Value::Array(items) if of_secrets && key == "items" => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Value::Object(item) = item {
                        secret(item, Mode::Deep, &at.index(index), found);
                    }
                }
            }
            Value::Object(annotations) if key == "annotations" => {
                copies(annotations, &at, found);
                deep(annotations, &at, found);
            }
            value => deep_value(value, &at, found),
        }
    }
}

/// Redacts the copies of objects that annotations hold. A copy that cannot be read is removed.
fn copies(annotations: &mut Map<String, Value>, at: &At<'_>, found: &mut Found) {
    annotations.retain(|key, value| {
        let Value::String(text) = value else { return true };
        if !key.ends_with(LAST_APPLIED_SUFFIX) || text.is_empty() {
            return true;
        }
        let at = at.field(key);
        let Ok(mut copy) = serde_json::from_str::<Value>(text) else {
            found.add(&at);
            return false;
        };
        let mut within = Found::default();
        deep_value(&mut copy, &at, &mut within);
        if within.any() {
            // A path into a text would not lead anywhere.
            found.add(&at);
            *text = biplane_go::json::to_string_with(&copy, biplane_go::json::Style::PROTOJSON);
        }
        true
    });
}

fn secret(object: &mut Map<String, Value>, mode: Mode, at: &At<'_>, found: &mut Found) {
    for field in VALUES {
        let at = at.field(field);
        match (object.get_mut(field), mode) {
            (None | Some(Value::Null), _) => {}
            (Some(_), Mode::Clear) => {
                object.remove(field);
                found.add(&at);
            }
            (Some(Value::Object(values)), _) => {
                for (key, value) in values.iter_mut() {
                    *value = Value::from(MARKER);
                    found.add(&at.field(key));
                }
            }
            // No API server stores such a Secret, but somebody may have written one.
            (Some(value), Mode::Deep) => {
                *value = Value::from(MARKER);
                found.add(&at);
            }
            (Some(_), _) => {}
        }
    }
    let metadata = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(Value::Object(annotations)) = metadata {
        let at = at.field("metadata");
        let at = at.field("annotations");
        annotations.retain(|key, _| {
            let is_copy = match mode {
                Mode::Deep => key.ends_with(LAST_APPLIED_SUFFIX),
                _ => key == LAST_APPLIED,
            };
            if is_copy {
                found.add(&at.field(key));
            }
            !is_copy
        });
    }
}

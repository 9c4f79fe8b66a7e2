//! Redacts messages in JSON, by the same rules as the messages themselves.
//!
//! The JSON may come from any program. Names are recognised in both spellings of protobuf. A value
//! with another shape than the contract's, in a place for secrets, is redacted as a whole.

use serde_json::{Map, Value};

use super::path::{At, Found};
use super::{Half, MARKER_BASE64, Mode, object};

type Redact = fn(&mut Value, Mode, &At<'_>, &mut Found);

pub(super) fn message(value: &mut Value, half: Half, mode: Mode, found: &mut Found) {
    let Value::Object(message) = value else { return };
    if mode == Mode::None {
        return;
    }
    if half == Half::Request && mode == Mode::Clear && has_any(message.get("credentials")) {
        message.remove("credentials");
        found.add(&At::root("credentials"));
    }
    for (key, value) in message.iter_mut() {
        let at = At::root(key);
        match (key.as_str(), half) {
            ("observed", Half::Request) | ("desired", _) => state(value, mode, &at, found),
            (
                "requiredResources" | "required_resources" | "extraResources" | "extra_resources",
                Half::Request,
            ) => each(value, mode, &at, found, items),
            ("credentials", Half::Request) => each(value, mode, &at, found, credentials),
            _ if mode == Mode::Deep => object::deep_value(value, &at, found),
            _ => {}
        }
    }
}

fn has_any(value: Option<&Value>) -> bool {
    !matches!(value, None | Some(Value::Null)) && value != Some(&Value::Object(Map::new()))
}

/// Redacts each entry of a map.
fn each(value: &mut Value, mode: Mode, at: &At<'_>, found: &mut Found, redact: Redact) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                redact(value, mode, &at.field(key), found);
            }
        }
        value => whole(value, at, found),
    }
}

/// Redacts a value as a whole.
fn whole(value: &mut Value, at: &At<'_>, found: &mut Found) {
    if !value.is_null() {
        *value = MARKER_BASE64.into();
        found.add(at);
    }
}

fn state(value: &mut Value, mode: Mode, at: &At<'_>, found: &mut Found) {
    let Value::Object(state) = value else { return whole(value, at, found) };
    for (key, value) in state.iter_mut() {
        let at = at.field(key);
        match key.as_str() {
            "composite" => resource(value, mode, &at, found),
            "resources" => each(value, mode, &at, found, resource),
            _ if mode == Mode::Deep => object::deep_value(value, &at, found),
            _ => {}
        }
    }
}

fn items(value: &mut Value, mode: Mode, at: &At<'_>, found: &mut Found) {
    let Value::Object(resources) = value else { return whole(value, at, found) };
    for (key, value) in resources.iter_mut() {
        let at = at.field(key);
        match (key.as_str(), value) {
            ("items", Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    resource(item, mode, &at.index(index), found);
                }
            }
            // It may be a part of a Secret.
            (_, value) => whole(value, &at, found),
        }
    }
}

fn resource(value: &mut Value, mode: Mode, at: &At<'_>, found: &mut Found) {
    let Value::Object(resource) = value else { return whole(value, at, found) };
    for name in ["connectionDetails", "connection_details"] {
        let at = at.field(name);
        if mode == Mode::Clear {
            if has_any(resource.get(name)) {
                resource.remove(name);
                found.add(&at);
            }
        } else if let Some(details) = resource.get_mut(name) {
            each(details, mode, &at, found, |value, _, at, found| secret_bytes(value, at, found));
        }
    }
    for (key, value) in resource.iter_mut() {
        let at = at.field(key);
        match (key.as_str(), value) {
            ("resource", Value::Object(object)) => object::redact(object, mode, &at, found),
            ("resource", value) => whole(value, &at, found),
            ("connectionDetails" | "connection_details", _) => {}
            (_, value) if mode == Mode::Deep => object::deep_value(value, &at, found),
            _ => {}
        }
    }
}

/// A value that holds a secret, even if it is null.
fn secret_bytes(value: &mut Value, at: &At<'_>, found: &mut Found) {
    *value = MARKER_BASE64.into();
    found.add(at);
}

fn credentials(value: &mut Value, mode: Mode, at: &At<'_>, found: &mut Found) {
    each(value, mode, at, found, |source, mode, at, found| {
        each(source, mode, at, found, |data, mode, at, found| {
            each(data, mode, at, found, |value, _, at, found| secret_bytes(value, at, found));
        });
    });
}

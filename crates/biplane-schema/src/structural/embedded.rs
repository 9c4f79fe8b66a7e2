//! Checks that embedded resources say what they are.

use serde_json::{Map, Value};

use super::error::{FieldError, Problem};
use super::node::Node;

/// Reports embedded resources without an API version or a kind.
pub(super) fn check(map: &Map<String, Value>, node: &Node, path: &str, out: &mut Vec<FieldError>) {
    if node.embedded {
        for name in ["apiVersion", "kind"] {
            if !map.contains_key(name) {
                out.push(FieldError::new(Problem::Required, format!("{path}.{name}"), "", ""));
            }
        }
    }
    for (name, value) in map {
        if let Some(inner) = node.properties.get(name) {
            let dot = if path.is_empty() { "" } else { "." };
            check_value(value, inner, &format!("{path}{dot}{name}"), out);
        } else if let Some(inner) = node.additional.given() {
            check_value(value, inner, &format!("{path}.{name}"), out);
        }
    }
}

fn check_value(value: &Value, node: &Node, path: &str, out: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => check(map, node, path, out),
        Value::Array(items) => {
            let Some(inner) = node.items.as_deref() else { return };
            for (i, item) in items.iter().enumerate() {
                check_value(item, inner, &format!("{path}[{i}]"), out);
            }
        }
        _ => {}
    }
}

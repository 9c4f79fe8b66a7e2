//! Brings an object into the form of its schema: pruned, without disallowed nulls, and defaulted.

use serde_json::{Map, Value};

use super::node::{Additional, Node};

const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes fields that are not in the schema.
pub(super) fn prune(value: &mut Value, node: Option<&Node>) {
    match (value, node) {
        (value, Some(node)) if node.preserve_unknown => prune_known(value, node),
        (Value::Object(map), Some(node)) => prune_fields(map, node, node.embedded),
        (Value::Object(map), None) => map.clear(),
        (Value::Array(items), _) => {
            let inner = node.and_then(|node| node.items.as_deref());
            for item in items {
                prune(item, inner);
            }
        }
        _ => {}
    }
}

/// Removes fields of an object. A resource keeps `apiVersion`, `kind` and `metadata`.
pub(super) fn prune_fields(map: &mut Map<String, Value>, node: &Node, resource: bool) {
    map.retain(|name, _| {
        (resource && META.contains(&name.as_str()))
            || node.properties.contains_key(name)
            || !matches!(node.additional, Additional::Undeclared)
    });
    for (name, field) in map.iter_mut() {
        if resource && META.contains(&name.as_str()) {
            continue;
        }
        prune(field, node.properties.get(name).or_else(|| node.additional.given()));
    }
}

/// If unknown fields are preserved, only known fields are pruned inside.
fn prune_known(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => prune_known_fields(map, node, node.embedded),
        Value::Array(items) => {
            if let Some(inner) = node.items.as_deref() {
                for item in items {
                    prune_known(item, inner);
                }
            }
        }
        _ => {}
    }
}

pub(super) fn prune_known_fields(map: &mut Map<String, Value>, node: &Node, resource: bool) {
    for (name, field) in map.iter_mut() {
        if resource && META.contains(&name.as_str()) {
            continue;
        }
        if let Some(inner) = node.properties.get(name) {
            prune(field, Some(inner));
        } else if !matches!(node.additional, Additional::Undeclared) {
            prune(field, node.additional.given());
        }
    }
}

/// Lists the paths of fields that pruning removed.
pub(super) fn removed(before: &Value, after: &Value, path: &str, paths: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, field) in before {
                let path = format!("{path}.{name}");
                match after.get(name) {
                    Some(left) => removed(field, left, &path, paths),
                    None => paths.push(path),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (index, (item, left)) in before.iter().zip(after).enumerate() {
                removed(item, left, &format!("{path}[{index}]"), paths);
            }
        }
        _ => {}
    }
}

fn field_node<'a>(node: Option<&'a Node>, name: &str) -> Option<&'a Node> {
    let node = node?;
    node.properties.get(name).or_else(|| node.additional.given())
}

/// Removes nulls if the schema does not allow them and has no default.
pub(super) fn drop_nulls(value: &mut Value, node: Option<&Node>) {
    match value {
        Value::Object(map) => {
            map.retain(|name, field| {
                let stray = |inner: &Node| !inner.nullable && inner.default.is_none();
                !(field.is_null() && field_node(node, name).is_some_and(stray))
            });
            for (name, field) in map.iter_mut() {
                drop_nulls(field, field_node(node, name));
            }
        }
        Value::Array(items) => {
            let inner = node.and_then(|node| node.items.as_deref());
            for item in items {
                drop_nulls(item, inner);
            }
        }
        _ => {}
    }
}

/// Sets defaults, also for nulls if the schema does not allow them.
pub(super) fn default(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => {
            for (name, property) in &node.properties {
                let Some(default) = &property.default else { continue };
                if map.get(name).is_none_or(|v| v.is_null() && !property.nullable) {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in map.iter_mut() {
                if let Some(property) = node.properties.get(name) {
                    self::default(field, property);
                } else if let Some(inner) = node.additional.given() {
                    fill_null(field, inner);
                    self::default(field, inner);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = node.items.as_deref() else { return };
            for item in items {
                fill_null(item, inner);
                self::default(item, inner);
            }
        }
        _ => {}
    }
}

fn fill_null(value: &mut Value, node: &Node) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or_default();
    }
}

//! Checks that items are unique in lists that are sets or maps.

use biplane_go::json;
use serde_json::{Map, Value};

use super::error::{FieldError, Problem};
use super::node::{ListKind, Node};

/// Reports every duplicate item, at its first repetition.
pub(super) fn check(map: &Map<String, Value>, node: &Node, path: &str, out: &mut Vec<FieldError>) {
    if let Some(inner) = node.additional.given() {
        for (name, value) in map {
            check_value(value, inner, &format!("{path}[{name}]"), out);
        }
    }
    for (name, value) in map {
        if let Some(inner) = node.properties.get(name) {
            let dot = if path.is_empty() { "" } else { "." };
            check_value(value, inner, &format!("{path}{dot}{name}"), out);
        }
    }
}

fn check_value(value: &Value, node: &Node, path: &str, out: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => check(map, node, path, out),
        Value::Array(items) => {
            match &node.list {
                ListKind::Atomic => {}
                ListKind::Set => {
                    let shown = items.clone();
                    duplicates(&shown, path, out);
                }
                ListKind::Map(keys) => check_map(items, keys, path, out),
            }
            if let Some(inner) = node.items.as_deref() {
                for (i, item) in items.iter().enumerate() {
                    check_value(item, inner, &format!("{path}[{i}]"), out);
                }
            }
        }
        _ => {}
    }
}

fn check_map(items: &[Value], keys: &[String], path: &str, out: &mut Vec<FieldError>) {
    let odd = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some((i, item)) = odd.and_then(|i| Some((i, items.get(i)?))) {
        let detail = "must be an object for an array of list-type map";
        let field = format!("{path}[{i}]");
        out.push(FieldError::new(Problem::Invalid, field, item.clone(), detail));
        return;
    }
    let of_item = |item: &Value| {
        let fields = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(fields.collect())
    };
    let identities: Vec<Value> = items.iter().map(of_item).collect();
    duplicates(&identities, path, out);
}

fn duplicates(items: &[Value], path: &str, out: &mut Vec<FieldError>) {
    let mut seen: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        let times = seen.entry(json::to_string(item)).or_default();
        *times += 1;
        if *times == 2 {
            let field = format!("{path}[{i}]");
            out.push(FieldError::new(Problem::Duplicate, field, item.clone(), ""));
        }
    }
}

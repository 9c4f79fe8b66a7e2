//! Unpacks lists of objects, as printed by `kubectl get` for several objects.

use biplane_model::{Object, Value};

/// The objects of a list and of nested lists, each with its path. Any other object is returned
/// unchanged.
pub(super) fn unpacked(object: Object) -> Vec<(Object, Vec<String>)> {
    let mut found = Vec::new();
    unpack(object, Vec::new(), &mut found);
    found
}

fn unpack(object: Object, within: Vec<String>, found: &mut Vec<(Object, Vec<String>)>) {
    let Some(items) = items(&object) else {
        found.push((object, within));
        return;
    };
    let (api_version, kind) = (object.api_version(), object.kind().strip_suffix("List"));
    for (index, mut item) in items.into_iter().enumerate() {
        // In a typed list, the items may omit their kind.
        if let Some(kind) = kind.filter(|kind| !kind.is_empty() && item.kind().is_empty()) {
            item.set_at_or_ignore(&["kind"], kind);
            item.set_at_or_ignore(&["apiVersion"], api_version);
        }
        let step = ["items".to_owned(), index.to_string()];
        unpack(item, [within.as_slice(), &step].concat(), found);
    }
}

/// The items, if the object is a list.
fn items(object: &Object) -> Option<Vec<Object>> {
    if !object.kind().ends_with("List") {
        return None;
    }
    match object.get("items") {
        Some(Value::Array(items)) => items.iter().cloned().map(Object::from_value).collect(),
        None | Some(Value::Null) if is_plain(object) => Some(Vec::new()),
        _ => None,
    }
}

/// Whether it is a `List`, whose items may have any kind.
fn is_plain(object: &Object) -> bool {
    object.api_version() == "v1" && object.kind() == "List"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds(value: Value) -> Vec<String> {
        let found = unpacked(Object::from_value(value).unwrap());
        let line = |(object, within): &(Object, Vec<String>)| {
            format!("{} {} {}", within.join("."), object.api_version(), object.kind())
        };
        found.iter().map(line).collect()
    }

    #[test]
    fn lists_come_apart() {
        let list =
            |kind: &str, items: Value| json!({"apiVersion": "v1", "kind": kind, "items": items});
        let (a, b) = (json!({"apiVersion": "g/v1", "kind": "A"}), json!({"kind": "B"}));
        assert_eq!(kinds(list("List", json!([a, b]))), ["items.0 g/v1 A", "items.1  B"]);
        assert_eq!(kinds(list("List", json!([]))), [""; 0]);
        assert_eq!(kinds(list("List", json!(null))), [""; 0]);
        assert_eq!(kinds(json!({"apiVersion": "v1", "kind": "List"})), [""; 0]);
        let inner = list("List", json!([a]));
        assert_eq!(
            kinds(list("List", json!([b, inner]))),
            ["items.0  B", "items.1.items.0 g/v1 A"]
        );
        let plain = json!({"metadata": {"name": "a"}});
        assert_eq!(kinds(list("ConfigMapList", json!([plain]))), ["items.0 v1 ConfigMap"]);
        // The item has no kind, because neither it nor the list declares one.
        assert_eq!(kinds(list("List", json!([plain]))), ["items.0  "]);
    }

    #[test]
    fn what_only_looks_like_a_list_is_left_as_it_is() {
        for value in [
            json!({"apiVersion": "g/v1", "kind": "Allowlist", "items": [{}]}),
            json!({"apiVersion": "g/v1", "kind": "AllowList", "items": ["10.0.0.0/8"]}),
            json!({"apiVersion": "g/v1", "kind": "AllowList", "items": {"a": {}}}),
            json!({"apiVersion": "g/v1", "kind": "AllowList", "spec": {}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "items": []}),
        ] {
            let object = Object::from_value(value).unwrap();
            assert_eq!(unpacked(object.clone()), [(object, vec![])]);
        }
    }
}

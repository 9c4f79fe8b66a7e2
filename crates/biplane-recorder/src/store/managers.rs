//! Tells from the managed fields of an object who else has set a field.

use std::collections::BTreeSet;

use biplane_model::fieldpath::{FieldPath, Segment};
use serde_json::Value;

/// The name under which the control plane itself sets fields begins so.
const OURS: &str = "apiextensions.crossplane.io/compos";

/// Who else has set a field, as the managed fields of an object tell.
pub fn managers_of(body: &Value, path: &str) -> Vec<String> {
    let Ok(path) = FieldPath::parse(path) else { return Vec::new() };
    let entries = body.pointer("/metadata/managedFields").and_then(Value::as_array);
    let manager = |entry: &Value| {
        let name = entry.get("manager")?.as_str().filter(|name| !name.starts_with(OURS))?;
        owns(entry.get("fieldsV1")?, body, path.segments()).then(|| name.to_owned())
    };
    let found: BTreeSet<String> = entries.into_iter().flatten().filter_map(manager).collect();
    found.into_iter().collect()
}

/// Whether a set of fields has the one at a path. `value` is what the set is about.
fn owns(set: &Value, value: &Value, path: &[Segment]) -> bool {
    let Some(set) = set.as_object() else { return false };
    let Some((segment, rest)) = path.split_first() else { return true };
    // A set without members is about a whole list or object.
    if set.is_empty() {
        return true;
    }
    match segment {
        Segment::Field(name) => {
            let below = value.get(name).unwrap_or(&Value::Null);
            set.get(&format!("f:{name}")).is_some_and(|set| owns(set, below, rest))
        }
        Segment::Index(at) => {
            let item = value.get(*at as usize).unwrap_or(&Value::Null);
            set.iter().any(|(key, set)| is_item(key, item, *at) && owns(set, item, rest))
        }
    }
}

/// Whether a member of a set is an item of a list: by its fields, its value or its position.
fn is_item(key: &str, item: &Value, at: u32) -> bool {
    if let Some(fields) = key.strip_prefix("k:") {
        let fields: Value = serde_json::from_str(fields).unwrap_or_default();
        return fields.as_object().is_some_and(|fields| {
            fields
                .iter()
                .all(|(name, value)| item.get(name).is_some_and(|own| is_equal(own, value)))
        });
    }
    if let Some(value) = key.strip_prefix("v:") {
        let value: Value = serde_json::from_str(value).unwrap_or_default();
        return is_equal(item, &value);
    }
    key == format!("i:{at}")
}

/// Numbers of payloads are all floating point.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_tell_who_set_a_field() {
        let body = json!({
            "metadata": {"managedFields": [
                {"manager": "apiextensions.crossplane.io/composed/abc",
                    "fieldsV1": {"f:spec": {"f:replicas": {}, "f:ports": {}}}},
                {"manager": "autoscaler", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                {"manager": "editor", "fieldsV1": {"f:spec": {
                    "f:rules": {"k:{\"name\":\"a\",\"port\":80}": {".": {}, "f:days": {}}},
                    "f:finalizers": {"v:\"keep\"": {}}}}},
                {"manager": "sloppy"},
                {"fieldsV1": {"f:spec": {}}},
            ]},
            "spec": {
                "replicas": 3.0, "ports": [80.0], "finalizers": ["drop", "keep"],
                "rules": [{"name": "b", "port": 80.0}, {"name": "a", "port": 80.0, "days": 5.0}],
            },
        });
        let found = |path: &str| managers_of(&body, path);
        assert_eq!(found("spec.replicas"), ["autoscaler"]);
        assert_eq!(found("spec.rules[1].days"), ["editor"]);
        assert_eq!(found("spec.finalizers[1]"), ["editor"]);
        for path in ["spec.ports[0]", "spec.rules[0].days", "spec.finalizers[0]", "status.x", "a["]
        {
            assert_eq!(found(path), Vec::<String>::new(), "{path}");
        }
    }
}

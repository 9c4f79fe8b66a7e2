//! Describes the difference between two states of the cluster in a sentence.

use biplane_model::{ObjectId, Value};

use super::cluster::Objects;

/// How many objects of each kind of change are named. The rest are counted.
const NAMED: usize = 5;

/// The difference between two states.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) created: Vec<ObjectId>,
    /// With the fields that differ.
    pub(super) changed: Vec<(ObjectId, Vec<String>)>,
    pub(super) deleted: Vec<ObjectId>,
}

impl Changes {
    pub(super) fn between(before: &Objects, after: &Objects) -> Self {
        let mut changes = Self::default();
        for (id, object) in after {
            match before.get(id) {
                None => changes.created.push(id.clone()),
                Some(old) if old == object => {}
                Some(old) => {
                    let mut fields = Vec::new();
                    differences("", &old.to_value(), &object.to_value(), &mut fields);
                    changes.changed.push((id.clone(), fields));
                }
            }
        }
        let is_gone = |id: &&ObjectId| !after.contains_key(*id);
        changes.deleted.extend(before.keys().filter(is_gone).cloned());
        changes
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `created a, b; changed c (status.x); deleted d`
impl std::fmt::Display for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids = |ids: &[ObjectId]| list(ids.iter().map(ToString::to_string));
        let changed = self.changed.iter();
        let changed = list(changed.map(|(id, fields)| {
            let fields = list(fields.iter().cloned());
            format!("{id} ({fields})")
        }));
        let parts = [
            ("created", ids(&self.created)),
            ("changed", changed),
            ("deleted", ids(&self.deleted)),
        ];
        let parts = parts.iter().filter(|(_, what)| !what.is_empty());
        let parts: Vec<_> = parts.map(|(verb, what)| format!("{verb} {what}")).collect();
        f.write_str(&if parts.is_empty() { "nothing changed".to_owned() } else { parts.join("; ") })
    }
}

/// Names the first few items.
pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    match items.split_at_checked(NAMED) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ => items.join(", "),
    }
}

/// The paths of all differences, down to the deepest common fields. Conditions are matched by type.
fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    if before == after {
        return;
    }
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            let mut keys: Vec<_> = before.keys().chain(added).collect();
            keys.sort();
            for key in keys {
                let side =
                    |map: &biplane_model::Map<_, _>| map.get(key).cloned().unwrap_or_default();
                differences(&below(key), &side(before), &side(after), found);
            }
        }
        (Value::Array(before), Value::Array(after)) if path == "status.conditions" => {
            let with_type = |all: &[Value], wanted: &Value| {
                all.iter().find(|condition| condition.get("type") == Some(wanted)).cloned()
            };
            let types = before.iter().chain(after).filter_map(|condition| condition.get("type"));
            let mut seen = Vec::new();
            for wanted in types {
                if seen.contains(&wanted) || with_type(before, wanted) == with_type(after, wanted) {
                    continue;
                }
                seen.push(wanted);
                found.push(format!("{path}[{}]", wanted.as_str().unwrap_or_default()));
            }
            if seen.is_empty() {
                found.push(path.to_owned());
            }
        }
        _ => found.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use biplane_model::Object;
    use serde_json::json;

    use super::*;

    fn state(objects: &[(&str, Value)]) -> Objects {
        let object = |(name, status): &(&str, Value)| {
            let meta = json!({"name": name});
            let object = json!({"apiVersion": "v1", "kind": "A", "metadata": meta,
                "status": status});
            let object = Object::from_value(object).unwrap();
            (object.id(), object)
        };
        objects.iter().map(object).collect()
    }

    fn said(before: &[(&str, Value)], after: &[(&str, Value)]) -> String {
        Changes::between(&state(before), &state(after)).to_string()
    }

    #[test]
    fn everything_that_differs_is_named() {
        assert_eq!(
            said(
                &[("a", json!({"x": 1, "y": {"z": 1}})), ("b", json!({})), ("d", json!({}))],
                &[
                    ("a", json!({"x": 1, "y": {"z": 2, "n": 1}})),
                    ("b", json!({})),
                    ("c", json!({}))
                ],
            ),
            "created A c; changed A a (status.y.n, status.y.z); deleted A d"
        );
        assert_eq!(said(&[("a", json!({}))], &[("a", json!({}))]), "nothing changed");
    }

    #[test]
    fn conditions_are_named_by_their_type() {
        let conditions = |ready: &str| json!({"conditions": [{"type": "Synced"}, {"type": "Ready", "status": ready}]});
        assert_eq!(
            said(&[("a", conditions("False"))], &[("a", conditions("True"))]),
            "changed A a (status.conditions[Ready])"
        );
        // A different order is also a difference.
        let reversed =
            json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced"}]});
        assert_eq!(
            said(&[("a", conditions("True"))], &[("a", reversed)]),
            "changed A a (status.conditions)"
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let after: Vec<_> = names.iter().map(|name| (*name, json!({}))).collect();
        assert_eq!(said(&[], &after[..5]), "created A a, A b, A c, A d, A e");
        assert_eq!(said(&[], &after), "created A a, A b, A c, A d, A e and 2 more");
    }
}

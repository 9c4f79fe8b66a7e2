//! Differences between two states of an owner: its composite resource and its composed resources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::difference::{self, Difference};
use super::record::ObjectRef;

/// The slot of the composite resource itself.
pub const COMPOSITE: &str = "";

/// How a slot differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotChange {
    /// Only the second state has it.
    Added,
    /// Only the first state has it.
    Removed,
    /// Both have it, and they differ.
    Changed,
    /// Both have it, and they are equal as far as is known.
    Unchanged,
}

/// One slot in two states.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotDifference {
    /// The name of the composed resource; empty for the composite resource.
    pub slot: String,
    /// The object.
    pub object: ObjectRef,
    /// How it differs.
    pub change: SlotChange,
    /// The differences of the body. Empty unless it changed.
    pub body: Difference,
    /// Readiness before and after, if it differs.
    pub ready: Option<(String, String)>,
    /// Keys of connection details that only one state has, with `true` if it is the second.
    pub connection: Vec<(String, bool)>,
}

/// The slots of a state by name, the composite resource first.
pub fn slots(state: Option<&Value>) -> Vec<(&str, &Value)> {
    let Some(state) = state else { return Vec::new() };
    let composite = state.get("composite").map(|composite| (COMPOSITE, composite));
    let composed = state.get("resources").and_then(Value::as_object);
    let composed = composed.into_iter().flatten().map(|(name, slot)| (name.as_str(), slot));
    composite.into_iter().chain(composed).collect()
}

/// One slot of a state.
pub fn slot<'a>(state: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    let state = state?;
    let composite = if name == COMPOSITE { state.get("composite") } else { None };
    composite.or_else(|| state.get("resources")?.as_object()?.get(name))
}

/// The body of a slot.
pub fn body(slot: &Value) -> &Value {
    slot.get("resource").unwrap_or(&Value::Null)
}

/// Whether a body was not read: its key, a whole number, stands for it.
pub fn is_unread(slot: &Value) -> bool {
    body(slot).as_i64().is_some()
}

/// The readiness of a slot.
pub fn ready(slot: &Value) -> &str {
    match slot.get("ready").and_then(Value::as_str) {
        Some("READY_TRUE") => "true",
        Some("READY_FALSE") => "false",
        _ => "unspecified",
    }
}

/// Compares two states slot by slot. After `nodes` values, bodies are compared as a whole.
pub fn compare(
    before: Option<&Value>,
    after: Option<&Value>,
    nodes: &mut usize,
) -> Vec<SlotDifference> {
    let compared = pairs(before, after).into_iter();
    compared.map(|(name, (before, after))| one(name, before, after, nodes)).collect()
}

/// The slots of two states by name.
pub fn pairs<'a>(
    before: Option<&'a Value>,
    after: Option<&'a Value>,
) -> BTreeMap<&'a str, (Option<&'a Value>, Option<&'a Value>)> {
    let mut pairs: BTreeMap<&str, (Option<&Value>, Option<&Value>)> = BTreeMap::new();
    for (name, slot) in slots(before) {
        pairs.entry(name).or_default().0.get_or_insert(slot);
    }
    for (name, slot) in slots(after) {
        pairs.entry(name).or_default().1.get_or_insert(slot);
    }
    pairs
}

/// Compares one slot.
pub fn one(
    name: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    nodes: &mut usize,
) -> SlotDifference {
    let object = ObjectRef::of_object(after.or(before).map_or(&Value::Null, body));
    let slot = name.to_owned();
    let found = |change, body, ready, connection| SlotDifference {
        slot: slot.clone(),
        object: object.clone(),
        change,
        body,
        ready,
        connection,
    };
    match (before, after) {
        (Some(before), Some(after)) => {
            let difference = if is_unread(before) && is_unread(after) {
                // They differ, or are equal, as their keys do.
                let is_coarse = body(before) != body(after);
                Difference { is_coarse, ..Difference::default() }
            } else {
                difference::within(body(before), body(after), nodes)
            };
            let readiness = (ready(before) != ready(after))
                .then(|| (ready(before).to_owned(), ready(after).to_owned()));
            let connection = connection(before, after);
            let same = difference.is_empty()
                && !difference.is_coarse
                && readiness.is_none()
                && connection.is_empty();
            let change = if same { SlotChange::Unchanged } else { SlotChange::Changed };
            found(change, difference, readiness, connection)
        }
        (Some(_), None) => found(SlotChange::Removed, Difference::default(), None, Vec::new()),
        (None, Some(_)) => found(SlotChange::Added, Difference::default(), None, Vec::new()),
        (None, None) => found(SlotChange::Unchanged, Difference::default(), None, Vec::new()),
    }
}

fn connection(before: &Value, after: &Value) -> Vec<(String, bool)> {
    let keys = |slot: &Value| -> BTreeSet<String> {
        let details = slot.get("connectionDetails").and_then(Value::as_object);
        details.into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let (was, is) = (keys(before), keys(after));
    was.symmetric_difference(&is).map(|key| (key.clone(), is.contains(key))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn states_are_compared_slot_by_slot() {
        use SlotChange::{Added, Changed, Removed, Unchanged};
        let before = json!({
            "composite": {"resource": {"kind": "Store", "spec": {"size": 3}}},
            "resources": {
                "gone": {"resource": {"kind": "A"}},
                "kept": {"resource": {"kind": "B", "spec": {"x": 1}}, "ready": "READY_FALSE"},
                "same": {"resource": {"kind": "C"}},
            },
        });
        let after = json!({
            "composite": {"resource": {"kind": "Store", "spec": {"size": 3}},
                "connectionDetails": {"user": "KipSRURBQ1RFRCoq"}},
            "resources": {
                "kept": {"resource": {"kind": "B", "spec": {"x": 2}}, "ready": "READY_TRUE"},
                "new": {"resource": {"kind": "D", "metadata": {"name": "d"}}},
                "same": {"resource": {"kind": "C"}},
            },
        });
        let mut nodes = difference::NODES;
        let found = compare(Some(&before), Some(&after), &mut nodes);
        let summary: Vec<_> = found.iter().map(|s| (s.slot.as_str(), s.change)).collect();
        let want = [
            ("", Changed),
            ("gone", Removed),
            ("kept", Changed),
            ("new", Added),
            ("same", Unchanged),
        ];
        assert_eq!(summary, want);
        assert_eq!(found[0].connection, [("user".to_owned(), true)]);
        assert_eq!(found[2].ready, Some(("false".to_owned(), "true".to_owned())));
        assert_eq!(found[2].body.changes.len(), 1);
        assert_eq!(found[3].object.name, "d");
        assert_eq!(compare(None, None, &mut nodes), []);
    }
}

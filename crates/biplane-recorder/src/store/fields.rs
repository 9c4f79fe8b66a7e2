//! Which fields differ between two bodies.

use std::collections::BTreeSet;

use biplane_model::fieldpath::{self, Segment};
use serde_json::Value;

/// So many fields of a version are stored.
pub(super) const MOST_FIELDS: usize = 64;

/// A longer value is cut.
const MOST_BYTES: usize = 200;

/// A field that differs: path, value before and after as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// Fields that change by themselves and mean nothing.
fn is_bookkeeping(path: &[Segment]) -> bool {
    let field = |at: usize| match path.get(at) {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    let meta = field(0) == "metadata"
        && ["resourceVersion", "generation", "managedFields"].contains(&field(1));
    let last = match path.last() {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    let condition = field(0) == "status" && field(1) == "conditions";
    meta || (condition && ["lastTransitionTime", "observedGeneration"].contains(&last))
}

/// Compares two bodies, and returns at most [`MOST_FIELDS`]. Lists are compared by position.
pub(super) fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(Some(before), Some(after), &mut Vec::new(), &mut found);
    found
}

fn compare(
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut Vec<Segment>,
    found: &mut Vec<Difference>,
) {
    if before == after || found.len() >= MOST_FIELDS || is_bookkeeping(path) {
        return;
    }
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                path.push(Segment::Field(key.clone()));
                compare(old.get(key), new.get(key), path, found);
                path.pop();
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for at in 0..old.len().max(new.len()) {
                path.push(Segment::Index(at as u32));
                compare(old.get(at), new.get(at), path, found);
                path.pop();
            }
        }
        _ => found.push(Difference {
            path: fieldpath::print(path),
            before: before.map(short),
            after: after.map(short),
        }),
    }
}

/// A value as JSON that is not too long.
fn short(value: &Value) -> String {
    let mut text = biplane_go::json::to_string_with(value, biplane_go::json::Style::PROTOJSON);
    if text.len() > MOST_BYTES {
        let cut = (0..=MOST_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// The paths of all values in a body, to tell whether another body also has them.
pub(super) fn paths(body: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(body, &mut Vec::new(), &mut found);
    found
}

/// The value of a body at a path, in the form of differences.
pub(super) fn value(body: &Value, wanted: &str) -> Option<String> {
    let path = fieldpath::FieldPath::parse(wanted).ok()?;
    let found = path.segments().iter().try_fold(body, |value, segment| match segment {
        Segment::Field(name) => value.as_object()?.get(name),
        Segment::Index(at) => value.as_array()?.get(*at as usize),
    });
    found.map(short)
}

fn collect(value: &Value, path: &mut Vec<Segment>, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                path.push(Segment::Field(key.clone()));
                collect(value, path, found);
                path.pop();
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                path.push(Segment::Index(at as u32));
                collect(value, path, found);
                path.pop();
            }
        }
        _ => {
            found.insert(fieldpath::print(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bookkeeping_is_no_difference() {
        let before = json!({
            "metadata": {"resourceVersion": "1", "generation": 1, "name": "a"},
            "spec": {"size": 3, "rules": [{"days": 30}, {"days": 1}], "gone": true},
            "status": {"conditions": [{"type": "Ready", "lastTransitionTime": "1"}]},
        });
        let after = json!({
            "metadata": {"resourceVersion": "2", "generation": 2, "name": "a"},
            "spec": {"size": 5, "rules": [{"days": 14}, {"days": 1}], "a.b": "new"},
            "status": {"conditions": [{"type": "Ready", "lastTransitionTime": "2"}]},
        });
        let difference = |path: &str, before: Option<&str>, after: Option<&str>| Difference {
            path: path.into(),
            before: before.map(Into::into),
            after: after.map(Into::into),
        };
        assert_eq!(
            differences(&before, &after),
            [
                difference("spec[a.b]", None, Some("\"new\"")),
                difference("spec.gone", Some("true"), None),
                difference("spec.rules[0].days", Some("30"), Some("14")),
                difference("spec.size", Some("3"), Some("5")),
            ]
        );
    }

    #[test]
    fn long_values_are_cut_and_many_fields_are_left_out() {
        let before = json!({"text": ""});
        let found = differences(&before, &json!({"text": "ä".repeat(500)}));
        let after = found[0].after.clone().unwrap();
        assert!(after.len() < 210 && after.ends_with('…'), "{after}");
        let many: Value =
            (0..1000).map(|n| (n.to_string(), json!(n))).collect::<serde_json::Map<_, _>>().into();
        assert_eq!(differences(&json!({}), &many).len(), MOST_FIELDS);
    }
}

//! From the engine's answer to documents on stdout.

use std::io::Write;

use anyhow::{Context, Result};
use biplane_go::json;
use biplane_model::labels::RESOURCE_NAME;
use biplane_model::{Map, Object, Value, yaml};
use biplane_proto::render::v1alpha1::Event;
use serde_json::json;

use crate::options::Format;
use crate::{API_VERSION, RENDER_TIME};

/// Replaces the times of an object's conditions. Other engines use the time of day.
pub(crate) fn settle_times(object: &mut Object) {
    let Some(Value::Array(conditions)) = object.at(&["status", "conditions"]) else { return };
    let mut conditions = conditions.clone();
    for condition in &mut conditions {
        if let Some(time) = condition.get_mut("lastTransitionTime") {
            *time = RENDER_TIME.into();
        }
    }
    object.set_at(&["status", "conditions"], conditions);
}

/// Sorts composed resources by the name that the pipeline gave them.
pub(crate) fn sort(composed: &mut [Object]) {
    composed.sort_by(|a, b| a.annotation(RESOURCE_NAME).cmp(b.annotation(RESOURCE_NAME)));
}

/// Lays one object over another: objects are merged, everything else is replaced.
pub(crate) fn overlay(below: &mut Map<String, Value>, above: &Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => overlay(below, above),
            (Some(below), _) => below.clone_from(value),
            (None, _) => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A Result document.
pub(crate) fn result(event: &Event) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Result",
        "severity": event.r#type,
        "reason": event.reason,
        "message": event.message,
    })
}

/// Writes documents.
pub(crate) fn write(documents: &[Value], format: Format, out: &mut dyn Write) -> Result<()> {
    let text = match format {
        Format::Json => documents.iter().map(|document| json::to_string(document) + "\n").collect(),
        Format::Yaml => yaml::write_documents(documents),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write documents")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RX-22, T-19
    #[test]
    fn objects_merge_and_everything_else_is_replaced() {
        let mut below = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1, "e": {"f": 1}});
        let above = json!({"a": {"c": [3], "g": 1}, "d": null, "e": "text"});
        overlay(below.as_object_mut().unwrap(), above.as_object().unwrap());
        assert_eq!(below, json!({"a": {"b": 1, "c": [3], "g": 1}, "d": null, "e": "text"}));
    }

    /// RX-24, T-35
    #[test]
    fn only_times_that_exist_are_replaced() {
        let with = |status: Value| Object::from_value(json!({"status": status})).unwrap();
        for (before, after) in [
            (json!({"phase": "x"}), json!({"phase": "x"})),
            (
                json!({"conditions": [{"type": "A", "lastTransitionTime": "now", "more": 1}]}),
                json!({"conditions": [{"type": "A", "lastTransitionTime": RENDER_TIME, "more": 1}]}),
            ),
            (json!({"conditions": [{"type": "A"}]}), json!({"conditions": [{"type": "A"}]})),
            (json!({"conditions": "none"}), json!({"conditions": "none"})),
        ] {
            let mut object = with(before);
            settle_times(&mut object);
            assert_eq!(object, with(after));
        }
    }
}

//! From the engine's answer to documents on stdout.

use std::io::Write;

use anyhow::{Context, Result, bail};
use biplane_model::condition::Condition;
use biplane_model::{Map, Object, Value, gojson, yaml};
use biplane_proto::render::v1alpha1::Event;
use serde_json::json;

use super::flags::OutputFormat;
use super::{API_VERSION, RENDER_TIME};

/// What composed resources are sorted by.
pub(super) const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";

/// Replaces the times of an object's conditions, so that two runs print the same.
///
/// Every condition gets a time, a reason and nothing that conditions do not have; a status without
/// conditions gets null for them. Whatever cannot be read as conditions stays as it is, but a status
/// that is null is refused.
pub(super) fn settle_times(object: &mut Object) -> Result<()> {
    let conditions = match object.get("status") {
        Some(Value::Null) => bail!("cannot set condition timestamps: status is not an object"),
        Some(Value::Object(status)) => match status.get("conditions") {
            None | Some(Value::Null) => Value::Null,
            Some(conditions) => match serde_json::from_value::<Vec<_>>(conditions.clone()) {
                Ok(conditions) => conditions.into_iter().map(settled).collect(),
                Err(_) => return Ok(()),
            },
        },
        _ => return Ok(()),
    };
    object.set_at(&["status", "conditions"], conditions);
    Ok(())
}

fn settled(condition: Option<Condition>) -> Value {
    let mut condition = condition.unwrap_or_default();
    condition.last_transition_time = Some(RENDER_TIME.to_owned());
    json!(condition)
}

/// Sorts composed resources by the name that the pipeline gave them.
pub(super) fn sort(composed: &mut [Object]) {
    composed.sort_by(|a, b| a.annotation(RESOURCE_NAME).cmp(b.annotation(RESOURCE_NAME)));
}

/// Lays one object over another: objects are merged, everything else is replaced.
pub(super) fn overlay(below: &mut Map<String, Value>, above: &Map<String, Value>) {
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
pub(super) fn result(event: &Event) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Result",
        "severity": event.r#type,
        "reason": event.reason,
        "message": event.message,
    })
}

/// Writes documents.
pub(super) fn write(documents: &[Value], format: OutputFormat, out: &mut dyn Write) -> Result<()> {
    let text = match format {
        OutputFormat::Json => {
            documents.iter().map(|document| gojson::to_string(document) + "\n").collect()
        }
        OutputFormat::V1 | OutputFormat::V2 => yaml::write_documents(documents),
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
    fn conditions_are_printed_in_one_shape_with_one_time() {
        let with = |status: Value| Object::from_value(json!({"status": status})).unwrap();
        let plain =
            json!({"type": "A", "status": "", "reason": "", "lastTransitionTime": RENDER_TIME});
        for (before, after) in [
            (json!({"phase": "x"}), json!({"phase": "x", "conditions": null})),
            (json!({}), json!({"conditions": null})),
            (json!({"conditions": []}), json!({"conditions": []})),
            (
                json!({"conditions": [{"type": "A", "lastTransitionTime": "2031-01-01T00:00:00Z", "more": 1}]}),
                json!({"conditions": [plain]}),
            ),
            (json!({"conditions": [{"type": "A"}]}), json!({"conditions": [plain]})),
            (
                json!({"conditions": [{"type": "A", "message": "m", "observedGeneration": 2}]}),
                json!({"conditions": [{
                    "type": "A", "status": "", "reason": "", "lastTransitionTime": RENDER_TIME,
                    "message": "m", "observedGeneration": 2,
                }]}),
            ),
            (
                json!({"conditions": [{"lastTransitionTime": "now"}]}),
                json!({"conditions": [{"lastTransitionTime": "now"}]}),
            ),
            (json!({"conditions": "none"}), json!({"conditions": "none"})),
            (json!("text"), json!("text")),
        ] {
            let mut object = with(before);
            settle_times(&mut object).unwrap();
            assert_eq!(object, with(after));
        }
        let mut object = Object::new();
        settle_times(&mut object).unwrap();
        assert_eq!(object, Object::new());
        assert!(settle_times(&mut with(json!(null))).is_err());
    }
}

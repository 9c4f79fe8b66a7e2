//! Turns the engine's response into documents and writes them to stdout.

use std::io::Write;

use anyhow::{Context, Result};
use biplane_go::json;
use biplane_model::labels::RESOURCE_NAME;
use biplane_model::{Map, Object, Value, yaml};
use biplane_proto::render::v1alpha1::Event;
use serde_json::json;

use crate::options::Format;
use crate::{API_VERSION, RENDER_TIME};

/// Replaces the times of an object's conditions, if set. Other engines use the current time.
pub(crate) fn fix_times(object: &mut Object) {
    let Some(Value::Array(conditions)) = object.at(&["status", "conditions"]) else { return };
    let mut conditions = conditions.clone();
    for condition in &mut conditions {
        if let Some(time) = condition.get_mut("lastTransitionTime") {
            *time = RENDER_TIME.into();
        }
    }
    object.set_at_or_ignore(&["status", "conditions"], conditions);
}

/// Normalises an object's conditions as upstream prints them: decoded into the Go type, with their
/// times replaced. A status without conditions gets `conditions: null`. Conditions that do not fit
/// the type are not changed.
pub(crate) fn fix_conditions(object: &mut Object) {
    let conditions = match object.at(&["status"]) {
        Some(Value::Object(status)) => status.get("conditions").cloned().unwrap_or_default(),
        _ => return,
    };
    let fixed = match conditions {
        Value::Null => Value::Null,
        Value::Array(conditions) => {
            let fixed: Option<Vec<_>> = conditions.iter().map(fixed_condition).collect();
            let Some(fixed) = fixed else { return };
            fixed.into()
        }
        _ => return,
    };
    object.set_at_or_ignore(&["status", "conditions"], fixed);
}

/// A condition as printed from its Go type; `None` if it cannot be decoded.
fn fixed_condition(condition: &Value) -> Option<Value> {
    let empty = Map::new();
    let fields = match condition {
        Value::Object(fields) => fields,
        Value::Null => &empty,
        _ => return None,
    };
    let text = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => Some(""),
        Some(value) => value.as_str(),
    };
    match fields.get("lastTransitionTime") {
        None | Some(Value::Null) => {}
        Some(time) => {
            biplane_go::time::instant(time.as_str()?)?;
        }
    }
    let mut fixed = json!({
        "type": text("type")?,
        "status": text("status")?,
        "lastTransitionTime": RENDER_TIME,
        "reason": text("reason")?,
    });
    match text("message")? {
        "" => {}
        message => fixed["message"] = message.into(),
    }
    match fields.get("observedGeneration") {
        None | Some(Value::Null) => {}
        Some(generation) => match generation.as_i64()? {
            0 => {}
            generation => fixed["observedGeneration"] = generation.into(),
        },
    }
    Some(fixed)
}

/// Sorts composed resources by their names in the pipeline.
pub(crate) fn sort(composed: &mut [Object]) {
    composed.sort_by(|a, b| a.annotation(RESOURCE_NAME).cmp(b.annotation(RESOURCE_NAME)));
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
pub fn write(documents: &[Value], format: Format, out: &mut dyn Write) -> Result<()> {
    let text = match format {
        Format::Json => documents.iter().map(|document| json::to_string(document) + "\n").collect(),
        Format::Yaml => yaml::write_documents(documents),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write documents")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::needless_pass_by_value)] // literals read best as they are
    fn with(status: Value) -> Object {
        Object::from_value(json!({"status": status})).unwrap()
    }

    #[test]
    fn only_times_that_exist_are_fixed() {
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
            fix_times(&mut object);
            assert_eq!(object, with(after));
        }
    }

    /// RX-24, T-35
    #[test]
    fn conditions_are_printed_as_their_type_has_them() {
        let time = "2025-03-09T08:00:00Z";
        let bare =
            json!({"type": "", "status": "", "lastTransitionTime": RENDER_TIME, "reason": ""});
        let full = |time: &str, more: Value| {
            let mut condition = json!({"type": "A", "status": "True", "lastTransitionTime": time,
                "reason": "R", "message": "m", "observedGeneration": 2});
            condition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"conditions": [condition]})
        };
        for (before, after) in [
            (json!({"phase": "x"}), json!({"phase": "x", "conditions": null})),
            (json!({}), json!({"conditions": null})),
            (json!({"conditions": null}), json!({"conditions": null})),
            (json!({"conditions": []}), json!({"conditions": []})),
            (json!({"conditions": [{}, null]}), json!({"conditions": [bare, bare]})),
            (full(time, json!({"more": 1})), full(RENDER_TIME, json!({}))),
            (
                json!({"conditions": [{"type": "A", "message": "", "observedGeneration": 0}]}),
                json!({"conditions": [{"type": "A", "status": "", "reason": "",
                    "lastTransitionTime": RENDER_TIME}]}),
            ),
        ] {
            let mut object = with(before.clone());
            fix_conditions(&mut object);
            assert_eq!(object, with(after), "{before}");
        }
        for unfit in [
            json!("ready"),
            json!(null),
            json!({"conditions": "none"}),
            json!({"conditions": ["none"]}),
            json!({"conditions": [{"type": 1}]}),
            json!({"conditions": [{"type": "A", "observedGeneration": "2"}]}),
            full("now", json!({})),
        ] {
            let mut object = with(unfit.clone());
            fix_conditions(&mut object);
            assert_eq!(object, with(unfit));
        }
        let mut without = Object::from_value(json!({"kind": "A"})).unwrap();
        fix_conditions(&mut without);
        assert_eq!(without, Object::from_value(json!({"kind": "A"})).unwrap());
    }
}

//! Change log entries as records, and why a provider did something.

use biplane_proto::changelogs::ChangeLogEntry;
use jiff::Timestamp;
use serde_json::Value;

use super::record::{ChangeRecord, ObjectRef};

/// The record of an entry that was redacted. `None` if the entry has no JSON form.
pub fn record(entry: &ChangeLogEntry, received: Timestamp) -> Option<ChangeRecord> {
    let value = biplane_proto::json::to_value(entry).ok()?;
    let at = entry.timestamp.and_then(|t| Timestamp::new(t.seconds, t.nanos).ok());
    let snapshot = value.get("snapshot").unwrap_or(&Value::Null);
    let in_snapshot = ObjectRef::of_object(snapshot);
    let object = ObjectRef {
        api_version: entry.api_version.clone(),
        kind: entry.kind.clone(),
        namespace: in_snapshot.namespace,
        name: entry.name.clone(),
        uid: in_snapshot.uid,
    };
    let detail = |key: &str| entry.additional_details.get(key).cloned();
    let cause = detail("cause").or_else(|| cause(entry.operation, snapshot).map(str::to_owned));
    Some(ChangeRecord {
        key: 0,
        source: String::new(),
        sequence: 0,
        object,
        at: at.unwrap_or(received),
        received,
        operation: operation(entry.operation),
        cause,
        provider: entry.provider.clone(),
        external_name: entry.external_name.clone(),
        error: entry.error_message.clone(),
        trace: detail("traceparent").as_deref().and_then(trace_of_parent),
        entry: value,
    })
}

/// The word for an operation.
pub fn operation(number: i32) -> String {
    match number {
        0 => "unspecified".to_owned(),
        1 => "create".to_owned(),
        2 => "update".to_owned(),
        3 => "delete".to_owned(),
        other => other.to_string(),
    }
}

/// The trace of a `traceparent`: `00-TRACE-SPAN-FLAGS`.
pub fn trace_of_parent(text: &str) -> Option<String> {
    let trace = text.split('-').nth(1)?;
    let is_id = trace.len() == 32 && trace.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| trace.to_ascii_lowercase())
}

/// Why a provider did something, from the generation and the Synced condition of the snapshot.
fn cause(operation: i32, snapshot: &Value) -> Option<&'static str> {
    let metadata = snapshot.get("metadata")?;
    match operation {
        1 => {
            let annotations = metadata.get("annotations");
            let succeeded =
                annotations.and_then(|a| a.get("crossplane.io/external-create-succeeded"));
            Some(if succeeded.is_some() { "recreate" } else { "create" })
        }
        2 => {
            let generation = metadata.get("generation").and_then(Value::as_f64)?;
            let conditions = snapshot.get("status")?.get("conditions")?.as_array()?;
            let synced = conditions.iter().find(|c| c.get("type") == Some(&"Synced".into()))?;
            let text = |field: &str| synced.get(field).and_then(Value::as_str).unwrap_or_default();
            if text("reason") == "ReconcilePaused" {
                return Some("resume");
            }
            let observed = synced.get("observedGeneration").and_then(Value::as_f64)?;
            // Both are whole numbers.
            if (generation - observed).abs() > 0.5 {
                return Some("spec-change");
            }
            match text("status") {
                "True" => Some("drift"),
                "False" => Some("retry"),
                _ => None,
            }
        }
        3 => Some("delete"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// CL-72
    #[test]
    fn the_snapshot_tells_why() {
        let synced = |generation: i64, observed: i64, status: &str, reason: &str| {
            json!({"metadata": {"generation": generation}, "status": {"conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Synced", "status": status, "reason": reason, "observedGeneration": observed},
            ]}})
        };
        for (operation, snapshot, want) in [
            (2, synced(2, 1, "True", "ReconcileSuccess"), Some("spec-change")),
            (2, synced(2, 2, "True", "ReconcileSuccess"), Some("drift")),
            (2, synced(2, 2, "False", "ReconcileError"), Some("retry")),
            (2, synced(3, 3, "False", "ReconcilePaused"), Some("resume")),
            (2, json!({"metadata": {"generation": 2}}), None),
            (1, json!({"metadata": {}}), Some("create")),
            (
                1,
                json!({"metadata": {"annotations": {"crossplane.io/external-create-succeeded": "t"}}}),
                Some("recreate"),
            ),
            (3, synced(2, 2, "True", ""), Some("delete")),
        ] {
            assert_eq!(cause(operation, &snapshot), want, "{operation} {snapshot}");
        }
    }

    #[test]
    fn a_trace_parent_has_a_trace() {
        let parent = "00-5d2c4f1e00014000800000000000abcd-00f067aa0ba902b7-01";
        assert_eq!(trace_of_parent(parent).as_deref(), Some("5d2c4f1e00014000800000000000abcd"));
        assert_eq!(trace_of_parent("00-5d2c-01"), None);
        assert_eq!(trace_of_parent(""), None);
    }
}

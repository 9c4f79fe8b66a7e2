//! Prints runs as spans in the JSON form of OTLP: one for a run and one for each of its calls.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::links::bare;
use super::record::{Outcome, Run, Step};

/// The spans of runs: the `TracesData` that a collector reads from a file.
pub fn traces(runs: &[Run]) -> Value {
    let spans: Vec<Value> = runs.iter().flat_map(spans).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "crossplane")]},
        "scopeSpans": [{"scope": {"name": "biplane-recorder"}, "spans": spans}],
    }]})
}

fn spans(run: &Run) -> Vec<Value> {
    let head = &run.head;
    let trace = trace_id(&head.trace);
    let root = span_id(&format!("{}/run", head.trace));
    let start = head.started.as_nanosecond();
    let mut end = start + i128::from(head.took.unwrap_or(0)) * 1000;
    let mut below = Vec::new();
    for step in &run.steps {
        let (started, ended) = times(step);
        end = end.max(ended);
        let mut attributes = vec![
            text("crossplane.step.name", &step.name),
            number("crossplane.step.index", i64::from(step.index)),
            number("crossplane.step.iteration", i64::from(step.iteration)),
            text("crossplane.function.name", &step.function),
            text("crossplane.span.id", &step.span),
        ];
        attributes.extend(step.cached.map(|cached| flag("crossplane.function.cached", cached)));
        attributes.extend(step.revision.as_ref().map(|r| text("crossplane.function.revision", r)));
        let events: Vec<Value> = step.results().iter().map(|result| json!({
            "timeUnixNano": ended.to_string(),
            "name": "result",
            "attributes": [text("severity", &result.severity), text("message", &result.message)],
        })).collect();
        let name = if step.name.is_empty() { &step.function } else { &step.name };
        below.push(json!({
            "traceId": trace,
            "spanId": span_id(&step.span),
            "parentSpanId": root,
            "name": name,
            "kind": 3,
            "startTimeUnixNano": started.to_string(),
            "endTimeUnixNano": ended.to_string(),
            "attributes": attributes,
            "events": events,
            "status": status(step.outcome(), &message(step)),
        }));
    }
    let owner = &head.owner;
    let mut attributes = vec![
        text("crossplane.trace.id", &head.trace),
        text("crossplane.resource.api_version", &owner.api_version),
        text("crossplane.resource.kind", &owner.kind),
        text("crossplane.resource.namespace", &owner.namespace),
        text("crossplane.resource.name", &owner.name),
        text("crossplane.resource.uid", &owner.uid),
        text("crossplane.outcome", head.outcome.name()),
    ];
    if !head.composition.is_empty() {
        attributes.push(text("crossplane.composition.name", &head.composition));
    }
    let failed = run.last_calls().last().map_or_else(String::new, |step| message(step));
    let run = json!({
        "traceId": trace,
        "spanId": root,
        "name": format!("{} {}", owner.kind, owner.name),
        "kind": 1,
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": end.to_string(),
        "attributes": attributes,
        "status": status(head.outcome, &failed),
    });
    std::iter::once(run).chain(below).collect()
}

fn times(step: &Step) -> (i128, i128) {
    let started = step.started.as_nanosecond();
    (started, started + i128::from(step.took.unwrap_or(0)) * 1000)
}

fn message(step: &Step) -> String {
    let fatal = || step.results().into_iter().find(|result| result.severity == "fatal");
    match &step.error {
        Some(error) => error.clone(),
        None => fatal().map(|result| result.message).unwrap_or_default(),
    }
}

fn status(outcome: Outcome, message: &str) -> Value {
    match outcome {
        Outcome::Ok | Outcome::Warning => json!({"code": 1}),
        Outcome::Fatal | Outcome::Error => json!({"code": 2, "message": message}),
        Outcome::Incomplete => json!({"code": 2, "message": "not all of it was recorded"}),
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: i64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn flag(key: &str, value: bool) -> Value {
    json!({"key": key, "value": {"boolValue": value}})
}

/// A trace as 16 bytes: the UUID itself, or a hash of what is none.
fn trace_id(trace: &str) -> String {
    let bare = bare(trace);
    if bare.len() == 32 && bare.bytes().all(|b| b.is_ascii_hexdigit()) {
        return bare;
    }
    hex(&Sha256::digest(trace.as_bytes()), 16)
}

/// A span as 8 bytes: a hash, because half of a UUID is not unique by itself.
fn span_id(span: &str) -> String {
    hex(&Sha256::digest(span.as_bytes()), 8)
}

fn hex(bytes: &[u8], count: usize) -> String {
    crate::store::hex(bytes.get(..count).unwrap_or(bytes))
}

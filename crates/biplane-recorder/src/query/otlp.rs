//! Runs and changes as spans in the JSON form of OTLP: one for a run, one for each of its calls, and one
//! for a change, with a link to the run that it belongs to.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::answer::Link;
use super::links::bare;
use super::record::{ChangeRecord, ObjectRef, Outcome, Run, Step};

/// The spans of runs: the `TracesData` that a collector reads from a file.
pub fn traces(runs: &[Run]) -> Value {
    traces_and_changes(runs, &[])
}

/// The spans of runs and of changes, each change with what it belongs to.
pub fn traces_and_changes(runs: &[Run], changes: &[(ChangeRecord, Option<Link>)]) -> Value {
    let of_changes = changes.iter().map(|(change, link)| change_span(change, link.as_ref()));
    let spans: Vec<Value> = runs.iter().flat_map(spans).chain(of_changes).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "crossplane")]},
        "scopeSpans": [{"scope": {"name": "biplane-recorder"}, "spans": spans}],
    }]})
}

fn spans(run: &Run) -> Vec<Value> {
    let head = &run.head;
    let trace = trace_id(&head.trace);
    let root = root_id(&head.trace);
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
    let mut attributes = vec![text("crossplane.trace.id", &head.trace)];
    attributes.extend(object(owner));
    attributes.push(text("crossplane.outcome", head.outcome.name()));
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

/// The span of a run itself.
fn root_id(trace: &str) -> String {
    span_id(&format!("{trace}/run"))
}

fn object(object: &ObjectRef) -> [Value; 5] {
    [
        text("crossplane.resource.api_version", &object.api_version),
        text("crossplane.resource.kind", &object.kind),
        text("crossplane.resource.namespace", &object.namespace),
        text("crossplane.resource.name", &object.name),
        text("crossplane.resource.uid", &object.uid),
    ]
}

/// A change has a trace of its own: a provider may make it long after the run.
fn change_span(change: &ChangeRecord, link: Option<&Link>) -> Value {
    let identity = format!("{}/change/{}", change.source, change.sequence);
    let at = change.at.as_nanosecond().to_string();
    let mut attributes = object(&change.object).to_vec();
    attributes.extend([
        text("crossplane.change.id", &change.key.to_string()),
        text("crossplane.change.source", &change.source),
        number("crossplane.change.sequence", change.sequence),
        text("crossplane.change.operation", &change.operation),
        text("crossplane.provider", &change.provider),
    ]);
    let optional = [
        ("crossplane.change.cause", change.cause.as_deref().unwrap_or_default()),
        ("crossplane.external_name", &change.external_name),
    ];
    let known = optional.iter().filter(|(_, value)| !value.is_empty());
    attributes.extend(known.map(|(key, value)| text(key, value)));
    let links: Vec<Value> = link
        .iter()
        .map(|link| {
            json!({
                "traceId": trace_id(&link.run),
                "spanId": root_id(&link.run),
                "attributes": [
                    text("crossplane.link.certainty", &link.certainty),
                    text("crossplane.link.resource", &link.resource),
                ],
            })
        })
        .collect();
    let status = match &change.error {
        None => json!({"code": 1}),
        Some(error) => json!({"code": 2, "message": error}),
    };
    json!({
        "traceId": hex(&Sha256::digest(identity.as_bytes()), 16),
        "spanId": span_id(&identity),
        "name": format!("{} {} {}", change.operation, change.object.kind, change.object.name),
        "kind": 3,
        "startTimeUnixNano": at,
        "endTimeUnixNano": at,
        "attributes": attributes,
        "links": links,
        "status": status,
    })
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

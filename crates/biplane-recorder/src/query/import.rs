//! Reads what sidecars printed: emissions as JSON or text, and change log entries.

use std::fmt;

use biplane_proto::Timestamp;
use biplane_proto::changelogs::ChangeLogEntry;
use biplane_proto::inspector::shipped::{
    CompositionMeta, OperationMeta, StepMeta, step_meta::Context,
};
use biplane_proto::json;
use biplane_proto::redact::Half;
use serde_json::Value;

use crate::emission::{Details, Dialect, Emission};

/// One thing that a sidecar printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Printed {
    /// Half of a function call.
    Emission(Box<Emission>),
    /// A change log entry.
    Entry(Box<ChangeLogEntry>),
}

/// What a file has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// What was read, in its order, with the number of its first line.
    pub printed: Vec<(usize, Printed)>,
    /// What could not be read.
    pub skipped: Vec<Skipped>,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its number.
    pub line: usize,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// Reads everything that a sidecar printed. Lines may have a prefix, as collectors of logs add it.
pub fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut lines = text.lines().zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        let read = match header(line) {
            Some(half) => {
                let mut block = Vec::new();
                while let Some((line, _)) = lines.next_if(|(line, _)| belongs(line)) {
                    block.push(line);
                }
                block_of_text(half, &block)
            }
            None if line.trim().is_empty() => continue,
            None => line_of_json(line),
        };
        match read {
            Ok(printed) => reading.printed.push((number, printed)),
            Err(reason) => reading.skipped.push(Skipped { line: number, reason }),
        }
    }
    reading
}

fn header(line: &str) -> Option<Half> {
    match line {
        "=== REQUEST ===" => Some(Half::Request),
        "=== RESPONSE ===" => Some(Half::Response),
        _ => None,
    }
}

/// Whether a line belongs to the block above it.
fn belongs(line: &str) -> bool {
    header(line).is_none() && !line.starts_with('{')
}

fn line_of_json(line: &str) -> Result<Printed, String> {
    let start = line.find('{').ok_or("it is neither JSON nor a block of text")?;
    let text = line.get(start..).unwrap_or_default();
    let value = match biplane_go::json::decode(text.as_bytes()) {
        Ok((value, None)) => value,
        Ok((_, Some(problem))) | Err(problem) => return Err(problem),
    };
    let Value::Object(mut fields) = value else { return Err("it is no object".to_owned()) };
    // Go's numbers are all floating point, which payloads are and numbers of messages are not.
    let exact: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let half = match fields.get("type").and_then(Value::as_str) {
        Some("REQUEST") if fields.contains_key("meta") => Half::Request,
        Some("RESPONSE") if fields.contains_key("meta") => Half::Response,
        _ => {
            // A line that is something else has other fields.
            let entry = json::from_value(exact);
            return entry.map(|entry| Printed::Entry(Box::new(entry))).map_err(|e| e.to_string());
        }
    };
    let meta = exact.get("meta").cloned().unwrap_or_default();
    let meta = match meta.as_object() {
        Some(fields) if fields.is_empty() => None,
        _ => Some(json::from_value(meta).map_err(|error| error.to_string())?),
    };
    let payload = payload(fields.remove("payload").unwrap_or_default());
    let error = fields.get("error").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(emission(half, meta, payload, error))
}

fn emission(half: Half, meta: Option<StepMeta>, payload: Vec<u8>, error: String) -> Printed {
    let (dialect, details) = (Dialect::Shipped, Details::default());
    Printed::Emission(Box::new(Emission { dialect, half, meta, payload, error, details }))
}

/// The bytes that a sidecar prints like this. What is not JSON is printed as a string.
fn payload(value: Value) -> Vec<u8> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) if serde_json::from_str::<Value>(&text).is_err() => text.into_bytes(),
        value => biplane_go::json::to_string(&value).into_bytes(),
    }
}

/// The labels of a block of text.
const LABELS: [&str; 12] = [
    "XR:",
    "XR UID:",
    "XR NS:",
    "Composition:",
    "Operation:",
    "Op UID:",
    "Step:",
    "Function:",
    "Trace ID:",
    "Span ID:",
    "Timestamp:",
    "Error:",
];

fn block_of_text(half: Half, lines: &[&str]) -> Result<Printed, String> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    let mut lines = lines.iter();
    let mut has_payload = false;
    for line in lines.by_ref() {
        if *line == "  Payload:" {
            has_payload = true;
            break;
        }
        let label = LABELS
            .iter()
            .find(|label| line.strip_prefix("  ").is_some_and(|rest| rest.starts_with(**label)));
        match (label, fields.last_mut()) {
            (Some(label), _) => {
                // Labels are padded to a column.
                let value = line.get(15..).unwrap_or_default();
                fields.push((label, value.to_owned()));
            }
            // An error may have several lines.
            (None, Some(("Error:", value))) if !line.is_empty() => {
                value.push('\n');
                value.push_str(line);
            }
            (None, _) if line.is_empty() => {}
            (None, _) => return Err(format!("unknown line in a block of text: {line:?}")),
        }
    }
    let payload = if has_payload { text_payload(lines.as_slice())? } else { Vec::new() };
    let field = |label: &str| {
        let found = fields.iter().find(|(name, _)| *name == label);
        found.map(|(_, value)| value.as_str())
    };
    let text = |label: &str| field(label).unwrap_or_default().to_owned();
    let context = match (field("XR:"), field("Operation:")) {
        (Some(xr), _) => {
            let (kind, name) = xr.rsplit_once(" (").ok_or("the line of the XR has no name")?;
            let (api_version, kind) =
                kind.rsplit_once('/').ok_or("the line of the XR has no kind")?;
            Some(Context::CompositionMeta(CompositionMeta {
                composition_name: text("Composition:"),
                composite_resource_uid: text("XR UID:"),
                composite_resource_name: name.strip_suffix(')').unwrap_or(name).to_owned(),
                composite_resource_namespace: text("XR NS:"),
                composite_resource_api_version: api_version.to_owned(),
                composite_resource_kind: kind.to_owned(),
            }))
        }
        (None, Some(name)) => Some(Context::OperationMeta(OperationMeta {
            operation_name: name.to_owned(),
            operation_uid: text("Op UID:"),
        })),
        (None, None) => None,
    };
    let step = field("Step:").ok_or("the block has no step")?;
    let (step_name, step_index, iteration) =
        step_of(step).ok_or("the line of the step is not whole")?;
    let meta = StepMeta {
        timestamp: Some(time(field("Timestamp:").unwrap_or_default())?),
        trace_id: text("Trace ID:"),
        span_id: text("Span ID:"),
        step_index,
        step_name,
        iteration,
        function_name: text("Function:"),
        context,
    };
    Ok(emission(half, Some(meta), payload, text("Error:")))
}

/// Reads `NAME (index N, iteration N)`.
fn step_of(text: &str) -> Option<(String, i32, i32)> {
    let (name, numbers) = text.rsplit_once("(index ")?;
    let (index, iteration) = numbers.strip_suffix(')')?.split_once(", iteration ")?;
    let name = name.strip_suffix(' ').unwrap_or(name);
    Some((name.to_owned(), index.parse().ok()?, iteration.parse().ok()?))
}

fn time(text: &str) -> Result<Timestamp, String> {
    let time: jiff::Timestamp = text.parse().map_err(|_| format!("{text:?} is no time"))?;
    let (seconds, nanos) = (time.as_second(), time.subsec_nanosecond());
    // Times before 1970 count their nanoseconds forward too.
    Ok(if nanos < 0 {
        Timestamp { seconds: seconds - 1, nanos: nanos + 1_000_000_000 }
    } else {
        Timestamp { seconds, nanos }
    })
}

fn text_payload(lines: &[&str]) -> Result<Vec<u8>, String> {
    // Two empty lines end the block.
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    let mut yaml = String::new();
    for line in lines.get(..end).unwrap_or_default() {
        yaml.push_str(line.strip_prefix("    ").unwrap_or(line));
        yaml.push('\n');
    }
    let document = biplane_model::yaml::read_document(yaml.as_bytes());
    let value = document.map_err(|error| format!("the payload is not YAML: {error:?}"))?;
    Ok(payload(value))
}

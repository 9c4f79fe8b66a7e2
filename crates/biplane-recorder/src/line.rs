//! What is printed of an emission or an entry, in the forms of the reference sidecars.

use std::fmt::Write as _;

use biplane_proto::Timestamp;
use biplane_proto::changelogs::ChangeLogEntry;
use biplane_proto::inspector::shipped::{StepMeta, step_meta::Context};
use biplane_proto::json;
use biplane_proto::redact::{Half, Redacted};
use serde_json::{Map, Value};

/// The form in which emissions are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One line of JSON for each.
    #[default]
    Json,
    /// Several lines with labels, and the payload as YAML.
    Text,
}

/// Prints an emission, with the line break at its end. `None` if its metadata has no JSON form, for
/// which the reference prints nothing either.
pub fn emission(
    format: Format,
    half: Half,
    meta: Option<&StepMeta>,
    payload: Redacted<Value>,
    error: &str,
) -> Option<String> {
    match format {
        Format::Json => as_json(half, meta, payload, error),
        Format::Text => Some(as_text(half, meta, &payload, error)),
    }
}

fn name(half: Half) -> &'static str {
    match half {
        Half::Request => "REQUEST",
        Half::Response => "RESPONSE",
    }
}

fn as_json(
    half: Half,
    meta: Option<&StepMeta>,
    payload: Redacted<Value>,
    error: &str,
) -> Option<String> {
    let meta = match meta {
        Some(meta) => json::to_value(meta).ok()?,
        None => Value::Object(Map::new()),
    };
    let mut event = Map::new();
    if !error.is_empty() {
        event.insert("error".to_owned(), error.into());
    }
    event.insert("meta".to_owned(), meta);
    event.insert("payload".to_owned(), payload.into_inner());
    event.insert("type".to_owned(), name(half).into());
    let mut line = biplane_go::json::object_to_string(&event, biplane_go::json::Style::MARSHAL);
    line.push('\n');
    Some(line)
}

fn as_text(half: Half, meta: Option<&StepMeta>, payload: &Redacted<Value>, error: &str) -> String {
    let none = StepMeta::default();
    let meta = meta.unwrap_or(&none);
    let mut out = format!("=== {} ===\n", name(half));
    let mut field = |label: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {label:<12} {value}");
    };
    match &meta.context {
        Some(Context::CompositionMeta(of)) => {
            let (version, kind) = (&of.composite_resource_api_version, &of.composite_resource_kind);
            field("XR:", &format!("{version}/{kind} ({})", of.composite_resource_name));
            field("XR UID:", &of.composite_resource_uid);
            if !of.composite_resource_namespace.is_empty() {
                field("XR NS:", &of.composite_resource_namespace);
            }
            field("Composition:", &of.composition_name);
        }
        Some(Context::OperationMeta(of)) => {
            field("Operation:", &of.operation_name);
            field("Op UID:", &of.operation_uid);
        }
        None => {}
    }
    let (step, index, iteration) = (&meta.step_name, meta.step_index, meta.iteration);
    field("Step:", &format!("{step} (index {index}, iteration {iteration})"));
    field("Function:", &meta.function_name);
    field("Trace ID:", &meta.trace_id);
    field("Span ID:", &meta.span_id);
    field("Timestamp:", &milliseconds(meta.timestamp.unwrap_or_default()));
    if !error.is_empty() {
        field("Error:", error);
    }
    if !payload.get().is_null() {
        out.push_str("  Payload:\n");
        let yaml = biplane_model::yaml::to_string(payload.get());
        for line in yaml.strip_suffix('\n').unwrap_or(&yaml).split('\n') {
            let _ = writeln!(out, "    {line}");
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

/// A time in UTC with three digits after the second.
fn milliseconds(time: Timestamp) -> String {
    let nanos = time.nanos / 1_000_000 * 1_000_000;
    match jiff::Timestamp::new(time.seconds, nanos) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        // No calendar has it. The number says more than nothing.
        Err(_) => format!("{}s", time.seconds),
    }
}

/// Prints a change log entry, with the line break at its end.
pub fn entry(entry: &Redacted<ChangeLogEntry>) -> Result<String, json::Error> {
    let mut line = json::to_string(entry.get())?;
    line.push('\n');
    Ok(line)
}

#[cfg(test)]
mod tests;

//! Makes our responses comparable with recorded ones, by the rules of the recordings' README.

use serde_json::Value;

use crate::player::same_time;

/// The first line of an error, cut where upstream varies its message on purpose.
pub fn comparable_error(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split("cannot unmarshal").next().unwrap_or_default().to_owned()
}

/// A RenderResponse without timestamps, and with parts of random order sorted.
pub fn comparable_response(mut response: Value) -> Value {
    const LISTS: [&str; 5] = [
        "composedResources",
        "deletedResources",
        "appliedResources",
        "requiredResources",
        "requiredSchemas",
    ];
    same_time(&mut response);
    cut_variable_texts(&mut response);
    for output in ["composite", "operation"] {
        let Some(output) = response.get_mut(output) else { continue };
        for list in LISTS {
            if let Some(Value::Array(items)) = output.get_mut(list) {
                items.sort_by_cached_key(Value::to_string);
            }
        }
        if let Some(Value::Array(events)) = output.get_mut("events") {
            sort_runs(events);
        }
    }
    response
}

/// Cuts error messages that upstream's decoders vary on purpose.
fn cut_variable_texts(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(cut_variable_texts),
        Value::Array(items) => items.iter_mut().for_each(cut_variable_texts),
        Value::String(text) if text.contains("cannot unmarshal") => *text = comparable_error(text),
        _ => {}
    }
}

/// Sorts consecutive events about unready resources, whose order is random.
fn sort_runs(events: &mut [Value]) {
    let unready = |event: &Value| {
        let message = event["message"].as_str().unwrap_or_default();
        message.starts_with("Composed resource ") && message.ends_with(" is not yet ready")
    };
    for run in events.chunk_by_mut(|a, b| unready(a) && unready(b)) {
        run.sort_by_cached_key(Value::to_string);
    }
}

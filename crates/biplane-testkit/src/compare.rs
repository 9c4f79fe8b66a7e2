//! Makes our answers and recorded ones comparable, as the recordings' README says.

use serde_json::Value;

use crate::player::same_time;

/// The first line of an error, and no further than where the reference varies on purpose.
pub fn comparable_error(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split("cannot unmarshal").next().unwrap_or_default().to_owned()
}

/// A RenderResponse without the time of day, and with what comes in any order put in one order.
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

/// The reference's decoders vary their texts on purpose.
fn cut_variable_texts(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(cut_variable_texts),
        Value::Array(items) => items.iter_mut().for_each(cut_variable_texts),
        Value::String(text) if text.contains("cannot unmarshal") => *text = comparable_error(text),
        _ => {}
    }
}

/// Events about unready resources come in any order among themselves.
fn sort_runs(events: &mut [Value]) {
    let unready = |event: &Value| {
        let message = event["message"].as_str().unwrap_or_default();
        message.starts_with("Composed resource ") && message.ends_with(" is not yet ready")
    };
    for run in events.chunk_by_mut(|a, b| unready(a) && unready(b)) {
        run.sort_by_cached_key(Value::to_string);
    }
}

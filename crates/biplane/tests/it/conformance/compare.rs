//! Compares output with recordings.

use biplane_testkit::player::{difference, same_time};
use serde_json::Value;

/// Compares documents as data. Documents in random order in Crossplane are sorted.
pub(crate) fn same_documents(ours: &str, theirs: &str, any_order: bool) -> Result<(), String> {
    let (ours, theirs) = (documents(ours, any_order)?, documents(theirs, any_order)?);
    if ours == theirs {
        return Ok(());
    }
    if let Some(found) = difference("documents", &Value::from(ours), &Value::from(theirs)) {
        return Err(found);
    }
    Ok(())
}

fn documents(text: &str, any_order: bool) -> Result<Vec<Value>, String> {
    let documents =
        biplane_model::yaml::parse_documents("stdout", text).map_err(|e| e.to_string())?;
    let mut values: Vec<_> = documents.into_iter().map(|d| d.value).collect();
    values.iter_mut().for_each(same_time);
    for run in values.chunk_by_mut(|a, b| any_order || (is_unready(a) && is_unready(b))) {
        run.sort_by_key(ToString::to_string);
    }
    Ok(values)
}

/// Whether it is one of the results in random order.
fn is_unready(document: &Value) -> bool {
    document["kind"] == "Result"
        && document["message"].as_str().is_some_and(|m| m.ends_with("is not yet ready"))
}

/// The part of an error that users match on.
pub(crate) fn error_text(stderr: &str) -> String {
    let start = stderr
        .find("pipeline step \"")
        .or_else(|| stderr.rfind("error: ").map(|at| at + "error: ".len()))
        .unwrap_or_default();
    let line = stderr[start..].lines().next().unwrap_or_default();
    // The rest varies at random in Crossplane, on purpose.
    match line.find("cannot unmarshal") {
        Some(at) => line[..at].to_owned(),
        None => line.to_owned(),
    }
}

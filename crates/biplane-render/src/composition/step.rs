//! Shows the line of a Composition that made a step fail.

use anyhow::{Error, anyhow};
use biplane_function::{Explanation, Registry};
use biplane_go::fmt::quote;
use biplane_manifest::Origin;
use biplane_model::{Object, Value};

/// Adds to the message of a fatal result the line of the Composition that it comes from, if the
/// function of the step can say.
pub(super) fn explain(
    error: Error,
    composition: &Object,
    origin: Option<&Origin>,
    functions: &Registry,
) -> Error {
    let text = format!("{error:#}");
    let steps = composition.at(&["spec", "pipeline"]).and_then(Value::as_array);
    let found = steps.into_iter().flatten().enumerate().find_map(|(index, step)| {
        let name = step.get("step").and_then(Value::as_str)?;
        let lead = format!("pipeline step {} returned a fatal result: ", quote(name));
        let (_, message) = text.split_once(&lead)?;
        let function = step.pointer("/functionRef/name").and_then(Value::as_str)?;
        let explanation = functions.get(function)?.explain(message)?;
        Some((index, explanation))
    });
    let Some((index, Explanation { path, line, column, advice })) = found else { return error };
    let index = index.to_string();
    let path = ["spec", "pipeline", &index, "input"]
        .into_iter()
        .chain(path.iter().map(String::as_str))
        .collect::<Vec<_>>();
    let place = origin.and_then(|origin| origin.place_within(&path, line, column));
    let more: Vec<String> = place.into_iter().chain(advice).collect();
    if more.is_empty() { error } else { anyhow!("{text}\n{}", more.join("\n")) }
}

//! Replaces the environment of a Composition by a step that calls function-environment-configs.

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_model::{Map, Value};

use crate::ENVIRONMENT_CONFIGS;
use crate::document::{self, objects};
use crate::print::{self, Origins};

/// Converts a Composition in `mode: Pipeline`. `None` if it has no environment to convert.
///
/// An empty name of the Function stands for the usual one.
pub fn composition_environment(text: &[u8], function: &str) -> Result<Option<String>> {
    let before = document::composition(text)?;
    let mut after = before.clone();
    let mut origins = Origins::default();
    let steps = steps(&before);
    let changed = document::generating(|| convert(&mut after, function))?;
    if !changed {
        return Ok(None);
    }
    origins.new_part("spec.pipeline.0");
    origins.moved("spec.pipeline.0.input.spec", "spec.environment");
    for step in 0..steps {
        origins.moved(&format!("spec.pipeline.{}", step + 1), &format!("spec.pipeline.{step}"));
    }
    Ok(Some(print::document(text, before, after, &origins, true)))
}

/// The number of steps of a pipeline.
pub(crate) fn steps(composition: &Map<String, Value>) -> usize {
    let pipeline = composition.get("spec").and_then(|spec| spec.get("pipeline"));
    pipeline.and_then(Value::as_array).map_or(0, Vec::len)
}

/// Moves the environment into a first step. Returns whether there was any.
pub(crate) fn convert(composition: &mut Map<String, Value>, function: &str) -> Result<bool> {
    let spec = composition.get_mut("spec").and_then(Value::as_object_mut);
    let has_pipeline = |spec: &&mut Map<String, Value>| {
        spec.get("mode").and_then(Value::as_str) == Some("Pipeline")
    };
    let Some(spec) = spec.filter(has_pipeline) else {
        bail!("Composition is using Resources mode, run pipeline-composition command instead");
    };
    let environment = spec.get("environment").and_then(Value::as_object);
    let mut settings = Map::new();
    for key in ["defaultData", "environmentConfigs"] {
        if let Some(value) = environment.and_then(|environment| environment.get(key)) {
            settings.insert(key.to_owned(), value.clone());
        }
    }
    let policy = environment.and_then(|environment| environment.get("policy"));
    if let Some(Value::String(resolution)) = policy.and_then(|policy| policy.get("resolution")) {
        let policy = Map::from_iter([("resolution".to_owned(), resolution.clone().into())]);
        settings.insert("policy".to_owned(), Value::Object(policy));
    }
    if settings.is_empty() {
        return Ok(false);
    }
    spec.remove("environment");
    let pipeline = match spec.remove("pipeline") {
        Some(pipeline) => objects(pipeline)
            .map_err(|problem| anyhow!("cannot unmarshal value from JSON: {problem}")),
        None => Err(anyhow!("spec.pipeline: no such field")),
    };
    let later = pipeline.context("failed to get pipeline")?.unwrap_or_default();
    let first = step("environment-configs", named(function, ENVIRONMENT_CONFIGS), {
        let mut input = input("environmentconfigs.fn.crossplane.io/v1beta1", "Input");
        input.insert("spec".to_owned(), Value::Object(settings));
        input
    });
    let later = later.into_iter().map(|step| step.map_or(Value::Null, Value::Object));
    let pipeline = std::iter::once(first).chain(later).collect();
    spec.insert("pipeline".to_owned(), Value::Array(pipeline));
    Ok(true)
}

/// A name, or else the usual one.
pub(crate) fn named<'a>(name: &'a str, usual: &'a str) -> &'a str {
    if name.is_empty() { usual } else { name }
}

/// The beginning of a function's input.
pub(crate) fn input(api_version: &str, kind: &str) -> Map<String, Value> {
    Map::from_iter([
        ("apiVersion".to_owned(), Value::from(api_version)),
        ("kind".to_owned(), Value::from(kind)),
    ])
}

fn step(name: &str, function: &str, input: Map<String, Value>) -> Value {
    let reference = Map::from_iter([("name".to_owned(), Value::from(function))]);
    Value::Object(Map::from_iter([
        ("step".to_owned(), Value::from(name)),
        ("functionRef".to_owned(), Value::Object(reference)),
        ("input".to_owned(), Value::Object(input)),
    ]))
}

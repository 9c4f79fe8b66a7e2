//! Turns a Composition in `mode: Resources` into one with a pipeline that calls
//! function-patch-and-transform.

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_model::fieldpath::{FieldPath, PathError};
use biplane_model::{Map, Value};

use crate::composition_environment::{self as environment, input, named, steps};
use crate::document::{self, cannot_unmarshal, objects};
use crate::patches::{convert_connection_details, convert_patch};
use crate::print::{self, Origins};
use crate::{ENVIRONMENT_CONFIGS, PATCH_AND_TRANSFORM};

/// The names of the Functions that the pipeline calls. Empty names stand for the usual ones.
#[derive(Clone, Copy, Debug)]
pub struct Functions<'a> {
    pub patch_and_transform: &'a str,
    pub environment_configs: &'a str,
}

impl Default for Functions<'_> {
    fn default() -> Self {
        Self { patch_and_transform: PATCH_AND_TRANSFORM, environment_configs: ENVIRONMENT_CONFIGS }
    }
}

/// Converts a Composition, with its environment. `None` if it has a pipeline.
pub fn pipeline_composition(text: &[u8], functions: Functions<'_>) -> Result<Option<String>> {
    let before = document::composition(text)?;
    let mut after = before.clone();
    let (changed, has_environment) = document::generating(|| {
        if !convert(&mut after, functions.patch_and_transform)? {
            return Ok((false, false));
        }
        let moved = environment::convert(&mut after, functions.environment_configs)?;
        Ok((true, moved))
    })?;
    if !changed {
        return Ok(None);
    }
    let origins = origins(&before, &after, has_environment);
    Ok(Some(print::document(text, before, after, &origins, true)))
}

/// What of the new Composition looks like which part of the old one.
fn origins(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    has_environment: bool,
) -> Origins {
    let mut origins = Origins::default();
    let ours = usize::from(has_environment);
    if has_environment {
        origins.new_part("spec.pipeline.0");
        origins.moved("spec.pipeline.0.input.spec", "spec.environment");
    }
    for step in 0..steps(before) {
        origins.moved(&format!("spec.pipeline.{}", step + ours), &format!("spec.pipeline.{step}"));
    }
    let input = format!("spec.pipeline.{ours}.input");
    origins.new_part(&input);
    for key in ["patchSets", "resources"] {
        origins.moved(&format!("{input}.{key}"), &format!("spec.{key}"));
    }
    origins.moved(&format!("{input}.environment.patches"), "spec.environment.patches");
    let stays = after.get("spec").is_some_and(|spec| spec.get("environment").is_some());
    if !stays && !has_environment {
        origins.moved(&format!("{input}.environment"), "spec.environment");
    }
    origins
}

/// Moves resources, patch sets and environment patches into the first step. Returns whether the
/// Composition was in another mode than `Pipeline`.
fn convert(composition: &mut Map<String, Value>, function: &str) -> Result<bool> {
    let mode = match at("spec.mode")?.get(composition) {
        Ok(mode) => mode.clone(),
        Err(error) if error.is_not_found() => Value::Null,
        Err(error) => return Err(whole(&error)).context("failed to get composition mode"),
    };
    match mode {
        Value::String(mode) if mode == "Pipeline" => return Ok(false),
        Value::Null | Value::String(_) => {}
        other => {
            let problem = cannot_unmarshal(&other, "v1.CompositionMode");
            bail!("failed to get composition mode: cannot unmarshal value from JSON: {problem}");
        }
    }
    at("spec.mode")?
        .set(composition, "Pipeline".into())
        .map_err(|error| whole(&error))
        .context("failed to set Composition mode to Pipeline")?;
    let Some(Value::Object(spec)) = composition.get_mut("spec") else {
        bail!("failed to set Composition mode to Pipeline: spec is not an object");
    };
    let mut ours = input("pt.fn.crossplane.io/v1beta1", "Resources");
    move_environment_patches(spec, &mut ours).context("failed to migrate environment")?;
    move_patch_sets(spec, &mut ours).context("failed to migrate patchSets")?;
    move_resources(spec, &mut ours).context("failed to migrate resources")?;
    for (path, value, problem) in [
        ("spec.pipeline[0].step", "patch-and-transform", "failed to set pipeline step"),
        (
            "spec.pipeline[0].functionRef.name",
            named(function, PATCH_AND_TRANSFORM),
            "failed to set pipeline functionRef name",
        ),
    ] {
        let set = at(path)?.set(composition, value.into());
        set.map_err(|error| whole(&error)).context(problem)?;
    }
    let step = composition.get_mut("spec").and_then(|spec| spec.get_mut("pipeline"));
    let step = step.and_then(|pipeline| pipeline.get_mut(0)).and_then(Value::as_object_mut);
    step.context("failed to set pipeline input")?.insert("input".to_owned(), Value::Object(ours));
    Ok(true)
}

/// An error whose words already name its cause.
fn whole(error: &PathError) -> anyhow::Error {
    anyhow!("{error}")
}

fn at(path: &str) -> Result<FieldPath> {
    Ok(FieldPath::parse(path)?)
}

fn move_environment_patches(
    spec: &mut Map<String, Value>,
    ours: &mut Map<String, Value>,
) -> Result<()> {
    let Some(environment) = spec.get_mut("environment") else { return Ok(()) };
    let Value::Object(environment) = environment else {
        bail!(
            "failed to delete environment: cannot delete spec.environment.patches: not an object"
        );
    };
    // What is no list of patches is lost.
    if let Some(Ok(patches)) = environment.remove("patches").map(objects) {
        let patches = converted(patches, |patch, _| convert_patch(patch))
            .context("failed to set environment patch type")?;
        let block = Map::from_iter([("patches".to_owned(), patches)]);
        ours.insert("environment".to_owned(), Value::Object(block));
    }
    if environment.is_empty() {
        spec.remove("environment");
    }
    Ok(())
}

/// A list whose objects are converted in turn.
fn converted(
    items: Option<Vec<Option<Map<String, Value>>>>,
    mut convert: impl FnMut(&mut Map<String, Value>, usize) -> Result<()>,
) -> Result<Value> {
    let Some(items) = items else { return Ok(Value::Null) };
    let converted = items.into_iter().enumerate().map(|(index, item)| {
        // The reference crashes.
        let mut item = item.with_context(|| format!("item {index} of the list is null"))?;
        convert(&mut item, index)?;
        Ok(Value::Object(item))
    });
    converted.collect()
}

fn move_patch_sets(spec: &mut Map<String, Value>, ours: &mut Map<String, Value>) -> Result<()> {
    let Some(sets) = spec.get("patchSets") else { return Ok(()) };
    let sets = objects(sets.clone())
        .map_err(|problem| anyhow!("cannot unmarshal value from JSON: {problem}"))
        .context("failed to get patchSets")?;
    spec.remove("patchSets");
    let sets = sets.map_or(Value::Null, |sets| {
        sets.into_iter().map(|set| set.map_or(Value::Null, Value::Object)).collect()
    });
    ours.insert("patchSets".to_owned(), sets);
    match at("patchSets[*].patches[*]")?.expand(ours) {
        Ok(_) => {}
        // Then no patch of any set is converted.
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(whole(&error)).context("failed to expand patchSets"),
    }
    let sets = ours.get_mut("patchSets").and_then(Value::as_array_mut);
    for set in sets.into_iter().flatten() {
        let patches: Vec<&mut Value> = match set.get_mut("patches") {
            Some(Value::Array(patches)) => patches.iter_mut().collect(),
            Some(Value::Object(patches)) => patches.values_mut().collect(),
            _ => continue,
        };
        for patch in patches {
            match patch {
                Value::Object(patch) => convert_patch(patch).context("failed to migrate patch")?,
                // The reference crashes.
                Value::Null => bail!("failed to migrate patch: it is null"),
                other => {
                    let problem = cannot_unmarshal(other, "map[string]interface {}");
                    bail!("failed to get patch: cannot unmarshal value from JSON: {problem}");
                }
            }
        }
    }
    Ok(())
}

fn move_resources(spec: &mut Map<String, Value>, ours: &mut Map<String, Value>) -> Result<()> {
    // What is no list of resources is lost.
    let Some(Ok(resources)) = spec.remove("resources").map(objects) else { return Ok(()) };
    let resources = converted(resources, convert_resource).context("failed to migrate resource")?;
    ours.insert("resources".to_owned(), resources);
    Ok(())
}

fn convert_resource(resource: &mut Map<String, Value>, index: usize) -> Result<()> {
    if !resource.contains_key("name") {
        resource.insert("name".to_owned(), format!("resource-{index}").into());
    }
    if let Some(details) = convert_connection_details(resource.get("connectionDetails")) {
        resource.insert("connectionDetails".to_owned(), details);
    }
    if let Some(Ok(patches)) = resource.get("patches").cloned().map(objects) {
        let patches = converted(patches, |patch, _| convert_patch(patch))
            .context("failed to migrate patch")?;
        resource.insert("patches".to_owned(), patches);
    }
    Ok(())
}

//! The functions of the input, and which of them a pipeline calls.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use biplane_go::fmt::quote;
use biplane_model::{Object, Value};

use super::flags::FunctionFlags;
use super::load::{Loader, quoted};
use super::project;
use super::runtime::{Function, RUNTIME, override_annotations};
use crate::cli::values;
use crate::streams::Streams;

/// The functions of the input, by name. To look some of them up may take as long as the limit.
pub(super) fn load(
    path: Option<&Path>,
    pipeline: &Object,
    flags: &FunctionFlags,
    limit: Duration,
    loader: &mut Loader<'_, '_>,
) -> Result<Vec<Function>> {
    let mut functions = match path {
        Some(path) => {
            let objects = loader.functions(path)?;
            let functions = objects.iter().map(Function::from_object).collect();
            distinct(functions)
                .with_context(|| format!("cannot load functions from {}", quoted(path)))?
        }
        None => unlisted(pipeline, flags, limit, loader.streams())?,
    };
    override_annotations(&mut functions, &values::list(&flags.function_annotations))?;
    Ok(functions)
}

/// Which of two Functions of a name is meant, nobody can tell.
fn distinct(functions: Vec<Function>) -> Result<Vec<Function>> {
    let mut by_name: BTreeMap<String, Function> = BTreeMap::new();
    let mut out = Vec::new();
    for function in functions {
        match by_name.get(&function.name) {
            None => {
                by_name.insert(function.name.clone(), function.clone());
                out.push(function);
            }
            Some(same) if *same == function => {}
            Some(_) => bail!("there are two different Functions named {}", quote(&function.name)),
        }
    }
    Ok(out)
}

/// The functions that a pipeline names when nobody lists them: those of the project, if there is
/// one, and those in the box.
fn unlisted(
    pipeline: &Object,
    flags: &FunctionFlags,
    limit: Duration,
    streams: &mut Streams<'_>,
) -> Result<Vec<Function>> {
    const REQUIRED: &str = "functions argument is required when not in a project";
    let registry = flags.registry();
    let in_box = |name: &str| registry.get(name).is_some();
    let used = used(pipeline);
    let project = flags.project_file.exists().then_some(flags.project_file.as_path());
    let mut functions = match project {
        Some(path) => project::functions(path, &used, flags, limit, in_box, streams)?,
        None => Vec::new(),
    };
    for name in used {
        if functions.iter().any(|function| function.name == name) {
            continue;
        }
        if flags.no_builtin || !in_box(&name) {
            let (quoted, names) = (quote(&name), registry.names().collect::<Vec<_>>().join(", "));
            match project {
                Some(_) if in_box(&name) => bail!(
                    "cannot load project functions: function {quoted} is not one of the project, and --no-builtin keeps it from running in process"
                ),
                None if in_box(&name) => bail!(
                    "{REQUIRED}: --no-builtin keeps function {quoted} from running in process"
                ),
                Some(_) => bail!(
                    "cannot load project functions: function {quoted} is neither one of the project nor one of those that run in process ({names})"
                ),
                None => bail!(
                    "{REQUIRED}: function {quoted} is not one of those that run in process ({names})"
                ),
            }
        }
        let annotation = (RUNTIME.to_owned(), "InProcess".to_owned());
        let (package, annotations) = (name.clone(), [annotation].into());
        functions.push(Function { name, package, annotations, build: None });
    }
    if functions.is_empty() {
        bail!(REQUIRED);
    }
    Ok(functions)
}

/// The names of the functions that a pipeline calls, each once.
pub(super) fn used(pipeline: &Object) -> Vec<String> {
    let steps = pipeline.at(&["spec", "pipeline"]).and_then(Value::as_array);
    let mut names = Vec::new();
    for step in steps.into_iter().flatten() {
        let name = step.pointer("/functionRef/name").and_then(Value::as_str).unwrap_or_default();
        if !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    names
}

//! Loads the functions of a render.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use biplane_go::fmt::quote;
use biplane_manifest::Loader;
use biplane_manifest::loader::quoted;
use biplane_model::Object;
use biplane_model::pipeline::function_names;
use biplane_runtime::function::{Function, override_annotations};
use biplane_runtime::project;

use crate::options::FunctionOptions;

/// The functions of a render: those that a file lists, otherwise those that the pipeline calls.
pub(crate) fn load(
    path: Option<&Path>,
    pipeline: &Object,
    options: &FunctionOptions,
    loader: &mut Loader<'_, '_>,
) -> Result<Vec<Function>> {
    let mut functions = match path {
        Some(path) => {
            let objects = loader.functions(path)?;
            let functions = objects.iter().map(Function::from_object).collect();
            distinct(functions)
                .with_context(|| format!("cannot load functions from {}", quoted(path)))?
        }
        None => unlisted(pipeline, &options.runtime, loader)?,
    };
    override_annotations(&mut functions, &options.annotations)?;
    Ok(functions)
}

/// Fails if two different Functions have the same name, which would be ambiguous.
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

/// The functions that a pipeline calls when no file lists them: those of the project, if there is
/// one, and the built-in ones.
fn unlisted(
    pipeline: &Object,
    options: &biplane_runtime::Options,
    loader: &mut Loader<'_, '_>,
) -> Result<Vec<Function>> {
    const REQUIRED: &str = "functions argument is required when not in a project";
    let in_box = |name: &str| options.registry.get(name).is_some();
    let called = function_names(pipeline);
    let in_project = options.project_file.exists();
    let mut functions = Vec::new();
    if in_project {
        functions = project::functions(&called, options, loader.deadline(), loader.streams())?;
    }
    for name in called {
        if functions.iter().any(|function| function.name == name) {
            continue;
        }
        if !options.builtin || !in_box(&name) {
            let (quoted, names) =
                (quote(&name), options.registry.names().collect::<Vec<_>>().join(", "));
            match in_project {
                true if in_box(&name) => bail!(
                    "cannot load project functions: function {quoted} is not one of the project, and --no-builtin keeps it from running in process"
                ),
                false if in_box(&name) => bail!(
                    "{REQUIRED}: --no-builtin keeps function {quoted} from running in process"
                ),
                true => bail!(
                    "cannot load project functions: function {quoted} is neither one of the project nor one of those that run in process ({names})"
                ),
                false => bail!(
                    "{REQUIRED}: function {quoted} is not one of those that run in process ({names})"
                ),
            }
        }
        functions.push(Function::in_process(name));
    }
    if functions.is_empty() {
        bail!(REQUIRED);
    }
    Ok(functions)
}

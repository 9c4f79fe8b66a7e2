//! Executes one patch.

use biplane_function::Budget;
use biplane_go::fmt::Arg;
use biplane_model::fieldpath::{self, FieldPath, MergeOptions, PathError};
use biplane_model::object::memory;

use crate::document::Document;
use crate::error::PatchError;
use crate::prepared::{FromPolicy, Patch, Path, Source};
use crate::transform;
use crate::value::Val;

/// The steps of one patch.
const STEPS: u64 = 100;

/// Returns the value that a patch writes.
pub fn read(patch: &Patch, from: &Document, budget: &Budget) -> Result<Val, PatchError> {
    budget.steps(STEPS)?;
    let value = match &patch.source {
        Source::Field(path) => get(from, path, budget)?,
        Source::Combine { variables, format } => {
            let values = variables
                .iter()
                .map(|path| get(from, path, budget))
                .collect::<Result<Vec<_>, PatchError>>()?;
            let format = format.as_ref().map_err(Clone::clone)?;
            let args: Vec<Arg<'_>> = values.iter().map(Val::as_arg).collect();
            Val::Text(transform::format_within(format, &args, budget)?)
        }
    };
    Ok(transform::run(&patch.transforms, value, budget)?)
}

fn get(from: &Document, path: &Path, budget: &Budget) -> Result<Val, PatchError> {
    match path {
        Ok(path) => from.get(path, budget),
        Err(error) => Err(PatchError::Failed(error.to_string())),
    }
}

/// Writes the value of a patch.
pub fn write(
    patch: &Patch,
    value: Val,
    to: &mut Document,
    budget: &Budget,
) -> Result<(), PatchError> {
    let marshal = |error: String| format!("cannot marshal value to JSON: {error}");
    let not_written = |error: String| {
        if patch.dialect.names_write { format!("cannot patch to object: {error}") } else { error }
    };
    if let Source::Combine { .. } = patch.source {
        let mut options = patch.merge.as_ref().map_err(Clone::clone)?;
        if !patch.dialect.merges_combined {
            options = &None;
        }
        let path = patch.to.as_ref().map_err(|error| not_written(error.to_string()))?;
        let value = value.into_json().map_err(marshal).map_err(not_written)?;
        announce(to, path, *options, budget)?;
        to.merge(path, value, *options).map_err(|error| not_written(error.to_string()))?;
        return Ok(to.settle().map_err(not_written)?);
    }
    let mut value = value.into_json().map_err(marshal)?;
    fieldpath::normalize(&mut value);
    let options = patch.merge.as_ref().map_err(Clone::clone)?;
    let path = patch.to.as_ref();
    if !patch.to_text.contains("[*]") {
        let path = path.map_err(|error| not_written(error.to_string()))?;
        announce(to, path, *options, budget)?;
        to.merge(path, value, *options).map_err(|error| not_written(error.to_string()))?;
        return Ok(to.settle().map_err(not_written)?);
    }
    let paths = to.expand(path.map_err(ToString::to_string)?, budget)?;
    if paths.is_empty() {
        return Err(format!("cannot expand ToFieldPath {}", patch.to_text).into());
    }
    let size = memory(&value);
    for path in paths {
        let path = FieldPath::parse(&path).map_err(PathError::from)?;
        budget.steps(STEPS)?;
        budget.make(size)?;
        announce(to, &path, *options, budget)?;
        to.merge(&path, value.clone(), *options)?;
    }
    Ok(to.settle()?)
}

/// Announces what a write costs besides its value.
fn announce(
    to: &Document,
    path: &FieldPath,
    options: Option<MergeOptions>,
    budget: &Budget,
) -> Result<(), PatchError> {
    budget.make(path.parents_size())?;
    Ok(budget.steps(to.compared(path, options) as u64)?)
}

/// Runs a patch from one document to another. Returns whether it wrote anything: it does not if its
/// source is missing and may be.
pub fn transfer(
    patch: &Patch,
    from: &Document,
    to: &mut Document,
    budget: &Budget,
) -> Result<bool, PatchError> {
    let value = match read(patch, from, budget) {
        Ok(value) => value,
        Err(PatchError::NotFound(_)) if patch.policy == FromPolicy::Optional => return Ok(false),
        Err(error) => return Err(error),
    };
    write(patch, value, to, budget)?;
    Ok(true)
}

/// Merges the value of a field that is about to be written with the live value there, as the patch
/// into that field says. The result replaces the value to be written.
///
/// Nothing happens if there is nothing to write, and with a path that has wildcards.
pub fn merge_live(
    patch: &Patch,
    live: &Document,
    desired: &mut Document,
) -> Result<(), PatchError> {
    if patch.merged_live.is_none() {
        return Ok(());
    }
    let Ok(path) = patch.to.as_ref() else { return Ok(()) };
    let options = patch.merge.as_ref().map_err(Clone::clone)?;
    let value = match path.get(desired.object()) {
        Ok(value) if !value.is_null() => value.clone(),
        _ => return Ok(()),
    };
    let mut merged = live.clone();
    merged.merge(path, value, *options)?;
    match path.get(merged.object()) {
        Ok(value) if !value.is_null() => {
            let value = value.clone();
            desired.merge(path, value, None)?;
            Ok(desired.settle()?)
        }
        _ => Ok(()),
    }
}

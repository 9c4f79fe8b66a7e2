//! Executes one patch.

use biplane_go::fmt;
use biplane_go::fmt::Arg;
use biplane_model::fieldpath::{self, FieldPath, PathError};

use super::document::Document;
use super::plan::{Patch, Source};
use super::transform;
use super::value::Val;

/// Why a patch failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatchError {
    /// A field does not exist at the source or, for wildcards, at the destination.
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Failed(String),
}

impl From<PathError> for PatchError {
    fn from(error: PathError) -> Self {
        if error.is_not_found() {
            Self::NotFound(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

impl From<String> for PatchError {
    fn from(error: String) -> Self {
        Self::Failed(error)
    }
}

/// Returns the value that a patch writes.
pub(super) fn read(patch: &Patch, from: &Document) -> Result<Val, PatchError> {
    let value = match &patch.source {
        Source::Field(path) => get(from, path)?,
        Source::Combine { variables, format } => {
            let values = variables
                .iter()
                .map(|path| get(from, path))
                .collect::<Result<Vec<_>, PatchError>>()?;
            let format = format.as_ref().map_err(Clone::clone)?;
            let args: Vec<Arg<'_>> = values.iter().map(Val::as_arg).collect();
            Val::Text(fmt::sprintf(format.as_bytes(), &args))
        }
    };
    Ok(transform::run(&patch.transforms, value)?)
}

fn get(from: &Document, path: &super::plan::Path) -> Result<Val, PatchError> {
    match path {
        Ok(path) => Ok(from.get(path)?),
        Err(error) => Err(PatchError::Failed(error.to_string())),
    }
}

/// Writes the value of a patch.
pub(super) fn write(patch: &Patch, value: Val, to: &mut Document) -> Result<(), PatchError> {
    let marshal = |error: String| format!("cannot marshal value to JSON: {error}");
    let not_written = |error: String| format!("cannot patch to object: {error}");
    if let Source::Combine { .. } = patch.source {
        let options = patch.merge.as_ref().map_err(Clone::clone)?;
        let path = patch.to.as_ref().map_err(|error| not_written(error.to_string()))?;
        let value = value.into_json().map_err(marshal).map_err(not_written)?;
        to.merge(path, value, *options).map_err(|error| not_written(error.to_string()))?;
        return Ok(to.settle().map_err(not_written)?);
    }
    let mut value = value.into_json().map_err(marshal)?;
    fieldpath::normalize(&mut value);
    let options = patch.merge.as_ref().map_err(Clone::clone)?;
    let path = patch.to.as_ref();
    if !patch.to_text.contains("[*]") {
        let path = path.map_err(|error| not_written(error.to_string()))?;
        to.merge(path, value, *options).map_err(|error| not_written(error.to_string()))?;
        return Ok(to.settle().map_err(not_written)?);
    }
    let paths = to.expand(path.map_err(ToString::to_string)?)?;
    if paths.is_empty() {
        return Err(format!("cannot expand ToFieldPath {}", patch.to_text).into());
    }
    for path in paths {
        let path = FieldPath::parse(&path).map_err(PathError::from)?;
        to.merge(&path, value.clone(), *options)?;
    }
    Ok(to.settle()?)
}

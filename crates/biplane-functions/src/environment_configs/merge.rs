//! Merges the data of configs into one environment.

use biplane_function::{Budget, Exceeded};
use biplane_go::fmt::quote;
use biplane_model::fieldpath::{self, FieldPath, PathError};
use biplane_model::object::overlay;
use biplane_model::{Map, Value};

use super::selection::Selected;

/// Deeper than any document that can be sent or received.
const MAX_SEGMENTS: usize = 400;

/// Why the data of a config cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum MergeError {
    #[error("cannot get data from environment config {}: {source}", quote(name))]
    Data { name: String, source: DataError },
    #[error("cannot get data from environment config {name} into path {}", quote(path))]
    Place { name: String, path: String },
    #[error("cannot merge environment config {}: {exceeded}", quote(name))]
    Budget { name: String, exceeded: Exceeded },
}

/// The error in the data.
#[derive(Debug, thiserror::Error)]
pub(super) enum DataError {
    #[error("data: no such field")]
    Missing,
    #[error(
        "cannot unmarshal value from JSON: json: cannot unmarshal {0} into Go value of type \
         map[string]interface {{}}"
    )]
    NotAnObject(&'static str),
}

/// Merges the data of all configs. Later configs override earlier ones.
pub(super) fn configs(
    selected: Vec<Selected>,
    budget: &Budget,
) -> Result<Map<String, Value>, MergeError> {
    let mut merged = Map::new();
    for Selected { config, path } in selected {
        let name = config.name().to_owned();
        if let Err(exceeded) = announce(&path, budget) {
            return Err(MergeError::Budget { name, exceeded });
        }
        let data = config.into_map().remove("data");
        let data = if path.is_empty() {
            root(data).map_err(|source| MergeError::Data { name, source })?
        } else {
            place(data.unwrap_or_default(), &path).map_err(|_| MergeError::Place { name, path })?
        };
        merged = overlay(merged, data);
    }
    Ok(merged)
}

/// The steps for one config.
const STEPS: u64 = 200;

/// Announces what merging a config costs: a short path can name places in long arrays.
fn announce(path: &str, budget: &Budget) -> Result<(), Exceeded> {
    budget.steps(STEPS)?;
    match FieldPath::parse(path) {
        Ok(path) => budget.make(path.parents_size()),
        Err(_) => Ok(()),
    }
}

fn root(data: Option<Value>) -> Result<Map<String, Value>, DataError> {
    let kind = match data {
        Some(Value::Object(mut data)) => {
            fieldpath::normalize_map(&mut data);
            return Ok(data);
        }
        Some(Value::Null) => return Ok(Map::new()),
        None => return Err(DataError::Missing),
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
    };
    Err(DataError::NotAnObject(kind))
}

/// Returns an object with the data at a path. Upstream does not report why this fails.
fn place(data: Value, path: &str) -> Result<Map<String, Value>, Option<PathError>> {
    let path = FieldPath::parse(path).map_err(|error| Some(error.into()))?;
    if path.segments().len() > MAX_SEGMENTS {
        return Err(None);
    }
    let mut object = Map::new();
    path.set(&mut object, data)?;
    Ok(object)
}

//! Readiness checks of observed composed resources.

use std::sync::LazyLock;

use biplane_function::Budget;
use biplane_model::fieldpath::{FieldPath, PathError};
use biplane_model::object::memory_of_map;
use biplane_model::{Object, Value};

use crate::prepared::{Path, ReadinessCheck};
use biplane_go::types::{Decoder, Types};

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    Types::read(&["status conditions:[]condition
condition type:string status:string lastTransitionTime:meta.Time reason:string message:string \
observedGeneration:int64"])
});

/// The steps of one check.
const STEPS: u64 = 50;

/// How many checks are not worth to measure the object.
const FEW: usize = 10;

/// Whether every check passes. Without checks, whether the `Ready` condition is true.
pub fn is_ready(
    object: &Object,
    checks: &[ReadinessCheck],
    budget: &Budget,
) -> Result<bool, String> {
    if checks.is_empty() {
        return Ok(condition(object, "Ready") == Some("True"));
    }
    // Every check of a condition decodes all of them.
    let steps = if checks.len() > FEW { STEPS + memory_of_map(object) as u64 / 32 } else { STEPS };
    for (index, check) in checks.iter().enumerate() {
        budget.steps(steps).map_err(|exceeded| exceeded.to_string())?;
        let passes = passes(object, check)
            .map_err(|error| format!("cannot run readiness check at index {index}: {error}"))?;
        if !passes {
            return Ok(false);
        }
    }
    Ok(true)
}

fn passes(object: &Object, check: &ReadinessCheck) -> Result<bool, String> {
    match check {
        ReadinessCheck::None => Ok(true),
        ReadinessCheck::NonEmpty(path) => read(path, |path| path.get(object).map(|_| true)),
        ReadinessCheck::String(path, wanted) => {
            read(path, |path| path.get_str(object).map(|text| text == wanted))
        }
        ReadinessCheck::Integer(path, wanted) => {
            read(path, |path| match (path.get(object)?.as_i64(), wanted) {
                (Some(found), Some(wanted)) => Ok(found == *wanted),
                _ => Err(PathError::Type {
                    path: path.text().to_owned(),
                    wanted: "not a (int64) number",
                }),
            })
        }
        ReadinessCheck::Bool(path, wanted) => {
            read(path, |path| path.get_bool(object).map(|flag| flag == *wanted))
        }
        ReadinessCheck::Condition(kind, wanted) => {
            Ok(condition(object, kind).unwrap_or_default() == wanted)
        }
        ReadinessCheck::Invalid(why) => Err(why.clone()),
    }
}

/// Runs a check. A missing field is not ready, without a warning.
fn read(
    path: &Path,
    read: impl FnOnce(&FieldPath) -> Result<bool, PathError>,
) -> Result<bool, String> {
    match read(path.as_ref().map_err(ToString::to_string)?) {
        Err(error) if error.is_not_found() => Ok(false),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Returns the status of a condition. A missing condition is unknown, unless nothing can be
/// decoded.
fn condition<'a>(object: &'a Object, kind: &str) -> Option<&'a str> {
    let status = match object.get("status")? {
        Value::Null => return Some("Unknown"),
        status => status.as_object()?,
    };
    TYPES.check(status, "status", Decoder::Lenient).ok()?;
    let text = |condition: &'a Value, key| condition.get(key).and_then(Value::as_str);
    let mut conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let found = conditions.find(|c| text(c, "type").unwrap_or_default() == kind);
    Some(found.map_or("Unknown", |condition| text(condition, "status").unwrap_or_default()))
}

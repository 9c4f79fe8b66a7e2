//! Merges a value into an existing one.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{FieldPath, PathError, normalize, type_name};

/// How a value is merged into an existing one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeOptions {
    /// The existing value wins, unless it is empty, zero or false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_map_values: Option<bool>,
    /// Arrays are appended, not replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_slice: Option<bool>,
}

impl MergeOptions {
    fn keep(self) -> bool {
        self.keep_map_values == Some(true)
    }

    fn append(self) -> bool {
        self.append_slice == Some(true)
    }
}

impl FieldPath {
    /// Merges a value at this path. Without options it replaces the existing value.
    pub fn merge(
        &self,
        document: &mut Map<String, Value>,
        value: Value,
        options: Option<MergeOptions>,
    ) -> Result<(), PathError> {
        let Some(options) = options else { return self.set(document, value) };
        let current = match self.get(document) {
            Ok(Value::Null) => None,
            Ok(current) => Some(current.clone()),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let mut merged = match current {
            Some(current) if !value.is_null() => merge_values(current, value, options)?,
            _ => value,
        };
        normalize(&mut merged);
        self.set_normalized(document, merged)
    }
}

/// Merges two values that are not null.
fn merge_values(
    current: Value,
    mut value: Value,
    options: MergeOptions,
) -> Result<Value, PathError> {
    if options.append()
        && let (Value::Array(items), Value::Array(more)) = (&current, &mut value)
    {
        more.retain(|item| !items.contains(item));
        // Appending an empty array to an empty array results in null upstream.
        if items.is_empty() && more.is_empty() {
            return Ok(Value::Null);
        }
    }
    let key = String::new();
    let mut target = Map::from_iter([(key.clone(), current)]);
    merge_maps(&mut target, Map::from_iter([(key.clone(), value)]), options)?;
    Ok(target.remove(&key).unwrap_or_default())
}

fn merge_maps(
    target: &mut Map<String, Value>,
    source: Map<String, Value>,
    options: MergeOptions,
) -> Result<(), PathError> {
    for (key, value) in source {
        merge_key(target, key, value, options)?;
    }
    Ok(())
}

fn merge_key(
    target: &mut Map<String, Value>,
    key: String,
    value: Value,
    options: MergeOptions,
) -> Result<(), PathError> {
    let keep = options.keep();
    match (value, target.get_mut(&key)) {
        (Value::Null, _) => {
            if !keep {
                target.insert(key, Value::Null);
            }
        }
        (Value::Object(source), Some(Value::Object(current))) => {
            // Nulls are not filled in, but an object of only nulls replaces an empty object.
            if current.is_empty() && source.values().all(Value::is_null) {
                *current = source;
            } else {
                merge_maps(current, source, options)?;
            }
        }
        (Value::Array(source), Some(current)) if options.append() && !current.is_null() => {
            let Value::Array(current) = current else {
                return Err(PathError::Merge(format!(
                    "cannot append two slices with different type ([]interface {{}}, {})",
                    type_name(current)
                )));
            };
            current.extend(source);
        }
        (value, Some(current)) => {
            if !keep || is_zero(current) {
                *current = value;
            }
        }
        (value, None) => {
            target.insert(key, value);
        }
    }
    Ok(())
}

/// Whether an existing value counts as empty, so that any value may overwrite it.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

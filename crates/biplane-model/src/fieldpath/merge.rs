//! Merges a value into an existing one.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{FieldPath, PathError, Segment, normalize, type_name};

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
        self.merge_normalized(document, value, options)?;
        if options.is_some()
            && let Some(merged) = self.slot(document)
        {
            normalize(merged);
        }
        Ok(())
    }

    /// Like [`FieldPath::merge`], for a document whose numbers are normalized. It takes time for the
    /// new value only, however large the document is.
    pub fn merge_normalized(
        &self,
        document: &mut Map<String, Value>,
        mut value: Value,
        options: Option<MergeOptions>,
    ) -> Result<(), PathError> {
        let Some(options) = options else { return self.set(document, value) };
        match self.get(document) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        if !value.is_null()
            && let Some(current) = self.slot(document)
        {
            return self.merge_slot(current, value, options);
        }
        normalize(&mut value);
        self.set_normalized(document, value)
    }

    fn merge_slot(
        &self,
        current: &mut Value,
        mut value: Value,
        options: MergeOptions,
    ) -> Result<(), PathError> {
        check(current, &value, options)?;
        if options.append()
            && let (Value::Array(items), Value::Array(more)) = (&*current, &mut value)
        {
            drop_known(items, more);
            // Appending an empty array to an empty array results in null upstream.
            if items.is_empty() && more.is_empty() {
                *current = Value::Null;
                return Ok(());
            }
        }
        normalize(&mut value);
        self.check_write(&value)?;
        merge_into(current, value, options);
        Ok(())
    }

    /// The value at this path, unless it is absent or null.
    fn slot<'a>(&self, document: &'a mut Map<String, Value>) -> Option<&'a mut Value> {
        let (first, rest) = self.segments().split_first()?;
        let Segment::Field(first) = first else { return None };
        let slot = rest.iter().try_fold(document.get_mut(first)?, |value, segment| {
            match (segment, value) {
                (Segment::Field(name), Value::Object(map)) => map.get_mut(name),
                (Segment::Index(index), Value::Array(items)) => items.get_mut(*index as usize),
                _ => None,
            }
        })?;
        (!slot.is_null()).then_some(slot)
    }
}

/// Below this number of comparisons, a set would cost more than it saves.
const FEW: usize = 64;

/// Removes the values that an array already has.
fn drop_known(items: &[Value], more: &mut Vec<Value>) {
    if items.len().saturating_mul(more.len()) <= FEW || more.len() == 1 {
        more.retain(|item| !items.contains(item));
    } else {
        let known: HashSet<&Value> = items.iter().collect();
        more.retain(|item| !known.contains(item));
    }
}

/// Fails if a value cannot be merged into an existing one. Both are not null.
fn check(current: &Value, value: &Value, options: MergeOptions) -> Result<(), PathError> {
    match (value, current) {
        (Value::Object(source), Value::Object(current)) => {
            if current.is_empty() && source.values().all(Value::is_null) {
                return Ok(());
            }
            let both = source.iter().filter_map(|(key, value)| Some((value, current.get(key)?)));
            both.filter(|(value, current)| !value.is_null() && !current.is_null())
                .try_for_each(|(value, current)| check(current, value, options))
        }
        (Value::Array(_), current) if options.append() && !current.is_array() => {
            Err(PathError::Merge(format!(
                "cannot append two slices with different type ([]interface {{}}, {})",
                type_name(current)
            )))
        }
        _ => Ok(()),
    }
}

/// Merges a value that passed the check. It is not null.
fn merge_into(current: &mut Value, value: Value, options: MergeOptions) {
    match (value, current) {
        (Value::Object(source), Value::Object(current)) => {
            // Nulls are not filled in, but an object of only nulls replaces an empty object.
            if current.is_empty() && source.values().all(Value::is_null) {
                *current = source;
                return;
            }
            for (key, value) in source {
                match (value, current.get_mut(&key)) {
                    (Value::Null, _) if options.keep() => {}
                    (value, None) => {
                        current.insert(key, value);
                    }
                    (Value::Null, Some(current)) => *current = Value::Null,
                    (value, Some(current)) => merge_into(current, value, options),
                }
            }
        }
        (Value::Array(source), Value::Array(current)) if options.append() => current.extend(source),
        (value, current) => {
            if !options.keep() || is_zero(current) {
                *current = value;
            }
        }
    }
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

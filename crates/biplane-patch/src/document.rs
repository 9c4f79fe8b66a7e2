//! A document that patches read and write, and the types of its numbers.
//!
//! Over the wire every number is a double. A document stays that way until the first patch into it
//! succeeds. From then on its whole numbers are integers, because the whole document was encoded as
//! JSON and decoded again. Our structs store whole doubles as integers. A document therefore
//! records which of the two states it is in, and converts numbers to doubles only when they are
//! read.

use biplane_function::Budget;
use biplane_go::json;
use biplane_model::fieldpath::{self, FieldPath, MergeOptions, PathError};
use biplane_model::object::memory;
use biplane_model::{Map, Object, Value};

use crate::error::PatchError;
use crate::value::Val;

#[derive(Clone, Debug)]
pub struct Document {
    object: Object,
    /// Whether every number is treated as a double.
    doubles: bool,
}

impl Document {
    /// Creates a document from a message.
    pub fn from_wire(object: Object) -> Self {
        Self { object, doubles: true }
    }

    /// Creates a document from JSON, or from an equivalent object.
    pub fn from_json(object: Object) -> Self {
        Self { object, doubles: false }
    }

    pub fn object(&self) -> &Object {
        &self.object
    }

    pub fn into_object(self) -> Object {
        self.object
    }

    /// Returns the value at a path. It is copied.
    pub fn get(&self, path: &FieldPath, budget: &Budget) -> Result<Val, PatchError> {
        let value = path.get(&self.object)?;
        budget.make(memory(value))?;
        let mut value = value.clone();
        if self.doubles {
            fieldpath::to_doubles(&mut value);
        }
        Ok(value.into())
    }

    /// Sets a metadata field, or removes it if the value is empty. Metadata that is not an object
    /// is kept.
    pub fn set_metadata(&mut self, key: &str, value: &str) {
        match self.object.get("metadata") {
            Some(Value::Object(_)) => {}
            None if !value.is_empty() => {}
            _ => return,
        }
        self.object.set_meta(key, value);
    }

    /// Sets a field at the root.
    pub fn set_root(&mut self, key: &str, value: &str) {
        self.object.make_mut().insert(key.to_owned(), value.into());
    }

    /// Returns the paths that a path with wildcards matches.
    pub fn expand(&self, path: &FieldPath, budget: &Budget) -> Result<Vec<String>, PatchError> {
        let paths = path.expand_within(&self.object, budget.room())?;
        let paths = paths.ok_or_else(|| budget.overflow())?;
        budget.make(paths.iter().map(String::len).sum())?;
        Ok(paths)
    }

    /// Merges a value into the value at a path.
    pub fn merge(
        &mut self,
        path: &FieldPath,
        value: Value,
        options: Option<MergeOptions>,
    ) -> Result<(), PathError> {
        let map = self.object.make_mut();
        // Only merging compares the existing value with the new one.
        if self.doubles && options.is_some() {
            map.values_mut().for_each(fieldpath::to_doubles);
            return path.merge(map, value, options);
        }
        path.merge_normalized(map, value, options)
    }

    /// Returns how many existing items a merge compares with the new ones.
    pub fn compared(&self, path: &FieldPath, options: Option<MergeOptions>) -> usize {
        if options.is_none() {
            return 0;
        }
        path.get(&self.object).ok().and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// Has the effect of encoding and decoding the document as JSON after a patch.
    pub fn settle(&mut self) -> Result<(), String> {
        let kind = has_kind(&self.object);
        let text = if kind { String::new() } else { self.json_text() };
        if std::mem::take(&mut self.doubles) {
            fieldpath::normalize_map(self.object.make_mut());
        }
        if kind { Ok(()) } else { Err(missing_kind(&text)) }
    }

    /// Returns the JSON encoding of a document that was not yet encoded and decoded.
    fn json_text(&self) -> String {
        let mut value = self.object.to_value();
        if self.doubles {
            fieldpath::to_doubles(&mut value);
        }
        json::to_string(&value)
    }
}

/// Whether Go finds a kind. It also finds none if the version is malformed.
pub fn has_kind(map: &Map<String, Value>) -> bool {
    let text = |key| map.get(key).and_then(Value::as_str).unwrap_or_default();
    !text("kind").is_empty() && is_group_version(text("apiVersion"))
}

/// Whether a string is a valid group and version, or empty.
pub fn is_group_version(text: &str) -> bool {
    text.matches('/').count() <= 1
}

pub fn missing_kind(text: &str) -> String {
    format!("Object 'Kind' is missing in '{text}'")
}

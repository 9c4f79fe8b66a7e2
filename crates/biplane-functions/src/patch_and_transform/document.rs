//! A document that patches read from and write to, and the kinds of number in it.
//!
//! Over the wire every number is a double. A document stays that way until the first patch into it
//! succeeds; from then on whole numbers in it are integers, because the whole document has been
//! through JSON text. Our own structs keep whole doubles as integers, so documents remember which
//! of the two they are, and numbers are turned into doubles only where someone looks.

use biplane_go::json;
use biplane_model::fieldpath::{self, FieldPath, MergeOptions, PathError};
use biplane_model::{Map, Object, Value};

use super::value::Val;

#[derive(Clone, Debug)]
pub(super) struct Document {
    object: Object,
    /// Whether every number counts as a double.
    doubles: bool,
}

impl Document {
    /// From the wire.
    pub(super) fn from_wire(object: Object) -> Self {
        Self { object, doubles: true }
    }

    /// From JSON text, or what amounts to it.
    pub(super) fn from_json(object: Object) -> Self {
        Self { object, doubles: false }
    }

    pub(super) fn object(&self) -> &Object {
        &self.object
    }

    pub(super) fn into_object(self) -> Object {
        self.object
    }

    /// The value at a path.
    pub(super) fn get(&self, path: &FieldPath) -> Result<Val, PathError> {
        let mut value = path.get(&self.object)?.clone();
        if self.doubles {
            fieldpath::to_doubles(&mut value);
        }
        Ok(value.into())
    }

    /// Sets or, when empty, removes a field of the metadata. Metadata that is no object stays.
    pub(super) fn set_metadata(&mut self, key: &str, value: &str) {
        match self.object.get("metadata") {
            Some(Value::Object(_)) => {}
            None if !value.is_empty() => {}
            _ => return,
        }
        self.object.set_meta(key, value);
    }

    /// Sets a field at the root.
    pub(super) fn set_root(&mut self, key: &str, value: &str) {
        self.object.make_mut().insert(key.to_owned(), value.into());
    }

    /// Paths that a path with wildcards stands for.
    pub(super) fn expand(&self, path: &FieldPath) -> Result<Vec<String>, PathError> {
        path.expand(&self.object)
    }

    /// Merges a value into what is at a path.
    pub(super) fn merge(
        &mut self,
        path: &FieldPath,
        value: Value,
        options: Option<MergeOptions>,
    ) -> Result<(), PathError> {
        let map = self.object.make_mut();
        // Only merging compares what is there with what comes.
        if self.doubles && options.is_some() {
            map.values_mut().for_each(fieldpath::to_doubles);
        }
        path.merge(map, value, options)
    }

    /// Does what the trip through JSON text after a patch does.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        let kind = has_kind(&self.object);
        let text = if kind { String::new() } else { self.json_text() };
        if std::mem::take(&mut self.doubles) {
            fieldpath::normalize_map(self.object.make_mut());
        }
        if kind { Ok(()) } else { Err(missing_kind(&text)) }
    }

    /// As JSON text shows it before it has been through JSON text.
    fn json_text(&self) -> String {
        let mut value = self.object.to_value();
        if self.doubles {
            fieldpath::to_doubles(&mut value);
        }
        json::to_string(&value)
    }
}

/// Whether Go finds a kind. It finds none either where the version makes no sense.
pub(super) fn has_kind(map: &Map<String, Value>) -> bool {
    let text = |key| map.get(key).and_then(Value::as_str).unwrap_or_default();
    !text("kind").is_empty() && is_group_version(text("apiVersion"))
}

/// Whether a text reads as a group and a version, or nothing at all.
pub(super) fn is_group_version(text: &str) -> bool {
    text.matches('/').count() <= 1
}

pub(super) fn missing_kind(text: &str) -> String {
    format!("Object 'Kind' is missing in '{text}'")
}

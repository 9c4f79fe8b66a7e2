//! Structural OpenAPI v3 schemas, as in CRDs and XRDs. They are compiled once and then used to
//! prune, default and validate objects, with the API server's results and error messages.

mod embedded;
mod error;
mod formats;
mod lists;
mod node;
mod pattern;
mod shape;
#[cfg(test)]
mod tests;
mod validate;

use serde_json::Value;

use biplane_model::Object;
pub use error::{FieldError, Problem, joined};
use node::Node;
use validate::Place;

/// The reason why a document is not a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read schema: {path} {problem}")]
pub struct SchemaError {
    path: String,
    problem: &'static str,
}

impl SchemaError {
    fn new(path: &str, problem: &'static str) -> Self {
        Self { path: path.to_owned(), problem }
    }
}

/// Whether a string has a format that the API server checks. Every string has an unknown format.
pub(crate) fn has_format(name: &str, text: &str) -> bool {
    formats::Format::known(name, &["string"]).is_none_or(|format| format.fits(text))
}

/// A compiled schema of a kind.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Node,
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of a CRD.
    pub fn parse(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self { root: Node::root(schema, "openAPIV3Schema")? })
    }

    /// Compiles a schema that a server might refuse. What the schema says wrongly is ignored, and a
    /// type that JSON does not have fits nothing.
    pub fn parse_leniently(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self { root: Node::lenient_root(schema, "openAPIV3Schema")? })
    }

    /// Removes unknown fields and returns their paths, sorted. Nulls stay.
    pub fn remove_unknown(&self, object: &mut Object) -> Vec<String> {
        let before = object.to_value();
        let map = object.make_mut();
        if self.root.preserve_unknown {
            shape::prune_known_fields(map, &self.root, true);
        } else {
            shape::prune_fields(map, &self.root, true);
        }
        let mut removed = Vec::new();
        shape::removed(&before, &object.to_value(), "", &mut removed);
        for path in &mut removed {
            if let Some(path_without_dot) = path.strip_prefix('.') {
                *path = path_without_dot.to_owned();
            }
        }
        removed.sort();
        removed
    }

    /// Validates an object, but not whether items of lists are unique by their keys.
    pub fn validate_values(&self, object: &Object) -> Vec<FieldError> {
        let place = Place { path: "", prefix: "", old: None };
        validate::check(&object.to_value(), &self.root, place).into_errors()
    }

    /// Removes unknown fields and disallowed nulls, as the API server does on every read and write.
    /// `apiVersion`, `kind` and `metadata` stay unchanged.
    pub fn prune(&self, object: &mut Object) {
        let map = object.make_mut();
        if self.root.preserve_unknown {
            shape::prune_known_fields(map, &self.root, true);
        } else {
            shape::prune_fields(map, &self.root, true);
        }
        let mut value = Value::Object(std::mem::take(map));
        shape::drop_nulls(&mut value, Some(&self.root));
        if let Value::Object(pruned) = value {
            *map = pruned;
        }
    }

    /// Removes unknown fields of the status and returns their paths.
    pub fn prune_status(&self, object: &mut Object) -> Vec<String> {
        let node = self.root.properties.get("status");
        let Some(before) = object.get("status") else { return Vec::new() };
        if node.is_none() && self.root.preserve_unknown {
            return Vec::new();
        }
        let mut after = before.clone();
        shape::prune(&mut after, node);
        let mut removed = Vec::new();
        shape::removed(before, &after, "status", &mut removed);
        if !removed.is_empty() {
            object.make_mut().insert("status".to_owned(), after);
        }
        removed
    }

    /// Whether a field of the status can be stored.
    pub fn declares_status(&self, field: &str) -> bool {
        match self.root.properties.get("status") {
            Some(status) => status.preserve_unknown || status.properties.contains_key(field),
            None => self.root.preserve_unknown,
        }
    }

    /// Sets defaults.
    pub fn default(&self, object: &mut Object) {
        let map = object.make_mut();
        let mut value = Value::Object(std::mem::take(map));
        shape::default(&mut value, &self.root);
        if let Value::Object(defaulted) = value {
            *map = defaulted;
        }
    }

    /// Sets defaults in any value with this schema.
    pub fn default_value(&self, value: &mut Value) {
        shape::default(value, &self.root);
    }

    /// Validates an object. If the object before an update is given, unchanged parts are not
    /// reported.
    pub fn validate(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let old_value = old.map(Object::to_value);
        let place = Place { path: "", prefix: "", old: old_value.as_ref() };
        let mut errors = validate::check(&object.to_value(), &self.root, place).into_errors();
        embedded::check(object, &self.root, "", &mut errors);
        self.validate_lists(object, old, &mut errors);
        errors
    }

    /// Validates an object when only its status is written.
    pub fn validate_status(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let (Some(status), Some(node)) =
            (object.get("status"), self.root.properties.get("status"))
        {
            let old = old.and_then(|old| old.get("status"));
            let place = Place { path: "", prefix: "status", old };
            errors = validate::check(status, node, place).into_errors();
        }
        self.validate_lists(object, old, &mut errors);
        errors
    }

    /// Reports duplicate items, unless the old object already had some.
    fn validate_lists(&self, object: &Object, old: Option<&Object>, errors: &mut Vec<FieldError>) {
        let mut before = Vec::new();
        if let Some(old) = old {
            lists::check(old, &self.root, "", &mut before);
        }
        if before.is_empty() {
            lists::check(object, &self.root, "", errors);
        }
    }
}

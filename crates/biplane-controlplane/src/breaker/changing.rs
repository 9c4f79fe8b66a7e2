//! Which field of an object keeps changing, and which field manager changes it.

use std::fmt;

use biplane_model::{Object, Value};
use biplane_schema::merge::{FieldSet, ManagedFields, PathElement};

/// A field that keeps changing, and who changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changing {
    /// The path of the field.
    pub field: String,
    /// The field manager. Empty if it is not known.
    pub manager: String,
}

impl fmt::Display for Changing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.manager.as_str() {
            "" => write!(f, "Its field {} keeps changing.", self.field),
            manager => {
                write!(f, "Field manager {manager:?} keeps changing its field {}.", self.field)
            }
        }
    }
}

/// Fields that every write changes.
const BOOKKEEPING: [&str; 3] = ["resourceVersion", "generation", "managedFields"];

impl Changing {
    /// The first field in which two states of an object differ, and the manager whose entry is new.
    pub fn between(before: &Object, after: &Object) -> Option<Self> {
        let (before_value, after_value) = (before.to_value(), after.to_value());
        let mut path = Vec::new();
        let found = difference(Some(&before_value), Some(&after_value), &mut path);
        // An object of which only metadata is known may have changed somewhere else.
        found.then(|| Self { field: printed(&path), manager: manager(before, after, &path) })
    }
}

/// Finds the first difference and leaves its path.
fn difference(before: Option<&Value>, after: Option<&Value>, path: &mut Vec<String>) -> bool {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let in_metadata = path.len() == 1 && path[0] == "metadata";
            let mut keys: Vec<_> = before.keys().chain(after.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                if in_metadata && BOOKKEEPING.contains(&key.as_str()) {
                    continue;
                }
                path.push(key.clone());
                if difference(before.get(key), after.get(key), path) {
                    return true;
                }
                path.pop();
            }
            false
        }
        (before, after) => before != after,
    }
}

/// A path as users write it: keys with other characters than those of identifiers in brackets.
fn printed(path: &[String]) -> String {
    let mut text = String::new();
    for key in path {
        if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(key);
        } else {
            text.push('[');
            text.push_str(key);
            text.push(']');
        }
    }
    text
}

/// The manager that changed a field: one that owns it, or else one whose entry is new. Of several, the
/// one that wrote last.
fn manager(before: &Object, after: &Object, path: &[String]) -> String {
    let path: Vec<_> = path.iter().map(|key| PathElement::field(key)).collect();
    let earlier = ManagedFields::decode(before).unwrap_or_default();
    let all = ManagedFields::decode(after).unwrap_or_default();
    let newest = all.0.iter().max_by_key(|(manager, owned)| {
        let is_new = earlier.0.get(manager) != Some(owned);
        (reaches(&owned.fields, &path), is_new, &owned.time)
    });
    newest.map(|(manager, _)| manager.name.clone()).unwrap_or_default()
}

/// Whether a path, something below it or an atomic field above it is in a set.
fn reaches(fields: &FieldSet, path: &[PathElement]) -> bool {
    match path {
        [] => true,
        [first, rest @ ..] => match fields.child(first) {
            Some(below) => reaches(below, rest),
            None => fields.has_member(first),
        },
    }
}

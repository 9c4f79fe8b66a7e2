//! Reads values at paths.

use serde_json::{Map, Value};

use super::{FieldPath, PathError, Segment, print};

static NULL: Value = Value::Null;

/// The current position of a walk. The root of a document is a map that is not inside a value.
#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    Root(&'a Map<String, Value>),
    Value(&'a Value),
}

impl<'a> Node<'a> {
    fn object(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Root(map) => Some(map),
            Self::Value(value) => value.as_object(),
        }
    }

    fn is_null(self) -> bool {
        matches!(self, Self::Value(Value::Null))
    }
}

/// Follows the last of `steps`, starting at the node that the others lead to.
pub(super) fn step<'a>(node: Node<'a>, steps: &[Segment]) -> Result<&'a Value, PathError> {
    let Some((last, before)) = steps.split_last() else { return Ok(&NULL) };
    match (last, node) {
        (Segment::Index(index), Node::Value(Value::Array(items))) => items
            .get(*index as usize)
            .ok_or_else(|| PathError::NotFound(format!("{}: no such element", print(steps)))),
        (Segment::Index(_), _) => {
            Err(PathError::Mismatch(format!("{}: not an array", print(before))))
        }
        (Segment::Field(name), node) => match node.object() {
            Some(map) => map
                .get(name)
                .ok_or_else(|| PathError::NotFound(format!("{}: no such field", print(steps)))),
            None if node.is_null() => {
                Err(PathError::NotFound(format!("{}: expected map, got nil", print(before))))
            }
            None => Err(PathError::Mismatch(format!("{}: not an object", print(before)))),
        },
    }
}

impl FieldPath {
    /// The value at this path. An explicit null is a value. The empty path returns null.
    pub fn get<'a>(&self, document: &'a Map<String, Value>) -> Result<&'a Value, PathError> {
        let mut node = Node::Root(document);
        let mut value = &NULL;
        for taken in 1..=self.segments.len() {
            value = step(node, &self.segments[..taken])?;
            node = Node::Value(value);
        }
        Ok(value)
    }

    fn wrong<T>(&self, wanted: &'static str) -> Result<T, PathError> {
        Err(PathError::Type { path: self.text.clone(), wanted })
    }

    /// The string at this path.
    pub fn get_str<'a>(&self, document: &'a Map<String, Value>) -> Result<&'a str, PathError> {
        match self.get(document)? {
            Value::String(text) => Ok(text),
            _ => self.wrong("not a string"),
        }
    }

    /// The boolean at this path.
    pub fn get_bool(&self, document: &Map<String, Value>) -> Result<bool, PathError> {
        match self.get(document)? {
            Value::Bool(flag) => Ok(*flag),
            _ => self.wrong("not a bool"),
        }
    }
}

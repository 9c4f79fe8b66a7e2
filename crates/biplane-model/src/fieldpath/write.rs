//! Writes values at paths.

use serde_json::{Map, Value};

use super::{FieldPath, PathError, Segment, normalize, print};
use crate::object::OBJECT_SIZE;

/// The largest index that can be written. A larger one could allocate any amount of memory.
const MAX_INDEX: u32 = 1024;

/// How deeply a write may nest a document: deeper than any real one, but still safe for every
/// stack.
const MAX_DEPTH: usize = 400;

/// The current position of a walk.
enum Node<'a> {
    Root(&'a mut Map<String, Value>),
    Value(&'a mut Value),
}

impl FieldPath {
    /// Writes a value, after [`normalize`], and creates missing parents. Existing values of another
    /// type are not replaced.
    pub fn set(
        &self,
        document: &mut Map<String, Value>,
        mut value: Value,
    ) -> Result<(), PathError> {
        normalize(&mut value);
        self.set_normalized(document, value)
    }

    pub(super) fn set_normalized(
        &self,
        document: &mut Map<String, Value>,
        value: Value,
    ) -> Result<(), PathError> {
        let Some((last, parents)) = self.segments.split_last() else { return Ok(()) };
        self.check_write(&value)?;
        let mut node = Node::Root(document);
        for (taken, segment) in parents.iter().enumerate() {
            let child = self.child(node, segment, taken)?;
            let next = self.segments.get(taken + 1).unwrap_or(last);
            // A null element counts as absent, a null field does not.
            if matches!(segment, Segment::Index(_)) && child.is_null() {
                *child = container(next);
            }
            lengthen(child, next);
            node = Node::Value(child);
        }
        *self.child(node, last, parents.len())? = value;
        Ok(())
    }

    /// Fails if a write would make an array too long or a document too deep.
    pub(super) fn check_write(&self, value: &Value) -> Result<(), PathError> {
        for segment in &self.segments {
            match *segment {
                Segment::Index(index) if index > MAX_INDEX => {
                    return Err(PathError::Index { index, max: MAX_INDEX });
                }
                _ => {}
            }
        }
        if is_shallow(value, MAX_DEPTH.saturating_sub(self.segments.len())) {
            Ok(())
        } else {
            Err(PathError::Depth { path: self.text.clone() })
        }
    }

    /// About how many bytes a write takes for the parents that it creates: objects, and arrays as
    /// long as their index. Many of them exist already.
    pub fn parents_size(&self) -> usize {
        let size = |segment: &Segment| match segment {
            Segment::Index(index) => (*index).min(MAX_INDEX) as usize * size_of::<Value>(),
            Segment::Field(_) => OBJECT_SIZE / 2,
        };
        self.segments.iter().skip(1).map(size).sum()
    }

    /// The child that one segment leads to. An absent field is created.
    fn child<'a>(
        &self,
        node: Node<'a>,
        segment: &Segment,
        taken: usize,
    ) -> Result<&'a mut Value, PathError> {
        let before = || print(self.segments.get(..taken).unwrap_or_default());
        match (segment, node) {
            (Segment::Index(index), Node::Value(Value::Array(items))) => items
                .get_mut(*index as usize)
                .ok_or_else(|| PathError::Mismatch(format!("{} is not an array", before()))),
            (Segment::Field(name), Node::Root(map) | Node::Value(Value::Object(map))) => {
                Ok(map.entry(name.as_str()).or_insert_with(|| absent(&self.segments, taken)))
            }
            (Segment::Index(_), _) => {
                Err(PathError::Mismatch(format!("{} is not an array", before())))
            }
            (Segment::Field(_), _) => {
                Err(PathError::Mismatch(format!("{} is not an object", before())))
            }
        }
    }
}

/// The placeholder for an absent field before the next segment is followed.
fn absent(segments: &[Segment], taken: usize) -> Value {
    segments.get(taken + 1).map_or(Value::Null, container)
}

/// The container that a segment can be followed into.
fn container(next: &Segment) -> Value {
    match next {
        Segment::Index(index) => Value::Array(vec![Value::Null; *index as usize + 1]),
        Segment::Field(_) => Value::Object(Map::new()),
    }
}

/// Extends an array for the segment that follows.
fn lengthen(value: &mut Value, next: &Segment) {
    if let (Value::Array(items), Segment::Index(index)) = (value, next) {
        let needed = *index as usize + 1;
        if items.len() < needed {
            items.resize(needed, Value::Null);
        }
    }
}

/// Whether a value nests no deeper than the given number of levels.
fn is_shallow(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_shallow(item, below)),
        Value::Object(map) => map.values().all(|item| is_shallow(item, below)),
        _ => true,
    }
}

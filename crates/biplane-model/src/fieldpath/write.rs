//! Writing.

use serde_json::{Map, Value};

use super::{FieldPath, PathError, Segment, normalize, print};

/// The largest index that a write accepts: beyond, a path could ask for any amount of memory.
const MAX_INDEX: u32 = 1024;

/// How deep a write may make a document. Beyond any real one, and within what every stack can hold.
const MAX_DEPTH: usize = 400;

/// Where a walk has got to.
enum Node<'a> {
    Root(&'a mut Map<String, Value>),
    Value(&'a mut Value),
}

impl FieldPath {
    /// Writes a value, after [`normalize`], and makes what is missing on the way. Nothing that is
    /// in the way is replaced.
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
        for segment in &self.segments {
            match *segment {
                Segment::Index(index) if index > MAX_INDEX => {
                    return Err(PathError::Index { index, max: MAX_INDEX });
                }
                _ => {}
            }
        }
        let Some((last, parents)) = self.segments.split_last() else { return Ok(()) };
        if !is_shallow(&value, MAX_DEPTH.saturating_sub(self.segments.len())) {
            return Err(PathError::Depth { path: self.text.clone() });
        }
        let mut node = Node::Root(document);
        for (taken, segment) in parents.iter().enumerate() {
            let child = self.child(node, segment, taken)?;
            let next = self.segments.get(taken + 1).unwrap_or(last);
            // An element that is null counts as absent; a field that is null does not.
            if matches!(segment, Segment::Index(_)) && child.is_null() {
                *child = container(next);
            }
            lengthen(child, next);
            node = Node::Value(child);
        }
        *self.child(node, last, parents.len())? = value;
        Ok(())
    }

    /// The place that one step leads to, made if it is a field that is absent.
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

/// What stands for an absent field before the step after it is taken.
fn absent(segments: &[Segment], taken: usize) -> Value {
    segments.get(taken + 1).map_or(Value::Null, container)
}

/// The container that a step can be taken into.
fn container(next: &Segment) -> Value {
    match next {
        Segment::Index(index) => Value::Array(vec![Value::Null; *index as usize + 1]),
        Segment::Field(_) => Value::Object(Map::new()),
    }
}

/// Makes an array long enough for the step that follows.
fn lengthen(value: &mut Value, next: &Segment) {
    if let (Value::Array(items), Segment::Index(index)) = (value, next) {
        let needed = *index as usize + 1;
        if items.len() < needed {
            items.resize(needed, Value::Null);
        }
    }
}

/// Whether a value nests no deeper than so many levels.
fn is_shallow(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_shallow(item, below)),
        Value::Object(map) => map.values().all(|item| is_shallow(item, below)),
        _ => true,
    }
}

//! Wildcards.

use biplane_go::fmt::quote;
use serde_json::{Map, Value};

use super::read::{Node, step};
use super::{FieldPath, PathError, Segment, print};

impl FieldPath {
    /// The paths that this one stands for in a document, each as printed, in the order of indexes
    /// and keys. Only what exists is listed, down to the last step.
    pub fn expand(&self, document: &Map<String, Value>) -> Result<Vec<String>, PathError> {
        let mut found = Vec::new();
        let mut segments = self.segments.clone();
        expand(document, &mut segments, 0, Node::Root(document), &mut found).map_err(|source| {
            PathError::Expand {
                context: format!(
                    "cannot expand wildcards for segments: {}",
                    quote(&print(&self.segments))
                ),
                source: Box::new(source),
            }
        })?;
        Ok(found)
    }
}

/// Takes the steps from `taken` on, from where the ones before have led.
fn expand(
    document: &Map<String, Value>,
    segments: &mut [Segment],
    taken: usize,
    node: Node<'_>,
    found: &mut Vec<String>,
) -> Result<(), PathError> {
    let mut node = node;
    for at in taken..segments.len() {
        if segments[at].is_wildcard() {
            return branch(document, segments, at, node, found);
        }
        match step(node, &segments[..=at]) {
            Ok(value) => node = Node::Value(value),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    found.push(print(segments));
    Ok(())
}

/// Takes the wildcard step at `at` in every possible way.
fn branch(
    document: &Map<String, Value>,
    segments: &mut [Segment],
    at: usize,
    node: Node<'_>,
    found: &mut Vec<String>,
) -> Result<(), PathError> {
    let children: Vec<Segment> = match node {
        Node::Root(map) | Node::Value(Value::Object(map)) => {
            map.keys().map(|key| Segment::field(key)).collect()
        }
        Node::Value(Value::Array(items)) => {
            (0..items.len()).filter_map(|i| u32::try_from(i).ok()).map(Segment::Index).collect()
        }
        Node::Value(Value::Null) => {
            return Err(PathError::NotFound(format!(
                "wildcard field {} is not found in the path",
                quote(&print(&segments[..at]))
            )));
        }
        Node::Value(_) => {
            return Err(PathError::Mismatch(format!(
                "{}: unexpected wildcard usage",
                quote(&print(&segments[..at]))
            )));
        }
    };
    let wildcard = segments[at].clone();
    for child in children {
        segments[at] = child;
        // Quotes at the ends of a key are lost on the way, and then nothing is there.
        let Ok(value) = step(node, &segments[..=at]) else { continue };
        let Err(source) = expand(document, segments, at + 1, Node::Value(value), found) else {
            continue;
        };
        let context = format!("{}: cannot expand wildcards", quote(&print(segments)));
        // Whoever called tells of the path as it was handed down.
        segments[at] = wildcard;
        return Err(PathError::Expand { context, source: Box::new(source) });
    }
    segments[at] = wildcard;
    Ok(())
}

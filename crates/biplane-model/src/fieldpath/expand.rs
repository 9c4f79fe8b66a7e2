//! Expands wildcards in paths.

use biplane_go::fmt::quote;
use serde_json::{Map, Value};

use super::read::{Node, step};
use super::{FieldPath, PathError, Segment, print};

impl FieldPath {
    /// The paths that match this one in a document, each as printed, in the order of indexes and
    /// keys. Only existing fields are listed.
    pub fn expand(&self, document: &Map<String, Value>) -> Result<Vec<String>, PathError> {
        Ok(self.expand_within(document, usize::MAX)?.unwrap_or_default())
    }

    /// Like [`FieldPath::expand`]. Returns `None` if the paths have more than `room` bytes in total.
    pub fn expand_within(
        &self,
        document: &Map<String, Value>,
        room: usize,
    ) -> Result<Option<Vec<String>>, PathError> {
        let mut found = Found { paths: Vec::new(), room: Some(room) };
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
        Ok(found.room.map(|_| found.paths))
    }
}

/// The paths that were found, and how many bytes more may have. Without room, the search is over.
struct Found {
    paths: Vec<String>,
    room: Option<usize>,
}

impl Found {
    fn add(&mut self, path: String) {
        self.room = self.room.and_then(|room| room.checked_sub(path.len()));
        if self.room.is_some() {
            self.paths.push(path);
        }
    }
}

/// Expands the segments from `taken` on, below the node that the segments before it lead to.
fn expand(
    document: &Map<String, Value>,
    segments: &mut [Segment],
    taken: usize,
    node: Node<'_>,
    found: &mut Found,
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
    found.add(print(segments));
    Ok(())
}

/// Replaces the wildcard segment at `at` with each child.
fn branch(
    document: &Map<String, Value>,
    segments: &mut [Segment],
    at: usize,
    node: Node<'_>,
    found: &mut Found,
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
        if found.room.is_none() {
            break;
        }
        segments[at] = child;
        // Quotes around a key are lost when the segment is parsed, and then the child is not found.
        let Ok(value) = step(node, &segments[..=at]) else { continue };
        let Err(source) = expand(document, segments, at + 1, Node::Value(value), found) else {
            continue;
        };
        let context = format!("{}: cannot expand wildcards", quote(&print(segments)));
        // Restore the wildcard: the caller reports the original path.
        segments[at] = wildcard;
        return Err(PathError::Expand { context, source: Box::new(source) });
    }
    segments[at] = wildcard;
    Ok(())
}

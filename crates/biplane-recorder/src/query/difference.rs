//! Differences between two JSON documents by their structure.
//!
//! Objects are compared by field. Lists of objects are compared by the field that identifies an item,
//! lists of plain values by their longest common subsequence, and other lists by position. The
//! result is complete: [`apply`] makes the second document from the first.

mod apply;
mod lists;

use biplane_proto::redact::{MARKER, MARKER_BASE64};
use serde_json::{Map, Value};

pub use self::apply::apply;
pub(super) use self::lists::keys_of;
use super::path::{Path, Segment};

/// How many values are compared before documents are compared as a whole.
pub const NODES: usize = 50_000;

/// How a value differs.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Only the second document has it. In a list, `to` is its position there.
    Added {
        /// The value.
        value: Value,
        /// The position in the second document's list.
        to: Option<usize>,
    },
    /// Only the first document has it. In a list, `from` is its position there.
    Removed {
        /// The value.
        value: Value,
        /// The position in the first document's list.
        from: Option<usize>,
    },
    /// Both have it, with different values.
    Changed {
        /// The first document's value.
        before: Value,
        /// The second document's value.
        after: Value,
    },
    /// An item of a list is in another place relative to the others.
    Moved {
        /// The position in the first document's list.
        from: usize,
        /// The position in the second document's list.
        to: usize,
    },
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where.
    pub path: Path,
    /// How.
    pub what: What,
}

/// All differences between two documents, in the order of the second document's fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// What differs.
    pub changes: Vec<Change>,
    /// Values that are redacted in both documents. Whether they differ is unknown.
    pub unknown: Vec<Path>,
    /// The documents were too large to compare field by field to the end.
    pub is_coarse: bool,
}

impl Difference {
    /// Whether nothing is known to differ.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Compares two documents.
pub fn difference(before: &Value, after: &Value) -> Difference {
    let mut nodes = NODES;
    within(before, after, &mut nodes)
}

/// The same with what is left of a number of values to look at.
pub fn within(before: &Value, after: &Value, nodes: &mut usize) -> Difference {
    let mut comparison = Comparison { found: Difference::default(), path: Vec::new(), nodes };
    comparison.values(before, after);
    comparison.found
}

/// Whether a value stands for one that was redacted.
pub fn is_redacted(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text == MARKER || text == MARKER_BASE64)
}

struct Comparison<'n> {
    found: Difference,
    path: Vec<Segment>,
    nodes: &'n mut usize,
}

impl Comparison<'_> {
    fn values(&mut self, before: &Value, after: &Value) {
        if *self.nodes == 0 {
            if before != after {
                self.found.is_coarse = true;
                self.changed(before, after);
            }
            return;
        }
        *self.nodes -= 1;
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => self.objects(before, after),
            (Value::Array(before), Value::Array(after)) => self.lists(before, after),
            _ if before != after => self.changed(before, after),
            _ if is_redacted(before) => self.found.unknown.push(Path(self.path.clone())),
            _ => {}
        }
    }

    fn objects(&mut self, before: &Map<String, Value>, after: &Map<String, Value>) {
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            self.path.push(Segment::Field(name.clone()));
            match (before.get(name), after.get(name)) {
                (Some(before), Some(after)) => self.values(before, after),
                (Some(value), None) => {
                    self.push(What::Removed { value: value.clone(), from: None });
                }
                (None, Some(value)) => self.push(What::Added { value: value.clone(), to: None }),
                (None, None) => {}
            }
            self.path.pop();
        }
    }

    fn changed(&mut self, before: &Value, after: &Value) {
        self.push(What::Changed { before: before.clone(), after: after.clone() });
    }

    fn push(&mut self, what: What) {
        self.found.changes.push(Change { path: Path(self.path.clone()), what });
    }
}

#[cfg(test)]
mod tests;

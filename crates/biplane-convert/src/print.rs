//! Prints what a conversion made.

use biplane_model::yaml::{self, Change, Moved, Written};
use biplane_model::{Map, Value};

/// Keys that come first in new objects of a commented document.
const FIRST: &[&str] = &["apiVersion", "kind", "step", "functionRef"];

/// Where the parts of a new document come from.
#[derive(Debug, Default)]
pub(crate) struct Origins(Vec<Moved>);

impl Origins {
    /// A part that was moved. Paths are separated by dots.
    pub(crate) fn moved(&mut self, to: &str, from: &str) {
        self.0.push(Moved { to: path(to), from: Some(path(from)) });
    }

    /// A part that is new, even if there was another one in its place.
    pub(crate) fn new_part(&mut self, to: &str) {
        self.0.push(Moved { to: path(to), from: None });
    }
}

fn path(text: &str) -> Vec<String> {
    text.split('.').map(ToOwned::to_owned).collect()
}

/// Prints a document. If the original has comments, they stay, and so does its order. Otherwise the
/// layout is that of the reference.
pub(crate) fn document(
    original: &[u8],
    before: Map<String, Value>,
    after: Map<String, Value>,
    origins: &Origins,
    separator: bool,
) -> String {
    let (before, after) = (Value::Object(before), Value::Object(after));
    let written = str::from_utf8(original).ok().and_then(Written::read);
    let change =
        Change { before: &before, after: &after, moved: &origins.0, first: FIRST, separator };
    let commented = written.filter(Written::has_comments);
    if let Some(text) = commented.and_then(|written| written.rewrite(change)) {
        return text;
    }
    let text = yaml::to_string(&after);
    if separator { format!("---\n{text}") } else { text }
}

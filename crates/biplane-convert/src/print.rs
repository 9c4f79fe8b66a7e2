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
    let text = yaml::to_string(&reread(&after));
    if separator { format!("---\n{text}") } else { text }
}

/// What the reference prints of a value: it prints JSON first and reads that as YAML, where U+0085 is
/// a line break.
fn reread(value: &Value) -> Value {
    match value {
        Value::String(text) => fold(text).into(),
        Value::Array(items) => items.iter().map(reread).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (fold(key), reread(value))).collect(),
        other => other.clone(),
    }
}

/// Folds line breaks like a quoted text: one is a space, and of several the first one is dropped.
fn fold(text: &str) -> String {
    const NEXT_LINE: char = '\u{85}';
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(NEXT_LINE) {
        folded.push_str(before.trim_end_matches(' '));
        let below = after.trim_start_matches([' ', NEXT_LINE]);
        let (breaks, _) = after.split_at(after.len() - below.len());
        match breaks.matches(NEXT_LINE).count() {
            0 => folded.push(' '),
            more => folded.extend(std::iter::repeat_n('\n', more)),
        }
        rest = below;
    }
    folded.push_str(rest);
    folded
}

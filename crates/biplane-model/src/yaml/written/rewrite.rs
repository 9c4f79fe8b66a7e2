//! Prints a changed document with the comments, the order and the style of the original.
//!
//! What did not change is copied. What changed, or has no original, is printed like a new document.

use super::super::{order, read_document, to_string};
use super::{Block, Comments, Part, Shape, Slot, Written};
use crate::{Map, Value, fieldpath};

/// A part of the new document that is to look like a part of the old one with another path.
///
/// A path is the keys that lead to a part. List items have their index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub to: Vec<String>,
    /// `None` if the part is new, although the old document has something at its path.
    pub from: Option<Vec<String>>,
}

/// How a document was changed.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub before: &'a Value,
    pub after: &'a Value,
    pub moved: &'a [Moved],
    /// Keys that come first in objects that have no original.
    pub first: &'a [&'a str],
    /// Whether a separator comes first, even if nothing stands above it.
    pub separator: bool,
}

/// An indentation of two spaces, for what has no original.
const STEP: usize = 2;

/// A slot of the old document, and its value.
type Original<'a> = (&'a Slot, &'a Value);

impl Written<'_> {
    /// Prints the new document.
    ///
    /// `None` if the result would not read as the new value. Then only a new layout can express it.
    pub fn rewrite(&self, change: Change<'_>) -> Option<String> {
        let mut printer = Printer {
            written: self,
            change,
            path: Vec::new(),
            out: String::new(),
            after_dash: false,
        };
        printer.document()?;
        let out = printer.out;
        let mut again = read_document(out.as_bytes()).ok()?;
        let mut wanted = change.after.clone();
        fieldpath::normalize(&mut again);
        fieldpath::normalize(&mut wanted);
        (again == wanted).then_some(out)
    }

    fn comments_of(&self, slot: Option<Original<'_>>) -> Comments {
        slot.and_then(|(slot, _)| self.comments.get(&slot.id)).cloned().unwrap_or_default()
    }

    /// The last line of a slot, with the comments below its last entry.
    fn last_line(&self, slot: &Slot) -> usize {
        let end = slot.part.end.max(slot.head_end);
        let content = self.line_below(end).saturating_sub(1);
        content.max(self.last_foot(&slot.part))
    }

    fn last_foot(&self, part: &Part) -> usize {
        let (Shape::Map(block) | Shape::List(block)) = &part.shape else { return 0 };
        let own = self.feet.get(&block.id).map_or(0, |(_, line)| *line);
        block.slots.last().map_or(0, |slot| self.last_foot(&slot.part)).max(own)
    }
}

struct Printer<'a> {
    written: &'a Written<'a>,
    change: Change<'a>,
    path: Vec<String>,
    out: String,
    /// Whether the line so far is a dash, at which the first entry of an item begins.
    after_dash: bool,
}

impl<'a> Printer<'a> {
    fn document(&mut self) -> Option<()> {
        let Shape::Map(block) = &self.written.root.shape else { return None };
        let (Value::Object(before), Value::Object(after)) = (self.change.before, self.change.after)
        else {
            return None;
        };
        for line in &self.written.prologue {
            self.comment(line, 0);
        }
        if self.change.separator || !self.out.is_empty() {
            self.out.push_str("---\n");
        }
        self.entries(after, Some((block, before)), 0);
        for line in &self.written.epilogue {
            self.comment(line, 0);
        }
        Some(())
    }

    fn comment(&mut self, text: &str, column: usize) {
        if self.after_dash {
            if text.is_empty() {
                return;
            }
            self.end_dash();
        }
        if !text.is_empty() {
            self.indent(column);
            self.out.push_str(text);
        }
        self.out.push('\n');
    }

    /// Leaves the line of a dash to the dash.
    fn end_dash(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        self.out.push('\n');
        self.after_dash = false;
    }

    fn indent(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }

    /// Moves to the column where an entry begins.
    fn start(&mut self, column: usize) {
        if !std::mem::take(&mut self.after_dash) {
            self.indent(column);
        }
    }

    /// The original of a child of the current part.
    fn original(&self, around: Option<(&'a Block, &'a Value)>) -> Option<Original<'a>> {
        if let Some(moved) = self.change.moved.iter().find(|moved| moved.to == self.path) {
            return self.find(moved.from.as_deref()?);
        }
        let (block, before) = around?;
        child(block, before, self.path.last()?)
    }

    /// A slot of the old document.
    fn find(&self, path: &[String]) -> Option<Original<'a>> {
        let mut part = &self.written.root;
        let mut value = self.change.before;
        let mut found = None;
        for step in path {
            let (Shape::Map(block) | Shape::List(block)) = &part.shape else { return None };
            let (slot, below) = child(block, value, step)?;
            (part, value) = (&slot.part, below);
            found = Some((slot, below));
        }
        found
    }

    /// Whether something below the current part has an original of its own.
    fn has_moved_parts(&self) -> bool {
        let below = |moved: &Moved| moved.from.is_some() && moved.to.starts_with(&self.path);
        self.change.moved.iter().any(below)
    }

    fn entries(
        &mut self,
        after: &'a Map<String, Value>,
        around: Option<(&'a Block, &'a Map<String, Value>)>,
        column: usize,
    ) {
        for key in self.in_order(after, around) {
            let Some(value) = after.get(key) else { continue };
            self.path.push(key.to_owned());
            let moved = self.change.moved.iter().find(|moved| moved.to == self.path);
            let original = match moved {
                Some(moved) => moved.from.as_deref().and_then(|from| self.find(from)),
                None => around.and_then(|(block, before)| {
                    let slot = block.slots.iter().rfind(|slot| slot.key == key)?;
                    Some((slot, before.get(key)?))
                }),
            };
            self.entry(key, value, original, column);
            self.path.pop();
        }
        self.foot(around.map(|(block, _)| block), column);
    }

    fn foot(&mut self, block: Option<&Block>, column: usize) {
        let feet = block.and_then(|block| self.written.feet.get(&block.id));
        for line in feet.into_iter().flat_map(|(lines, _)| lines) {
            self.comment(line, column);
        }
    }

    /// The keys of an object: those of the original in its order, and new ones in the place of what
    /// was removed, or else at the end.
    fn in_order(
        &self,
        after: &'a Map<String, Value>,
        around: Option<(&'a Block, &'a Map<String, Value>)>,
    ) -> Vec<&'a str> {
        let slots = around.map(|(block, _)| block.slots.as_slice()).unwrap_or_default();
        let place = |key: &str| slots.iter().rposition(|slot| slot.key == key);
        let gap = slots.iter().position(|slot| !after.contains_key(&slot.key));
        let gap = gap.unwrap_or(slots.len());
        let mut keys: Vec<(&str, ())> = after.keys().map(|key| (key.as_str(), ())).collect();
        order::sort_by_key(&mut keys);
        let mut keys: Vec<&str> = keys.into_iter().map(|(key, ())| key).collect();
        let rank = |key: &str| {
            let first = self.change.first.iter().position(|first| *first == key);
            first.unwrap_or(self.change.first.len())
        };
        keys.sort_by_key(|key| match place(key) {
            Some(place) => (place, 0),
            None => (gap, 1 + rank(key)),
        });
        keys
    }

    fn entry(
        &mut self,
        key: &str,
        value: &'a Value,
        original: Option<Original<'a>>,
        column: usize,
    ) {
        let Comments { above, behind, inside } = self.written.comments_of(original);
        for line in &above {
            self.comment(line, column);
        }
        if let Some((slot, before)) = original
            && before == value
            && !slot.part.bound
        {
            let head = if slot.key == key { None } else { Some(key_text(key)) };
            return self.copy(slot, head.as_deref(), column);
        }
        if let Some((below, block)) = self.block_below(value, original) {
            self.start(column);
            let head = match original {
                Some((slot, _)) if slot.key == key => self.head(slot).to_owned(),
                _ => key_text(key),
            };
            self.out.push_str(&head);
            self.out.push(':');
            self.end_head(behind.as_deref());
            let indent = block.map(|(block, _)| (block.column, original));
            let offset = match indent {
                Some((inner, Some((slot, _)))) => {
                    inner.saturating_sub(self.column_of(slot)).max(usize::from(value.is_object()))
                }
                _ if value.is_array() => 0,
                _ => STEP,
            };
            return self.collection(below, block, column + offset);
        }
        let text = to_string(&single(key, value));
        self.plain(&text, &inside, behind.as_deref(), column);
    }

    /// The collection to print entry by entry, with its original if that is one too.
    fn block_below(
        &self,
        value: &'a Value,
        original: Option<Original<'a>>,
    ) -> Option<(Collection<'a>, Option<(&'a Block, &'a Value)>)> {
        let below = match value {
            Value::Object(map) if !map.is_empty() => Collection::Map(map),
            Value::Array(items) if !items.is_empty() => Collection::List(items),
            _ => return None,
        };
        let block = original.and_then(|(slot, before)| match (&slot.part.shape, before, value) {
            (Shape::Map(block), Value::Object(_), Value::Object(_))
            | (Shape::List(block), Value::Array(_), Value::Array(_)) => Some((block, before)),
            _ => None,
        });
        (block.is_some() || self.has_moved_parts()).then_some((below, block))
    }

    fn collection(
        &mut self,
        below: Collection<'a>,
        around: Option<(&'a Block, &'a Value)>,
        column: usize,
    ) {
        match below {
            Collection::Map(map) => {
                let around = around.and_then(|(block, before)| Some((block, before.as_object()?)));
                self.entries(map, around, column);
            }
            Collection::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.path.push(index.to_string());
                    let original = self.original(around);
                    self.item(item, original, column);
                    self.path.pop();
                }
                self.foot(around.map(|(block, _)| block), column);
            }
        }
    }

    fn item(&mut self, value: &'a Value, original: Option<Original<'a>>, column: usize) {
        let Comments { above, behind, inside } = self.written.comments_of(original);
        for line in &above {
            self.comment(line, column);
        }
        if let Some((slot, before)) = original
            && before == value
            && !slot.part.bound
        {
            return self.copy(slot, None, column);
        }
        if let Some((below, block)) = self.block_below(value, original) {
            self.start(column);
            let offset = match (block, original) {
                (Some((block, _)), Some((slot, _))) => {
                    block.column.saturating_sub(self.column_of(slot)).max(1)
                }
                _ => STEP,
            };
            self.out.push('-');
            if let Some(comment) = behind {
                self.end_head(Some(&comment));
            } else {
                self.indent(offset - 1);
                self.after_dash = true;
            }
            return self.collection(below, block, column + offset);
        }
        let text = to_string(&Value::Array(vec![value.clone()]));
        self.plain(&text, &inside, behind.as_deref(), column);
    }

    fn end_head(&mut self, behind: Option<&str>) {
        if let Some(comment) = behind {
            self.out.push(' ');
            self.out.push_str(comment);
        }
        self.out.push('\n');
    }

    /// Prints lines that were made anew. Comments that stood between them come first.
    fn plain(&mut self, text: &str, inside: &[String], behind: Option<&str>, column: usize) {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let fits = !text.contains('\n');
        let above = inside.iter().map(String::as_str).chain(behind.filter(|_| !fits));
        for line in above {
            self.comment(line, column);
        }
        for (number, line) in text.split('\n').enumerate() {
            if number == 0 {
                self.start(column);
            } else if !line.is_empty() {
                self.indent(column);
            }
            self.out.push_str(line);
            self.end_head(behind.filter(|_| fits));
        }
    }

    /// Copies an entry or an item, with another key if there is one.
    fn copy(&mut self, slot: &Slot, head: Option<&str>, column: usize) {
        let written = self.written;
        let Some(place) = written.slots.get(slot.id) else { return };
        self.start(column);
        for line in place.line..=written.last_line(slot).max(place.line) {
            let text = written.line(line);
            if line == place.line {
                let start = written.lines.get(line).copied().unwrap_or_default();
                let from = match head {
                    Some(head) => {
                        self.out.push_str(head);
                        slot.head_end
                    }
                    None => place.start,
                };
                self.out.push_str(text.get(from.saturating_sub(start)..).unwrap_or_default());
            } else if !text.trim().is_empty() {
                let bare = text.trim_start_matches(' ');
                let indent = text.len() - bare.len();
                self.indent((indent + column).saturating_sub(place.column));
                self.out.push_str(bare);
            }
            self.out.push('\n');
        }
    }

    fn column_of(&self, slot: &Slot) -> usize {
        self.written.slots.get(slot.id).map_or(0, |place| place.column)
    }

    /// The key as it was written.
    fn head(&self, slot: &Slot) -> &'a str {
        let start = self.written.slots.get(slot.id).map_or(slot.head_end, |place| place.start);
        self.written.text.get(start..slot.head_end).unwrap_or_default()
    }
}

/// An object or list that is not empty.
#[derive(Clone, Copy)]
enum Collection<'a> {
    Map(&'a Map<String, Value>),
    List(&'a [Value]),
}

/// A child of a block, by its key or index.
fn child<'a>(block: &'a Block, value: &'a Value, step: &str) -> Option<Original<'a>> {
    match value {
        Value::Object(map) => {
            // If a key is given twice, the later one counts.
            let slot = block.slots.iter().rfind(|slot| slot.key == step)?;
            Some((slot, map.get(step)?))
        }
        Value::Array(items) => {
            let index: usize = step.parse().ok()?;
            Some((block.slots.get(index)?, items.get(index)?))
        }
        _ => None,
    }
}

fn single(key: &str, value: &Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value.clone())]))
}

/// A key as it is printed.
fn key_text(key: &str) -> String {
    let line = to_string(&single(key, &Value::Null));
    line.strip_suffix(": null\n").unwrap_or(key).to_owned()
}

//! A difference in the order of the document as it is now: lines, groups of lines, and what is
//! folded because it did not change.

use std::collections::{BTreeMap, BTreeSet};

use biplane_recorder::query::blame::{each_leaf, leaves};
use biplane_recorder::query::difference::{Difference, What};
use biplane_recorder::query::path::{Path, Segment, scalar};
use serde_json::{Map, Value};

/// How a line, a group or a resource differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has another value.
    Changed,
    /// It is in another place of its list.
    Moved,
    /// It is redacted. Whether it differs is unknown.
    Unknown,
    /// It did not change.
    Same,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line<'a> {
    pub(super) mark: Mark,
    pub(super) path: Path,
    /// The part of the path before this is written above the line.
    pub(super) base: usize,
    pub(super) before: Option<&'a Value>,
    pub(super) after: Option<&'a Value>,
    /// The positions before and after of an item that has moved.
    pub(super) moved: Option<(usize, usize)>,
    /// The position before of an item that is gone.
    pub(super) was: Option<usize>,
}

/// Lines that share the beginning of their paths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group<'a> {
    pub(super) mark: Mark,
    pub(super) path: Path,
    pub(super) base: usize,
    /// The fields that identify the items of a list.
    pub(super) keys: Option<String>,
    pub(super) is_list: bool,
    pub(super) moved: Option<(usize, usize)>,
    pub(super) was: Option<usize>,
    pub(super) parts: Vec<Part<'a>>,
}

/// What did not change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fold<'a> {
    /// How many values.
    pub(super) count: usize,
    /// The values. Empty if there is no room for them.
    pub(super) lines: Vec<Line<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part<'a> {
    Line(Line<'a>),
    Group(Group<'a>),
    Fold(Fold<'a>),
}

/// A difference, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tree<'a> {
    pub(super) parts: Vec<Part<'a>>,
    /// Lines about what control planes and servers keep for themselves.
    pub(super) bookkeeping: Vec<Line<'a>>,
}

impl<'a> Tree<'a> {
    /// A document as it is now, with its differences from before. Folds count what did not change,
    /// and have its lines only if there is room for them.
    pub(super) fn of(after: &'a Value, difference: &'a Difference, has_room: bool) -> Self {
        let mut top = Found::default();
        for change in &difference.changes {
            top.at(&change.path).here.push(&change.what);
        }
        for path in &difference.unknown {
            top.at(path).is_unknown = true;
        }
        let mut builder = Builder { path: Vec::new(), has_room };
        let mut parts = builder.own(&top, after);
        parts.extend(builder.below(after, &top));
        Self::finished(parts, after.is_array())
    }

    /// A document that only one side has.
    pub(super) fn whole(mark: Mark, document: &'a Value) -> Self {
        let lines = Builder { path: Vec::new(), has_room: true }.leaves(mark, document);
        Self::finished(lines, false)
    }

    fn finished(parts: Vec<Part<'a>>, is_list: bool) -> Self {
        let mut bookkeeping = Vec::new();
        let parts = without_bookkeeping(parts, 0, is_list, &mut bookkeeping);
        Self { parts: parts.into_iter().map(compact).collect(), bookkeeping }
    }

    /// How many values differ beside bookkeeping.
    pub(super) fn count(&self) -> usize {
        count(&self.parts)
    }
}

fn count(parts: &[Part<'_>]) -> usize {
    let one = |part: &Part<'_>| match part {
        Part::Line(line) => usize::from(line.mark != Mark::Unknown),
        // What came or went as a whole is one difference, as sentences count it.
        Part::Group(Group { mark: Mark::Added | Mark::Removed | Mark::Changed, .. }) => 1,
        Part::Group(group) => count(&group.parts) + usize::from(group.moved.is_some()),
        Part::Fold(_) => 0,
    };
    parts.iter().map(one).sum()
}

/// How many lines a document has that only one side has.
pub(super) fn lines(document: &Value) -> usize {
    let mut count = 0;
    each_leaf(document, &mut |path, _| count += usize::from(!path.is_bookkeeping()));
    count
}

/// How many plain values a document has.
fn size(document: &Value) -> usize {
    match document {
        Value::Object(fields) if !fields.is_empty() => fields.values().map(size).sum(),
        Value::Array(items) if !items.is_empty() => items.iter().map(size).sum(),
        _ => 1,
    }
}

/// What was found at a place of a document and below it.
#[derive(Default)]
struct Found<'a> {
    here: Vec<&'a What>,
    is_unknown: bool,
    below: BTreeMap<&'a Segment, Found<'a>>,
}

impl<'a> Found<'a> {
    fn at(&mut self, path: &'a Path) -> &mut Self {
        path.0.iter().fold(self, |found, segment| found.below.entry(segment).or_default())
    }

    fn moved(&self) -> Option<(usize, usize)> {
        self.here.iter().find_map(|what| match what {
            What::Moved { from, to } => Some((*from, *to)),
            _ => None,
        })
    }
}

struct Builder {
    path: Vec<Segment>,
    has_room: bool,
}

impl Builder {
    fn line<'a>(&self, mark: Mark) -> Line<'a> {
        Line {
            mark,
            path: Path(self.path.clone()),
            base: self.path.len().saturating_sub(1),
            before: None,
            after: None,
            moved: None,
            was: None,
        }
    }

    fn group<'a>(&self, mark: Mark, parts: Vec<Part<'a>>) -> Group<'a> {
        Group {
            mark,
            path: Path(self.path.clone()),
            base: self.path.len().saturating_sub(1),
            keys: None,
            is_list: false,
            moved: None,
            was: None,
            parts,
        }
    }

    /// What was found at this place itself. Items that are gone are drawn by their list.
    fn own<'a>(&self, found: &Found<'a>, value: &'a Value) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        for what in &found.here {
            match what {
                What::Added { value, .. } => parts.push(self.whole(Mark::Added, value, None)),
                What::Removed { value, from: None } => {
                    parts.push(self.whole(Mark::Removed, value, None));
                }
                What::Changed { before, after } => parts.push(self.changed(before, after)),
                What::Removed { .. } | What::Moved { .. } => {}
            }
        }
        if found.is_unknown {
            let line = Line { after: Some(value), ..self.line(Mark::Unknown) };
            parts.push(Part::Line(line));
        }
        parts
    }

    /// A place where something was found, with everything below it.
    fn place<'a>(&mut self, value: Option<&'a Value>, found: &Found<'a>) -> Vec<Part<'a>> {
        let Some(value) = value else {
            return self.own(found, &Value::Null);
        };
        let mut parts = self.own(found, value);
        let moved = found.moved();
        if found.below.is_empty() && moved.is_none() {
            return parts;
        }
        // What is empty now may have had something that is gone.
        if is_leaf(value) && found.below.is_empty() {
            parts.push(Part::Line(Line { after: Some(value), moved, ..self.line(Mark::Moved) }));
            return parts;
        }
        let mark = if moved.is_some() { Mark::Moved } else { Mark::Same };
        let inner = self.below(value, found);
        let keys = found.below.keys().find_map(|segment| match segment {
            Segment::Item(key) if value.is_array() => {
                let fields: Vec<&str> = key.iter().map(|(field, _)| field.as_str()).collect();
                Some(fields.join(", "))
            }
            _ => None,
        });
        let is_list = value.is_array();
        parts.push(Part::Group(Group { keys, is_list, moved, ..self.group(mark, inner) }));
        parts
    }

    fn below<'a>(&mut self, value: &'a Value, found: &Found<'a>) -> Vec<Part<'a>> {
        match value {
            Value::Object(fields) => self.object(fields, found),
            Value::Array(items) => self.list(items, found),
            _ => Vec::new(),
        }
    }

    fn object<'a>(&mut self, fields: &'a Map<String, Value>, found: &Found<'a>) -> Vec<Part<'a>> {
        let gone = found.below.keys().filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            _ => None,
        });
        let names: BTreeSet<&str> = fields.keys().map(String::as_str).chain(gone).collect();
        let (mut parts, mut fold) = (Vec::new(), Fold::default());
        for name in names {
            let segment = Segment::Field(name.to_owned());
            let found = found.below.get(&segment);
            self.path.push(segment);
            match (found, fields.get(name)) {
                (Some(found), value) => parts.extend(self.place(value, found)),
                (None, Some(value)) => self.fold(value, &mut fold),
                (None, None) => {}
            }
            self.path.pop();
        }
        if fold.count > 0 {
            parts.insert(0, Part::Fold(fold));
        }
        parts
    }

    /// The list as it is now. What is gone stands after the item that it came after.
    fn list<'a>(&mut self, items: &'a [Value], found: &Found<'a>) -> Vec<Part<'a>> {
        let (mut gone, mut left, mut arrived) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for (segment, found) in &found.below {
            for what in &found.here {
                match what {
                    What::Removed { value, from: Some(from) } => {
                        left.insert(*from);
                        gone.push((*from, *segment, value));
                    }
                    What::Moved { from, to } => {
                        left.insert(*from);
                        arrived.insert(*to);
                    }
                    What::Added { to: Some(to), .. } => {
                        arrived.insert(*to);
                    }
                    _ => {}
                }
            }
        }
        gone.sort_by_key(|(from, ..)| *from);
        let mut gone = gone.into_iter().peekable();
        // How many items that stayed were before it.
        let place = |from: usize| from - left.range(..from).count();
        let fields: Option<Vec<String>> = found.below.keys().find_map(|segment| match segment {
            Segment::Item(key) => Some(key.iter().map(|(field, _)| field.clone()).collect()),
            _ => None,
        });
        let (mut parts, mut fold, mut stayed) = (Vec::new(), Fold::default(), 0);
        for (to, item) in items.iter().enumerate() {
            while let Some((from, segment, value)) =
                gone.next_if(|(from, ..)| place(*from) <= stayed)
            {
                flush(&mut fold, &mut parts);
                parts.push(self.gone(from, segment, value));
            }
            stayed += usize::from(!arrived.contains(&to));
            let segment = segment_of(item, to, fields.as_deref());
            let found = found.below.get(&segment);
            self.path.push(segment);
            let drawn = found.map(|found| self.place(Some(item), found)).unwrap_or_default();
            if drawn.is_empty() {
                self.fold(item, &mut fold);
            } else {
                flush(&mut fold, &mut parts);
                parts.extend(drawn);
            }
            self.path.pop();
        }
        flush(&mut fold, &mut parts);
        parts.extend(gone.map(|(from, segment, value)| self.gone(from, segment, value)));
        parts
    }

    fn gone<'a>(&mut self, from: usize, segment: &Segment, value: &'a Value) -> Part<'a> {
        self.path.push(segment.clone());
        let part = self.whole(Mark::Removed, value, Some(from));
        self.path.pop();
        part
    }

    fn whole<'a>(&self, mark: Mark, value: &'a Value, was: Option<usize>) -> Part<'a> {
        if is_leaf(value) {
            return Part::Line(Line { was, ..self.leaf(mark, value) });
        }
        Part::Group(Group { was, ..self.group(mark, self.leaves(mark, value)) })
    }

    fn changed<'a>(&self, before: &'a Value, after: &'a Value) -> Part<'a> {
        if is_leaf(before) && is_leaf(after) {
            let line = self.line(Mark::Changed);
            return Part::Line(Line { before: Some(before), after: Some(after), ..line });
        }
        let mut parts = self.leaves(Mark::Removed, before);
        parts.extend(self.leaves(Mark::Added, after));
        Part::Group(self.group(Mark::Changed, parts))
    }

    fn leaf<'a>(&self, mark: Mark, value: &'a Value) -> Line<'a> {
        match mark {
            Mark::Removed => Line { before: Some(value), ..self.line(mark) },
            _ => Line { after: Some(value), ..self.line(mark) },
        }
    }

    fn leaves<'a>(&self, mark: Mark, value: &'a Value) -> Vec<Part<'a>> {
        let part = |(below, value): (Path, &'a Value)| {
            let mut line = self.leaf(mark, value);
            line.base = self.path.len();
            line.path.0.extend(below.0);
            Part::Line(line)
        };
        leaves(value).into_iter().map(part).collect()
    }

    fn fold<'a>(&self, value: &'a Value, fold: &mut Fold<'a>) {
        fold.count += size(value);
        if self.has_room {
            each_leaf(value, &mut |below, value| {
                let mut line = self.leaf(Mark::Same, value);
                line.path.0.extend_from_slice(&below.0);
                fold.lines.push(line);
            });
        }
    }
}

fn flush<'a>(fold: &mut Fold<'a>, parts: &mut Vec<Part<'a>>) {
    if fold.count > 0 {
        parts.push(Part::Fold(std::mem::take(fold)));
    }
}

/// The name of an item as differences name it.
fn segment_of(item: &Value, index: usize, fields: Option<&[String]>) -> Segment {
    let key = fields.and_then(|fields| {
        let pair = |field: &String| Some((field.clone(), scalar(item.get(field)?)?));
        fields.iter().map(pair).collect::<Option<Vec<_>>>()
    });
    key.map_or(Segment::Index(index), Segment::Item)
}

/// Whether a value is written on one line: empty lists and objects are.
pub(super) fn is_leaf(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

/// Takes the lines about bookkeeping out. A group without anything else did not change.
fn without_bookkeeping<'a>(
    parts: Vec<Part<'a>>,
    depth: usize,
    is_list: bool,
    taken: &mut Vec<Line<'a>>,
) -> Vec<Part<'a>> {
    let mut kept: Vec<Part<'a>> = Vec::new();
    for part in parts {
        match part {
            Part::Line(line) if line.path.is_bookkeeping() => taken.push(Line { base: 0, ..line }),
            Part::Line(_) => kept.push(part),
            Part::Group(group) => {
                let Group { parts, path, is_list: inner, .. } = group;
                let parts = without_bookkeeping(parts, path.0.len(), inner, taken);
                let is_same = parts.iter().all(|part| matches!(part, Part::Fold(_)));
                if is_same && group.moved.is_none() {
                    for part in parts {
                        keep(part, is_list, &mut kept);
                    }
                } else {
                    kept.push(Part::Group(Group { path, parts, ..group }));
                }
            }
            Part::Fold(_) => keep(part, is_list, &mut kept),
        }
    }
    for part in &mut kept {
        if let Part::Fold(fold) = part {
            fold.lines.iter_mut().for_each(|line| line.base = depth);
        }
    }
    kept
}

/// An object has one fold, before everything else. The folds of a list are where the items are.
fn keep<'a>(part: Part<'a>, is_list: bool, kept: &mut Vec<Part<'a>>) {
    let neighbour = if is_list { kept.last_mut() } else { kept.first_mut() };
    match (neighbour, part) {
        (Some(Part::Fold(fold)), Part::Fold(more)) => {
            fold.count += more.count;
            fold.lines.extend(more.lines);
        }
        (_, part) if is_list => kept.push(part),
        (_, part) => kept.insert(0, part),
    }
}

/// Writes a group of one part on the line of the part.
fn compact(part: Part<'_>) -> Part<'_> {
    let Part::Group(mut group) = part else { return part };
    group.parts = group.parts.into_iter().map(compact).collect();
    let is_plain = group.keys.is_none() && group.moved.is_none() && group.parts.len() == 1;
    match group.parts.pop() {
        Some(Part::Line(line)) if is_plain => {
            Part::Line(Line { base: group.base, was: line.was.or(group.was), ..line })
        }
        Some(Part::Group(inner)) if is_plain => Part::Group(Group { base: group.base, ..inner }),
        Some(last) => {
            group.parts.push(last);
            Part::Group(group)
        }
        None => Part::Group(group),
    }
}

/// Whether the end of a path is nothing but a position in a list.
pub(super) fn is_position(path: &Path, base: usize) -> bool {
    matches!(path.0.get(base..), Some([Segment::Index(_)]))
}

/// The end of a path, as it is written on a line.
pub(super) fn label(path: &Path, base: usize) -> String {
    let mut text = String::new();
    let mut after_item = false;
    for segment in path.0.get(base..).unwrap_or_default() {
        let is_item = !matches!(segment, Segment::Field(_));
        let word = match segment {
            Segment::Field(_) => Path(vec![segment.clone()]).to_string(),
            Segment::Item(key) => {
                let values: Vec<&str> = key.iter().map(|(_, value)| value.as_str()).collect();
                values.join(", ")
            }
            Segment::Index(index) => format!("item {}", index + 1),
        };
        if !text.is_empty() {
            text.push_str(match (is_item || after_item, word.starts_with('[')) {
                (true, _) => " ",
                (false, true) => "",
                (false, false) => ".",
            });
        }
        text.push_str(&word);
        after_item = is_item;
    }
    if text.is_empty() { "value".to_owned() } else { text }
}

//! How much of a difference one page shows.

use biplane_recorder::query::difference::NODES;
use biplane_recorder::query::path::Segment;
use serde_json::Value;

use super::tree::{Fold, Group, Line, Part};

/// How much is compared and drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many values are compared before resources are compared as a whole.
    pub nodes: usize,
    /// How many lines a page has.
    pub lines: usize,
    /// About how many bytes a page has.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nodes: NODES, lines: 2_000, bytes: 256 * 1024 }
    }
}

/// The characters of a value that a line shows at most.
pub(super) const LONGEST: usize = 400;

/// About how many bytes a line has beside its path and its values.
const FRAME: usize = 220;
/// About how many bytes the markup around a value has.
const VALUE: usize = 80;

/// About how many bytes a section has beside its lines.
pub(super) const SECTION: usize = 400;

/// What is left of a page.
#[derive(Debug)]
pub(super) struct Room {
    /// Lines that were on the pages before.
    skip: usize,
    limits: Limits,
    lines: usize,
    bytes: usize,
    /// Whether what did not change is counted and not drawn.
    pub(super) is_tight: bool,
    /// Whether lines were left for the next page.
    pub(super) is_cut: bool,
}

impl Room {
    /// A page that begins with a line.
    pub(super) fn new(limits: Limits, from: usize, is_tight: bool) -> Self {
        Self { skip: from, limits, lines: 0, bytes: 0, is_tight, is_cut: false }
    }

    /// Whether so many lines are on pages before this one. Then they are passed over.
    pub(super) fn passes(&mut self, lines: usize) -> bool {
        let is_before = lines <= self.skip;
        if is_before {
            self.skip -= lines;
        }
        is_before
    }

    /// How many lines were drawn.
    pub(super) fn drawn(&self) -> usize {
        self.lines
    }

    /// Counts what is drawn around lines.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Whether there is room for a line.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        // A page has at least one line, however long it is.
        let is_full = self.lines >= self.limits.lines
            || (self.lines > 0 && self.bytes + bytes > self.limits.bytes);
        if is_full || self.is_cut {
            self.is_cut = true;
            return false;
        }
        self.lines += 1;
        self.bytes += bytes;
        true
    }

    /// The lines that are on the page.
    pub(super) fn lines<'a>(&mut self, lines: Vec<Line<'a>>) -> Vec<Line<'a>> {
        lines.into_iter().filter(|line| self.takes(size(line))).collect()
    }

    /// The parts that are on the page.
    pub(super) fn parts<'a>(&mut self, parts: Vec<Part<'a>>) -> Vec<Part<'a>> {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Part::Line(line) => {
                    if self.takes(size(&line)) {
                        kept.push(Part::Line(line));
                    }
                }
                Part::Group(group) => {
                    let is_line = group.moved.is_some() && self.takes(FRAME);
                    let Group { parts, .. } = group;
                    let parts = self.parts(parts);
                    if is_line || parts.iter().any(|part| !matches!(part, Part::Fold(_))) {
                        kept.push(Part::Group(Group { parts, ..group }));
                    }
                }
                Part::Fold(fold) if self.is_tight => {
                    kept.push(Part::Fold(Fold { lines: Vec::new(), ..fold }));
                }
                Part::Fold(_) => kept.push(part),
            }
        }
        kept
    }
}

/// The lines and bytes of parts, with what did not change.
pub(super) fn measure(parts: &[Part<'_>]) -> (usize, usize) {
    let sum = |sizes: &mut dyn Iterator<Item = (usize, usize)>| {
        sizes.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    };
    sum(&mut parts.iter().map(|part| match part {
        Part::Line(line) => (1, size(line)),
        Part::Group(group) => {
            let (lines, bytes) = measure(&group.parts);
            (lines + usize::from(group.moved.is_some()), bytes + FRAME)
        }
        Part::Fold(fold) => sum(&mut fold.lines.iter().map(|line| (1, size(line)))),
    }))
}

/// About how many bytes a line has, and rather more than fewer.
pub(super) fn size(line: &Line<'_>) -> usize {
    let value = |value: Option<&Value>| match value {
        Some(Value::String(text)) => escaped(text).min(LONGEST * 6) + VALUE,
        Some(_) => 24 + VALUE,
        None => 0,
    };
    let segment = |segment: &Segment| match segment {
        Segment::Field(name) => escaped(name) + 2,
        Segment::Item(key) => {
            key.iter().map(|(field, value)| escaped(field) + escaped(value) + 3).sum()
        }
        Segment::Index(_) => 8,
    };
    let path: usize = line.path.0.iter().map(segment).sum();
    // The path is on the line twice.
    FRAME + path * 2 + value(line.before) + value(line.after)
}

/// The bytes of a text in HTML.
fn escaped(text: &str) -> usize {
    let longer = text.bytes().filter(|byte| matches!(byte, b'&' | b'<' | b'>' | b'"')).count();
    text.len() + longer * 5
}

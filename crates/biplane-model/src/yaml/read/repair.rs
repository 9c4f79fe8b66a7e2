//! What YAML 1.1 parsers take and YAML 1.2 wants to be written in another way: further lines of quoted
//! scalars that are not indented, comments right behind a quote or a bracket, and the like.
//!
//! What is changed means the same to the former.

use std::collections::{BTreeMap, BTreeSet};

use super::super::error::Located;
use super::super::lines;

/// Each repair is another attempt at the whole text.
const MAX_REPAIRS: usize = 100;
const MAX_REPAIRED_BYTES: usize = 64 << 20;

/// A change to a text, at a byte.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) removed: usize,
    pub(super) added: String,
}

/// What has been moved so far.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// The lines that have been indented.
    lines: BTreeSet<usize>,
    /// How many characters have been put in, by line.
    added: BTreeMap<usize, usize>,
    /// How many edits there have been.
    edits: usize,
    /// How far to the right: beyond every line that was indented to begin with.
    indent: usize,
    bytes: usize,
}

impl Repairs {
    /// The text with the line at fault moved to the right, if that is still worth trying.
    pub(super) fn indent(&mut self, text: &str, fault: &Located) -> Option<String> {
        if !self.affordable(text) || !self.lines.insert(fault.line) {
            return None;
        }
        if self.indent == 0 {
            let indent = |line: &str| line.bytes().take_while(|b| b" \t-?".contains(b)).count();
            self.indent = 1 + text.lines().map(indent).max().unwrap_or_default();
        }
        let start = lines::starts(text).nth(fault.line.checked_sub(2)?)?;
        let (before, after) = text.split_at_checked(start)?;
        Some(format!("{before}{:indent$}{after}", "", indent = self.indent))
    }

    /// The text with a space before the comment at fault, if that is still worth trying.
    pub(super) fn separate(&mut self, text: &str, fault: &Located) -> Option<String> {
        let line = std::iter::once(0).chain(lines::starts(text)).nth(fault.line.checked_sub(1)?)?;
        let rest = text.get(line..)?;
        let (column, _) = rest.char_indices().nth(fault.column.checked_sub(1)?)?;
        let (before, comment) = text.split_at_checked(line + column)?;
        if !comment.starts_with('#') || before.ends_with(' ') {
            return None;
        }
        let edit = Edit { at: line + column, removed: 0, added: " ".to_owned() };
        self.edit(text, fault, &edit)
    }

    /// The text with a change on the line at fault, if that is still worth trying.
    pub(super) fn edit(&mut self, text: &str, fault: &Located, edit: &Edit) -> Option<String> {
        if !self.affordable(text) {
            return None;
        }
        self.edits += 1;
        *self.added.entry(fault.line).or_default() += edit.added.len() - edit.removed;
        let before = text.get(..edit.at)?;
        let after = text.get(edit.at + edit.removed..)?;
        Some(format!("{before}{}{after}", edit.added))
    }

    fn affordable(&mut self, text: &str) -> bool {
        self.bytes += text.len();
        let repairs = self.lines.len() + self.edits;
        repairs < MAX_REPAIRS && self.bytes <= MAX_REPAIRED_BYTES
    }

    /// The place that a fault in the repaired text has in the original.
    pub(super) fn original(&self, at: Located) -> Located {
        let moved = if self.lines.contains(&at.line) { self.indent } else { 0 };
        let moved = moved + self.added.get(&at.line).copied().unwrap_or_default();
        Located { column: at.column.saturating_sub(moved).max(1), ..at }
    }
}

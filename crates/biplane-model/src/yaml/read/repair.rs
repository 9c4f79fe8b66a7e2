//! Rewrites YAML that YAML 1.1 parsers accept but YAML 1.2 does not: lines of quoted scalars that
//! are not indented, comments directly after a quote or a bracket, and similar.
//!
//! The rewritten text has the same meaning in YAML 1.1.

use std::collections::{BTreeMap, BTreeSet};

use super::super::error::Located;
use super::super::lines;

/// Each repair parses the whole text again.
const MAX_REPAIRS: usize = 100;
const MAX_REPAIRED_BYTES: usize = 64 << 20;

/// A change of a text at a byte offset.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) removed: usize,
    pub(super) added: String,
}

/// The repairs so far.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// The lines that have been indented.
    lines: BTreeSet<usize>,
    /// The number of characters that were inserted, by line.
    added: BTreeMap<usize, usize>,
    /// The number of edits.
    edits: usize,
    /// The indentation to add: more than that of any line in the original.
    indent: usize,
    bytes: usize,
}

impl Repairs {
    /// Indents the faulty line, if the limit allows another repair.
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

    /// Inserts a space before the faulty comment, if the limit allows another repair.
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

    /// Edits the faulty line, if the limit allows another repair.
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

    /// Converts a location in the repaired text to one in the original.
    pub(super) fn original(&self, at: Located) -> Located {
        let moved = if self.lines.contains(&at.line) { self.indent } else { 0 };
        let moved = moved + self.added.get(&at.line).copied().unwrap_or_default();
        Located { column: at.column.saturating_sub(moved).max(1), ..at }
    }
}

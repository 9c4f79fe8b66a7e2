//! Quoted scalars whose further lines stand too far to the left.
//!
//! YAML 1.1 parsers take such lines, YAML 1.2 wants them indented. Space at the start of a line in
//! quotes has no meaning, so adding some changes nothing but the parser's mind.

use std::collections::BTreeSet;

use super::super::error::Located;
use super::super::lines;

/// Each repair is another attempt at the whole text.
const MAX_REPAIRS: usize = 100;
const MAX_REPAIRED_BYTES: usize = 64 << 20;

/// The lines that have been moved so far.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    lines: BTreeSet<usize>,
    /// How far to the right: beyond every line that was indented to begin with.
    indent: usize,
    bytes: usize,
}

impl Repairs {
    /// The text with the line at fault moved to the right, if that is still worth trying.
    pub(super) fn indent(&mut self, text: &str, fault: &Located) -> Option<String> {
        self.bytes += text.len();
        let affordable = self.lines.len() < MAX_REPAIRS && self.bytes <= MAX_REPAIRED_BYTES;
        if !affordable || !self.lines.insert(fault.line) {
            return None;
        }
        if self.indent == 0 {
            let spaces = |line: &str| line.bytes().take_while(|b| *b == b' ').count();
            self.indent = 1 + text.lines().map(spaces).max().unwrap_or_default();
        }
        let start = lines::starts(text).nth(fault.line.checked_sub(2)?)?;
        let (before, after) = text.split_at_checked(start)?;
        Some(format!("{before}{:indent$}{after}", "", indent = self.indent))
    }

    /// The place that a fault in the repaired text has in the original.
    pub(super) fn original(&self, at: Located) -> Located {
        let moved = if self.lines.contains(&at.line) { self.indent } else { 0 };
        Located { column: at.column.saturating_sub(moved).max(1), ..at }
    }
}

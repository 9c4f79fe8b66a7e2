//! Cutting a stream into the texts of its documents.

use super::error::{Located, Problem};
use super::lines;

const SEPARATOR: &str = "---";

/// The text between two separator lines.
#[derive(Debug)]
pub(super) struct Chunk<'text> {
    pub(super) text: &'text str,
    /// How many lines of the stream come before it.
    pub(super) lines_above: usize,
}

/// Yields the texts between lines that begin with `---`, some of them perhaps empty.
#[derive(Debug)]
pub(super) struct Chunks<'text> {
    rest: Option<&'text str>,
    lines_above: usize,
    /// What is wrong with the separator below the text that came last.
    problem: Option<Located>,
}

impl<'text> Chunks<'text> {
    pub(super) fn of(text: &'text str) -> Self {
        Self { rest: Some(text), lines_above: 0, problem: None }
    }

    /// The length of the text up to the next line that is a separator.
    fn next_separator(rest: &str) -> Option<usize> {
        if rest.starts_with(SEPARATOR) {
            return Some(0);
        }
        rest.find("\n---").map(|newline| newline + 1)
    }
}

impl<'text> Iterator for Chunks<'text> {
    type Item = Result<Chunk<'text>, Located>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(problem) = self.problem.take() {
            return Some(Err(problem));
        }
        let rest = self.rest.take()?;
        let lines_above = self.lines_above;
        let Some(end) = Self::next_separator(rest) else {
            return Some(Ok(Chunk { text: rest, lines_above }));
        };
        let (text, after) = rest.split_at(end);
        self.lines_above += lines::starts(text).count() + 1;
        let (separator, below) = match after.split_once('\n') {
            Some((separator, below)) => (separator, Some(below)),
            None => (after, None),
        };
        // A text that ends in a separator has no document after it.
        self.rest = below;
        let trailer = separator.strip_prefix(SEPARATOR).unwrap_or(separator).trim();
        if !trailer.is_empty() && !trailer.starts_with('#') {
            self.rest = None;
            let problem = Problem::Separator(trailer.to_owned());
            self.problem = Some(Located { problem, line: self.lines_above, column: 1 });
        }
        Some(Ok(Chunk { text, lines_above }))
    }
}

//! Splits a stream into the texts of its documents.

use super::error::{Located, Problem, Words};
use super::lines;

const SEPARATOR: &str = "---";

/// The text between two separator lines.
#[derive(Debug)]
pub(super) struct Chunk<'text> {
    pub(super) text: &'text str,
    /// The number of lines of the stream before it.
    pub(super) lines_above: usize,
    /// Whether there is nothing before the separator above it.
    pub(super) follows_nothing: bool,
}

/// Iterates over the texts between lines that begin with `---`. Some may be empty.
#[derive(Debug)]
pub(super) struct Chunks<'text> {
    rest: Option<&'text str>,
    lines_above: usize,
    /// The error of the separator below the last text.
    problem: Option<Located>,
    /// Whether the last text was empty.
    after_nothing: bool,
    /// Whether content may follow a separator on its line.
    content_on_separators: bool,
    /// The length of a separator with content at the start of the rest.
    begun: usize,
}

impl<'text> Chunks<'text> {
    pub(super) fn of(text: &'text str) -> Self {
        Self {
            rest: Some(text),
            lines_above: 0,
            problem: None,
            after_nothing: false,
            content_on_separators: false,
            begun: 0,
        }
    }

    /// Splits a stream in which a document may begin on the line of its separator, as the grammar
    /// allows.
    pub(super) fn with_content_on_separators(text: &'text str) -> Self {
        Self { content_on_separators: true, ..Self::of(text) }
    }

    /// The length of the text up to the next separator line, after `begun` bytes.
    fn next_separator(rest: &str, begun: usize) -> Option<usize> {
        if begun == 0 && rest.starts_with(SEPARATOR) {
            return Some(0);
        }
        rest.get(begun..)?.find("\n---").map(|newline| begun + newline + 1)
    }
}

/// Whether there are directives, and nothing else except comments.
fn has_directives_alone(text: &str) -> bool {
    let is_directive = |line: &str| line.starts_with('%');
    let is_nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    text.lines().any(is_directive)
        && text.lines().all(|line| is_directive(line) || is_nothing(line))
}

impl<'text> Iterator for Chunks<'text> {
    type Item = Result<Chunk<'text>, Located>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(problem) = self.problem.take() {
            return Some(Err(problem));
        }
        let rest = self.rest.take()?;
        let (lines_above, begun) = (self.lines_above, std::mem::take(&mut self.begun));
        let follows_nothing = std::mem::take(&mut self.after_nothing);
        let mut end = Self::next_separator(rest, begun);
        if let Some(separator) = end.filter(|_| self.content_on_separators)
            && rest.get(..separator).is_some_and(has_directives_alone)
        {
            // Directives belong to the document below.
            end = Self::next_separator(rest, separator + SEPARATOR.len());
        }
        let Some(end) = end else {
            return Some(Ok(Chunk { text: rest, lines_above, follows_nothing }));
        };
        let (text, after) = rest.split_at(end);
        self.after_nothing = text.is_empty();
        self.lines_above += lines::starts(text).count() + 1;
        let (separator, below) = match after.split_once('\n') {
            Some((separator, below)) => (separator, Some(below)),
            None => (after, None),
        };
        // There is no document after a separator at the end of the text.
        self.rest = below;
        let trailer = separator.strip_prefix(SEPARATOR).unwrap_or(separator).trim();
        let has_content = !trailer.is_empty() && !trailer.starts_with('#');
        if has_content && self.content_on_separators {
            self.rest = Some(after);
            self.begun = SEPARATOR.len();
            self.lines_above -= 1;
        } else if has_content {
            self.rest = None;
            let problem = Problem::Separator(trailer.to_owned());
            let words = Box::new(Words::plain(problem.to_string()));
            self.problem = Some(Located { problem, line: self.lines_above, column: 1, words });
        }
        Some(Ok(Chunk { text, lines_above, follows_nothing }))
    }
}

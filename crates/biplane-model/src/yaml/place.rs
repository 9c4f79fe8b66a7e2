//! Finds the location of a part of a document, for errors about its content.
//!
//! Values do not store their location. To report an error, the text is scanned again.

use std::fmt;

use super::Dialect;
use super::error::Excerpt;
use super::lines;
use super::parse::{Event, Parser, Properties};
use super::scan::ScalarStyle;
use super::stream::{Chunk, Chunks};

/// How many blank lines a block may begin with.
const MAX_BLANK_LINES: usize = 1000;

/// A location in a text. It prints as its numbers, and the line with a caret below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the document, counted from 1, without empty documents.
    pub document: usize,
    /// Counted from 1 over the whole text.
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
    excerpt: Excerpt,
}

impl Place {
    /// Finds a part of a document, or else the closest part around it that exists.
    ///
    /// Documents are counted from 0. A part is named by the keys that lead to it. List items are
    /// named by their index, counted from 0. If a value begins on a line below its key, the result
    /// is the location of the key.
    pub fn find(text: &str, document: usize, path: &[&str]) -> Option<Self> {
        let (line, column) = Chunks::of(text)
            .map_while(Result::ok)
            .filter_map(|chunk| {
                let (line, column) = search(&chunk, path)?;
                Some((line + chunk.lines_above, column))
            })
            .nth(document)?;
        Some(Self { document: document + 1, ..Self::at(text, line, column) })
    }

    /// Finds a line and a column inside a text that is a part of a document, or else that part.
    ///
    /// The line is counted from 1, the column from 0. Only literal blocks have the lines of their
    /// text. Of quoted texts, only the first line is found.
    pub fn find_within(
        text: &str,
        document: usize,
        path: &[&str],
        line: usize,
        column: usize,
    ) -> Option<Self> {
        let part = Self::find(text, document, path)?;
        let shown = lines::line(text, part.line);
        let (line, column) = match shown.chars().nth(part.column.saturating_sub(1)) {
            Some('|') => {
                let below = (part.line + 1..).map(|number| lines::line(text, number));
                let below = below.take(MAX_BLANK_LINES).find(|line| !line.trim().is_empty())?;
                let indent = below.chars().take_while(|c| *c == ' ').count();
                (part.line + line, indent + column + 1)
            }
            Some('"' | '\'') if line == 1 => (part.line, part.column + 1 + column),
            Some('>') | None => return Some(part),
            Some(_) if line == 1 => (part.line, part.column + column),
            Some(_) => return Some(part),
        };
        Some(Self { document: part.document, ..Self::at(text, line, column) })
    }

    /// A known location in a text of one document.
    pub fn at(text: &str, line: usize, column: usize) -> Self {
        Self { document: 1, line, column, excerpt: Excerpt::of(text, line, column) }
    }

    /// The location, the problem, and the line.
    pub fn saying(&self, what: &str) -> String {
        let Self { document, line, column, excerpt } = self;
        format!("document {document}, line {line}, column {column}: {what}{excerpt}")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { document, line, column, excerpt } = self;
        write!(f, "document {document}, line {line}, column {column}{excerpt}")
    }
}

/// A list or object that is still open.
struct Open {
    /// The number of path segments that lead here, if this is on the path.
    depth: Option<usize>,
    next: Next,
}

/// What comes next in a list or object.
enum Next {
    Item(usize),
    Key,
    Value(String, (usize, usize)),
}

/// The location in one document, if there is a document.
fn search(chunk: &Chunk<'_>, path: &[&str]) -> Option<(usize, usize)> {
    let text = chunk.text.strip_prefix('\u{feff}').unwrap_or(chunk.text);
    let mut parser = Parser::new(text.as_bytes(), Dialect::V2);
    let mut open: Vec<Open> = Vec::new();
    let mut found = None;
    let mut deepest = 0;
    // If the text cannot be parsed further, use the best match so far.
    while let Ok((event, mark)) = parser.next() {
        let next = match &event {
            Event::SequenceStart(..) => Some(Next::Item(0)),
            Event::MappingStart(..) => Some(Next::Key),
            Event::Scalar { .. } | Event::Alias(_) => None,
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                continue;
            }
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart => continue,
        };
        let here = (mark.line + 1, mark.column + 1);
        if found.is_none() {
            if let Event::Scalar { text, style: ScalarStyle::Plain, properties } = &event
                && text.is_empty()
                && *properties == Properties::default()
            {
                return None;
            }
            found = Some(here);
        }
        let depth = match open.last_mut() {
            None => Some(0),
            Some(parent) => match std::mem::replace(&mut parent.next, Next::Key) {
                Next::Item(index) => {
                    parent.next = Next::Item(index + 1);
                    step(parent.depth, path, &index.to_string(), here, &mut deepest, &mut found)
                }
                Next::Value(key, key_at) => {
                    let at = if key_at.0 == here.0 { here } else { key_at };
                    step(parent.depth, path, &key, at, &mut deepest, &mut found)
                }
                Next::Key => {
                    let key = match &event {
                        Event::Scalar { text, .. } => text.clone(),
                        _ => String::new(),
                    };
                    parent.next = Next::Value(key, here);
                    None
                }
            },
        };
        if let Some(next) = next {
            open.push(Open { depth, next });
        }
    }
    found
}

/// Follows one segment of the path, if this is it.
fn step(
    depth: Option<usize>,
    path: &[&str],
    part: &str,
    at: (usize, usize),
    deepest: &mut usize,
    found: &mut Option<(usize, usize)>,
) -> Option<usize> {
    let depth = depth.filter(|&depth| path.get(depth) == Some(&part))? + 1;
    // If a key is given twice, the later one counts.
    if depth >= *deepest {
        *deepest = depth;
        *found = Some(at);
    }
    Some(depth)
}

//! Reads documents: parses a text into values, and reports errors with their location.

use std::borrow::Cow;

use granit_parser::{
    ErrorKind, Event, Marker, Options, Parser, ScalarStyle, ScanError, Span, StrInput,
};

use super::error::{Located, Problem, YamlError};
use super::lines;
use super::stream::{Chunk, Chunks};
use crate::Value;

mod brackets;
mod build;
mod everyday;
mod last_line;
mod limits;
mod repair;
mod tabs;
mod words;

use brackets::Brackets;
use build::Builder;
use last_line::LastLine;
use repair::{Edit, Repairs};
use tabs::Stop;
use words::Found;

/// How deeply lists and objects may be nested, including those from aliases.
pub const MAX_DEPTH: usize = 500;

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub value: Value,
    /// The line on which its content begins, counted from 1.
    pub line: usize,
    /// Its index among the documents with content, counted from 0.
    pub index: usize,
}

/// Reads all documents of a stream. Documents without content are left out.
///
/// The name is only for error messages.
pub fn parse_documents(source_name: &str, text: &str) -> Result<Vec<Document>, YamlError> {
    documents(source_name, text, LastLine::Ended).collect()
}

/// Reads the first document with content. Later documents are ignored.
///
/// If the text does not end with a line break, neither does a block scalar on its last line. A
/// stream is read line by line, which also ends the last line.
pub fn parse_one(source_name: &str, text: &str) -> Result<Document, YamlError> {
    documents(source_name, text, LastLine::AsItIs).next().unwrap_or_else(|| {
        let nowhere = located(Problem::Empty, 0, 0);
        Err(YamlError::new(source_name, text, 1, nowhere))
    })
}

/// Iterates over the documents with content.
fn documents(
    source_name: &str,
    text: &str,
    last_line: LastLine,
) -> impl Iterator<Item = Result<Document, YamlError>> {
    let mut index = 0;
    let chunks = match last_line {
        LastLine::Ended => Chunks::of(text),
        LastLine::AsItIs => Chunks::with_content_on_separators(text),
    };
    chunks.filter_map(move |chunk| {
        let document = chunk.and_then(|chunk| {
            // Each document of a stream is read separately.
            let above = match last_line {
                LastLine::Ended => usize::from(chunk.follows_nothing),
                LastLine::AsItIs => chunk.lines_above,
            };
            read(&chunk, last_line)
                .map_err(|at| Located {
                    line: at.line + chunk.lines_above,
                    words: Box::new(at.words.below(above)),
                    ..at
                })
                .map(|root| {
                    let line = root.line + chunk.lines_above;
                    root.value.map(|value| Document { value, line, index })
                })
        });
        match document {
            Ok(document) => {
                index += usize::from(document.is_some());
                document.map(Ok)
            }
            Err(at) => Some(Err(YamlError::new(source_name, text, index + 1, at))),
        }
    })
}

/// The value of one chunk, and the line on which it begins.
#[derive(Debug, Default)]
struct Root {
    value: Option<Value>,
    line: usize,
}

fn read(chunk: &Chunk<'_>, last_line: LastLine) -> Result<Root, Located> {
    let text = chunk.text.strip_prefix('\u{feff}').unwrap_or(chunk.text);
    if let Some(root) = everyday::read(text) {
        return Ok(root);
    }
    check_characters(text)?;
    let mut text = Cow::Borrowed(text);
    let mut repairs = Repairs::default();
    loop {
        match read_settled(&mut text, last_line) {
            Ok(root) => return Ok(root),
            Err(Failure::Located(at)) => return Err(repairs.original(at)),
            Err(Failure::QuotedLine(at)) => match repairs.indent(&text, &at) {
                Some(repaired) => text = Cow::Owned(repaired),
                None => return Err(repairs.original(at)),
            },
            Err(Failure::Edit(at, edit)) => match repairs.edit(&text, &at, &edit) {
                Some(repaired) => text = Cow::Owned(repaired),
                None => return Err(repairs.original(at)),
            },
            Err(Failure::Comment(at)) => match repairs.separate(&text, &at) {
                Some(repaired) => text = Cow::Owned(repaired),
                None => return Err(repairs.original(at)),
            },
        }
    }
}

/// The reason why a text could not be read.
enum Failure {
    Located(Located),
    /// A line of a quoted scalar is indented less than YAML 1.2 requires.
    QuotedLine(Located),
    /// A comment directly follows other content, which YAML 1.2 does not allow.
    Comment(Located),
    /// Something else that must be written differently in YAML 1.2.
    Edit(Located, Edit),
}

/// Reads a text whose tabs have been checked.
fn read_settled(text: &mut Cow<'_, str>, last_line: LastLine) -> Result<Root, Failure> {
    let (settled, stop) = tabs::settle(text);
    let tab = match stop {
        None => None,
        Some(Stop::Misplaced(tab)) => Some(tab),
        Some(Stop::Broken(error)) => match syntax(&error, &settled) {
            Failure::Located(_) => None,
            repairable => return Err(repairable),
        },
    };
    if let Cow::Owned(settled) = settled {
        *text = Cow::Owned(settled);
    }
    match (read_text(text, last_line), tab) {
        (read, None) => read,
        // An error above a misplaced tab is reported first.
        (Err(Failure::Located(at)), Some(tab))
            if at.is_of_grammar() && (at.line, at.column) < (tab.line, tab.column) =>
        {
            Err(Failure::Located(at))
        }
        (_, Some(tab)) => Err(Failure::Located(tab)),
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.emit_anchor_events = true;
    options.flow_nesting_limit = MAX_DEPTH + 1;
    options.block_nesting_limit = MAX_DEPTH + 1;
    options
}

fn read_text(text: &str, last_line: LastLine) -> Result<Root, Failure> {
    let mut parser = Parser::new_from_str_with_options(text, options());
    let mut builder = Builder::new(text);
    let mut brackets = Brackets::default();
    let mut root = Root::default();
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| syntax(&error, text))?;
        match event {
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(..) => continue,
            _ => {}
        }
        if root.line == 0 {
            if let Event::Scalar(text, ScalarStyle::Plain, 0, None) = &event
                && text.is_empty()
            {
                return Ok(root);
            }
            root.line = span.start.line();
        }
        brackets.event(&event, &span, text)?;
        let event = last_line.apply(event, &span, text);
        if let Err(problem) = builder.event(event, &span) {
            let at = locate(problem, &span, text);
            return Err(if at.is_of_grammar() {
                Failure::Located(at)
            } else {
                broken_below(&mut parser, text).unwrap_or(Failure::Located(at))
            });
        }
    }
    root.value = builder.finish();
    Ok(root)
}

fn located(problem: Problem, line: usize, column: usize) -> Located {
    let words = Box::new(words::of_problem(&problem));
    Located { problem, line, column, words }
}

/// An error for something that the parser accepts and go-yaml does not.
fn located_in_words(found: Found, text: &str, place: &Marker) -> Located {
    let (line, column) = (place.line(), place.col() + 1);
    let words = Box::new(words::of_found(found, text, line, column));
    Located { problem: Problem::Syntax(words.text().to_owned()), line, column, words }
}

fn locate(problem: Problem, span: &Span, text: &str) -> Located {
    let is_null = matches!(problem, Problem::UnsupportedKey("null"));
    let mut at = located(problem, span.start.line(), span.start.col() + 1);
    if let Some(words) = words::of_missing_key(text, at.line, at.column).filter(|_| is_null) {
        at.words = Box::new(words);
    }
    at
}

/// A grammar error further below. go-yaml reports it first, because it creates values only after
/// parsing.
fn broken_below<'t>(parser: &mut Parser<'t, StrInput<'t>>, text: &'t str) -> Option<Failure> {
    loop {
        match parser.next_event()? {
            Err(error) if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) => return None,
            Err(error) => return Some(syntax(&error, text)),
            Ok((Event::DocumentEnd | Event::StreamEnd, _)) => return None,
            Ok(_) => {}
        }
    }
}

fn syntax(error: &ScanError, text: &str) -> Failure {
    let problem = match error.kind() {
        ErrorKind::RecursionLimitExceeded => Problem::TooDeep(MAX_DEPTH),
        _ => Problem::Syntax(error.info()),
    };
    let marker = error.marker();
    let (line, column) = (marker.line(), marker.col() + 1);
    let words = Box::new(words::of(error.kind(), text, line, column));
    let at = Located { problem, line, column, words };
    match error.kind() {
        ErrorKind::InvalidQuotedScalarIndent => Failure::QuotedLine(at),
        ErrorKind::CommentNotSeparated => Failure::Comment(at),
        kind => match marker.byte_offset().and_then(|at| edit(kind, text, at)) {
            Some(edit) => Failure::Edit(at, edit),
            None => Failure::Located(at),
        },
    }
}

/// The edit that lets the parser read what go-yaml would read here.
fn edit(kind: &ErrorKind, text: &str, at: usize) -> Option<Edit> {
    match kind {
        ErrorKind::UnknownAnchor | ErrorKind::SimpleKeyExpected => brackets::alias_edit(text, at),
        ErrorKind::PlainScalarStartsWithDashFlowIndicator => brackets::quoted(at, "-"),
        ErrorKind::InvalidTagTerminator => {
            let tag = text.get(at..)?;
            let length = tag.find([',', '[', ']', ' ', '\n', '\r'])?;
            brackets::tag_edit(text, at + length)
        }
        _ => None,
    }
}

/// Refuses characters that must be escaped in YAML.
fn check_characters(text: &str) -> Result<(), Located> {
    let suspicious = |b: u8| (b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r')) || b == 0x7f;
    let bytes = text.as_bytes();
    let found = bytes.iter().enumerate().find_map(|(at, &b)| {
        // Only two lead bytes need a look at the bytes after them, so the whole text is not
        // decoded.
        let next = || bytes.get(at + 1).copied().unwrap_or_default();
        let after = || bytes.get(at + 2).copied().unwrap_or_default();
        let bad = match b {
            0xc2 => next() < 0xa0 && next() != 0x85,
            0xef => matches!((next(), after()), (0xbb, 0xbf) | (0xbf, 0xbe | 0xbf)),
            _ => suspicious(b),
        };
        bad.then_some(at)
    });
    let Some(before) = found.and_then(|at| text.get(..at)) else { return Ok(()) };
    let line = lines::starts(before).count() + 1;
    let column = before.rsplit(['\r', '\n']).next().unwrap_or_default().chars().count() + 1;
    Err(located(Problem::ControlCharacter, line, column))
}

//! Reads documents: parses a text into values, and reports errors with their location.

use std::borrow::Cow;
use std::fmt;

use super::Dialect;
use super::build::{self, Remarks};
use super::compose::{Broken, Content, MAX_DEPTH, Node, Tree};
use super::data::Data;
use super::error::{Located, Problem, Words, YamlError};
use super::scan::{Fault, Reporter, ScalarStyle};
use super::stream::{Chunk, Chunks};
use crate::Value;

mod everyday;

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub value: Value,
    /// The line on which its content begins, counted from 1.
    pub line: usize,
    /// Its index among the documents with content, counted from 0.
    pub index: usize,
}

/// How a missing line break at the end affects a block scalar there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLine {
    /// As if there were a line break.
    Ended,
    AsItIs,
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
        let problem = Problem::Empty;
        let words = Box::new(Words::plain(problem.to_string()));
        let nowhere = Located { problem, line: 0, column: 0, words };
        Err(YamlError::new(source_name, text, 1, nowhere))
    })
}

/// The message of go-yaml about a document that it cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    text: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Unreadable {}

/// Reads the first document of a text into JSON like sigs.k8s.io/yaml. A text without a document is
/// null.
///
/// The error has no prefix: `yaml: line 2: …`.
pub fn read_document(text: &[u8]) -> Result<Value, Unreadable> {
    if let Ok(text) = str::from_utf8(text)
        && let Some(root) = everyday::read(text)
    {
        return Ok(root.value.unwrap_or_default());
    }
    read_bytes(text)
        .map(|root| root.value.unwrap_or_default())
        .map_err(|at| Unreadable { text: at.words.bare() })
}

/// Reads the first document of a text like the newer version of go-yaml. A text without a document
/// is null.
pub fn decode_document(text: &[u8]) -> Result<Data, Unreadable> {
    let tree = Tree::read(text, Dialect::V3).map_err(|broken| Unreadable {
        text: match broken {
            Broken::Syntax(fault) => words_of_newer(&fault),
            Broken::UnknownAnchor(name, _) => format!("yaml: unknown anchor '{name}' referenced"),
            Broken::TooDeep(_) => format!("yaml: {}", Problem::TooDeep(MAX_DEPTH)),
        },
    })?;
    let Some(tree) = tree else { return Ok(Data::Null) };
    let (data, remarks) = build::decode(&tree, Dialect::V3)
        .map_err(|error| Unreadable { text: format!("yaml: {}", error.words) })?;
    if !remarks.duplicates.is_empty() {
        let text = format!("yaml: unmarshal errors:\n  {}", remarks.duplicates.join("\n  "));
        return Err(Unreadable { text });
    }
    Ok(data)
}

/// The newer version reports where the broken construct begins, unless that is the first line.
fn words_of_newer(fault: &Fault) -> String {
    let context = fault.context.map(|context| context.line).filter(|line| *line != 0);
    let line = match fault.reporter {
        Reporter::Reader => 0,
        Reporter::Scanner | Reporter::Parser => context.unwrap_or(fault.mark.line),
    };
    let scanned = usize::from(fault.reporter == Reporter::Scanner);
    match line {
        0 => format!("yaml: {}", fault.problem),
        line => format!("yaml: line {}: {}", line + scanned, fault.problem),
    }
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
    let ended = text.is_empty() || text.ends_with('\n') || last_line == LastLine::AsItIs;
    let text = if ended { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) };
    read_bytes(text.as_bytes())
}

/// Reads the first document of a text.
fn read_bytes(text: &[u8]) -> Result<Root, Located> {
    let Some(tree) = Tree::read(text, Dialect::V2).map_err(|broken| located(broken, text))? else {
        return Ok(Root::default());
    };
    let Some(root) = tree.node(tree.root()) else { return Ok(Root::default()) };
    if is_nothing(root) {
        return Ok(Root::default());
    }
    let (data, remarks) = build::decode(&tree, Dialect::V2)
        .map_err(|error| Located::at(error.problem, Words::plain(error.words), error.mark))?;
    let value = data.into_json().map_err(|error| {
        let Remarks { bad_key, not_finite, .. } = remarks;
        if error.encoding {
            let (mark, written) = not_finite.unwrap_or_default();
            Located::at(Problem::NotJson(written), Words::of_json(error.words), mark)
        } else {
            let mark = bad_key.unwrap_or(root.mark);
            Located::at(error.problem, Words::of_conversion(error.words), mark)
        }
    })?;
    Ok(Root { value: Some(value), line: root.mark.line + 1 })
}

/// Whether a node was added where the document has none.
pub(super) fn is_nothing(node: &Node) -> bool {
    let is_empty = |text: &str, style| text.is_empty() && style == ScalarStyle::Plain;
    match &node.content {
        Content::Scalar(text, style) => node.tag.is_none() && is_empty(text, *style),
        _ => false,
    }
}

fn located(broken: Broken, text: &[u8]) -> Located {
    match broken {
        Broken::Syntax(fault) => {
            let words = Words::of_fault(&fault);
            let is_control = fault.problem == Problem::ControlCharacter.to_string();
            let problem =
                if is_control { Problem::ControlCharacter } else { Problem::Syntax(fault.problem) };
            // A problem at the end is one of what was not closed.
            let at_end = fault.mark.index >= text.len();
            let mark = fault.context.filter(|_| at_end).unwrap_or(fault.mark);
            Located::at(problem, words, mark)
        }
        Broken::UnknownAnchor(name, mark) => {
            let problem = format!("unknown anchor '{name}' referenced");
            let words = Words::plain(problem.clone());
            Located::at(Problem::Syntax(problem), words, mark)
        }
        Broken::TooDeep(mark) => {
            let problem = Problem::TooDeep(MAX_DEPTH);
            let words = Words::plain(problem.to_string());
            Located::at(problem, words, mark)
        }
    }
}

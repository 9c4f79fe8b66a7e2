//! Errors of YAML documents, with their location.

use std::fmt;

use super::lines;
use super::scan::{Fault, Mark, Reporter};

/// How many characters of a long line an error shows on each side of the problem.
const SHOWN_AROUND: usize = 60;

/// The error of a YAML document that could not be read, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The file name, or another name that the caller gives the text.
    pub source_name: Box<str>,
    /// The number of the document, counted from 1, without empty documents.
    pub document: usize,
    /// Counted from 1 over the whole text. 0 if the problem has no location.
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
    /// The line itself. A very long line is cut around the column.
    pub source_line: Box<str>,
    pub problem: Problem,
    pub(super) words: Box<Words>,
}

/// go-yaml's error message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The part of go-yaml that reports it.
    who: &'static str,
    text: String,
    /// The number of lines above, if the message has a line number.
    above: Option<usize>,
    scanned: bool,
}

impl Words {
    /// A message without a line number.
    pub(super) fn plain(text: String) -> Self {
        Self { who: "yaml: ", text, above: None, scanned: false }
    }

    /// A message about YAML that JSON cannot represent.
    pub(super) fn of_json(text: String) -> Self {
        Self { who: "json: ", ..Self::plain(text) }
    }

    /// A message about keys that JSON cannot represent.
    pub(super) fn of_conversion(text: String) -> Self {
        Self { who: "", ..Self::plain(text) }
    }

    /// A message about broken syntax, as the older version of go-yaml words it.
    pub(super) fn of_fault(fault: &Fault) -> Self {
        let above = match fault.reporter {
            Reporter::Reader => None,
            Reporter::Scanner | Reporter::Parser => Some(fault.mark.line),
        };
        let scanned = fault.reporter == Reporter::Scanner;
        Self { above, scanned, ..Self::plain(fault.problem.clone()) }
    }

    /// The message for a text that has more lines above.
    pub(super) fn below(self, lines: usize) -> Self {
        Self { above: self.above.map(|above| above + lines), ..self }
    }

    /// The message without the prefix of Kubernetes tools.
    pub(super) fn bare(&self) -> String {
        let Self { who, text, above, scanned } = self;
        match above {
            // Neither reports the first line, and the parser counts from 0.
            None | Some(0) => format!("{who}{text}"),
            Some(above) => format!("{who}line {}: {text}", above + usize::from(*scanned)),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error converting YAML to JSON: {}", self.bare())
    }
}

/// The reasons why a text cannot be read as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text has only comments and whitespace.
    #[error("there is no document in it")]
    Empty,
    /// Something other than a comment follows `---` on its line.
    #[error("invalid Yaml document separator: {0}")]
    Separator(String),
    /// The text is not valid YAML.
    #[error("{0}")]
    Syntax(String),
    #[error("control characters are not allowed")]
    ControlCharacter,
    /// An alias inside the value that its anchor names.
    #[error("anchor '{0}' value contains itself")]
    AliasOfItself(String),
    /// Aliases expand the document too much.
    #[error("document contains excessive aliasing")]
    ExcessiveAliasing,
    #[error("lists and objects are nested more than {0} deep")]
    TooDeep(usize),
    #[error("map merge requires map or sequence of maps as the value")]
    MergeWantsMap,
    /// A list, an object or null is used as a key.
    #[error("{0} cannot be the key of an object")]
    UnsupportedKey(&'static str),
    /// The scalar does not fit its explicit tag.
    #[error("cannot decode !!{found} `{text}` as a !!{wanted}")]
    WrongTag { found: &'static str, text: Box<str>, wanted: &'static str },
    #[error("!!binary value contains invalid base64 data")]
    InvalidBase64,
    /// An infinity or `NaN`.
    #[error("{0} is not a number that JSON can hold")]
    NotJson(String),
}

/// A problem at a line and column, both counted from 1, of one document.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) problem: Problem,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) words: Box<Words>,
}

impl Located {
    pub(super) fn at(problem: Problem, words: Words, mark: Mark) -> Self {
        Self { problem, line: mark.line + 1, column: mark.column + 1, words: Box::new(words) }
    }
}

/// A line of a text with a caret below. A very long line is cut around the caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    line: usize,
    shown: Box<str>,
    caret: usize,
}

impl Excerpt {
    pub(super) fn of(text: &str, line: usize, column: usize) -> Self {
        let caret = column.saturating_sub(1).min(SHOWN_AROUND);
        let hidden = column.saturating_sub(1) - caret;
        let shown = lines::line(text, line).chars().skip(hidden).take(2 * SHOWN_AROUND).collect();
        Self { line, shown, caret }
    }
}

/// Each line of it begins with a line break, so that it can follow a sentence.
impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, shown, caret } = self;
        let gutter = line.to_string().len();
        write!(f, "\n {line} | {}", printable(shown))?;
        write!(f, "\n {:gutter$} | {:caret$}^", "", "")
    }
}

impl YamlError {
    /// Adds the whole text and its name, which only the caller of the document reader knows.
    pub(super) fn new(source_name: &str, text: &str, document: usize, at: Located) -> Self {
        // Problems at the end are found on the line below the last one. Show the end instead.
        let line = at.line.min(lines::starts(text).count() + 1);
        let end = lines::line(text, line).chars().count() + 1;
        let column = if line < at.line { end } else { at.column.min(end) };
        let excerpt = Excerpt::of(text, line, column);
        Self {
            source_name: source_name.into(),
            document,
            line,
            column,
            source_line: excerpt.shown,
            problem: at.problem,
            words: at.words,
        }
    }

    /// go-yaml's message about this text, as far as it is known, with the prefix that Kubernetes
    /// tools add.
    pub fn reference(&self) -> String {
        match &self.problem {
            // go-yaml never sees separators: the stream is split before.
            Problem::Separator(_) => self.problem.to_string(),
            _ => self.words.to_string(),
        }
    }

    /// The message of the Go reader, followed by the location and our own message.
    pub fn report(&self) -> String {
        match self.problem {
            Problem::Empty => self.to_string(),
            _ => format!("{}\n--> {}, {}", self.reference(), self.source_name, self.place()),
        }
    }

    /// The location and the problem: `document 1, line 2, column 3: …`, with the line.
    pub fn place(&self) -> String {
        let Self { document, line, column, problem, .. } = self;
        if *line == 0 {
            return problem.to_string();
        }
        let excerpt = self.excerpt();
        let (theirs, ours) = (self.reference(), problem.to_string());
        let known = theirs.ends_with(&ours) || ours.ends_with(&self.words.text);
        let why = if known { String::new() } else { format!(": {problem}") };
        format!("document {document}, line {line}, column {column}{why}{excerpt}")
    }

    fn excerpt(&self) -> Excerpt {
        Excerpt { line: self.line, shown: self.source_line.clone(), caret: self.caret() }
    }

    /// The number of characters of the source line before the problem.
    pub fn caret(&self) -> usize {
        self.column.saturating_sub(1).min(SHOWN_AROUND)
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read YAML of {}", self.source_name)?;
        if self.line == 0 {
            return write!(f, ": {}", self.problem);
        }
        let Self { document, line, column, .. } = self;
        write!(f, ", document {document}, line {line}, column {column}: {}", self.problem)?;
        write!(f, "{}", self.excerpt())
    }
}

impl std::error::Error for YamlError {}

/// A broken file must not control the terminal, and the caret must stay below its character.
fn printable(line: &str) -> String {
    // Marks that change the direction of text would move it away from the caret.
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    line.chars().map(|c| if c.is_control() || turns(c) { ' ' } else { c }).collect()
}

//! What can be wrong with a YAML text, and where.

use std::fmt;

use super::lines;

/// How much of a long line an error shows on either side of the problem.
const SHOWN_AROUND: usize = 60;

/// A YAML text that could not be read, with the place to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The file name or whatever else the caller calls the text.
    pub source_name: Box<str>,
    /// Which document of the text, counted from 1 and without the empty ones.
    pub document: usize,
    /// Counted from 1 over the whole text. 0 if the problem has no place.
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
    /// The line itself; of a very long one only the part around the column.
    pub source_line: Box<str>,
    pub problem: Problem,
    pub(super) words: Box<Words>,
}

/// What go-yaml would have said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// Which part of it.
    who: &'static str,
    text: String,
    /// How many lines stand above, if that is told at all.
    above: Option<usize>,
    scanned: bool,
}

impl Words {
    /// Words that come without a line.
    pub(super) fn plain(text: String) -> Self {
        Self { who: "yaml", text, above: None, scanned: false }
    }

    /// Words about what YAML can say and JSON cannot.
    pub(super) fn of_json(text: String) -> Self {
        Self { who: "json", ..Self::plain(text) }
    }

    /// Words of the scanner about a line, counted from 1.
    pub(super) fn scanned(text: &str, line: usize) -> Self {
        let above = Some(line.saturating_sub(1));
        Self { above, scanned: true, ..Self::plain(text.to_owned()) }
    }

    /// Words of the parser about a line, counted from 1.
    pub(super) fn parsed(text: &str, line: usize) -> Self {
        Self { scanned: false, ..Self::scanned(text, line) }
    }

    /// Without the place.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The same for a text that has more lines above.
    pub(super) fn below(self, lines: usize) -> Self {
        Self { above: self.above.map(|above| above + lines), ..self }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error converting YAML to JSON: {}: ", self.who)?;
        match self.above {
            // Both forget about the first line, and the parser counts from 0.
            None | Some(0) => {}
            Some(above) => write!(f, "line {}: ", above + usize::from(self.scanned))?,
        }
        f.write_str(&self.text)
    }
}

/// The ways in which a text is not YAML that can be read as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text holds comments and space at most.
    #[error("there is no document in it")]
    Empty,
    /// Something other than a comment follows `---` on its line.
    #[error("invalid Yaml document separator: {0}")]
    Separator(String),
    /// The text breaks the grammar of YAML.
    #[error("{0}")]
    Syntax(String),
    #[error("control characters are not allowed")]
    ControlCharacter,
    /// An alias inside the very value that its anchor names.
    #[error("anchor '{0}' value contains itself")]
    AliasOfItself(String),
    /// Aliases multiply the document beyond any honest use.
    #[error("document contains excessive aliasing")]
    ExcessiveAliasing,
    #[error("lists and objects are nested more than {0} deep")]
    TooDeep(usize),
    #[error("map merge requires map or sequence of maps as the value")]
    MergeWantsMap,
    /// A list, an object or null stands where a key is expected.
    #[error("{0} cannot be the key of an object")]
    UnsupportedKey(&'static str),
    /// The explicit tag and the text do not fit together.
    #[error("cannot decode !!{found} `{text}` as a !!{wanted}")]
    WrongTag { found: &'static str, text: Box<str>, wanted: &'static str },
    #[error("!!binary value contains invalid base64 data")]
    InvalidBase64,
    /// An infinity or "not a number".
    #[error("{0} is not a number that JSON can hold")]
    NotJson(String),
}

/// A problem at a line and column (both from 1) of one document's text.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) problem: Problem,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) words: Box<Words>,
}

impl Located {
    /// Whether it is known before the rest of the text has been read: what breaks the grammar, which
    /// has a line in go-yaml's words, and what would take too much to go on with.
    pub(super) fn is_of_grammar(&self) -> bool {
        self.words.above.is_some() || matches!(self.problem, Problem::TooDeep(_))
    }
}

/// A line of a text with a mark below, of a very long line only the part around the mark.
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
    /// Adds what only the caller of the document reader knows: the whole text and its name.
    pub(super) fn new(source_name: &str, text: &str, document: usize, at: Located) -> Self {
        let excerpt = Excerpt::of(text, at.line, at.column);
        Self {
            source_name: source_name.into(),
            document,
            line: at.line,
            column: at.column,
            source_line: excerpt.shown,
            problem: at.problem,
            words: at.words,
        }
    }

    /// What go-yaml says about such a text, as far as that is known, with the prefix that tools for
    /// Kubernetes put before it.
    pub fn reference(&self) -> String {
        match &self.problem {
            // Whoever cuts a stream into documents has nothing to do with it.
            Problem::Separator(_) => self.problem.to_string(),
            _ => self.words.to_string(),
        }
    }

    /// What is wrong, in the words of the Go reader, followed by the place and our own words.
    pub fn report(&self) -> String {
        match self.problem {
            Problem::Empty => self.to_string(),
            _ => format!("{}\n--> {}, {}", self.reference(), self.source_name, self.place()),
        }
    }

    /// The place to look at and what is wrong there: `document 1, line 2, column 3: …`, with the line.
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

    /// How many characters of the source line stand before the problem.
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

/// Terminals must not be steered by a broken file, and the caret must stay below its character.
fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

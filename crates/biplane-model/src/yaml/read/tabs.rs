//! Checks tabs like go-yaml: tabs may separate words on a line and may be anywhere within brackets
//! and quotes, but they must not indent.
//!
//! The parser follows YAML 1.2, which allows tabs in other places. So tabs that are only whitespace
//! are replaced by spaces before parsing, or the text is refused.

use std::borrow::Cow;

use granit_parser::{ErrorKind, ScalarStyle, ScanError, Scanner, Span, StrInput, TokenType};

use super::super::error::{Located, Problem, Words};
use super::super::lines;
use super::options;

/// go-yaml's message about a misplaced tab, and our parser's.
type Complaint = (&'static str, ErrorKind);

const TOKEN: Complaint =
    ("found character that cannot start any token", ErrorKind::TabInBlockIndentation);
const INDENTATION: Complaint =
    ("found a tab character that violates indentation", ErrorKind::TabInPlainScalar);
const BLOCK: Complaint = (
    "found a tab character where an indentation space is expected",
    ErrorKind::TabAtBlockScalarStart,
);

/// The reason why only a part of a text was checked.
pub(super) enum Stop {
    /// A misplaced tab.
    Misplaced(Located),
    /// The text is not valid YAML, even with spaces instead of tabs.
    Broken(ScanError),
}

/// Replaces all tabs that are whitespace between words by spaces. All offsets stay the same.
///
/// Below a misplaced tab or a grammar error, all tabs are replaced.
pub(super) fn settle(text: &str) -> (Cow<'_, str>, Option<Stop>) {
    if !text.contains('\t') {
        return (Cow::Borrowed(text), None);
    }
    let mut tabs = Tabs {
        text: text.as_bytes(),
        settled: text.as_bytes().to_vec(),
        at: 0,
        flow: 0,
        indents: Vec::new(),
        keys_begin_here: true,
        simple_key: false,
    };
    // Replacing tabs by spaces does not move words, up to the first misplaced tab.
    let spaced = text.replace('\t', " ");
    let (mut misplaced, mut broken) = (None, None);
    for token in Scanner::with_options(StrInput::new(&spaced), options()) {
        let (span, token) = match token {
            Ok(token) => token.into_parts(),
            Err(error) => {
                misplaced = tabs.before_error().err();
                broken = Some(Stop::Broken(error));
                break;
            }
        };
        misplaced = tabs.token(&span, &token).err();
        if misplaced.is_some() || matches!(token, TokenType::DocumentEnd) {
            break;
        }
    }
    let misplaced = misplaced.map(|(at, complaint)| Stop::Misplaced(refused(text, at, complaint)));
    let stop = misplaced.or(broken);
    if stop.is_some() {
        (tabs.at..text.len())
            .filter(|at| tabs.text.get(*at) == Some(&b'\t'))
            .for_each(|at| tabs.space(at));
    }
    (String::from_utf8(tabs.settled).map_or(Cow::Borrowed(text), Cow::Owned), stop)
}

fn refused(text: &str, at: usize, (words, kind): Complaint) -> Located {
    let before = text.get(..at).unwrap_or_default();
    let line = lines::starts(before).count() + 1;
    let column = before.rsplit(['\r', '\n']).next().unwrap_or_default().chars().count() + 1;
    let words = Box::new(Words::scanned(words, line));
    Located { problem: Problem::Syntax(kind.to_string()), line, column, words }
}

/// The offset of a misplaced tab, and the messages about it.
type Misplaced = (usize, Complaint);

/// The state of go-yaml's scanner when it meets a tab.
struct Tabs<'text> {
    text: &'text [u8],
    settled: Vec<u8>,
    /// The offset up to which the text has been checked.
    at: usize,
    /// The number of open brackets.
    flow: usize,
    /// The columns of the open lists and objects outside of brackets.
    indents: Vec<usize>,
    /// Whether a key could begin here: at the start of a line, and after a dash.
    keys_begin_here: bool,
    /// Whether the key before the next colon is written without a question mark.
    simple_key: bool,
}

impl Tabs<'_> {
    fn token(&mut self, span: &Span, token: &TokenType<'_>) -> Result<(), Misplaced> {
        let Some(range) = span.byte_range() else { return Ok(()) };
        match token {
            TokenType::BlockSequenceStart | TokenType::BlockMappingStart => {
                self.indents.push(span.start.col());
            }
            TokenType::BlockEnd => drop(self.indents.pop()),
            TokenType::Key if range.is_empty() => self.simple_key |= self.flow == 0,
            TokenType::Value => {
                self.between(range.start)?;
                self.at = range.start + 1;
                if self.flow == 0 {
                    self.keys_begin_here = !std::mem::take(&mut self.simple_key);
                }
            }
            TokenType::StreamEnd => self.between(self.text.len())?,
            TokenType::Scalar(ScalarStyle::Literal | ScalarStyle::Folded, _) => {
                self.between(range.start)?;
                self.block()?;
            }
            // Empty ranges are for implicit values.
            _ if range.is_empty() => {}
            _ => {
                self.between(range.start)?;
                self.keys_begin_here = false;
                self.at = range.end;
                match token {
                    TokenType::Key => self.keys_begin_here = self.flow == 0,
                    TokenType::FlowSequenceStart | TokenType::FlowMappingStart => self.flow += 1,
                    TokenType::FlowSequenceEnd | TokenType::FlowMappingEnd => {
                        self.flow = self.flow.saturating_sub(1);
                    }
                    TokenType::Scalar(ScalarStyle::Plain, _) => self.plain(range.start)?,
                    TokenType::Scalar(..) => self.quoted(range.start, range.end),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Skips whitespace, comments and dashes, up to an offset or the header of a block scalar.
    fn between(&mut self, end: usize) -> Result<(), Misplaced> {
        while self.at < end {
            match self.text.get(self.at) {
                Some(b'\t') if self.flow == 0 && self.keys_begin_here => {
                    return Err((self.at, TOKEN));
                }
                Some(b'\t') => self.space(self.at),
                Some(b'\n' | b'\r') => self.keys_begin_here |= self.flow == 0,
                Some(b'-') => self.keys_begin_here = true,
                Some(b' ') => {}
                Some(b'#') => {
                    self.at = self.line_end(self.at);
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Continues to the grammar error, which may be caused by a replaced tab.
    fn before_error(&mut self) -> Result<(), Misplaced> {
        self.between(self.text.len())?;
        match self.text.get(self.at) {
            Some(b'|' | b'>') if self.flow == 0 => self.block(),
            _ => Ok(()),
        }
    }

    /// Skips a plain scalar and the whitespace after it, in which it looks for further lines.
    fn plain(&mut self, start: usize) -> Result<(), Misplaced> {
        let end = std::mem::replace(&mut self.at, start);
        let indent = self.indent();
        // The start of the current line, if it is not the first line and only whitespace came so
        // far.
        let mut line = None;
        while let Some(&b) = self.text.get(self.at) {
            match (b, line) {
                (b'\n' | b'\r', _) => line = Some(self.at + 1),
                (b'\t', Some(line)) if self.at - line < indent => {
                    return Err((self.at, INDENTATION));
                }
                (b'\t', Some(_)) => self.space(self.at),
                (b'\t', None) if self.at >= end => self.space(self.at),
                (b' ' | b'\t', _) => {}
                _ if self.at >= end => break,
                _ => line = None,
            }
            self.at += 1;
        }
        self.keys_begin_here = line.is_some();
        Ok(())
    }

    /// Skips a block scalar, from its header on.
    fn block(&mut self) -> Result<(), Misplaced> {
        let header = self.at;
        self.at = self.line_end(header);
        let header = self.text.get(header..self.at).unwrap_or_default();
        let digit = header.iter().take_while(|b| **b != b'#').find(|b| b.is_ascii_digit());
        let parent = self.indents.last().copied();
        let mut indent = digit.map(|digit| usize::from(digit - b'0') + parent.unwrap_or_default());
        let mut deepest = 0;
        self.keys_begin_here = true;
        while let Some(line) = self.next_line() {
            let rest = self.text.get(line..).unwrap_or_default();
            let spaces = rest.iter().take_while(|b| **b == b' ').count();
            let column = indent.map_or(spaces, |indent| spaces.min(indent));
            deepest = deepest.max(column);
            match rest.get(column) {
                Some(b'\t') if indent.is_none_or(|indent| column < indent) => {
                    return Err((line + column, BLOCK));
                }
                Some(b'\n' | b'\r') => {
                    self.at = line + column;
                    continue;
                }
                None => break,
                Some(_) => {}
            }
            let indent = *indent.get_or_insert(deepest.max(self.indent()).max(1));
            if column < indent {
                self.at = line;
                break;
            }
            self.at = self.line_end(line);
        }
        Ok(())
    }

    /// Replaces tabs at the start of further lines of a quoted scalar.
    fn quoted(&mut self, start: usize, end: usize) {
        let mut leading = false;
        for at in start..end {
            match self.text.get(at) {
                Some(b'\n' | b'\r') => leading = true,
                Some(b'\t') if leading => self.space(at),
                Some(b' ') => {}
                _ => leading = false,
            }
        }
    }

    /// The indentation that further lines of a scalar need.
    fn indent(&self) -> usize {
        self.indents.last().map_or(0, |column| column + 1)
    }

    fn space(&mut self, at: usize) {
        if let Some(b) = self.settled.get_mut(at) {
            *b = b' ';
        }
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        from + rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len())
    }

    /// The start of the next line, if the cursor is at the end of a line.
    fn next_line(&self) -> Option<usize> {
        match self.text.get(self.at..)? {
            [b'\r', b'\n', _, ..] => Some(self.at + 2),
            [b'\r', b'\n'] | [_] | [] => None,
            _ => Some(self.at + 1),
        }
    }
}

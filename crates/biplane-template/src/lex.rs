//! Splits the text of a template into tokens.

use std::borrow::Cow;

use biplane_go::text::{is_digit, is_letter, is_printable};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The text of the token is a message.
    Error,
    Bool,
    /// A printable character without a meaning of its own, such as a comma.
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

#[derive(Clone, Debug)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    pub(crate) pos: usize,
    pub(crate) text: Cow<'t, str>,
    pub(crate) line: usize,
}

impl Token<'_> {
    /// The token as messages show it.
    pub(crate) fn show(&self) -> String {
        match self.kind {
            Kind::Eof => "EOF".into(),
            Kind::Error => self.text.to_string(),
            Kind::Block
            | Kind::Break
            | Kind::Continue
            | Kind::Dot
            | Kind::Define
            | Kind::Else
            | Kind::End
            | Kind::If
            | Kind::Nil
            | Kind::Range
            | Kind::Template
            | Kind::With => format!("<{}>", self.text),
            _ if self.text.len() > 10 => {
                let start: String = self.text.chars().take(10).collect();
                format!("{}...", biplane_go::fmt::quote(&start))
            }
            _ => biplane_go::fmt::quote(&self.text),
        }
    }
}

/// The markers of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiters {
    pub left: String,
    pub right: String,
}

impl Default for Delimiters {
    fn default() -> Self {
        Self { left: "{{".into(), right: "}}".into() }
    }
}

impl Delimiters {
    /// Delimiters of one's own. An empty one is the default.
    pub fn new(left: &str, right: &str) -> Self {
        let default = Self::default();
        let or = |text: &str, default: String| {
            if text.is_empty() { default } else { text.to_owned() }
        };
        Self { left: or(left, default.left), right: or(right, default.right) }
    }
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
/// A trim marker is a minus sign and a space.
const MARKER: usize = 2;

#[allow(clippy::struct_excessive_bools)] // two are settings, two are states
pub(crate) struct Lexer<'t> {
    text: &'t str,
    left: &'t str,
    right: &'t str,
    pos: usize,
    start: usize,
    /// The line of `counted`, an offset before which all newlines have been counted.
    line: usize,
    counted: usize,
    parens: usize,
    inside: bool,
    /// Whether `break` and `continue` are keywords: they are not if they name functions.
    pub(crate) break_is_keyword: bool,
    pub(crate) continue_is_keyword: bool,
    failed: bool,
}

fn is_space(c: char) -> bool {
    SPACES.contains(&c)
}

fn is_word(c: char) -> bool {
    c == '_' || is_letter(c) || is_digit(c)
}

fn has_left_marker(text: &str) -> bool {
    matches!(text.as_bytes(), [b'-', b' ' | b'\t' | b'\r' | b'\n', ..])
}

fn has_right_marker(text: &str) -> bool {
    matches!(text.as_bytes(), [b' ' | b'\t' | b'\r' | b'\n', b'-', ..])
}

/// A character as `%#U` shows it.
fn show_char(c: char) -> String {
    let code = u32::from(c);
    if is_printable(c) { format!("U+{code:04X} '{c}'") } else { format!("U+{code:04X}") }
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str, delimiters: &'t Delimiters) -> Self {
        Self {
            text,
            left: &delimiters.left,
            right: &delimiters.right,
            pos: 0,
            start: 0,
            line: 1,
            counted: 0,
            parens: 0,
            inside: false,
            break_is_keyword: true,
            continue_is_keyword: true,
            failed: false,
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    fn after(&self, offset: usize) -> &'t str {
        self.text.get(offset..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    fn accept(&mut self, set: &str) -> bool {
        match self.peek() {
            Some(c) if set.contains(c) => {
                self.pos += c.len_utf8();
                true
            }
            _ => false,
        }
    }

    fn accept_run(&mut self, set: &str) {
        while self.accept(set) {}
    }

    /// The line of the start of the current token.
    fn start_line(&mut self) -> usize {
        let passed = self.text.as_bytes().get(self.counted..self.start).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count();
        self.counted = self.counted.max(self.start);
        self.line
    }

    fn emit(&mut self, kind: Kind) -> Token<'t> {
        let line = self.start_line();
        let text = self.text.get(self.start..self.pos).unwrap_or_default();
        let token = Token { kind, pos: self.start, text: Cow::Borrowed(text), line };
        self.start = self.pos;
        token
    }

    fn fail(&mut self, message: impl Into<String>) -> Token<'t> {
        let line = self.start_line();
        self.failed = true;
        Token { kind: Kind::Error, pos: self.start, text: Cow::Owned(message.into()), line }
    }

    /// The next token. After an error and at the end there are no more.
    pub(crate) fn token(&mut self) -> Token<'t> {
        if self.failed {
            let line = self.line;
            return Token { kind: Kind::Eof, pos: self.pos, text: "EOF".into(), line };
        }
        if self.inside { self.action() } else { self.plain() }
    }

    /// Text up to the next action.
    fn plain(&mut self) -> Token<'t> {
        loop {
            let Some(found) = self.rest().find(self.left) else {
                self.pos = self.text.len();
                let kind = if self.pos > self.start { Kind::Text } else { Kind::Eof };
                return self.emit(kind);
            };
            let delimiter = self.pos + found;
            if found > 0 {
                let text = self.text.get(self.start..delimiter).unwrap_or_default();
                let kept = if has_left_marker(self.after(delimiter + self.left.len())) {
                    text.trim_end_matches(SPACES).len()
                } else {
                    text.len()
                };
                self.pos = self.start + kept;
                let token = self.emit(Kind::Text);
                self.pos = delimiter;
                self.start = delimiter;
                if kept > 0 {
                    return token;
                }
            }
            // At the left delimiter.
            self.pos = delimiter + self.left.len();
            let marker = if has_left_marker(self.rest()) { MARKER } else { 0 };
            if !self.after(self.pos + marker).starts_with("/*") {
                let token = self.emit(Kind::LeftDelim);
                self.inside = true;
                self.pos += marker;
                self.start = self.pos;
                self.parens = 0;
                return token;
            }
            self.pos += marker;
            self.start = self.pos;
            if let Err(message) = self.comment() {
                return self.fail(message);
            }
        }
    }

    /// Skips a comment, the end of its action, and what that trims.
    fn comment(&mut self) -> Result<(), &'static str> {
        self.pos += 2;
        let end = self.rest().find("*/").ok_or("unclosed comment")?;
        self.pos += end + 2;
        match self.at_right() {
            None => return Err("comment ends before closing delimiter"),
            Some(trim) => self.skip_right(trim),
        }
        self.start = self.pos;
        Ok(())
    }

    /// Whether a right delimiter follows, and whether it has a trim marker.
    fn at_right(&self) -> Option<bool> {
        if has_right_marker(self.rest()) && self.after(self.pos + MARKER).starts_with(self.right) {
            return Some(true);
        }
        self.rest().starts_with(self.right).then_some(false)
    }

    fn skip_right(&mut self, trim: bool) {
        if trim {
            self.pos += MARKER;
        }
        self.pos += self.right.len();
        if trim {
            self.pos = self.text.len() - self.rest().trim_start_matches(SPACES).len();
        }
    }

    fn right(&mut self, trim: bool) -> Token<'t> {
        if trim {
            self.pos += MARKER;
            self.start = self.pos;
        }
        self.pos += self.right.len();
        let token = self.emit(Kind::RightDelim);
        if trim {
            self.pos = self.text.len() - self.rest().trim_start_matches(SPACES).len();
            self.start = self.pos;
        }
        self.inside = false;
        token
    }

    /// A token of an action.
    fn action(&mut self) -> Token<'t> {
        if let Some(trim) = self.at_right() {
            return if self.parens == 0 {
                self.right(trim)
            } else {
                self.fail("unclosed left paren")
            };
        }
        let Some(c) = self.next() else { return self.fail("unclosed action") };
        match c {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => self.emit(Kind::Assign),
            ':' if self.next() == Some('=') => self.emit(Kind::Declare),
            ':' => self.fail("expected :="),
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '`' => self.raw(),
            '$' => self.word_or(Kind::Variable, Kind::Variable),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '.' if self.peek().is_some_and(|c| !c.is_ascii_digit()) => {
                self.word_or(Kind::Field, Kind::Dot)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.pos = self.start;
                self.number()
            }
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen)
            }
            ')' if self.parens == 0 => self.fail("unexpected right paren"),
            ')' => {
                self.parens -= 1;
                self.emit(Kind::RightParen)
            }
            c if is_word(c) => self.identifier(),
            ' '..='~' => self.emit(Kind::Char),
            c => self.fail(format!("unrecognized character in action: {}", show_char(c))),
        }
    }

    fn space(&mut self) -> Token<'t> {
        while self.peek().is_some_and(is_space) {
            self.pos += 1;
        }
        // The last space may belong to the trim marker of the right delimiter.
        let last = self.pos - 1;
        if has_right_marker(self.after(last)) && self.after(last + MARKER).starts_with(self.right) {
            self.pos = last;
            if self.pos == self.start {
                return self.right(true);
            }
        }
        self.emit(Kind::Space)
    }

    /// Whether a word may end here.
    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(c) => is_space(c) || self.rest().starts_with(self.right),
        }
    }

    fn word(&mut self) -> Result<(), Token<'t>> {
        while self.peek().is_some_and(is_word) {
            self.next();
        }
        if self.at_terminator() {
            return Ok(());
        }
        let c = self.peek().unwrap_or_default();
        Err(self.fail(format!("bad character {}", show_char(c))))
    }

    /// A word after a dot or a dollar sign, which is also a token by itself.
    fn word_or(&mut self, kind: Kind, alone: Kind) -> Token<'t> {
        if self.at_terminator() {
            return self.emit(alone);
        }
        match self.word() {
            Ok(()) => self.emit(kind),
            Err(error) => error,
        }
    }

    fn identifier(&mut self) -> Token<'t> {
        if let Err(error) = self.word() {
            return error;
        }
        let kind = match self.text.get(self.start..self.pos).unwrap_or_default() {
            "block" => Kind::Block,
            "break" if self.break_is_keyword => Kind::Break,
            "continue" if self.continue_is_keyword => Kind::Continue,
            "define" => Kind::Define,
            "else" => Kind::Else,
            "end" => Kind::End,
            "if" => Kind::If,
            "range" => Kind::Range,
            "nil" => Kind::Nil,
            "template" => Kind::Template,
            "with" => Kind::With,
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.emit(kind)
    }

    fn quoted(&mut self, quote: char, kind: Kind, unterminated: &str) -> Token<'t> {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return self.fail(unterminated);
                    }
                }
                None | Some('\n') => return self.fail(unterminated),
                Some(c) if c == quote => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw(&mut self) -> Token<'t> {
        loop {
            match self.next() {
                None => return self.fail("unterminated raw quoted string"),
                Some('`') => return self.emit(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Token<'t> {
        let mut good = self.scan_number();
        let mut kind = Kind::Number;
        if good && matches!(self.peek(), Some('+' | '-')) {
            // Complex: 1+2i.
            kind = Kind::Complex;
            good = self.scan_number()
                && self.text.get(..self.pos).is_some_and(|text| text.ends_with('i'));
        }
        if good {
            return self.emit(kind);
        }
        let text = self.text.get(self.start..self.pos).unwrap_or_default();
        self.fail(format!("bad number syntax: {}", biplane_go::fmt::quote(text)))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        let (mut decimal, mut hexadecimal) = (true, false);
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
                (decimal, hexadecimal) = (false, true);
            } else if self.accept("oO") {
                digits = "01234567_";
                decimal = false;
            } else if self.accept("bB") {
                digits = "01_";
                decimal = false;
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if decimal && self.accept("eE") || hexadecimal && self.accept("pP") {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_word) {
            self.next();
            return false;
        }
        true
    }
}

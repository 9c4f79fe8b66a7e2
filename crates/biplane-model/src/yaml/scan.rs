//! Splits YAML 1.1 into tokens like libyaml, on which go-yaml is based: the same texts are accepted,
//! and the same problems are found at the same locations.

use std::collections::{BTreeMap, VecDeque};

use super::Dialect;

mod directive;
mod input;
mod scalar;

use input::Input;

/// A location, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// In bytes.
    pub(super) index: usize,
    /// In characters.
    pub(super) characters: usize,
    pub(super) line: usize,
    /// In characters.
    pub(super) column: usize,
}

/// The part of go-yaml that reports a problem. They count lines differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reporter {
    /// Reads characters and reports no line.
    Reader,
    Scanner,
    Parser,
}

/// A problem, and where it was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reporter: Reporter,
    pub(super) problem: String,
    pub(super) mark: Mark,
    /// Where the surrounding construct begins.
    pub(super) context: Option<Mark>,
}

impl Fault {
    pub(super) fn parser(problem: &str, mark: Mark, context: Option<Mark>) -> Self {
        Self { reporter: Reporter::Parser, problem: problem.to_owned(), mark, context }
    }
}

pub(super) type Scan<T> = Result<T, Fault>;

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarStyle {
    Plain,
    Quoted,
    /// A block with `|` or `>`.
    Block,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    StreamStart,
    StreamEnd,
    Version { major: u8, minor: u8 },
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar(String, ScalarStyle),
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

/// A token that becomes a key if a colon follows.
#[derive(Clone, Copy, Debug, Default)]
struct SimpleKey {
    possible: bool,
    /// Whether a colon must follow.
    required: bool,
    /// The number of the token, counted over the whole text.
    token: usize,
    mark: Mark,
}

/// A key must end on its line, within this many characters.
const MAX_SIMPLE_KEY: usize = 1024;
/// How deeply collections may nest before go-yaml refuses them.
const MAX_NESTING: usize = 10_000;

/// Produces tokens on demand.
#[derive(Debug)]
pub(super) struct Scanner<'text> {
    input: Input<'text>,
    dialect: Dialect,
    tokens: VecDeque<Token>,
    /// The number of tokens that were taken.
    taken: usize,
    started: bool,
    /// The column of the innermost block collection. `None` outside of any.
    indent: Option<usize>,
    indents: Vec<Option<usize>>,
    /// One entry for the block level, and one for each open bracket.
    simple_keys: Vec<SimpleKey>,
    /// The levels of possible keys by the numbers of their tokens.
    levels: BTreeMap<usize, usize>,
    simple_key_allowed: bool,
    comments: Vec<Comment>,
}

/// Where a comment begins, and the offset at which it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comment {
    pub(super) start: Mark,
    pub(super) end: usize,
}

impl<'text> Scanner<'text> {
    pub(super) fn new(text: &'text [u8], dialect: Dialect) -> Self {
        Self {
            input: Input::new(text),
            dialect,
            tokens: VecDeque::new(),
            taken: 0,
            started: false,
            indent: None,
            indents: Vec::new(),
            simple_keys: vec![SimpleKey::default()],
            levels: BTreeMap::new(),
            simple_key_allowed: true,
            comments: Vec::new(),
        }
    }

    /// The comments so far, including those before a token that was only peeked at.
    pub(super) fn comments(&self) -> &[Comment] {
        &self.comments
    }

    /// Returns the next token without taking it.
    pub(super) fn peek(&mut self) -> Scan<&Token> {
        self.fill()?;
        match self.tokens.front() {
            Some(token) => Ok(token),
            None => Err(self.fault("did not find expected <stream-start>", None)),
        }
    }

    /// Takes the next token, which was peeked at before.
    pub(super) fn skip(&mut self) {
        if self.tokens.pop_front().is_some() {
            self.taken += 1;
        }
    }

    /// Scans until it is known what the next token is.
    fn fill(&mut self) -> Scan<()> {
        // The newer version looks two tokens further ahead, for comments.
        let ahead = match self.dialect {
            Dialect::V2 => 0,
            Dialect::V3 => 2,
        };
        loop {
            if self.tokens.len() > ahead && !self.front_may_be_key()? {
                return Ok(());
            }
            self.next_token()?;
        }
    }

    /// Whether the next token may still turn out to be a key.
    fn front_may_be_key(&mut self) -> Scan<bool> {
        match self.levels.get(&self.taken) {
            Some(level) => self.is_still_possible(*level),
            None => Ok(false),
        }
    }

    /// Whether a colon would still make the token of this level a key.
    fn is_still_possible(&mut self, level: usize) -> Scan<bool> {
        let here = self.input.mark;
        let key = self.simple_keys.get_mut(level).filter(|key| key.possible);
        let Some(key) = key else { return Ok(false) };
        if key.mark.line < here.line || key.mark.characters + MAX_SIMPLE_KEY < here.characters {
            let SimpleKey { required, mark, .. } = *key;
            if required {
                return Err(self.fault("could not find expected ':'", Some(mark)));
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    fn fault(&self, problem: &str, context: Option<Mark>) -> Fault {
        let (reporter, mark) = (Reporter::Scanner, self.input.mark);
        Fault { reporter, problem: problem.to_owned(), mark, context }
    }

    fn next_token(&mut self) -> Scan<()> {
        self.input.need(1)?;
        if !self.started {
            self.started = true;
            self.push_here(TokenKind::StreamStart);
            return Ok(());
        }
        let before = self.input.mark;
        self.skip_to_token()?;
        self.close_blocks(Some(self.input.mark.column), before);
        self.input.need(4)?;
        self.token_here()?;
        let is_entry =
            matches!(self.tokens.back(), Some(Token { kind: TokenKind::BlockEntry, .. }));
        if self.dialect == Dialect::V3 && !is_entry {
            self.skip_line_comment()?;
        }
        Ok(())
    }

    fn token_here(&mut self) -> Scan<()> {
        let Some(byte) = self.input.byte(0) else { return self.stream_end() };
        let at_margin = self.input.mark.column == 0;
        let in_brackets = self.simple_keys.len() > 1;
        let blank_follows = self.input.is_blank_or_end(1);
        match byte {
            b'%' if at_margin => self.directive(),
            b'-' | b'.' if at_margin && self.input.is_document_indicator() => {
                self.document_indicator(byte)
            }
            b'[' => self.open_bracket(TokenKind::FlowSequenceStart),
            b'{' => self.open_bracket(TokenKind::FlowMappingStart),
            b']' => self.close_bracket(TokenKind::FlowSequenceEnd),
            b'}' => self.close_bracket(TokenKind::FlowMappingEnd),
            b',' => {
                self.forget_key()?;
                self.simple_key_allowed = true;
                self.push_indicator(TokenKind::FlowEntry, 1);
                Ok(())
            }
            b'-' if blank_follows => self.block_entry(),
            b'?' if in_brackets || blank_follows => self.key(),
            b':' if in_brackets || blank_follows => self.value(),
            b'*' | b'&' | b'!' => {
                self.save_key()?;
                self.simple_key_allowed = false;
                let token = if byte == b'!' { self.tag()? } else { self.anchor(byte)? };
                self.tokens.push_back(token);
                Ok(())
            }
            b'|' | b'>' if !in_brackets => {
                self.forget_key()?;
                self.simple_key_allowed = true;
                let token = self.block_scalar(byte == b'|')?;
                self.tokens.push_back(token);
                Ok(())
            }
            b'\'' | b'"' => {
                self.save_key()?;
                self.simple_key_allowed = false;
                let token = self.quoted_scalar(byte)?;
                self.tokens.push_back(token);
                Ok(())
            }
            _ if self.starts_plain(byte) => {
                self.save_key()?;
                self.simple_key_allowed = false;
                let token = self.plain_scalar()?;
                self.tokens.push_back(token);
                Ok(())
            }
            _ => {
                let here = Some(self.input.mark);
                Err(self.fault("found character that cannot start any token", here))
            }
        }
    }

    /// Whether a plain scalar begins here. Indicators were handled before.
    fn starts_plain(&self, byte: u8) -> bool {
        match byte {
            b'-' => !self.input.is_blank(1),
            b'?' | b':' => self.simple_keys.len() == 1 && !self.input.is_blank_or_end(1),
            b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
            | b'"' | b'%' | b'@' | b'`' => false,
            _ => !self.input.is_blank_or_end(0),
        }
    }

    fn push_here(&mut self, kind: TokenKind) {
        let here = self.input.mark;
        self.tokens.push_back(Token { kind, start: here, end: here });
    }

    /// Adds a token of this many bytes.
    fn push_indicator(&mut self, kind: TokenKind, length: usize) {
        let start = self.input.mark;
        for _ in 0..length {
            self.input.skip();
        }
        self.tokens.push_back(Token { kind, start, end: self.input.mark });
    }

    /// Remembers that the token here may be a key.
    fn save_key(&mut self) -> Scan<()> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let in_block = self.simple_keys.len() == 1;
        let required = in_block && self.indent == Some(self.input.mark.column);
        let token = self.taken + self.tokens.len();
        let key = SimpleKey { possible: true, required, token, mark: self.input.mark };
        self.forget_key()?;
        let level = self.simple_keys.len() - 1;
        if let Some(last) = self.simple_keys.last_mut() {
            *last = key;
        }
        self.levels.insert(token, level);
        Ok(())
    }

    /// Gives up the possible key of this level.
    fn forget_key(&mut self) -> Scan<()> {
        let Some(last) = self.simple_keys.last_mut().filter(|key| key.possible) else {
            return Ok(());
        };
        let SimpleKey { required, token, mark, .. } = *last;
        if required {
            return Err(self.fault("could not find expected ':'", Some(mark)));
        }
        last.possible = false;
        self.levels.remove(&token);
        Ok(())
    }

    /// Opens a block collection if this column is deeper than the innermost one. The token is
    /// inserted before the token with this number, or at the end.
    fn open_block(&mut self, kind: TokenKind, mark: Mark, before: Option<usize>) -> Scan<()> {
        if self.simple_keys.len() > 1 || self.indent.is_some_and(|indent| indent >= mark.column) {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = Some(mark.column);
        if self.indents.len() > MAX_NESTING {
            let problem = format!("exceeded max depth of {MAX_NESTING}");
            return Err(self.fault(&problem, Some(mark)));
        }
        self.insert(Token { kind, start: mark, end: mark }, before);
        Ok(())
    }

    /// Inserts a token before the token with this number, or at the end if that was taken.
    fn insert(&mut self, token: Token, before: Option<usize>) {
        let at = before.and_then(|number| number.checked_sub(self.taken));
        match at.filter(|at| *at < self.tokens.len()) {
            Some(at) => self.tokens.insert(at, token),
            None => self.tokens.push_back(token),
        }
    }

    /// Closes the block collections that are deeper than a column, or all of them.
    fn close_blocks(&mut self, column: Option<usize>, before: Mark) {
        if self.simple_keys.len() > 1 {
            return;
        }
        let mark = match self.dialect {
            Dialect::V2 => self.input.mark,
            Dialect::V3 => before,
        };
        while let Some(indent) = self.indent
            && column.is_none_or(|column| indent > column)
        {
            self.tokens.push_back(Token { kind: TokenKind::BlockEnd, start: mark, end: mark });
            self.indent = self.indents.pop().flatten();
        }
    }

    fn stream_end(&mut self) -> Scan<()> {
        if self.input.mark.column != 0 {
            self.input.mark.column = 0;
            self.input.mark.line += 1;
        }
        self.close_blocks(None, self.input.mark);
        self.forget_key()?;
        self.simple_key_allowed = false;
        self.push_here(TokenKind::StreamEnd);
        Ok(())
    }

    fn document_indicator(&mut self, byte: u8) -> Scan<()> {
        self.close_blocks(None, self.input.mark);
        self.forget_key()?;
        self.simple_key_allowed = false;
        let kind = if byte == b'-' { TokenKind::DocumentStart } else { TokenKind::DocumentEnd };
        self.push_indicator(kind, 3);
        Ok(())
    }

    fn open_bracket(&mut self, kind: TokenKind) -> Scan<()> {
        self.save_key()?;
        let (token, mark) = (self.taken + self.tokens.len(), self.input.mark);
        self.simple_keys.push(SimpleKey { token, mark, ..SimpleKey::default() });
        if self.simple_keys.len() > MAX_NESTING + 1 {
            let here = Some(self.input.mark);
            return Err(self.fault(&format!("exceeded max depth of {MAX_NESTING}"), here));
        }
        self.simple_key_allowed = true;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn close_bracket(&mut self, kind: TokenKind) -> Scan<()> {
        self.forget_key()?;
        if self.simple_keys.len() > 1
            && let Some(key) = self.simple_keys.pop()
        {
            // Without a key inside, this is the token of the bracket. Then a bracket that may be a
            // key is not waited for.
            self.levels.remove(&key.token);
        }
        self.simple_key_allowed = false;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn block_entry(&mut self) -> Scan<()> {
        if self.simple_keys.len() == 1 {
            if !self.simple_key_allowed {
                let here = Some(self.input.mark);
                let problem = "block sequence entries are not allowed in this context";
                return Err(self.fault(problem, here));
            }
            self.open_block(TokenKind::BlockSequenceStart, self.input.mark, None)?;
        }
        self.forget_key()?;
        self.simple_key_allowed = true;
        self.push_indicator(TokenKind::BlockEntry, 1);
        Ok(())
    }

    fn key(&mut self) -> Scan<()> {
        let in_block = self.simple_keys.len() == 1;
        if in_block {
            if !self.simple_key_allowed {
                let here = Some(self.input.mark);
                return Err(self.fault("mapping keys are not allowed in this context", here));
            }
            self.open_block(TokenKind::BlockMappingStart, self.input.mark, None)?;
        }
        self.forget_key()?;
        self.simple_key_allowed = in_block;
        self.push_indicator(TokenKind::Key, 1);
        Ok(())
    }

    fn value(&mut self) -> Scan<()> {
        let level = self.simple_keys.len() - 1;
        let in_block = level == 0;
        let possible = self.is_still_possible(level)?;
        if let Some(key) = self.simple_keys.get(level).copied().filter(|_| possible) {
            let token = Token { kind: TokenKind::Key, start: key.mark, end: key.mark };
            self.insert(token, Some(key.token));
            self.open_block(TokenKind::BlockMappingStart, key.mark, Some(key.token))?;
            if let Some(key) = self.simple_keys.last_mut() {
                key.possible = false;
            }
            self.levels.remove(&key.token);
            self.simple_key_allowed = false;
        } else {
            if in_block {
                if !self.simple_key_allowed {
                    let here = Some(self.input.mark);
                    let problem = "mapping values are not allowed in this context";
                    return Err(self.fault(problem, here));
                }
                self.open_block(TokenKind::BlockMappingStart, self.input.mark, None)?;
            }
            self.simple_key_allowed = in_block;
        }
        self.push_indicator(TokenKind::Value, 1);
        Ok(())
    }

    /// Skips whitespace and comments.
    fn skip_to_token(&mut self) -> Scan<()> {
        loop {
            self.input.need(1)?;
            let tabs = self.simple_keys.len() > 1 || !self.simple_key_allowed;
            while self.input.byte(0) == Some(b' ') || (tabs && self.input.byte(0) == Some(b'\t')) {
                self.input.skip();
                self.input.need(1)?;
            }
            if self.input.byte(0) == Some(b'#') {
                self.skip_comments()?;
            }
            if !self.input.is_break(0) {
                return Ok(());
            }
            self.input.need(2)?;
            self.input.skip_line();
            if self.simple_keys.len() == 1 {
                self.simple_key_allowed = true;
            }
        }
    }

    /// Skips the comment that begins here.
    fn skip_comment(&mut self) -> Scan<()> {
        let start = self.input.mark;
        self.input.skip_to_break()?;
        self.comments.push(Comment { start, end: self.input.mark.index });
        Ok(())
    }

    /// Skips a comment. The newer version also skips comments on the lines below, with any
    /// whitespace before them.
    fn skip_comments(&mut self) -> Scan<()> {
        loop {
            self.skip_comment()?;
            if self.dialect == Dialect::V2 {
                return Ok(());
            }
            let Some(comment) = self.input.comment_below() else { return Ok(()) };
            while self.input.mark.index < comment {
                self.input.skip_any()?;
            }
        }
    }

    /// Skips a comment behind a token.
    fn skip_line_comment(&mut self) -> Scan<()> {
        if self.input.after_break {
            return Ok(());
        }
        if let Some(comment) = self.input.comment_behind() {
            while self.input.mark.index < comment {
                self.input.skip_any()?;
            }
            self.skip_comment()?;
        }
        Ok(())
    }
}

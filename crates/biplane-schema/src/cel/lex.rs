//! Splits an expression into tokens.

use super::ast::Literal;
use super::escapes;
use super::report::Problem;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Literal(Literal),
    /// Digits of an integer and their base. Whether it fits may depend on its sign.
    Int(String, u32),
    Name(String),
    /// A field name in backquotes.
    Quoted(String),
    Symbol(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) token: Token,
    pub(super) at: usize,
    pub(super) end: usize,
}

/// Longer symbols come before their prefixes.
const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%",
];

/// Splits the source. Invalid tokens are reported and left out.
pub(super) fn words(source: &[char]) -> (Vec<Word>, Vec<Problem>) {
    let mut lexer = Lexer { source, at: 0, problems: Vec::new() };
    let mut words = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        if at >= source.len() {
            words.push(Word { token: Token::End, at: source.len(), end: source.len() });
            return (words, lexer.problems);
        }
        if let Some(token) = lexer.token() {
            words.push(Word { token, at, end: lexer.at });
        } else {
            let end = lexer.at.max(at + 1);
            lexer.at = end;
            let text: String = source.get(at..end).unwrap_or_default().iter().collect();
            let text = format!("Syntax error: token recognition error at: '{text}'");
            lexer.problems.push(Problem { at, text });
        }
    }
}

struct Lexer<'a> {
    source: &'a [char],
    at: usize,
    problems: Vec<Problem>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.source.get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                '\t' | ' ' | '\r' | '\n' | '\u{c}' => self.at += 1,
                '/' if self.peek(1) == Some('/') => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
        self.source.get(start..self.at).unwrap_or_default().iter().collect()
    }

    fn token(&mut self) -> Option<Token> {
        let first = self.peek(0)?;
        let second = self.peek(1).unwrap_or_default();
        if first.is_ascii_digit() || (first == '.' && second.is_ascii_digit()) {
            return Some(self.number());
        }
        if let Some(prefix) = self.text_prefix() {
            return self.text(prefix);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            return Some(match name.as_str() {
                "true" => Token::Literal(Literal::Bool(true)),
                "false" => Token::Literal(Literal::Bool(false)),
                "null" => Token::Literal(Literal::Null),
                "in" => Token::Symbol("in"),
                _ => Token::Name(name),
            });
        }
        if first == '`' {
            return self.quoted();
        }
        let symbol = SYMBOLS.iter().find(|symbol| {
            symbol.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
        })?;
        self.at += symbol.len();
        Some(Token::Symbol(symbol))
    }

    fn quoted(&mut self) -> Option<Token> {
        let start = self.at;
        self.at += 1;
        let name = self
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' '));
        if name.is_empty() || self.peek(0) != Some('`') {
            self.at = start;
            return None;
        }
        self.at += 1;
        Some(Token::Quoted(name))
    }

    fn number(&mut self) -> Token {
        let at = self.at;
        if self.peek(0) == Some('0')
            && self.peek(1) == Some('x')
            && self.peek(2).is_some_and(|c| c.is_ascii_hexdigit())
        {
            self.at += 2;
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            return self.whole(at, digits, 16);
        }
        let mut text = self.take_while(|c| c.is_ascii_digit());
        let mut double = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            text.push('.');
            text += &self.take_while(|c| c.is_ascii_digit());
            double = true;
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let signed = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + signed).is_some_and(|c| c.is_ascii_digit()) {
                text.push('e');
                text.extend(self.source.get(self.at + 1..=self.at + signed).unwrap_or_default());
                self.at += 1 + signed;
                text += &self.take_while(|c| c.is_ascii_digit());
                double = true;
            }
        }
        if !double {
            return self.whole(at, text, 10);
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Token::Literal(Literal::Double(number)),
            _ => self.invalid(at, "invalid double literal"),
        }
    }

    fn whole(&mut self, at: usize, digits: String, base: u32) -> Token {
        if !matches!(self.peek(0), Some('u' | 'U')) {
            return Token::Int(digits, base);
        }
        self.at += 1;
        match u64::from_str_radix(&digits, base) {
            Ok(number) => Token::Literal(Literal::Uint(number)),
            Err(_) => self.invalid(at, "invalid uint literal"),
        }
    }

    fn invalid(&mut self, at: usize, text: &str) -> Token {
        self.problems.push(Problem { at, text: text.to_owned() });
        Token::Literal(Literal::Null)
    }

    /// The length of the prefix of a string literal: `b` for bytes, `r` for raw, in any order.
    fn text_prefix(&self) -> Option<usize> {
        let quote = |ahead| matches!(self.peek(ahead), Some('"' | '\''));
        let letter = |ahead, set: &str| self.peek(ahead).is_some_and(|c| set.contains(c));
        if quote(0) {
            Some(0)
        } else if letter(0, "rRbB") && quote(1) {
            Some(1)
        } else if letter(0, "bB") && letter(1, "rR") && quote(2) {
            Some(2)
        } else {
            None
        }
    }

    fn text(&mut self, prefix: usize) -> Option<Token> {
        let at = self.at;
        let letters: String = self.source.get(at..at + prefix)?.iter().collect();
        let (raw, bytes) = (letters.contains(['r', 'R']), letters.contains(['b', 'B']));
        self.at += prefix;
        let quote = self.peek(0)?;
        let long = self.peek(1) == Some(quote) && self.peek(2) == Some(quote);
        let width = if long { 3 } else { 1 };
        self.at += width;
        let start = self.at;
        loop {
            let c = self.peek(0)?;
            if c == quote && (1..width).all(|ahead| self.peek(ahead) == Some(quote)) {
                break;
            }
            if !long && matches!(c, '\n' | '\r') {
                return None;
            }
            if c == '\\' && !raw {
                self.at += escapes::length(self.source.get(self.at..)?).or_else(|| {
                    self.at += 2;
                    None
                })?;
            } else {
                self.at += 1;
            }
        }
        let body = self.source.get(start..self.at)?;
        self.at += width;
        let literal = escapes::resolve(body, raw, bytes).map(|content| {
            if bytes {
                Literal::Bytes(content)
            } else {
                Literal::Text(String::from_utf8_lossy(&content).into_owned())
            }
        });
        Some(match literal {
            Ok(literal) => Token::Literal(literal),
            Err(text) => self.invalid(at, text),
        })
    }
}

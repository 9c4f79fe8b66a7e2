//! Block, quoted and plain scalars.

use super::{Mark, ScalarStyle, Scan, Scanner, Token, TokenKind};

/// What happens to the line breaks at the end of a block scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

/// The line breaks and blanks between two parts of a scalar.
#[derive(Debug, Default)]
struct Between {
    blanks: Vec<u8>,
    first_break: Vec<u8>,
    more_breaks: Vec<u8>,
    /// Whether there was a line break.
    broken: bool,
}

impl Between {
    /// Appends what stands for it in the value.
    fn fold_into(&mut self, out: &mut Vec<u8>) {
        if self.broken {
            if self.first_break.first() != Some(&b'\n') {
                out.append(&mut self.first_break);
                out.append(&mut self.more_breaks);
            } else if self.more_breaks.is_empty() {
                out.push(b' ');
            } else {
                out.append(&mut self.more_breaks);
            }
            self.first_break.clear();
            self.more_breaks.clear();
        } else {
            out.append(&mut self.blanks);
        }
    }
}

fn token(value: Vec<u8>, style: ScalarStyle, start: Mark, end: Mark) -> Token {
    // Texts with invalid bytes are refused before they are scanned.
    let value = String::from_utf8(value)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Token { kind: TokenKind::Scalar(value, style), start, end }
}

impl Scanner<'_> {
    pub(super) fn block_scalar(&mut self, literal: bool) -> Scan<Token> {
        let start = self.input.mark;
        self.input.skip();
        let (chomping, increment) = self.block_head(start)?;
        self.end_of_line(start)?;
        let mut end = self.input.mark;
        let outer = self.indent.unwrap_or_default();
        let mut indent = if increment > 0 { outer + increment } else { 0 };
        let (mut value, mut last_break, mut breaks) = (Vec::new(), Vec::new(), Vec::new());
        self.block_breaks(&mut indent, &mut breaks, start, &mut end)?;
        self.input.need(1)?;
        let mut after_blank = false;
        while self.input.mark.column == indent && self.input.byte(0).is_some() {
            let blank = self.input.is_blank(0);
            let folds = !literal && !after_blank && !blank && last_break.first() == Some(&b'\n');
            if !folds {
                value.append(&mut last_break);
            } else if breaks.is_empty() {
                value.push(b' ');
            }
            last_break.clear();
            value.append(&mut breaks);
            after_blank = blank;
            while !self.input.is_break_or_end() {
                self.input.read(&mut value);
                self.input.need(1)?;
            }
            self.input.need(2)?;
            self.input.read_line(&mut last_break);
            self.block_breaks(&mut indent, &mut breaks, start, &mut end)?;
        }
        if chomping != Chomping::Strip {
            value.append(&mut last_break);
        }
        if chomping == Chomping::Keep {
            value.append(&mut breaks);
        }
        Ok(token(value, ScalarStyle::Block, start, end))
    }

    /// Reads the indicators behind `|` or `>`, in any order.
    fn block_head(&mut self, start: Mark) -> Scan<(Chomping, usize)> {
        let (mut chomping, mut increment) = (None, None);
        loop {
            self.input.need(1)?;
            match self.input.byte(0) {
                Some(b'+') if chomping.is_none() => chomping = Some(Chomping::Keep),
                Some(b'-') if chomping.is_none() => chomping = Some(Chomping::Strip),
                Some(b'0') if increment.is_none() => {
                    let problem = "found an indentation indicator equal to 0";
                    return Err(self.fault(problem, Some(start)));
                }
                Some(digit @ b'1'..=b'9') if increment.is_none() => {
                    increment = Some(usize::from(digit - b'0'));
                }
                _ => break,
            }
            self.input.skip();
        }
        Ok((chomping.unwrap_or(Chomping::Clip), increment.unwrap_or_default()))
    }

    /// Reads empty lines of a block scalar, and finds its indentation if it is not yet known.
    fn block_breaks(
        &mut self,
        indent: &mut usize,
        breaks: &mut Vec<u8>,
        start: Mark,
        end: &mut Mark,
    ) -> Scan<()> {
        *end = self.input.mark;
        let mut deepest = 0;
        loop {
            self.input.need(1)?;
            while (*indent == 0 || self.input.mark.column < *indent)
                && self.input.byte(0) == Some(b' ')
            {
                self.input.skip();
                self.input.need(1)?;
            }
            deepest = deepest.max(self.input.mark.column);
            if (*indent == 0 || self.input.mark.column < *indent)
                && self.input.byte(0) == Some(b'\t')
            {
                let problem = "found a tab character where an indentation space is expected";
                return Err(self.fault(problem, Some(start)));
            }
            if !self.input.is_break(0) {
                break;
            }
            self.input.need(2)?;
            self.input.read_line(breaks);
            *end = self.input.mark;
        }
        if *indent == 0 {
            let inner = self.indent.map_or(0, |outer| outer + 1);
            *indent = deepest.max(inner).max(1);
        }
        Ok(())
    }

    pub(super) fn quoted_scalar(&mut self, quote: u8) -> Scan<Token> {
        let start = self.input.mark;
        self.input.skip();
        let mut value = Vec::new();
        loop {
            self.input.need(4)?;
            if self.input.mark.column == 0 && self.input.is_document_indicator() {
                return Err(self.fault("found unexpected document indicator", Some(start)));
            }
            if self.input.byte(0).is_none() {
                return Err(self.fault("found unexpected end of stream", Some(start)));
            }
            let mut between = Between::default();
            while !self.input.is_blank_or_end(0) {
                match (self.input.byte(0), self.input.byte(1)) {
                    (Some(b'\''), Some(b'\'')) if quote == b'\'' => {
                        value.push(b'\'');
                        self.input.skip();
                        self.input.skip();
                    }
                    (Some(byte), _) if byte == quote => break,
                    (Some(b'\\'), _) if quote == b'"' && self.input.is_break(1) => {
                        self.input.need(3)?;
                        self.input.skip();
                        self.input.skip_line();
                        between.broken = true;
                        break;
                    }
                    (Some(b'\\'), _) if quote == b'"' => self.escape(start, &mut value)?,
                    _ => self.input.read(&mut value),
                }
                self.input.need(2)?;
            }
            self.input.need(1)?;
            if self.input.byte(0) == Some(quote) {
                break;
            }
            let escaped_break = between.broken;
            while self.input.is_blank(0) || self.input.is_break(0) {
                if self.input.is_blank(0) {
                    if between.broken {
                        self.input.skip();
                    } else {
                        self.input.read(&mut between.blanks);
                    }
                } else {
                    self.input.need(2)?;
                    if between.broken {
                        self.input.read_line(&mut between.more_breaks);
                    } else {
                        between.blanks.clear();
                        self.input.read_line(&mut between.first_break);
                        between.broken = true;
                    }
                }
                self.input.need(1)?;
            }
            if escaped_break {
                // No space stands for an escaped line break.
                value.append(&mut between.more_breaks);
            } else {
                between.fold_into(&mut value);
            }
        }
        self.input.skip();
        Ok(token(value, ScalarStyle::Quoted, start, self.input.mark))
    }

    /// Reads an escape sequence of a double-quoted scalar.
    fn escape(&mut self, start: Mark, value: &mut Vec<u8>) -> Scan<()> {
        let (c, length) = match self.input.byte(1) {
            Some(b'0') => ('\0', 0),
            Some(b'a') => ('\u{7}', 0),
            Some(b'b') => ('\u{8}', 0),
            Some(b't' | b'\t') => ('\t', 0),
            Some(b'n') => ('\n', 0),
            Some(b'v') => ('\u{b}', 0),
            Some(b'f') => ('\u{c}', 0),
            Some(b'r') => ('\r', 0),
            Some(b'e') => ('\u{1b}', 0),
            Some(byte @ (b' ' | b'"' | b'\'' | b'\\')) => (char::from(byte), 0),
            Some(b'N') => ('\u{85}', 0),
            Some(b'_') => ('\u{a0}', 0),
            Some(b'L') => ('\u{2028}', 0),
            Some(b'P') => ('\u{2029}', 0),
            Some(b'x') => ('x', 2),
            Some(b'u') => ('u', 4),
            Some(b'U') => ('U', 8),
            _ => return Err(self.fault("found unknown escape character", Some(start))),
        };
        self.input.skip();
        self.input.skip();
        let mut buffer = [0; 4];
        if length == 0 {
            value.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            return Ok(());
        }
        self.input.need(length)?;
        let mut code = 0_u32;
        for ahead in 0..length {
            let digit = self.input.byte(ahead).and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                let problem = "did not find expected hexdecimal number";
                return Err(self.fault(problem, Some(start)));
            };
            code = code << 4 | digit;
        }
        let Some(c) = char::from_u32(code) else {
            let problem = "found invalid Unicode character escape code";
            return Err(self.fault(problem, Some(start)));
        };
        value.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        for _ in 0..length {
            self.input.skip();
        }
        Ok(())
    }

    pub(super) fn plain_scalar(&mut self) -> Scan<Token> {
        let start = self.input.mark;
        let mut end = start;
        let indent = self.indent.map_or(0, |outer| outer + 1);
        let in_brackets = self.simple_keys.len() > 1;
        let mut value = Vec::new();
        let mut between = Between::default();
        loop {
            self.input.need(4)?;
            let is_indicator = self.input.mark.column == 0 && self.input.is_document_indicator();
            if is_indicator || self.input.byte(0) == Some(b'#') {
                break;
            }
            while !self.input.is_blank_or_end(0) {
                let ends = match self.input.byte(0) {
                    Some(b':') => self.input.is_blank_or_end(1),
                    Some(b',' | b'?' | b'[' | b']' | b'{' | b'}') => in_brackets,
                    _ => false,
                };
                if ends {
                    break;
                }
                if between.broken || !between.blanks.is_empty() {
                    between.fold_into(&mut value);
                    between.broken = false;
                }
                self.input.read(&mut value);
                end = self.input.mark;
                self.input.need(2)?;
            }
            if !self.input.is_blank(0) && !self.input.is_break(0) {
                break;
            }
            while self.input.is_blank(0) || self.input.is_break(0) {
                if self.input.is_blank(0) {
                    let shallow = between.broken && self.input.mark.column < indent;
                    if shallow && self.input.byte(0) == Some(b'\t') {
                        let problem = "found a tab character that violates indentation";
                        return Err(self.fault(problem, Some(start)));
                    }
                    if between.broken {
                        self.input.skip();
                    } else {
                        self.input.read(&mut between.blanks);
                    }
                } else {
                    self.input.need(2)?;
                    if between.broken {
                        self.input.read_line(&mut between.more_breaks);
                    } else {
                        between.blanks.clear();
                        self.input.read_line(&mut between.first_break);
                        between.broken = true;
                    }
                }
                self.input.need(1)?;
            }
            if !in_brackets && self.input.mark.column < indent {
                break;
            }
        }
        if between.broken {
            self.simple_key_allowed = true;
        }
        Ok(token(value, ScalarStyle::Plain, start, end))
    }
}

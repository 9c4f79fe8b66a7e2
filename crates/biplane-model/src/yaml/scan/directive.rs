//! Directives, tags and anchors.

use super::{Mark, Scan, Scanner, Token, TokenKind};

/// Which construct a tag belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagIn {
    Directive,
    Node,
}

impl Scanner<'_> {
    pub(super) fn directive(&mut self) -> Scan<()> {
        self.close_blocks(None, self.input.mark);
        self.forget_key()?;
        self.simple_key_allowed = false;
        let start = self.input.mark;
        self.input.skip();
        let name = self.directive_name(start)?;
        let kind = match name.as_slice() {
            b"YAML" => self.version(start)?,
            b"TAG" => self.tag_directive(start)?,
            _ => return Err(self.fault("found unknown directive name", Some(start))),
        };
        let end = self.input.mark;
        self.end_of_line(start)?;
        self.tokens.push_back(Token { kind, start, end });
        Ok(())
    }

    /// Skips a comment and the line break after a directive or the head of a block scalar.
    pub(super) fn end_of_line(&mut self, start: Mark) -> Scan<()> {
        self.skip_blanks()?;
        if self.input.byte(0) == Some(b'#') {
            self.skip_comment()?;
        }
        if !self.input.is_break_or_end() {
            return Err(self.fault("did not find expected comment or line break", Some(start)));
        }
        self.input.need(2)?;
        self.input.skip_line();
        Ok(())
    }

    fn skip_blanks(&mut self) -> Scan<()> {
        self.input.need(1)?;
        while self.input.is_blank(0) {
            self.input.skip();
            self.input.need(1)?;
        }
        Ok(())
    }

    /// Reads letters, digits, `_` and `-`.
    fn name(&mut self, out: &mut Vec<u8>) -> Scan<()> {
        self.input.need(1)?;
        while self.input.byte(0).is_some_and(is_of_name) {
            self.input.read(out);
            self.input.need(1)?;
        }
        Ok(())
    }

    fn directive_name(&mut self, start: Mark) -> Scan<Vec<u8>> {
        let mut name = Vec::new();
        self.name(&mut name)?;
        if name.is_empty() {
            return Err(self.fault("could not find expected directive name", Some(start)));
        }
        if !self.input.is_blank_or_end(0) {
            return Err(self.fault("found unexpected non-alphabetical character", Some(start)));
        }
        Ok(name)
    }

    fn version(&mut self, start: Mark) -> Scan<TokenKind> {
        self.skip_blanks()?;
        let major = self.version_number(start)?;
        if self.input.byte(0) != Some(b'.') {
            return Err(self.fault("did not find expected digit or '.' character", Some(start)));
        }
        self.input.skip();
        let minor = self.version_number(start)?;
        Ok(TokenKind::Version { major, minor })
    }

    fn version_number(&mut self, start: Mark) -> Scan<u8> {
        const MAX_LENGTH: usize = 2;
        self.input.need(1)?;
        let (mut number, mut length) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = self.input.byte(0) {
            length += 1;
            if length > MAX_LENGTH {
                return Err(self.fault("found extremely long version number", Some(start)));
            }
            number = number * 10 + (digit - b'0');
            self.input.skip();
            self.input.need(1)?;
        }
        if length == 0 {
            return Err(self.fault("did not find expected version number", Some(start)));
        }
        Ok(number)
    }

    fn tag_directive(&mut self, start: Mark) -> Scan<TokenKind> {
        self.skip_blanks()?;
        let handle = self.tag_handle(TagIn::Directive, start)?;
        if !self.input.is_blank(0) {
            return Err(self.fault("did not find expected whitespace", Some(start)));
        }
        self.skip_blanks()?;
        let prefix = self.tag_uri(Vec::new(), false, start)?;
        if !self.input.is_blank_or_end(0) {
            let problem = "did not find expected whitespace or line break";
            return Err(self.fault(problem, Some(start)));
        }
        Ok(TokenKind::TagDirective { handle: text(&handle), prefix: text(&prefix) })
    }

    pub(super) fn anchor(&mut self, indicator: u8) -> Scan<Token> {
        let start = self.input.mark;
        self.input.skip();
        let mut name = Vec::new();
        self.name(&mut name)?;
        let end = self.input.mark;
        let ended = self.input.is_blank_or_end(0)
            || matches!(
                self.input.byte(0),
                Some(b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`')
            );
        if name.is_empty() || !ended {
            let problem = "did not find expected alphabetic or numeric character";
            return Err(self.fault(problem, Some(start)));
        }
        let name = text(&name);
        let kind = if indicator == b'*' { TokenKind::Alias(name) } else { TokenKind::Anchor(name) };
        Ok(Token { kind, start, end })
    }

    pub(super) fn tag(&mut self) -> Scan<Token> {
        let start = self.input.mark;
        self.input.need(2)?;
        let (handle, suffix) = if self.input.byte(1) == Some(b'<') {
            self.input.skip();
            self.input.skip();
            let suffix = self.tag_uri(Vec::new(), false, start)?;
            if self.input.byte(0) != Some(b'>') {
                return Err(self.fault("did not find the expected '>'", Some(start)));
            }
            self.input.skip();
            (Vec::new(), suffix)
        } else {
            let handle = self.tag_handle(TagIn::Node, start)?;
            if handle.len() > 1 && handle.ends_with(b"!") {
                let suffix = self.tag_uri(Vec::new(), false, start)?;
                (handle, suffix)
            } else {
                let head = handle.get(1..).unwrap_or_default().to_vec();
                let suffix = self.tag_uri(head, true, start)?;
                // A lone exclamation mark is a tag of its own.
                if suffix.is_empty() { (suffix, b"!".to_vec()) } else { (b"!".to_vec(), suffix) }
            }
        };
        self.input.need(1)?;
        if !self.input.is_blank_or_end(0) {
            let problem = "did not find expected whitespace or line break";
            return Err(self.fault(problem, Some(start)));
        }
        let kind = TokenKind::Tag { handle: text(&handle), suffix: text(&suffix) };
        Ok(Token { kind, start, end: self.input.mark })
    }

    fn tag_handle(&mut self, within: TagIn, start: Mark) -> Scan<Vec<u8>> {
        self.input.need(1)?;
        if self.input.byte(0) != Some(b'!') {
            return Err(self.fault("did not find expected '!'", Some(start)));
        }
        let mut handle = Vec::new();
        self.input.read(&mut handle);
        self.name(&mut handle)?;
        if self.input.byte(0) == Some(b'!') {
            self.input.read(&mut handle);
        } else if within == TagIn::Directive && handle != b"!" {
            return Err(self.fault("did not find expected '!'", Some(start)));
        }
        Ok(handle)
    }

    fn tag_uri(&mut self, head: Vec<u8>, mut found: bool, start: Mark) -> Scan<Vec<u8>> {
        let mut uri = head;
        self.input.need(1)?;
        while let Some(byte) = self.input.byte(0)
            && (is_of_name(byte) || b";/?:@&=+$,.!~*'()[]%".contains(&byte))
        {
            if byte == b'%' {
                self.uri_escape(start, &mut uri)?;
            } else {
                self.input.read(&mut uri);
            }
            self.input.need(1)?;
            found = true;
        }
        if !found {
            return Err(self.fault("did not find expected tag URI", Some(start)));
        }
        Ok(uri)
    }

    /// Reads one character that is escaped byte by byte.
    fn uri_escape(&mut self, start: Mark, uri: &mut Vec<u8>) -> Scan<()> {
        let mut left = None;
        while left != Some(0) {
            self.input.need(3)?;
            let digit = |ahead| self.input.byte(ahead).and_then(|b| char::from(b).to_digit(16));
            let octet = match (self.input.byte(0), digit(1), digit(2)) {
                (Some(b'%'), Some(high), Some(low)) => u8::try_from(high << 4 | low).ok(),
                _ => None,
            };
            let Some(octet) = octet else {
                return Err(self.fault("did not find URI escaped octet", Some(start)));
            };
            let rest = match (left, octet) {
                (None, 0..=0x7f) => 0,
                (None, 0xc0..=0xdf) => 1,
                (None, 0xe0..=0xef) => 2,
                (None, 0xf0..=0xf7) => 3,
                (None, _) => {
                    let problem = "found an incorrect leading UTF-8 octet";
                    return Err(self.fault(problem, Some(start)));
                }
                (Some(left), 0x80..=0xbf) => left - 1,
                (Some(_), _) => {
                    let problem = "found an incorrect trailing UTF-8 octet";
                    return Err(self.fault(problem, Some(start)));
                }
            };
            left = Some(rest);
            uri.push(octet);
            for _ in 0..3 {
                self.input.skip();
            }
        }
        Ok(())
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

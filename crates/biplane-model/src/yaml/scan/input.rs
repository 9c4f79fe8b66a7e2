//! The characters of a text, and the location of the next one.

use super::{Fault, Mark, Reporter, Scan};
use crate::yaml::lines;

/// go-yaml decodes this many bytes at once. A character that is not allowed is reported when its
/// part of the text is decoded.
const DECODED_AT_ONCE: usize = 512;
/// How far go-yaml looks for a comment.
const COMMENT_WITHIN: usize = 512;

#[derive(Debug)]
pub(super) struct Input<'text> {
    text: &'text [u8],
    pub(super) mark: Mark,
    /// Whether only whitespace was read since the last line break.
    pub(super) after_break: bool,
    /// The end of what can be decoded.
    limit: usize,
    /// What cannot be decoded, and why.
    refused: (Mark, &'static str),
}

impl<'text> Input<'text> {
    pub(super) fn new(text: &'text [u8]) -> Self {
        let start = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let (limit, refused) = match refused(text.get(start..).unwrap_or_default()) {
            Some((at, why)) => {
                let limit = (start + at) / DECODED_AT_ONCE * DECODED_AT_ONCE;
                (limit.max(start), (mark_at(text.get(start..start + at).unwrap_or_default()), why))
            }
            None => (usize::MAX, (Mark::default(), "")),
        };
        let mark = Mark { index: start, ..Mark::default() };
        Self { text, mark, after_break: false, limit, refused }
    }

    /// Fails if the next bytes cannot be decoded.
    pub(super) fn need(&self, bytes: usize) -> Scan<()> {
        if self.mark.index.saturating_add(bytes) <= self.limit {
            return Ok(());
        }
        let (mark, why) = self.refused;
        let (reporter, problem) = (Reporter::Reader, why.to_owned());
        Err(Fault { reporter, problem, mark, context: None })
    }

    /// The byte at a distance. `None` at the end of the text.
    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.mark.index + ahead).copied().filter(|byte| *byte != 0)
    }

    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), Some(b' ' | b'\t'))
    }

    /// Whether there is a line break at a distance in bytes.
    pub(super) fn is_break(&self, ahead: usize) -> bool {
        self.break_length(ahead).is_some()
    }

    fn break_length(&self, ahead: usize) -> Option<usize> {
        match self.byte(ahead)? {
            b'\r' if self.byte(ahead + 1) == Some(b'\n') => Some(2),
            b'\r' | b'\n' => Some(1),
            0xc2 if self.byte(ahead + 1) == Some(0x85) => Some(2),
            0xe2 if self.byte(ahead + 1) == Some(0x80)
                && matches!(self.byte(ahead + 2), Some(0xa8 | 0xa9)) =>
            {
                Some(3)
            }
            _ => None,
        }
    }

    pub(super) fn is_blank_or_end(&self, ahead: usize) -> bool {
        self.byte(ahead).is_none() || self.is_blank(ahead) || self.is_break(ahead)
    }

    pub(super) fn is_break_or_end(&self) -> bool {
        self.byte(0).is_none() || self.is_break(0)
    }

    /// Whether `---` or `...` is here, followed by whitespace.
    pub(super) fn is_document_indicator(&self) -> bool {
        let here = self.text.get(self.mark.index..).unwrap_or_default();
        (here.starts_with(b"---") || here.starts_with(b"...")) && self.is_blank_or_end(3)
    }

    fn width(&self) -> usize {
        match self.text.get(self.mark.index) {
            None => 0,
            Some(0..=0xbf) => 1,
            Some(0xc0..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(_) => 4,
        }
    }

    /// Moves behind the next character.
    pub(super) fn skip(&mut self) {
        if !self.is_blank(0) {
            self.after_break = false;
        }
        self.mark.index += self.width();
        self.mark.characters += 1;
        self.mark.column += 1;
    }

    /// Moves behind the line break here.
    pub(super) fn skip_line(&mut self) {
        let Some(length) = self.break_length(0) else { return };
        self.mark.characters += if self.byte(0) == Some(b'\r') { length } else { 1 };
        self.mark.index += length;
        self.mark.column = 0;
        self.mark.line += 1;
        self.after_break = true;
    }

    /// Moves behind the next character or line break.
    pub(super) fn skip_any(&mut self) -> Scan<()> {
        self.need(2)?;
        if self.is_break(0) {
            self.skip_line();
        } else {
            self.skip();
        }
        Ok(())
    }

    /// Appends the next character and moves behind it.
    pub(super) fn read(&mut self, out: &mut Vec<u8>) {
        let end = self.mark.index + self.width();
        out.extend_from_slice(self.text.get(self.mark.index..end).unwrap_or_default());
        self.skip();
    }

    /// Appends the line break here and moves behind it. The usual ones become `\n`.
    pub(super) fn read_line(&mut self, out: &mut Vec<u8>) {
        match (self.byte(0), self.break_length(0)) {
            (Some(0xe2), Some(length)) => {
                let end = self.mark.index + length;
                out.extend_from_slice(self.text.get(self.mark.index..end).unwrap_or_default());
            }
            (_, Some(_)) => out.push(b'\n'),
            (_, None) => {}
        }
        self.skip_line();
    }

    pub(super) fn skip_to_break(&mut self) -> Scan<()> {
        self.need(1)?;
        while !self.is_break_or_end() {
            self.skip();
            self.need(1)?;
        }
        Ok(())
    }

    /// The offset of a comment on this line with only whitespace before it.
    pub(super) fn comment_behind(&self) -> Option<usize> {
        let ahead = (0..COMMENT_WITHIN).find(|ahead| !self.is_blank(*ahead))?;
        (self.byte(ahead) == Some(b'#')).then_some(self.mark.index + ahead)
    }

    /// The offset of a comment on a line below, with only whitespace before it.
    pub(super) fn comment_below(&self) -> Option<usize> {
        let is_space = |ahead| self.is_blank(ahead) || self.is_break(ahead);
        let mut ahead = 0;
        while ahead < COMMENT_WITHIN && is_space(ahead) {
            ahead += self.break_length(ahead).unwrap_or(1);
        }
        (ahead < COMMENT_WITHIN && self.byte(ahead) == Some(b'#'))
            .then_some(self.mark.index + ahead)
    }
}

/// The location behind a text.
fn mark_at(before: &[u8]) -> Mark {
    let before = String::from_utf8_lossy(before);
    let line = lines::starts(&before).count();
    let column = before.rsplit(['\r', '\n']).next().unwrap_or_default().chars().count();
    Mark { index: before.len(), characters: before.chars().count(), line, column }
}

/// The first bytes that are not text, or a character that must be escaped, and the reason.
fn refused(text: &[u8]) -> Option<(usize, &'static str)> {
    const CONTROL: &str = "control characters are not allowed";
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid().as_bytes();
        if let Some(inside) = control_character(valid) {
            return Some((at + inside, CONTROL));
        }
        at += valid.len();
        match chunk.invalid() {
            [] => {}
            [lead @ (0x80..=0xc1 | 0xf8..=0xff), ..] => {
                let is_pair = (0xc0..=0xc1).contains(lead);
                return Some((at, if is_pair { overlong(text, at) } else { LEADING }));
            }
            [lead, ..] => {
                let width = match lead {
                    0xc2..=0xdf => 2,
                    0xe0..=0xef => 3,
                    _ => 4,
                };
                return Some((at, incomplete(text, at, width)));
            }
        }
    }
    None
}

const LEADING: &str = "invalid leading UTF-8 octet";

fn overlong(text: &[u8], at: usize) -> &'static str {
    incomplete(text, at, 2)
}

/// What is wrong with a character of this many bytes.
fn incomplete(text: &[u8], at: usize, width: usize) -> &'static str {
    let Some(bytes) = text.get(at..at + width) else { return "incomplete UTF-8 octet sequence" };
    if bytes.iter().skip(1).any(|byte| byte & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    let first = bytes.first().copied().unwrap_or_default();
    let second = bytes.get(1).copied().unwrap_or_default();
    let too_long = match width {
        2 => first < 0xc2,
        3 => first == 0xe0 && second < 0xa0,
        _ => first == 0xf0 && second < 0x90,
    };
    if too_long { "invalid length of a UTF-8 sequence" } else { "invalid Unicode character" }
}

/// The offset of a character that must be escaped in YAML.
fn control_character(text: &[u8]) -> Option<usize> {
    text.iter().enumerate().find_map(|(at, &byte)| {
        // Only two lead bytes need a look at the bytes after them, so the text is not decoded.
        let next = || text.get(at + 1).copied().unwrap_or_default();
        let after = || text.get(at + 2).copied().unwrap_or_default();
        let bad = match byte {
            b'\t' | b'\n' | b'\r' => false,
            0..=0x1f | 0x7f => true,
            0xc2 => next() < 0xa0 && next() != 0x85,
            0xef => next() == 0xbf && matches!(after(), 0xbe | 0xbf),
            _ => false,
        };
        bad.then_some(at)
    })
}

//! Quotes strings and characters as Go source.

use std::io::Write as _;

use crate::text::{is_printable, runes};

/// Quotes a string with double quotes, like `%q`.
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// Quotes a string that may be invalid UTF-8. Invalid bytes are escaped.
pub fn quote_bytes(text: &[u8]) -> String {
    String::from_utf8_lossy(&quote_with(text, false)).into_owned()
}

/// Quotes a string with double quotes. With `ascii`, all other characters are escaped.
pub(super) fn quote_with(text: &[u8], ascii: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for (c, bytes) in runes(text) {
        match (c, bytes.first()) {
            (Some(c), _) => escape(&mut out, c, '"', ascii),
            (None, byte) => {
                let _ = write!(out, "\\x{:02x}", byte.copied().unwrap_or_default());
            }
        }
    }
    out.push(b'"');
    out
}

/// Quotes a character with single quotes.
pub(super) fn quote_char(c: char, ascii: bool) -> Vec<u8> {
    let mut out = vec![b'\''];
    escape(&mut out, c, '\'', ascii);
    out.push(b'\'');
    out
}

fn escape(out: &mut Vec<u8>, c: char, quote: char, ascii: bool) {
    if is_printable(c) && c != quote && c != '\\' && (!ascii || c.is_ascii()) {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        return;
    }
    // Writing to memory cannot fail.
    let _ = match c {
        c if c == quote || c == '\\' => write!(out, "\\{c}"),
        '\u{7}' => write!(out, "\\a"),
        '\u{8}' => write!(out, "\\b"),
        '\u{c}' => write!(out, "\\f"),
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\u{b}' => write!(out, "\\v"),
        c if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
        '\0'..='\u{ffff}' => write!(out, "\\u{:04x}", u32::from(c)),
        c => write!(out, "\\U{:08x}", u32::from(c)),
    };
}

/// Whether a string can be written between backquotes unchanged.
pub fn can_backquote(text: &[u8]) -> bool {
    runes(text).all(|(c, _)| match c {
        None | Some('\u{feff}' | '`' | '\u{7f}') => false,
        Some(c) => c >= ' ' || c == '\t',
    })
}

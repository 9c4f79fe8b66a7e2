//! Escapes text for HTML, JavaScript and URLs.

use std::io::Write as _;

use biplane_go::text::{is_printable, runes};

pub(super) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(*byte),
        }
    }
    out
}

pub(super) fn js(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (c, bytes) in runes(text) {
        // Writing to memory cannot fail.
        let _ = match c {
            Some(c @ ('\\' | '\'' | '"')) => write!(out, "\\{c}"),
            Some(c @ ('<' | '>' | '&' | '=' | '\0'..='\x1f')) => {
                write!(out, "\\u{:04X}", u32::from(c))
            }
            Some(c) if c.is_ascii() || is_printable(c) => out.write_all(bytes),
            // An invalid byte is printed as it is: the character that stands for it is printable.
            None => out.write_all(bytes),
            Some(c) => write!(out, "\\u{:04X}", u32::from(c)),
        };
    }
    out
}

pub(super) fn urlquery(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' => out.push(b'+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

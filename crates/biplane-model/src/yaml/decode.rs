//! Decodes the bytes of a file like go-yaml: as UTF-8, or as UTF-16 if there is a byte order mark.

use super::Place;

/// The error for bytes that are not valid text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not {encoding} text")]
pub struct NotText {
    /// The assumed encoding: `UTF-8` or `UTF-16`.
    pub encoding: &'static str,
    /// The location of the first invalid byte.
    pub place: Place,
}

/// Decodes a file. A UTF-16 byte order mark is removed, a UTF-8 one is kept.
pub fn decode_text(bytes: Vec<u8>) -> Result<String, NotText> {
    match bytes.as_slice() {
        [0xff, 0xfe, units @ ..] => utf16(units, u16::from_le_bytes),
        [0xfe, 0xff, units @ ..] => utf16(units, u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|error| {
            let text = String::from_utf8_lossy(error.as_bytes());
            not_text("UTF-8", &text, error.utf8_error().valid_up_to())
        }),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, NotText> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(pairs.len());
    let mut wrong = None;
    for c in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        if c.is_err() {
            wrong.get_or_insert(text.len());
        }
        text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    if !odd.is_empty() {
        wrong.get_or_insert(text.len());
        text.push(char::REPLACEMENT_CHARACTER);
    }
    match wrong {
        Some(at) => Err(not_text("UTF-16", &text, at)),
        None => Ok(text),
    }
}

/// The error for bytes that are invalid from this offset on. `text` has placeholders for them.
fn not_text(encoding: &'static str, text: &str, at: usize) -> NotText {
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    NotText { encoding, place: Place::at(text, line, column) }
}

//! From the bytes of a file to text, as go-yaml takes them: UTF-8, or UTF-16 if a byte order mark
//! says so.

use super::Place;

/// Bytes that are not text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not {encoding} text")]
pub struct NotText {
    /// What the bytes were taken for: `UTF-8` or `UTF-16`.
    pub encoding: &'static str,
    /// Where the first of them stands that is not.
    pub place: Place,
}

/// The text of a file. A byte order mark of UTF-16 is left out, one of UTF-8 stays.
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

/// Bytes are wrong from a place of the text on, where something else stands for them.
fn not_text(encoding: &'static str, text: &str, at: usize) -> NotText {
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    NotText { encoding, place: Place::at(text, line, column) }
}

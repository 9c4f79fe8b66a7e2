//! Strings like in Go: bytes that may be characters, with Go's rules for printable characters and
//! case.

mod category;
mod printable;

pub use category::{
    is_digit, is_letter, is_lower, is_number, is_punct, is_title, is_upper, to_title,
};
pub use printable::is_printable;

/// The characters of a string, each with its bytes. An invalid byte is `None`.
pub fn runes(bytes: &[u8]) -> impl Iterator<Item = (Option<char>, &[u8])> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid();
        let chars = valid.char_indices().map(move |(at, c)| {
            (Some(c), valid.as_bytes().get(at..at + c.len_utf8()).unwrap_or_default())
        });
        chars.chain(chunk.invalid().chunks(1).map(|byte| (None, byte)))
    })
}

/// Converts to upper case character by character. Each character becomes exactly one. Invalid bytes
/// become replacement characters, unless everything else is ASCII.
pub fn to_upper(text: &[u8]) -> Vec<u8> {
    map(text, upper)
}

/// Converts to lower case.
pub fn to_lower(text: &[u8]) -> Vec<u8> {
    map(text, lower)
}

fn map(text: &[u8], case: impl Fn(char) -> char) -> Vec<u8> {
    let mapped = runes(text).map(|(c, _)| c.map_or(char::REPLACEMENT_CHARACTER, &case));
    mapped.collect::<String>().into_bytes()
}

/// The upper case of a character, which is one character in Go.
pub fn upper(c: char) -> char {
    let mut all = c.to_uppercase();
    match (all.next(), all.next()) {
        (Some(one), None) => known(c, one),
        // A character without a single capital stays as it is, except for Greek letters with iota
        // subscript.
        _ => match u32::from(c) {
            code @ (0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7) => {
                char::from_u32(code + 8).unwrap_or(c)
            }
            code @ (0x1fb3 | 0x1fc3 | 0x1ff3) => char::from_u32(code + 9).unwrap_or(c),
            _ => c,
        },
    }
}

/// The lower case of a character.
pub fn lower(c: char) -> char {
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => known(c, one),
        (Some(first), Some(_)) => first,
        _ => c,
    }
}

/// Letters that are newer than Go's Unicode version have no case there.
fn known(c: char, mapped: char) -> char {
    if is_printable(c) && is_printable(mapped) { mapped } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_maps_to_one() {
        let check = |change: fn(&[u8]) -> Vec<u8>, text: &str, expected: &str| {
            assert_eq!(String::from_utf8(change(text.as_bytes())).unwrap(), expected, "GJ-1");
        };
        check(to_upper, "crossplane", "CROSSPLANE");
        check(to_upper, "straße", "STRAßE");
        check(to_upper, "ﬁ ŉ ᾳ ᾀ ᾶ", "ﬁ ŉ ᾼ ᾈ ᾶ");
        check(to_upper, "ǆ ſ ı ა", "Ǆ S I Ა");
        check(to_lower, "ΣΑΣ", "σασ");
        check(to_lower, "İ K Å", "i k å");
        check(to_upper, "\u{264}", "\u{264}");
        assert_eq!(to_upper(b"a\xff"), "A\u{fffd}".as_bytes());
    }
}

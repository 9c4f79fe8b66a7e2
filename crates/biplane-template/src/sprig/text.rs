//! Algorithms on strings, which are bytes that are mostly UTF-8.

use biplane_go::text::{
    is_digit, is_letter, is_lower, is_title, is_upper, lower, runes, to_title, upper,
};
use memchr::memmem;

/// The characters of a string. Invalid bytes are replacement characters, as in Go.
pub(super) fn chars(text: &[u8]) -> impl Iterator<Item = char> {
    runes(text).map(|(c, _)| c.unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// The text without characters of a kind at its ends.
pub(super) fn trim(text: &[u8], remove: impl Fn(char) -> bool) -> &[u8] {
    let (mut start, mut end, mut at) = (None, 0, 0);
    for (c, bytes) in runes(text) {
        let next = at + bytes.len();
        if !remove(c.unwrap_or(char::REPLACEMENT_CHARACTER)) {
            start.get_or_insert(at);
            end = next;
        }
        at = next;
    }
    start.and_then(|start| text.get(start..end)).unwrap_or_default()
}

/// `strings.Title`: title case for letters at the start of words.
pub(super) fn title(text: &[u8]) -> String {
    let mut before = ' ';
    let convert = |c: char| {
        let first = separates(std::mem::replace(&mut before, c));
        if first { to_title(c) } else { c }
    };
    chars(text).map(convert).collect()
}

fn separates(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_alphanumeric() && c != '_';
    }
    !is_letter(c) && !is_digit(c) && c.is_whitespace()
}

/// Lower case for the first letter of every word.
pub(super) fn untitle(text: &[u8]) -> String {
    let mut first = true;
    let convert = |c: char| {
        if c.is_whitespace() {
            first = true;
            return c;
        }
        if std::mem::take(&mut first) { lower(c) } else { c }
    };
    chars(text).map(convert).collect()
}

/// Swaps upper and lower case. A lower-case letter at the start of a word gets title case.
pub(super) fn swap_case(text: &[u8]) -> String {
    let mut space = true;
    let convert = |c: char| {
        if is_upper(c) || is_title(c) {
            space = false;
            lower(c)
        } else if is_lower(c) {
            if std::mem::take(&mut space) { to_title(c) } else { upper(c) }
        } else {
            space = c.is_whitespace();
            c
        }
    };
    chars(text).map(convert).collect()
}

/// Removes white space byte by byte. If there is any, other bytes count as Latin-1.
pub(super) fn no_space(text: &[u8]) -> Vec<u8> {
    let kept: String =
        text.iter().map(|byte| char::from(*byte)).filter(|c| !c.is_whitespace()).collect();
    if kept.chars().count() == text.len() { text.to_vec() } else { kept.into_bytes() }
}

/// The first byte of every word, as Latin-1.
pub(super) fn initials(text: &[u8]) -> String {
    let mut gap = true;
    let mut out = String::new();
    for c in text.iter().map(|byte| char::from(*byte)) {
        if c.is_whitespace() {
            gap = true;
        } else if std::mem::take(&mut gap) {
            out.push(c);
        }
    }
    out
}

/// Abbreviates a text from an offset with dots at its ends.
pub(super) fn abbreviate(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    const DOTS: &[u8] = b"...";
    let length = text.len().cast_signed() as i64;
    if width < 4 {
        return Vec::new();
    }
    if length <= width {
        return text.to_vec();
    }
    let room = width - 3;
    let offset = offset.min(length);
    // Go's subtraction wraps around, too.
    let offset = if length.wrapping_sub(offset) < room { length - room } else { offset };
    let part = |from: i64, to: i64| text.get(from as usize..to as usize).unwrap_or_default();
    if offset <= 4 {
        return [part(0, room), DOTS].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + room < length {
        return [DOTS, &abbreviate(part(offset, length), 0, room)].concat();
    }
    [DOTS, part(length - room, length)].concat()
}

/// Wraps lines at spaces. Long words are cut only if `cut` says so.
pub(super) fn wrap(text: &[u8], width: usize, separator: &[u8], cut: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let break_at = |out: &mut Vec<u8>, rest: &mut &[u8], at: usize, skip: usize| {
        let (line, tail) = rest.split_at_checked(at).unwrap_or((rest, b""));
        out.extend_from_slice(line);
        out.extend_from_slice(separator);
        *rest = tail.get(skip..).unwrap_or_default();
    };
    while rest.len() > width {
        if let [b' ', tail @ ..] = rest {
            rest = tail;
            continue;
        }
        let (line, beyond) = rest.split_at(width);
        let space = beyond.first().filter(|byte| **byte == b' ').map(|_| width);
        if let Some(at) = space.or_else(|| line.iter().rposition(|byte| *byte == b' ')) {
            break_at(&mut out, &mut rest, at, 1);
        } else if cut {
            break_at(&mut out, &mut rest, width, 0);
        } else if let Some(at) = beyond.iter().position(|byte| *byte == b' ') {
            break_at(&mut out, &mut rest, width + at, 1);
        } else {
            break;
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The parts between separators, at most so many. An empty separator is between all characters.
pub(super) fn split<'a>(text: &'a [u8], separator: &[u8], limit: Option<usize>) -> Vec<&'a [u8]> {
    let limit = limit.unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    if limit == 0 {
        return parts;
    }
    let mut rest = text;
    if separator.is_empty() {
        for (_, bytes) in runes(text) {
            if parts.len() + 1 == limit {
                break;
            }
            let (first, tail) = rest.split_at(bytes.len());
            parts.push(first);
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
        return parts;
    }
    let mut start = 0;
    for at in memmem::find_iter(text, separator) {
        if parts.len() + 1 == limit {
            break;
        }
        parts.push(text.get(start..at).unwrap_or_default());
        start = at + separator.len();
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

/// How often a text occurs in another. An empty text is before every character and at the end.
pub(super) fn count(text: &[u8], old: &[u8]) -> usize {
    if old.is_empty() { runes(text).count() + 1 } else { memmem::find_iter(text, old).count() }
}

/// Replaces every occurrence.
pub(super) fn replace(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    if old.is_empty() {
        for (_, bytes) in runes(text) {
            out.extend_from_slice(new);
            out.extend_from_slice(bytes);
        }
        out.extend_from_slice(new);
        return out;
    }
    let mut start = 0;
    for at in memmem::find_iter(text, old) {
        out.extend_from_slice(text.get(start..at).unwrap_or_default());
        out.extend_from_slice(new);
        start = at + old.len();
    }
    out.extend_from_slice(text.get(start..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lossy(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn changes_case_by_words() {
        assert_eq!(title("it's a-b c_d é日x".as_bytes()), "It'S A-B C_d É日x");
        assert_eq!(untitle(b"First Try"), "first try");
        assert_eq!(swap_case(b"This Is A.Test"), "tHIS iS a.tEST");
        assert_eq!(swap_case("ǅ ǆ aǆ".as_bytes()), "ǆ ǅ AǄ");
    }

    #[test]
    fn wraps_and_abbreviates_by_bytes() {
        assert_eq!(lossy(&wrap(b"Hello World", 5, b"\n", false)), "Hello\nWorld");
        assert_eq!(lossy(&wrap(b"abcdef gh", 3, b"\n", false)), "abcdef\ngh");
        assert_eq!(lossy(&wrap(b"abcdefgh", 3, b"/", true)), "abc/def/gh");
        assert_eq!(lossy(&abbreviate(b"hello world", 0, 5)), "he...");
        assert_eq!(lossy(&abbreviate(b"1234 5678 9123", 5, 10)), "...5678...");
        assert_eq!(lossy(&no_space("h é".as_bytes())), "hÃ©");
    }

    #[test]
    fn splits_and_replaces_also_by_nothing() {
        assert_eq!(split(b"a,b,c", b",", Some(2)), [&b"a"[..], b"b,c"]);
        assert_eq!(split("aé".as_bytes(), b"", None), ["a".as_bytes(), "é".as_bytes()]);
        assert_eq!(split(b"", b",", None), [b""]);
        assert!(split(b"", b"", None).is_empty());
        assert_eq!(lossy(&replace("aé".as_bytes(), b"", b"-")), "-a-é-");
        assert_eq!(trim(b"\xff a \xff", |c| c == char::REPLACEMENT_CHARACTER), b" a ");
    }
}

//! Camel, snake and kebab case, like `huandu/xstrings`.

use biplane_go::text::{is_letter, is_number, is_punct, is_upper, lower, runes, upper};

use super::text::chars;

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

/// A letter of an alphabet. Chinese characters are letters, but not of an alphabet.
fn is_alphabet(c: char) -> bool {
    let chinese = matches!(c,
        '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}');
    is_letter(c) && !chinese
}

/// Upper camel case.
pub(super) fn camel(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = chars(text);
    let mut current = None;
    // Whether the letters that follow are the capitals of a word that began with one.
    let mut capitals = false;
    let mut only_connectors = true;
    for c in rest.by_ref() {
        if !is_connector(c) {
            capitals = is_upper(c);
            current = Some(upper(c));
            only_connectors = false;
            break;
        }
        out.push(c);
        current = Some(c);
    }
    // A text of connectors only has its last one twice.
    let Some(mut current) = current else { return out };
    if only_connectors {
        out.push(current);
        return out;
    }
    for c in rest {
        let before = std::mem::replace(&mut current, c);
        match (is_connector(c), is_connector(before)) {
            (true, true) => out.push(before),
            (_, true) => {
                capitals = is_upper(c);
                current = upper(c);
            }
            _ => {
                if capitals && is_upper(c) {
                    current = lower(c);
                } else {
                    capitals = false;
                }
                out.push(before);
            }
        }
    }
    out.push(current);
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Invalid,
    Number,
    Upper,
    Lower,
    Connector,
    Punct,
    Other,
}

impl Kind {
    /// Whether a connector goes between the word before and this one.
    fn separates(self) -> bool {
        !matches!(self, Self::Invalid | Self::Connector | Self::Punct)
    }
}

/// The next valid character and the length up to its end. Invalid bytes before it belong to it. If
/// there is none, it is the previous character.
fn next_valid(text: &[u8], previous: Option<char>) -> (Option<char>, usize) {
    let mut length = 0;
    for (c, bytes) in runes(text) {
        length += bytes.len();
        // A replacement character in the text counts as invalid, too.
        if let Some(c) = c.filter(|c| *c != char::REPLACEMENT_CHARACTER) {
            return (Some(c), length);
        }
    }
    (previous, length)
}

/// The first word of a text: its kind, its bytes, and the rest.
fn next_word(text: &[u8]) -> (Kind, &[u8], &[u8]) {
    if text.is_empty() {
        return (Kind::Invalid, b"", b"");
    }
    let (first, size) = next_valid(text, None);
    let split = |kind, length: usize| {
        let (word, rest) = text.split_at_checked(length).unwrap_or((text, b""));
        (kind, word, rest)
    };
    let Some(first) = first else { return split(Kind::Invalid, size) };
    // Extends the word from an offset while the characters are of a kind.
    let extend = |from: usize, keep: &dyn Fn(char) -> bool| {
        let (mut length, mut previous, mut size_of_last) = (from, first, 0);
        loop {
            let rest = text.get(length..).unwrap_or_default();
            if rest.is_empty() {
                return (length, size_of_last, None);
            }
            let (next, size) = next_valid(rest, Some(previous));
            let next = next.unwrap_or(previous);
            if !keep(next) {
                return (length, size_of_last, Some(next));
            }
            length += size;
            size_of_last = size;
            previous = next;
        }
    };
    let lower_letter = |c: char| is_alphabet(c) && !is_upper(c);
    if is_connector(first) {
        split(Kind::Connector, extend(size, &is_connector).0)
    } else if is_punct(first) {
        split(Kind::Punct, extend(size, &is_punct).0)
    } else if is_upper(first) {
        let (length, size_of_last, next) = extend(size, &is_upper);
        if length == size {
            return split(Kind::Upper, extend(size, &lower_letter).0);
        }
        // The last of several capitals begins the next word, if a letter follows.
        let back = if next.is_some_and(is_alphabet) { size_of_last } else { 0 };
        split(Kind::Upper, length - back)
    } else if is_alphabet(first) {
        split(Kind::Lower, extend(size, &lower_letter).0)
    } else if is_number(first) {
        split(Kind::Number, extend(size, &is_number).0)
    } else {
        let other = |c: char| !(is_connector(c) || is_alphabet(c) || is_number(c) || is_punct(c));
        split(Kind::Other, extend(size, &other).0)
    }
}

fn write(out: &mut Vec<u8>, kind: Kind, word: &[u8], connector: char) {
    if !matches!(kind, Kind::Upper | Kind::Connector) {
        out.extend_from_slice(word);
        return;
    }
    for c in chars(word) {
        let c = match c {
            c if is_connector(c) => connector,
            c if is_upper(c) => lower(c),
            c => c,
        };
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Lower-case words between connectors: snake case or kebab case.
pub(super) fn separated(text: &[u8], connector: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mark = char::from(connector);
    let (mut kind, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if kind != Kind::Connector {
            write(&mut out, kind, word, mark);
        }
        let (before, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match before {
            Kind::Connector => write(&mut out, before, last, mark),
            Kind::Punct => {}
            Kind::Number => {
                while matches!(kind, Kind::Lower | Kind::Number) {
                    write(&mut out, kind, word, mark);
                    (kind, word, rest) = next_word(rest);
                }
                if kind.separates() {
                    out.push(connector);
                }
            }
            _ if kind != Kind::Number => {
                if kind == Kind::Invalid || kind.separates() {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind != Kind::Lower {
                    // The number belongs to the word before it.
                    write(&mut out, Kind::Number, number, mark);
                    if kind == Kind::Invalid || kind.separates() {
                        out.push(connector);
                    }
                    continue;
                }
                out.push(connector);
                write(&mut out, Kind::Number, number, mark);
                while matches!(kind, Kind::Lower | Kind::Number) {
                    write(&mut out, kind, word, mark);
                    (kind, word, rest) = next_word(rest);
                }
                if kind.separates() {
                    out.push(connector);
                }
            }
        }
    }
    write(&mut out, kind, word, mark);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_camel_case() {
        for (text, expected) in [
            ("some_words", "SomeWords"),
            ("GOLANG_IS_GREAT", "GolangIsGreat"),
            ("HTTPServer", "Httpserver"),
            ("_complex__case_", "_Complex_Case_"),
            ("-", "--"),
            ("_ ", "_  "),
            ("a", "A"),
            ("", ""),
        ] {
            assert_eq!(camel(text.as_bytes()), expected, "GT-S4 {text}");
        }
    }

    #[test]
    fn makes_snake_case() {
        for (text, expected) in [
            ("FirstName", "first_name"),
            ("HTTPServer", "http_server"),
            ("NoHTTPS", "no_https"),
            ("GO PATH", "go_path"),
            ("GO-PATH", "go_path"),
            ("http2xx", "http_2xx"),
            ("HTTP20xOK", "http_20x_ok"),
            ("Duration2m3s", "duration_2m3s"),
            ("Bld4Floor3rd", "bld4_floor_3rd"),
            ("foo1", "foo1"),
            ("a.b", "a.b"),
            ("a.-b", "a.-b"),
            ("CA日b", "ca_日_b"),
        ] {
            let snake = separated(text.as_bytes(), b'_');
            assert_eq!(String::from_utf8(snake).unwrap(), expected, "GT-S4 {text}");
        }
    }
}

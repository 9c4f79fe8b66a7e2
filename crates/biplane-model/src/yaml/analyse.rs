//! Decides in which YAML style a string can be printed.

use super::Dialect;
use super::resolve::{Meaning, meaning};

/// The style of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// A literal block with `|`.
    Literal,
}

/// What the characters of a string allow.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent findings, read right below
pub(super) struct Analysis {
    /// Contains a line break of any kind.
    pub(super) multiline: bool,
    plain_allowed: bool,
    single_quoted_allowed: bool,
    literal_allowed: bool,
}

impl Analysis {
    pub(super) fn of(text: &str, dialect: Dialect) -> Self {
        let Some(first) = text.chars().next() else {
            return Self {
                multiline: false,
                plain_allowed: true,
                single_quoted_allowed: true,
                literal_allowed: false,
            };
        };
        if text.bytes().all(is_harmless) {
            return Self {
                multiline: false,
                plain_allowed: !(text == "-" || text.starts_with("---") || text.starts_with("...")),
                single_quoted_allowed: true,
                literal_allowed: true,
            };
        }
        let mut indicators = text.starts_with("---") || text.starts_with("...") || leads(text);
        let mut special = false;
        let mut tabs = false;
        let mut multiline = false;
        let mut break_then_space = false;
        let mut space_then_break = false;
        let mut previous = ' ';
        let mut last = first;
        let mut rest = text;
        let mut at_start = true;
        loop {
            let end = rest.bytes().position(|b| !is_harmless(b)).unwrap_or(rest.len());
            let (harmless, after) = rest.split_at(end);
            if let Some(end) = harmless.chars().next_back() {
                (previous, last, at_start) = (end, end, false);
            }
            let mut chars = after.chars();
            let Some(c) = chars.next() else { break };
            rest = chars.as_str();
            match c {
                ':' if !at_start && rest.chars().next().is_none_or(is_blank) => {
                    indicators = true;
                }
                '#' if is_blank(previous) || is_break(previous) || previous == '\0' => {
                    indicators = true;
                }
                ' ' => break_then_space |= is_break(previous) && !at_start,
                _ if is_break(c) => {
                    multiline = true;
                    space_then_break |= previous == ' ' && !at_start;
                }
                _ => {}
            }
            match dialect {
                Dialect::V3 if c == '\t' => tabs = true,
                _ => special |= !is_printable(c, dialect),
            }
            at_start = false;
            previous = c;
            last = c;
        }
        let edge = first == ' ' || is_break(first) || last == ' ' || is_break(last);
        let hard = space_then_break || special;
        Self {
            multiline,
            plain_allowed: !(edge || break_then_space || hard || tabs || multiline || indicators),
            single_quoted_allowed: !(break_then_space || hard || tabs),
            literal_allowed: !(last == ' ' || hard),
        }
    }

    /// The style of a string as a key or as a value.
    pub(super) fn style(self, text: &str, key: bool, dialect: Dialect) -> Style {
        let wish = if text.contains('\n') {
            Style::Literal
        } else if is_plain_text(text) {
            Style::Plain
        } else {
            return Style::DoubleQuoted;
        };
        match wish {
            _ if key && self.multiline => Style::DoubleQuoted,
            // Upstream does not quote this key and then reads it back as the merge key.
            _ if key && text == "<<" && dialect == Dialect::V2 => Style::DoubleQuoted,
            Style::Literal if self.literal_allowed && !key => Style::Literal,
            Style::Literal => Style::DoubleQuoted,
            _ if self.plain_allowed => Style::Plain,
            _ if self.single_quoted_allowed => Style::SingleQuoted,
            _ => Style::DoubleQuoted,
        }
    }
}

/// Whether any YAML 1.1 parser reads the string, without quotes, as a string.
fn is_plain_text(text: &str) -> bool {
    meaning(text) == Meaning::Text && !is_base_60(text)
}

/// Some parsers read `1:30` and `1:30:00.5` as numbers.
fn is_base_60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((first, rest)) = text.split_once(':') else { return false };
    let digits_and_separators = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !digits_and_separators(first) {
        return false;
    }
    let (sixties, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_sixty = |part: &str| match part.as_bytes() {
        [ones] | [b'0'..=b'5', ones] => ones.is_ascii_digit(),
        _ => false,
    };
    sixties.split(':').all(is_sixty) && digits_and_separators(fraction)
}

/// Whether the string begins with a character that is special at the start of a scalar.
fn leads(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        Some(
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
            | '@' | '`',
        ) => true,
        Some('?' | ':' | '-') => chars.next().is_none_or(is_blank),
        _ => false,
    }
}

/// Whether the character has no special meaning inside a scalar. Most strings contain only such
/// characters.
fn is_harmless(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/' | b'_')
}

pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether the printer may write the character unescaped. Characters beyond the basic plane are
/// escaped.
///
/// Upstream writes the two Unicode line breaks unescaped if no other character needs an escape.
/// YAML 1.2 does not treat them as line breaks and would read another string. Templates depend on
/// upstream's layout, so only manifests are written in the safe way.
pub(super) fn is_printable(c: char, dialect: Dialect) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
        && (dialect == Dialect::V3 || !matches!(c, '\u{2028}' | '\u{2029}'))
}

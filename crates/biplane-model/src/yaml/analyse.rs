//! Which of YAML's notations a string may be printed in.

use super::resolve::{Meaning, meaning};

/// The notation of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// A block with `|`, line for line.
    Literal,
}

/// What the characters of a string leave to choose from.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent findings, read right below
pub(super) struct Analysis {
    /// Holds a line break of any kind.
    pub(super) multiline: bool,
    plain_allowed: bool,
    single_quoted_allowed: bool,
    literal_allowed: bool,
}

impl Analysis {
    pub(super) fn of(text: &str) -> Self {
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
        let mut multiline = false;
        let mut break_then_space = false;
        let mut space_then_break = false;
        let mut previous = ' ';
        let mut last = first;
        let mut chars = text.chars().peekable();
        let mut at_start = true;
        while let Some(c) = chars.next() {
            match c {
                ':' if !at_start && chars.peek().is_none_or(|next| is_blank(*next)) => {
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
            special |= !is_printable(c);
            at_start = false;
            previous = c;
            last = c;
        }
        let edge = first == ' ' || is_break(first) || last == ' ' || is_break(last);
        let hard = space_then_break || special;
        Self {
            multiline,
            plain_allowed: !(edge || break_then_space || hard || multiline || indicators),
            single_quoted_allowed: !(break_then_space || hard),
            literal_allowed: !(last == ' ' || hard),
        }
    }

    /// The notation for a string, in a place where a key stands or a value.
    pub(super) fn style(self, text: &str, key: bool) -> Style {
        let wish = if text.contains('\n') {
            Style::Literal
        } else if is_plain_text(text) {
            Style::Plain
        } else {
            return Style::DoubleQuoted;
        };
        match wish {
            _ if key && self.multiline => Style::DoubleQuoted,
            // Upstream leaves this key bare, and reads it back as the merge key.
            _ if key && text == "<<" => Style::DoubleQuoted,
            Style::Literal if self.literal_allowed && !key => Style::Literal,
            Style::Literal => Style::DoubleQuoted,
            _ if self.plain_allowed => Style::Plain,
            _ if self.single_quoted_allowed => Style::SingleQuoted,
            _ => Style::DoubleQuoted,
        }
    }
}

/// Whether the text, written without quotes, is read as a string by any YAML 1.1 parser.
fn is_plain_text(text: &str) -> bool {
    meaning(text) == Meaning::Text && !is_base_60(text)
}

/// `1:30` and `1:30:00.5` are numbers to some parsers.
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

/// Whether the text begins with a character that means something at the start of a scalar.
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

/// Whether the character means nothing but itself inside a scalar. Most strings hold no other.
fn is_harmless(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/' | b'_')
}

pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether the printer may write the character as it is. Those beyond the basic plane it may not.
///
/// Upstream writes the two Unicode line breaks raw where no other character needs an escape. They
/// are no line breaks to YAML 1.2, which would read something else back.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

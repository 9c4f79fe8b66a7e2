//! Translates character classes.

use super::RegexError;
use super::literal::NOTHING;
use super::translate::{ASCII, NEGATED, RANGE, Translator, UNICODE, invalid};
use super::unicode;

const MISSING_BRACKET: &str = "missing closing ]";
const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";

/// The content of a named ASCII class, and whether it is negated.
fn posix(name: &str) -> Option<(&'static str, bool)> {
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let class = match name {
        "alnum" => "0-9A-Za-z",
        "alpha" => "A-Za-z",
        "ascii" => r"\x00-\x7F",
        "blank" => r"\t\x20",
        "cntrl" => r"\x00-\x1F\x7F",
        "digit" => "0-9",
        "graph" => r"\x21-\x7E",
        "lower" => "a-z",
        "print" => r"\x20-\x7E",
        "punct" => r"\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E",
        "space" => r"\t\n\x0B\x0C\r\x20",
        "upper" => "A-Z",
        "word" => "0-9A-Za-z_",
        "xdigit" => "0-9A-Fa-f",
        _ => return None,
    };
    Some((class, negated))
}

/// A nested class.
fn nested(content: &str, negated: bool) -> String {
    format!("[{}{content}]", if negated { "^" } else { "" })
}

impl<'a> Translator<'a> {
    /// `\d` and similar classes, if one comes next.
    pub(super) fn perl_class(&mut self) -> Option<String> {
        let mut chars = self.rest().strip_prefix('\\')?.chars();
        let letter = chars.next()?;
        let content = match letter.to_ascii_lowercase() {
            'd' => "0-9",
            's' => r"\t\n\x0C\r\x20",
            'w' => "0-9A-Za-z_",
            _ => return None,
        };
        self.at += 2;
        Some(nested(content, letter.is_ascii_uppercase()))
    }

    /// `\pL` and similar classes, if one comes next.
    pub(super) fn unicode_class(&mut self) -> Result<Option<String>, RegexError> {
        let whole = self.rest();
        let mut negated = match whole.as_bytes() {
            [b'\\', b'p', ..] => false,
            [b'\\', b'P', ..] => true,
            _ => return Ok(None),
        };
        let body = whole.get(2..).unwrap_or_default();
        let (name, length) = match body.chars().next() {
            None => ("", 2),
            Some('{') => match whole.find('}') {
                None => return Err(invalid(BAD_RANGE, whole)),
                Some(end) => (whole.get(3..end).unwrap_or_default(), end + 1),
            },
            Some(c) => (body.get(..c.len_utf8()).unwrap_or_default(), 2 + c.len_utf8()),
        };
        let sequence = whole.get(..length).unwrap_or_default();
        let bare = name.strip_prefix('^').unwrap_or(name);
        negated ^= bare.len() != name.len();
        let Some((class, inverse)) = unicode::lookup(bare) else {
            return Err(invalid(BAD_RANGE, sequence));
        };
        self.at += length;
        Ok(Some(nested(&class, negated ^ inverse)))
    }

    /// A class in brackets, and about how many bytes it takes when it is compiled.
    pub(super) fn bracket_class(&mut self) -> Result<(String, u64), RegexError> {
        let whole = self.rest();
        self.at += 1;
        let negated = self.rest().starts_with('^');
        self.at += usize::from(negated);
        let mut content = String::new();
        let mut bytes = if negated { NEGATED } else { ASCII };
        let mut first = true;
        while first || !self.rest().starts_with(']') {
            first = false;
            if let Some(class) = self.named_class()? {
                content.push_str(&class);
                bytes += NEGATED;
                continue;
            }
            if let Some(class) = self.unicode_class()? {
                content.push_str(&class);
                bytes += UNICODE;
                continue;
            }
            if let Some(class) = self.perl_class() {
                content.push_str(&class);
                bytes += NEGATED;
                continue;
            }
            let range = self.rest();
            let low = self.class_char(whole)?;
            let mut high = low;
            let rest = self.rest().as_bytes();
            if rest.len() >= 2 && rest.starts_with(b"-") && !rest.starts_with(b"-]") {
                self.at += 1;
                high = self.class_char(whole)?;
                if high < low {
                    let length = range.len() - self.rest().len();
                    return Err(invalid(BAD_RANGE, range.get(..length).unwrap_or(range)));
                }
            }
            bytes += if high < 0x80 { ASCII / 4 } else { RANGE };
            content.push_str(&span(low, high));
        }
        self.at += 1;
        let class = match (content.is_empty(), negated) {
            (true, false) => NOTHING.to_owned(),
            (true, true) => r"[\x{0}-\x{10FFFF}]".to_owned(),
            (false, negated) => nested(&content, negated),
        };
        Ok((class, bytes))
    }

    /// `[:alpha:]` and similar classes, if one comes next.
    fn named_class(&mut self) -> Result<Option<String>, RegexError> {
        let Some(body) = self.rest().strip_prefix("[:") else { return Ok(None) };
        let Some(end) = body.find(":]") else { return Ok(None) };
        let whole = self.rest().get(..end + 4).unwrap_or_default();
        let Some((content, negated)) = posix(body.get(..end).unwrap_or_default()) else {
            return Err(invalid(BAD_RANGE, whole));
        };
        self.at += whole.len();
        Ok(Some(nested(content, negated)))
    }

    fn class_char(&mut self, whole: &'a str) -> Result<u32, RegexError> {
        let Some(c) = self.rest().chars().next() else {
            return Err(invalid(MISSING_BRACKET, whole));
        };
        if c == '\\' {
            return self.escape();
        }
        self.at += c.len_utf8();
        Ok(u32::from(c))
    }

    /// An escaped character, which may be an unpaired surrogate.
    pub(super) fn escape(&mut self) -> Result<u32, RegexError> {
        let whole = self.rest();
        let mut chars = whole.get(1..).unwrap_or_default().chars();
        let Some(c) = chars.next() else {
            return Err(invalid("trailing backslash at end of expression", ""));
        };
        let code = match c {
            '1'..='7' if !matches!(chars.as_str().as_bytes(), [b'0'..=b'7', ..]) => None,
            '0'..='7' => {
                let mut code = u32::from(c) - u32::from('0');
                for _ in 0..2 {
                    let Some(digit) = chars.as_str().chars().next().and_then(|c| c.to_digit(8))
                    else {
                        break;
                    };
                    chars.next();
                    code = code * 8 + digit;
                }
                Some(code)
            }
            'x' => hex(&mut chars),
            'a' => Some(7),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
            _ => None,
        };
        let length = whole.len() - chars.as_str().len();
        match code {
            Some(code) => {
                self.at += length;
                Ok(code)
            }
            None => Err(invalid(BAD_ESCAPE, whole.get(..length).unwrap_or(whole))),
        }
    }
}

/// The code after `\x`. Leaves the iterator where Go would stop reading.
fn hex(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    let first = chars.next()?;
    if first != '{' {
        let second = chars.next().and_then(|second| second.to_digit(16));
        return first.to_digit(16).zip(second).map(|(x, y)| x * 16 + y);
    }
    let (mut code, mut digits) = (0, 0);
    loop {
        match chars.next()? {
            '}' => return (digits > 0).then_some(code),
            c => {
                code = code * 16 + c.to_digit(16)?;
                if code > 0x10_FFFF {
                    return None;
                }
                digits += 1;
            }
        }
    }
}

/// A range in the engine's syntax, without surrogates, which no string contains.
fn span(low: u32, high: u32) -> String {
    let low = if (0xD800..0xE000).contains(&low) { 0xE000 } else { low };
    let high = if (0xD800..0xE000).contains(&high) { 0xD7FF } else { high };
    match (low, high) {
        (low, high) if low > high => String::new(),
        (low, high) if low == high => format!(r"\x{{{low:X}}}"),
        (low, high) => format!(r"\x{{{low:X}}}-\x{{{high:X}}}"),
    }
}

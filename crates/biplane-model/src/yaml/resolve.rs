//! Resolves scalars by the rules of YAML 1.1, like Kubernetes tools.

use std::borrow::Cow;

use biplane_go::{base64, num};

use super::Dialect;
use super::error::Problem;
use super::timestamp::is_timestamp;

/// The meaning of a plain scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that is too large for `Int`.
    Uint(u64),
    Float(f64),
    Timestamp,
    Text,
}

/// The explicit tags that change how a scalar is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Timestamp,
    Binary,
    Merge,
    /// `!!str`, and every unknown tag: the scalar is a string.
    Text,
}

impl Meaning {
    /// The tag of a scalar with this meaning, without its `!!`.
    fn tag_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Uint(_) => "int",
            Self::Float(_) => "float",
            Self::Timestamp => "timestamp",
            Self::Text => "str",
        }
    }
}

impl Tag {
    /// The tag with this name after `tag:yaml.org,2002:`. `None` is any other tag.
    pub(super) fn named(name: Option<&str>) -> Self {
        match name {
            Some("null") => Self::Null,
            Some("bool") => Self::Bool,
            Some("int") => Self::Int,
            Some("float") => Self::Float,
            Some("timestamp") => Self::Timestamp,
            Some("binary") => Self::Binary,
            Some("merge") => Self::Merge,
            _ => Self::Text,
        }
    }
}

/// Resolves a plain scalar in a dialect.
pub(super) fn meaning_in(text: &str, dialect: Dialect) -> Meaning {
    match meaning(text) {
        // The newer version knows fewer words.
        Meaning::Bool(_)
            if dialect == Dialect::V3
                && !matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") =>
        {
            Meaning::Text
        }
        meaning => meaning,
    }
}

/// Resolves a plain scalar in the older dialect, which most tools read.
pub(super) fn meaning(text: &str) -> Meaning {
    // Most scalars are words. Their first letter shows that they cannot be anything else.
    match text.as_bytes().first() {
        None => Meaning::Null,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            word(text)
        }
        Some(b'.') => point(text),
        Some(b'+' | b'-') => match word(text) {
            Meaning::Text => number(text),
            infinity => infinity,
        },
        Some(b'0'..=b'9') if is_timestamp(text) => Meaning::Timestamp,
        Some(b'0'..=b'9') => number(text),
        Some(_) => Meaning::Text,
    }
}

/// Resolves a scalar with an explicit tag other than `!!binary`, quoted or not.
pub(super) fn tagged(tag: Tag, text: &str, dialect: Dialect) -> Result<Meaning, Problem> {
    let found = match (tag, meaning_in(text, dialect)) {
        (Tag::Text | Tag::Binary | Tag::Merge, _) => return Ok(Meaning::Text),
        // No string of digits is both a timestamp and a number, so it can only be a string.
        (Tag::Null | Tag::Bool | Tag::Int | Tag::Float, Meaning::Timestamp) => Meaning::Text,
        (_, found) => found,
    };
    let wanted = match (tag, found) {
        (Tag::Null, Meaning::Null)
        | (Tag::Bool, Meaning::Bool(_))
        | (Tag::Int, Meaning::Int(_) | Meaning::Uint(_))
        | (Tag::Float, Meaning::Float(_))
        | (Tag::Timestamp, Meaning::Timestamp) => return Ok(found),
        (Tag::Float, Meaning::Int(whole)) => return Ok(Meaning::Float(whole as f64)),
        (Tag::Null, _) => "null",
        (Tag::Bool, _) => "bool",
        (Tag::Int, _) => "int",
        (Tag::Float, _) => "float",
        _ => "timestamp",
    };
    Err(Problem::WrongTag { found: found.tag_name(), text: text.into(), wanted })
}

/// Decodes a `!!binary` scalar.
pub(super) fn binary(text: &str) -> Result<Vec<u8>, Problem> {
    base64::decode(text.as_bytes()).map_err(|_| Problem::InvalidBase64)
}

/// Bytes as a string of JSON: each byte that is not valid UTF-8 is replaced.
pub(super) fn lossy(bytes: &[u8]) -> String {
    let mut decoded = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    decoded
}

/// A double as a key of an object. Upstream prints it with single precision.
pub(super) fn float_key(float: f64) -> String {
    let single = float as f32;
    if single.is_nan() {
        ".nan".to_owned()
    } else if single.is_infinite() {
        if single > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        // The shortest digits of a single are also the shortest digits of that double.
        num::format_general(single.to_string().parse().unwrap_or(float))
    }
}

fn word(text: &str) -> Meaning {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Meaning::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Meaning::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Meaning::Null,
        ".nan" | ".NaN" | ".NAN" => Meaning::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Meaning::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Meaning::Float(f64::NEG_INFINITY),
        _ => Meaning::Text,
    }
}

fn point(text: &str) -> Meaning {
    match word(text) {
        Meaning::Text => without_separators(text)
            .and_then(|text| finite(&text))
            .map_or(Meaning::Text, Meaning::Float),
        special => special,
    }
}

/// After a leading point, an underscore must be between digits. Elsewhere it may be anywhere.
fn without_separators(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let between_digits = |(at, _): (usize, &u8)| {
        digit(at.checked_sub(1).and_then(|at| bytes.get(at))) && digit(bytes.get(at + 1))
    };
    let mut separators = bytes.iter().enumerate().filter(|(_, b)| **b == b'_');
    separators.all(between_digits).then(|| Cow::Owned(text.replace('_', "")))
}

fn number(text: &str) -> Meaning {
    let packed;
    let text = if text.contains('_') {
        packed = text.replace('_', "");
        &packed
    } else {
        text
    };
    if let Some(whole) = whole(text) {
        return whole;
    }
    if is_decimal_float(text) {
        return finite(text).map_or(Meaning::Text, Meaning::Float);
    }
    // Upstream reads `0b-101` as minus five.
    let signed = text.strip_prefix("0b").and_then(|digits| i64::from_str_radix(digits, 2).ok());
    signed.map_or(Meaning::Text, Meaning::Int)
}

/// Numbers that are too large for a double stay strings.
fn finite(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|float| float.is_finite())
}

/// Parses decimal, octal (`0777` and `0o777`), binary and hexadecimal integers that fit into 64
/// bits.
fn whole(text: &str) -> Option<Meaning> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (Some(-1), text.get(1..)?),
        b'+' => (Some(1), text.get(1..)?),
        _ => (None, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // The standard parser would accept another sign.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    match (sign, i64::try_from(size)) {
        (None | Some(1), Ok(whole)) => Some(Meaning::Int(whole)),
        (None, Err(_)) => Some(Meaning::Uint(size)),
        (Some(-1), _) => 0_i64.checked_sub_unsigned(size).map(Meaning::Int),
        _ => None,
    }
}

/// Whether the string is a decimal number with an optional fraction and exponent.
fn is_decimal_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let before = digits(text);
    let mut rest = text.get(before..).unwrap_or_default();
    let mut after = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        after = digits(fraction);
        rest = fraction.get(after..).unwrap_or_default();
    }
    if before + after == 0 {
        return false;
    }
    if rest.is_empty() {
        return true;
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return false };
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

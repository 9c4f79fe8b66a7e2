//! Constants: what quoted strings, characters and numbers of a template mean.

use biplane_go::fmt::quote;
use biplane_go::num::parse_float;
use biplane_go::types::to_int64;

use crate::types::{IntKind, Type, UintKind};
use crate::value::{List, Map, Text, Value};

/// A constant of a compiled template. Unlike a value, it can be shared between threads.
#[derive(Clone, Debug)]
pub(crate) enum Literal {
    Bool(bool),
    Int(IntKind, i64),
    Uint(UintKind, u64),
    Float(f64),
    Complex(f64, f64),
    Str(Text),
    /// Nil of a type that has it.
    Nil(Type),
}

impl Literal {
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(kind, number) => Value::Int(*kind, *number),
            Self::Uint(kind, number) => Value::Uint(*kind, *number),
            Self::Float(number) => Value::Float(*number),
            Self::Complex(real, imaginary) => Value::Complex(*real, *imaginary),
            Self::Str(text) => Value::Str(text.clone()),
            Self::Nil(Type::Slice(element)) => Value::List(List::nil(element)),
            Self::Nil(Type::Map(key, element)) => Value::Map(Map::nil(key, element)),
            Self::Nil(_) => Value::Nil,
        }
    }
}

const SYNTAX: &str = "invalid syntax";

/// The next character of a quoted text: its code, whether it is more than a byte, and the rest.
fn unquote_char(text: &str, quote: char) -> Option<(u32, bool, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == quote {
        return None;
    }
    if first != '\\' {
        return Some((u32::from(first), !first.is_ascii(), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let digits = |count: usize, radix: u32| -> Option<(u32, &str)> {
        let digits = rest.get(..count)?;
        let good = digits.chars().all(|c| c.is_digit(radix));
        let number = u32::from_str_radix(digits, radix).ok().filter(|_| good)?;
        Some((number, rest.get(count..)?))
    };
    let simple = |code: u32| Some((code, false, rest));
    match escape {
        'a' => simple(7),
        'b' => simple(8),
        'f' => simple(12),
        'n' => simple(10),
        'r' => simple(13),
        't' => simple(9),
        'v' => simple(11),
        '\\' => simple(92),
        '\'' | '"' if escape == quote => simple(u32::from(escape)),
        'x' => digits(2, 16).map(|(code, rest)| (code, false, rest)),
        'u' | 'U' => {
            let (code, rest) = digits(if escape == 'u' { 4 } else { 8 }, 16)?;
            char::from_u32(code).map(|_| (code, true, rest))
        }
        '0'..='7' => {
            let (low, rest) = digits(2, 8)?;
            let code = escape.to_digit(8)? * 64 + low;
            (code < 256).then_some((code, false, rest))
        }
        _ => None,
    }
}

/// The bytes that a string constant stands for.
pub(crate) fn unquote(constant: &str) -> Result<Vec<u8>, String> {
    if let Some(raw) = constant.strip_prefix('`') {
        let raw = raw.strip_suffix('`').ok_or(SYNTAX)?;
        return Ok(raw.bytes().filter(|b| *b != b'\r').collect());
    }
    let body = constant.strip_prefix('"').and_then(|t| t.strip_suffix('"')).ok_or(SYNTAX)?;
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while !rest.is_empty() {
        let (code, wide, tail) = unquote_char(rest, '"').ok_or(SYNTAX)?;
        match char::from_u32(code).filter(|_| wide) {
            Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => out.push(code as u8),
        }
        rest = tail;
    }
    Ok(out)
}

/// A number constant, with every kind of number that can represent it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Number {
    pub(crate) text: String,
    int: Option<i64>,
    uint: Option<u64>,
    float: Option<f64>,
    complex: Option<(f64, f64)>,
}

impl Number {
    /// Parses a character constant.
    pub(crate) fn character(text: &str) -> Result<Self, String> {
        let body = text.get(1..).unwrap_or_default();
        let (code, _, tail) = unquote_char(body, '\'').ok_or(SYNTAX)?;
        if tail != "'" {
            return Err(format!("malformed character constant: {text}"));
        }
        Ok(Self {
            text: text.to_owned(),
            int: Some(i64::from(code)),
            uint: Some(u64::from(code)),
            float: Some(f64::from(code)),
            complex: None,
        })
    }

    /// Parses a sum of a real and an imaginary number.
    pub(crate) fn complex(text: &str) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let at = (1..bytes.len()).rev().find(|at| {
            matches!(bytes.get(*at), Some(b'+' | b'-'))
                && !matches!(bytes.get(at - 1), Some(b'e' | b'E' | b'p' | b'P'))
        });
        let (real, imaginary) = text.split_at(at.unwrap_or_default());
        let imaginary = imaginary.strip_suffix('i').unwrap_or(imaginary);
        let real = parse_float(real.as_bytes())?;
        Ok(Self::of_complex(text, real, parse_float(imaginary.as_bytes())?))
    }

    fn of_complex(text: &str, real: f64, imaginary: f64) -> Self {
        let mut number = Self { complex: Some((real, imaginary)), ..Self::named(text) };
        if imaginary == 0.0 {
            number.float = Some(real);
            number.int = whole(real);
            number.uint = whole_unsigned(real);
        }
        number
    }

    fn named(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Parses any other number.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(real) = text.strip_suffix('i')
            && let Ok(imaginary) = parse_float(real.as_bytes())
        {
            return Ok(Self::of_complex(text, 0.0, imaginary));
        }
        let mut number = Self { uint: unsigned(text), int: signed(text), ..Self::named(text) };
        if number.int == Some(0) {
            number.uint = Some(0);
        }
        number.float = number.int.map(|n| n as f64).or(number.uint.map(|n| n as f64));
        if number.float.is_none()
            && let Ok(float) = parse_float(text.as_bytes())
        {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", quote(text)));
            }
            number.float = Some(float);
            number.int = whole(float);
            number.uint = whole_unsigned(float);
        }
        if number.float.is_none() {
            return Err(format!("illegal number syntax: {}", quote(text)));
        }
        Ok(number)
    }

    /// The constant where no type is wanted: its spelling decides.
    pub(crate) fn ideal(&self) -> Result<Literal, String> {
        if let Some((real, imaginary)) = self.complex {
            return Ok(Literal::Complex(real, imaginary));
        }
        let text = &self.text;
        let hexadecimal = text.len() > 2
            && (text.starts_with("0x") || text.starts_with("0X"))
            && !text.contains(['p', 'P']);
        let fraction = text.contains(['.', 'e', 'E', 'p', 'P']);
        match (self.float, self.int) {
            (Some(float), _) if !hexadecimal && !text.starts_with('\'') && fraction => {
                Ok(Literal::Float(float))
            }
            (_, Some(integer)) => Ok(Literal::Int(IntKind::Int, integer)),
            _ => Err(format!("{text} overflows int")),
        }
    }
}

/// The integer that a double is. Out of range, Go converts to the smallest integer.
#[allow(clippy::float_cmp)] // the same number or another one
fn whole(float: f64) -> Option<i64> {
    let integer = to_int64(float);
    ((integer as f64) == float).then_some(integer)
}

fn whole_unsigned(float: f64) -> Option<u64> {
    let fits = (0.0..18_446_744_073_709_551_616.0).contains(&float) && float.fract() == 0.0;
    fits.then_some(float as u64)
}

fn signed(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let size = i128::from(unsigned(digits)?);
    i64::try_from(if negative { -size } else { size }).ok()
}

/// `strconv.ParseUint` with the base that the prefix says.
fn unsigned(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    // A separator stands between digits, or between a prefix and a digit.
    let prefixed = digits.len() < lower.len();
    let separated =
        !digits.ends_with('_') && !digits.contains("__") && (prefixed || !digits.starts_with('_'));
    let plain = digits.replace('_', "");
    if !separated || !plain.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(&plain, radix).ok()
}

/// What an operand of a call is, if it is a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Constant<'a> {
    Bool(bool),
    Number(&'a Number),
    Str(&'a Text),
}

/// A constant for a parameter of a type. `shown` is the constant as messages show it.
pub(crate) fn convert(constant: Constant<'_>, to: Type, shown: &str) -> Result<Literal, String> {
    use crate::types::Kind;
    let found = |what: &str| Err(format!("expected {what}; found {shown}"));
    match (to.kind(), constant) {
        (Kind::Bool, Constant::Bool(flag)) => Ok(Literal::Bool(flag)),
        (Kind::Bool, _) => found("bool"),
        (Kind::Complex128, Constant::Number(Number { complex: Some((re, im)), .. })) => {
            Ok(Literal::Complex(*re, *im))
        }
        (Kind::Complex128, _) => found("complex"),
        (Kind::Float64, Constant::Number(Number { float: Some(float), .. })) => {
            Ok(Literal::Float(*float))
        }
        (Kind::Float64, _) => found("float"),
        (Kind::Int(kind), Constant::Number(Number { int: Some(integer), .. })) => {
            Ok(Literal::Int(kind, wrap(kind, *integer)))
        }
        (Kind::Int(_), _) => found("integer"),
        (Kind::Uint(kind), Constant::Number(Number { uint: Some(integer), .. })) => {
            Ok(Literal::Uint(kind, wrap_unsigned(kind, *integer)))
        }
        (Kind::Uint(_), _) => found("unsigned integer"),
        (Kind::String, Constant::Str(text)) => Ok(Literal::Str(text.clone())),
        (Kind::String, _) => found("string"),
        (Kind::Interface, _) => ideal(constant),
        _ if to == Type::Reflect => ideal(constant),
        _ => Err(format!("can't handle {shown} for arg of type {to}")),
    }
}

/// A constant where any type is good.
pub(crate) fn ideal(constant: Constant<'_>) -> Result<Literal, String> {
    match constant {
        Constant::Bool(flag) => Ok(Literal::Bool(flag)),
        Constant::Str(text) => Ok(Literal::Str(text.clone())),
        Constant::Number(number) => number.ideal(),
    }
}

/// Go cuts constants to the size of the parameter without a word.
fn wrap(kind: IntKind, integer: i64) -> i64 {
    match kind {
        IntKind::Int | IntKind::Int64 => integer,
        IntKind::Int8 => i64::from(integer as i8),
        IntKind::Int16 => i64::from(integer as i16),
        IntKind::Int32 => i64::from(integer as i32),
    }
}

fn wrap_unsigned(kind: UintKind, integer: u64) -> u64 {
    match kind {
        UintKind::Uint | UintKind::Uint64 => integer,
        UintKind::Uint8 => u64::from(integer as u8),
        UintKind::Uint16 => u64::from(integer as u16),
        UintKind::Uint32 => u64::from(integer as u32),
    }
}

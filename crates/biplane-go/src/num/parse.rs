//! Parses numbers and booleans like Go.

use crate::fmt::quote_bytes;

fn fail(function: &str, text: &[u8], what: &str) -> String {
    format!("strconv.{function}: parsing {}: {what}", quote_bytes(text))
}

const SYNTAX: &str = "invalid syntax";
const RANGE: &str = "value out of range";

/// Whether a string has a minus sign, and what follows its sign.
fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((sign @ (b'-' | b'+'), rest)) => (*sign == b'-', rest),
        _ => (false, text),
    }
}

/// `strconv.ParseInt` in base ten: a decimal integer with an optional sign.
pub fn parse_int(text: &[u8]) -> Result<i64, String> {
    let (negative, digits) = sign(text);
    if digits.is_empty() {
        return Err(fail("ParseInt", text, SYNTAX));
    }
    let mut number: u64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return Err(fail("ParseInt", text, SYNTAX));
        }
        let next = number.checked_mul(10).and_then(|n| n.checked_add(u64::from(byte - b'0')));
        // Go reports digits that do not fit before it sees a later character that is not a digit.
        let Some(next) = next else { return Err(fail("ParseInt", text, RANGE)) };
        number = next;
    }
    let signed = if negative { -i128::from(number) } else { i128::from(number) };
    i64::try_from(signed).map_err(|_| fail("ParseInt", text, RANGE))
}

/// `strconv.ParseBool`: a boolean in one of its twelve spellings.
pub fn parse_bool(text: &[u8]) -> Result<bool, String> {
    match text {
        b"1" | b"t" | b"T" | b"TRUE" | b"true" | b"True" => Ok(true),
        b"0" | b"f" | b"F" | b"FALSE" | b"false" | b"False" => Ok(false),
        _ => Err(fail("ParseBool", text, SYNTAX)),
    }
}

/// `strconv.ParseFloat`: decimal or hexadecimal, with underscores between digits, or a name of
/// infinity.
pub fn parse_float(text: &[u8]) -> Result<f64, String> {
    let (negative, body) = sign(text);
    let signed = |number: f64| if negative { -number } else { number };
    if body.eq_ignore_ascii_case(b"inf") || body.eq_ignore_ascii_case(b"infinity") {
        return Ok(signed(f64::INFINITY));
    }
    if text.eq_ignore_ascii_case(b"nan") {
        return Ok(f64::NAN);
    }
    let syntax = || fail("ParseFloat", text, SYNTAX);
    if matches!(body, [b'+' | b'-', ..]) {
        return Err(syntax());
    }
    let Some(spelling) = underscores(body) else { return Err(syntax()) };
    let number = if spelling.len() > 2 && matches!(spelling.as_bytes(), [b'0', b'x' | b'X', ..]) {
        hexadecimal(&spelling)
    } else if spelling.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b)) {
        // Go and Rust accept the same spellings of digits, point and exponent.
        spelling.parse().ok()
    } else {
        None
    };
    match number {
        None => Err(syntax()),
        Some(number) if f64::is_infinite(number) => Err(fail("ParseFloat", text, RANGE)),
        Some(number) => Ok(signed(number)),
    }
}

/// The string without underscores, if each underscore is between digits.
fn underscores(text: &[u8]) -> Option<String> {
    let plain = std::str::from_utf8(text).ok()?;
    if !text.contains(&b'_') {
        return Some(plain.to_owned());
    }
    let prefixed = matches!(text, [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..]);
    let hex = matches!(text, [b'0', b'x' | b'X', ..]);
    let mut before = if prefixed { b'0' } else { b'^' };
    for byte in text.get(if prefixed { 2 } else { 0 }..)? {
        let digit = byte.is_ascii_digit() || (hex && byte.is_ascii_hexdigit());
        before = match (digit, *byte, before) {
            (true, ..) => b'0',
            (_, b'_', b'0') => b'_',
            (_, b'_', _) | (_, _, b'_') => return None,
            _ => b'!',
        };
    }
    (before != b'_').then(|| plain.replace('_', ""))
}

/// A hexadecimal double. It must have an exponent.
fn hexadecimal(text: &str) -> Option<f64> {
    let body = text.get(2..)?;
    let (digits, exponent) = body.split_once(['p', 'P'])?;
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size: i64 = unsigned.parse().unwrap_or(100_000).min(100_000);
    let mut power = if exponent.starts_with('-') { -size } else { size };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut mantissa, mut lost): (u64, bool) = (0, false);
    for (place, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = c.to_digit(16)?;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | u64::from(digit);
            power -= if place >= whole.len() { 4 } else { 0 };
        } else {
            lost |= digit != 0;
            power += if place < whole.len() { 4 } else { 0 };
        }
    }
    Some(scale(mantissa, lost, power))
}

/// Computes `mantissa · 2^power`, rounded once, to even.
fn scale(mut mantissa: u64, lost: bool, mut power: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    // Fifty-five bits: the bits of a double and two for rounding. The last one is sticky.
    while mantissa >> 54 == 0 {
        mantissa <<= 1;
        power -= 1;
    }
    if lost {
        mantissa |= 1;
    }
    while mantissa >> 55 != 0 {
        mantissa = mantissa >> 1 | mantissa & 1;
        power += 1;
    }
    while mantissa > 1 && power < -1076 {
        mantissa = mantissa >> 1 | mantissa & 1;
        power += 1;
    }
    let round = mantissa & 3 | (mantissa >> 2) & 1;
    mantissa >>= 2;
    power += 2;
    if round == 3 {
        mantissa += 1;
    }
    if power > 1023 {
        return f64::INFINITY;
    }
    // The mantissa is exact, and so is every power of two that it is multiplied by.
    let mut number = mantissa as f64;
    while power > 0 {
        let step = power.min(1000);
        number *= 2f64.powi(step as i32);
        power -= step;
    }
    while power < 0 {
        let step = (-power).min(1000);
        number /= 2f64.powi(step as i32);
        power += step;
    }
    number
}

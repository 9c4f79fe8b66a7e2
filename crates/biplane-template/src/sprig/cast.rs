//! Converts any value to a number, like `spf13/cast`. What cannot be converted is zero.

use crate::value::Value;

/// A double as Go on amd64 converts it: everything beyond the range becomes the smallest integer.
pub(super) fn truncate(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// The integer that a value is or stands for.
pub(super) fn to_int64(value: &Value) -> i64 {
    match value {
        Value::Bool(flag) => i64::from(*flag),
        Value::Int(_, number) => *number,
        Value::Uint(_, number) => number.cast_signed(),
        Value::Float(number) => truncate(*number),
        Value::Str(text) => parse_int(trim_zero_decimal(text)).unwrap_or(0),
        value => calendar(value).unwrap_or(0),
    }
}

/// The double that a value is or stands for.
pub(super) fn to_float64(value: &Value) -> f64 {
    match value {
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Int(_, number) => *number as f64,
        Value::Uint(_, number) => *number as f64,
        Value::Float(number) => *number,
        Value::Str(text) => biplane_go::num::parse_float(text).unwrap_or(0.0),
        value => calendar(value).unwrap_or(0) as f64,
    }
}

/// The number of a month or day of the week. Other types with names are not numbers here.
fn calendar(value: &Value) -> Option<i64> {
    if !matches!(value.type_name().as_str(), "time.Month" | "time.Weekday") {
        return None;
    }
    let Value::Object(object) = value else { return None };
    match object.underlying()? {
        Value::Int(_, number) => Some(number),
        _ => None,
    }
}

/// Cuts off a point followed only by zeros.
fn trim_zero_decimal(text: &[u8]) -> &[u8] {
    let zeros = text.iter().rev().take_while(|byte| **byte == b'0').count();
    let rest = text.get(..text.len() - zeros).unwrap_or_default();
    match rest {
        [start @ .., b'.'] if zeros > 0 => start,
        _ => text,
    }
}

/// Whether a text has a minus sign, and what follows its sign.
pub(super) fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', body @ ..] => (true, body),
        [b'+', body @ ..] | body => (false, body),
    }
}

/// `strconv.ParseInt` in base 0: prefixes for bases, and underscores between digits.
fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, body) = sign(text);
    let (base, digits) = match body {
        [b'0', b'x' | b'X', digits @ ..] => (16, digits),
        [b'0', b'o' | b'O', digits @ ..] => (8, digits),
        [b'0', b'b' | b'B', digits @ ..] => (2, digits),
        [b'0', digits @ ..] if !digits.is_empty() => (8, digits),
        digits => (10, digits),
    };
    // A prefix counts as a digit before an underscore.
    let prefixed = base != 10;
    let mut after_digit = prefixed;
    let (mut number, mut any) = (0_u64, false);
    for byte in digits {
        if *byte == b'_' {
            if !std::mem::take(&mut after_digit) {
                return None;
            }
            continue;
        }
        let digit = char::from(*byte).to_digit(base)?;
        number = number.checked_mul(u64::from(base))?.checked_add(u64::from(digit))?;
        after_digit = true;
        any = true;
    }
    if !any || !after_digit {
        return None;
    }
    let signed = if negative { -i128::from(number) } else { i128::from(number) };
    i64::try_from(signed).ok()
}

/// `strconv.Atoi` without its error: beyond the range the nearest limit, else zero.
pub(super) fn atoi(text: &[u8]) -> i64 {
    match biplane_go::num::parse_int(text) {
        Ok(number) => number,
        Err(message) if message.ends_with("out of range") => {
            if text.starts_with(b"-") {
                i64::MIN
            } else {
                i64::MAX
            }
        }
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_integers_with_prefixes_and_without_zero_fractions() {
        for (text, number) in [
            ("3.0", 3),
            ("3.7", 0),
            ("010", 8),
            ("08", 0),
            (" 3", 0),
            ("0x_1F", 31),
            ("0b101", 5),
            ("1_000", 1000),
            ("1__0", 0),
            ("_1", 0),
            ("1_", 0),
            ("0_7", 7),
            ("0", 0),
            ("-12.000", -12),
            ("9223372036854775808", 0),
            ("-9223372036854775808", i64::MIN),
            ("1.0.0", 0),
            (".0", 0),
        ] {
            assert_eq!(to_int64(&Value::text(text)), number, "GT-S1 {text}");
        }
        assert_eq!(to_int64(&Value::Float(3.99)), 3, "GT-S1");
        assert_eq!(to_int64(&Value::Float(f64::NAN)), i64::MIN);
        assert_eq!(to_int64(&Value::Nil), 0, "GT-S1");
        assert_eq!(atoi(b"99999999999999999999"), i64::MAX);
    }
}

//! Amounts of a resource, such as `100m` or `1.5Gi`: parsing, comparing and the canonical text.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Powers of 1024: `Ki`, `Mi`, …
    Binary,
    /// Powers of 1000: `m`, `k`, `M`, …
    Decimal,
    /// `1e3`.
    Exponent,
}

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text as a whole has the wrong form.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The part before the suffix is not a number.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// There is no such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

const NANO: i128 = 1_000_000_000;
const MOST: i128 = i64::MAX as i128 * NANO;
/// Digits after the point that can matter; whatever follows rounds up.
const FRACTION_DIGITS: usize = 18;

/// An amount, exact to a billionth, at most 2^63-1.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    notation: Notation,
}

impl Quantity {
    /// In billionths.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// How it was written.
    pub fn notation(self) -> Notation {
        self.notation
    }

    /// The whole number, rounded away from zero.
    pub fn value(self) -> i64 {
        saturated(div_up(self.nanos, NANO))
    }

    /// Thousandths, rounded away from zero.
    pub fn milli_value(self) -> i64 {
        saturated(div_up(self.nanos, NANO / 1000))
    }
}

fn saturated(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn div_up(value: i128, by: i128) -> i128 {
    value / by + if value % by == 0 { 0 } else { value.signum() }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, text.get(1..).unwrap_or_default()),
            Some(b'+') => (false, text.get(1..).unwrap_or_default()),
            _ => (false, text),
        };
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        check_suffix(suffix)?;
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityError::Number);
        }
        let (notation, power) = read_suffix(suffix).ok_or(QuantityError::Suffix)?;
        let size = match notation {
            Notation::Binary => scaled(whole, fraction, power),
            Notation::Decimal | Notation::Exponent => {
                let (whole, fraction) = shifted(whole, fraction, power);
                scaled(&whole, &fraction, 0)
            }
        };
        Ok(Self { nanos: if negative { -size } else { size }, notation })
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Letters, then a sign, then digits, and nothing else.
fn check_suffix(suffix: &str) -> Result<(), QuantityError> {
    let rest = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    if digits(rest).1.is_empty() { Ok(()) } else { Err(QuantityError::Format) }
}

/// The notation and the power of ten, or of two for the binary one.
fn read_suffix(suffix: &str) -> Option<(Notation, i64)> {
    let decimal = |power| Some((Notation::Decimal, power));
    let binary = |power| Some((Notation::Binary, power));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?;
            Some((Notation::Exponent, power.parse().ok()?))
        }
    }
}

/// The number with its point moved to the right by some places.
fn shifted(whole: &str, fraction: &str, places: i64) -> (String, String) {
    // Far enough to be either nothing but a trace or more than the most.
    let far = 64 + whole.len() + fraction.len();
    let count = usize::try_from(places.unsigned_abs()).unwrap_or(far).min(far);
    if places >= 0 {
        let padded = format!("{fraction:0<count$}");
        let (moved, left) = padded.split_at(count);
        (format!("{whole}{moved}"), left.to_owned())
    } else {
        let padded = format!("{whole:0>count$}");
        let (left, moved) = padded.split_at(padded.len() - count);
        (left.to_owned(), format!("{moved}{fraction}"))
    }
}

/// Billionths of a number times a power of two, rounded up and capped.
fn scaled(whole: &str, fraction: &str, power: i64) -> i128 {
    let whole = whole.trim_start_matches('0');
    if whole.len() > 19 {
        return MOST;
    }
    let factor = 1_i128 << power.clamp(0, 60);
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(MOST) };
    let whole = whole.saturating_mul(factor);
    if whole > i128::from(i64::MAX) {
        return MOST;
    }
    let kept = fraction.get(..FRACTION_DIGITS).unwrap_or(fraction);
    let beyond = fraction.get(FRACTION_DIGITS..).unwrap_or_default();
    let padded = format!("{kept:0<FRACTION_DIGITS$}");
    let trace = i128::from(beyond.contains(|c| c != '0'));
    let parts = padded.parse::<i128>().unwrap_or_default() + trace;
    // Parts are 1e-18 each, so that a billion of them is one billionth.
    let parts = div_up(parts.saturating_mul(factor), NANO);
    (whole * NANO + parts).min(MOST)
}

const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The canonical text: no fraction, the largest suffix that allows it.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let small = self.nanos.abs() < 1024 * NANO;
        let exact = self.nanos % NANO == 0;
        if self.notation == Notation::Binary && !small && exact {
            let mut number = self.nanos / NANO;
            let mut level = 0;
            while number % 1024 == 0 && level + 1 < BINARY_SUFFIXES.len() {
                number /= 1024;
                level += 1;
            }
            return write!(f, "{number}{}", BINARY_SUFFIXES.get(level).unwrap_or(&""));
        }
        let mut number = self.nanos;
        let mut level = 0;
        while number % 1000 == 0 && level + 1 < DECIMAL_SUFFIXES.len() {
            number /= 1000;
            level += 1;
        }
        let power = i32::try_from(level).unwrap_or_default() * 3 - 9;
        match self.notation {
            Notation::Exponent if power == 0 => write!(f, "{number}"),
            Notation::Exponent => write!(f, "{number}e{power}"),
            _ => write!(f, "{number}{}", DECIMAL_SUFFIXES.get(level).unwrap_or(&"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_canonical() {
        for (text, canonical) in [
            ("0", "0"),
            ("-0.0Gi", "0"),
            ("1", "1"),
            ("+1", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1.5", "1500m"),
            ("0.1", "100m"),
            (".5", "500m"),
            ("5.", "5"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1Ki", "1Ki"),
            ("1024Ki", "1Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1023", "1023"),
            ("0.1Mi", "104857600m"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("1E", "1E"),
            ("1E3", "1e3"),
            ("100e-3", "100e-3"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("1.0000000000000000000001", "1000000001n"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854775807"),
            ("100000000000000000000Ei", "9223372036854775807"),
            ("1e99999999", "9223372036854775807e0"),
            ("8Ei", "9223372036854775807"),
            ("-1.5Gi", "-1536Mi"),
        ] {
            let canonical = canonical.strip_suffix("e0").unwrap_or(canonical);
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1.1.1", QuantityError::Format),
            (".", QuantityError::Number),
            ("-", QuantityError::Number),
            ("Gi", QuantityError::Number),
            ("1ki", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1KiKi", QuantityError::Suffix),
            ("1i3", QuantityError::Suffix),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn amounts_are_compared_whatever_their_notation() {
        let parse = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!(parse("1Ki"), parse("1024"));
        assert_eq!(parse("1e3"), parse("1k"));
        assert!(parse("1Gi") > parse("1G"));
        assert!(parse("-1") < parse("1m"));
        assert_eq!(parse("1.5").value(), 2);
        assert_eq!(parse("1.5").milli_value(), 1500);
        assert_eq!(parse("8Ei").milli_value(), i64::MAX);
    }
}

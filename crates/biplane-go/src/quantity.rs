//! Converts Kubernetes quantities, such as `100m` or `1.5Gi`, to doubles, and prints them as the API
//! server does.
//!
//! The arithmetic is upstream's, including its rounding errors. Short numbers are multiplied by a
//! power of ten. Long or fine numbers are first rounded away from zero to a billionth.

/// The reason why a string is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The string has the wrong form.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The part before the suffix is not a number.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The number of digits that always fit into an integer.
const SAFE_DIGITS: i64 = 18;
/// The smallest exponent of ten.
const NANO: i64 = -9;

/// The parts of a quantity.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point without leading zeros, at least one.
    whole: &'a str,
    fraction: &'a str,
    /// Whether there was any digit.
    digits: bool,
    suffix: &'a str,
}

enum Suffix {
    Decimal(i64),
    Binary(u32),
}

/// Parses a quantity as a double.
pub fn parse(text: &[u8]) -> Result<f64, QuantityError> {
    let text = match std::str::from_utf8(text) {
        Ok("") | Err(_) => return Err(QuantityError::Format),
        Ok(text) => text,
    };
    let parts = split(text)?;
    let suffix = suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
    let all = format!("{}{}", parts.whole, parts.fraction);
    // Integers and exact decimals have no negative zero.
    let signed = |size: f64| if parts.negative && size != 0.0 { -size } else { size };
    let places = length(parts.fraction);
    match suffix {
        Suffix::Decimal(exponent) => {
            let scale = wrap(exponent - places);
            if length(&all) <= SAFE_DIGITS && scale >= NANO {
                let value: i64 = all.parse().map_err(|_| QuantityError::Number)?;
                return Ok(times_power(signed(value as f64), scale));
            }
            if !parts.digits {
                return Err(QuantityError::Number);
            }
            Ok(signed(exact(&all, scale, None)))
        }
        Suffix::Binary(exponent) => {
            let room = 15 - length(parts.whole) - i64::from(exponent) * 3 / 10 - 1;
            if parts.fraction.is_empty() && room >= 0 {
                let value: i64 = parts.whole.parse().map_err(|_| QuantityError::Number)?;
                if let Some(value) = value.checked_mul(1 << exponent) {
                    return Ok(signed(value as f64));
                }
            }
            if !parts.digits {
                return Err(QuantityError::Number);
            }
            let all = multiply(&all, 1 << exponent);
            Ok(signed(exact(&all, -places, Some(LARGEST_BINARY))))
        }
    }
}

/// The largest quantity with a binary suffix.
const LARGEST_BINARY: &str = "9223372036854775807";

/// A quantity as the API server prints it: `1000m` as `1`, `1.5Gi` as `1536Mi`.
pub fn canonical(text: &[u8]) -> Result<String, QuantityError> {
    parse(text)?;
    let text = std::str::from_utf8(text).map_err(|_| QuantityError::Format)?;
    let parts = split(text)?;
    if is_kept(&parts) {
        return Ok(text.to_owned());
    }
    let with_exponent = parts.suffix.len() > 1 && parts.suffix.starts_with(['e', 'E']);
    let (binary, digits, scale) = match suffix(parts.suffix).ok_or(QuantityError::Suffix)? {
        Suffix::Decimal(exponent) => (
            false,
            format!("{}{}", parts.whole, parts.fraction),
            wrap(exponent - length(parts.fraction)),
        ),
        Suffix::Binary(exponent) => (
            true,
            multiply(&format!("{}{}", parts.whole, parts.fraction), 1 << exponent),
            -length(parts.fraction),
        ),
    };
    let (digits, mut scale) = in_billionths(&digits, scale);
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Ok("0".to_owned());
    }
    scale += length(&digits) - length(digits.trim_end_matches('0'));
    let sign = if parts.negative { "-" } else { "" };
    if binary && scale >= 0 {
        let zeros = usize::try_from(scale).unwrap_or_default();
        let whole = format!("{significant}{}", "0".repeat(zeros.min(LARGEST_BINARY.len())));
        let too_large = (whole.len(), whole.as_str()) > (LARGEST_BINARY.len(), LARGEST_BINARY);
        let capped = if too_large && !parts.negative { LARGEST_BINARY } else { whole.as_str() };
        if let Ok(number) = capped.parse::<u128>()
            && number >= 1024
        {
            return Ok(format!("{sign}{}", with_binary_suffix(number)));
        }
    }
    // The exponent becomes a multiple of three.
    let more = usize::try_from(scale.rem_euclid(3)).unwrap_or_default();
    let exponent = scale - scale.rem_euclid(3);
    let suffix = if with_exponent && exponent != 0 {
        format!("e{exponent}")
    } else {
        decimal_suffix(exponent).to_owned()
    };
    Ok(format!("{sign}{significant}{}{suffix}", "0".repeat(more)))
}

/// Whether upstream takes a text for canonical and prints it as it is, even with a plus or a point.
fn is_kept(parts: &Parts<'_>) -> bool {
    let all = format!("{}{}", parts.whole, parts.fraction);
    match suffix(parts.suffix) {
        Some(Suffix::Decimal(exponent)) => {
            let scale = wrap(exponent - length(parts.fraction));
            length(&all) <= SAFE_DIGITS
                && scale >= NANO
                && scale % 3 == 0
                && !all.ends_with("000")
                && !all.starts_with('0')
        }
        Some(Suffix::Binary(exponent)) => {
            let room = 15 - length(parts.whole) - i64::from(exponent) * 3 / 10 - 1;
            let odd = parts.whole.parse::<i64>().is_ok_and(|whole| whole % 8 != 0);
            parts.fraction.is_empty() && room >= 0 && odd
        }
        None => false,
    }
}

/// Rounds digits times a power of ten away from zero to a billionth.
fn in_billionths(digits: &str, scale: i64) -> (String, i64) {
    if scale >= NANO {
        return (digits.to_owned(), scale);
    }
    let cut = usize::try_from(NANO - scale).unwrap_or(usize::MAX);
    let kept = digits.len().saturating_sub(cut);
    let up = digits.bytes().skip(kept).any(|b| b != b'0');
    let kept = digits.get(..kept).unwrap_or_default();
    (if up { increment(kept) } else { kept.to_owned() }, NANO)
}

fn with_binary_suffix(mut number: u128) -> String {
    let mut suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].into_iter();
    let mut suffix = suffixes.next().unwrap_or_default();
    while number.is_multiple_of(1024)
        && let Some(next) = suffixes.next()
    {
        number /= 1024;
        suffix = next;
    }
    format!("{number}{suffix}")
}

fn decimal_suffix(exponent: i64) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Upstream keeps powers in 32 bits.
fn wrap(scale: i64) -> i64 {
    i64::from(scale as i32)
}

fn times_power(value: f64, power: i64) -> f64 {
    match power {
        0 => value,
        power if power > 308 => value * f64::INFINITY,
        power if power < -323 => value * 0.0,
        // Parsed, not computed: upstream multiplies by a table of the nearest doubles.
        power => value * format!("1e{power}").parse::<f64>().unwrap_or_default(),
    }
}

/// Digits times a power of ten, rounded away from zero to a billionth, and capped.
fn exact(digits: &str, scale: i64, cap: Option<&str>) -> f64 {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0.0;
    }
    let (mut digits, mut zeros) = (digits.to_owned(), scale - NANO);
    if zeros < 0 {
        let cut = usize::try_from(-zeros).unwrap_or(usize::MAX);
        let kept = digits.len().saturating_sub(cut);
        let up = digits.bytes().skip(kept).any(|b| b != b'0');
        digits.truncate(kept);
        if up {
            digits = increment(&digits);
        }
        zeros = 0;
    }
    if let Some(cap) = cap {
        let places = length(&digits) + zeros;
        let limit = format!("{cap}000000000");
        let over = match places.cmp(&length(&limit)) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => digits > limit,
        };
        if over {
            (digits, zeros) = (cap.to_owned(), 0);
            // The cap itself is not in billionths.
            return format!("{digits}e{zeros}").parse().unwrap_or_default();
        }
    }
    let unscaled: f64 = format!("{digits}e{zeros}").parse().unwrap_or_default();
    unscaled * 1e-9
}

fn increment(digits: &str) -> String {
    let mut out = digits.as_bytes().to_vec();
    for byte in out.iter_mut().rev() {
        if *byte == b'9' {
            *byte = b'0';
        } else {
            *byte += 1;
            return String::from_utf8(out).unwrap_or_default();
        }
    }
    format!("1{}", String::from_utf8(out).unwrap_or_default())
}

/// Decimal digits times a number.
fn multiply(digits: &str, by: u64) -> String {
    let mut carry: u128 = 0;
    let mut out = Vec::with_capacity(digits.len() + 20);
    for byte in digits.bytes().rev() {
        carry += u128::from(byte - b'0') * u128::from(by);
        out.push(b'0' + (carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        out.push(b'0' + (carry % 10) as u8);
        carry /= 10;
    }
    out.reverse();
    String::from_utf8(out).unwrap_or_default()
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    let letters = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let power = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if !digits(power).1.is_empty() {
        return Err(QuantityError::Format);
    }
    let significant = whole.trim_start_matches('0');
    Ok(Parts {
        negative: text.starts_with('-'),
        whole: if significant.is_empty() { "0" } else { significant },
        fraction,
        digits: !whole.is_empty() || !fraction.is_empty(),
        suffix,
    })
}

fn suffix(suffix: &str) -> Option<Suffix> {
    Some(match suffix {
        "" => Suffix::Decimal(0),
        "n" => Suffix::Decimal(-9),
        "u" => Suffix::Decimal(-6),
        "m" => Suffix::Decimal(-3),
        "k" => Suffix::Decimal(3),
        "M" => Suffix::Decimal(6),
        "G" => Suffix::Decimal(9),
        "T" => Suffix::Decimal(12),
        "P" => Suffix::Decimal(15),
        "E" => Suffix::Decimal(18),
        "Ki" => Suffix::Binary(10),
        "Mi" => Suffix::Binary(20),
        "Gi" => Suffix::Binary(30),
        "Ti" => Suffix::Binary(40),
        "Pi" => Suffix::Binary(50),
        "Ei" => Suffix::Binary(60),
        _ => {
            let power = suffix.strip_prefix(['e', 'E']).filter(|power| !power.is_empty())?;
            Suffix::Decimal(wrap(crate::num::parse_int(power.as_bytes()).ok()?))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{QuantityError, canonical, parse};

    #[test]
    fn accepts_numbers_with_the_suffixes_of_kubernetes() {
        for text in [
            "0", "1", "-1.5", "+.5", "1.", "100m", "1Gi", "1.5Ki", "2E", "1e3", "1E-10", "007", ".",
        ] {
            assert!(parse(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn rejects_everything_else() {
        for text in
            ["", "lots", "1 Gi", "1GiB", "1K", "1e", "1ee3", "0x10", "1,5", "--1", "1Gi1", "é"]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1.1.1", QuantityError::Format),
            ("1ki", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1KiKi", QuantityError::Suffix),
            ("1i3", QuantityError::Suffix),
            // Without digits, only a value that is small enough for integers is zero.
            ("Ei", QuantityError::Number),
            (".e-10", QuantityError::Number),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(error), "{text}");
        }
        assert_eq!(parse(b"1\xff"), Err(QuantityError::Format));
    }

    #[test]
    #[allow(clippy::float_cmp)] // compares with the exact double that Go computes
    fn rounds_as_go_does() {
        for (text, number) in [
            ("1000m", 1.0),
            ("1.5Gi", 1_610_612_736.0),
            ("1e3", 1000.0),
            ("0.3", 0.300_000_000_000_000_04),
            ("0.1n", 1e-9),
            ("-0.1n", -1e-9),
            ("-0.0Gi", 0.0),
            ("8Ei", 9_223_372_036_854_775_807.0),
            ("100000000000000000000Ei", 9_223_372_036_854_775_807.0),
            ("1e99999999", f64::INFINITY),
            ("Ki", 0.0),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(number), "{text}");
        }
    }

    #[test]
    fn prints_the_shortest_form_with_the_same_kind_of_suffix() {
        for (text, printed) in [
            ("1000m", "1"),
            ("1.5Gi", "1536Mi"),
            ("0.1", "100m"),
            ("1e3", "1e3"),
            ("1e1", "10"),
            ("12e4", "120e3"),
            ("1e+21", "1e+21"),
            ("1.500", "1.500"),
            ("1.50", "1500m"),
            ("+5Ki", "+5Ki"),
            ("1000E", "1"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1.1Ki", "1126400m"),
            ("100k", "100k"),
            ("1000k", "1M"),
            ("-1.50", "-1500m"),
            ("0Gi", "0"),
            ("0.1n", "1n"),
            ("1000000000000000000000Ei", "9223372036854775807"),
        ] {
            assert_eq!(canonical(text.as_bytes()).as_deref(), Ok(printed), "{text}");
        }
        assert_eq!(canonical(b"lots"), Err(QuantityError::Format));
    }
}

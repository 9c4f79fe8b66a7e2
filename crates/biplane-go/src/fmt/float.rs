//! Formats doubles in every form that Go has.

use std::fmt::Write as _;

/// The format of a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatVerb {
    /// `%f`.
    Plain,
    /// `%e`.
    Exponent,
    /// `%E`.
    ExponentUpper,
    /// `%g`: plain or with an exponent, depending on the magnitude.
    General,
    /// `%G`.
    GeneralUpper,
    /// `%b`: a whole mantissa and a power of two.
    Binary,
    /// `%x`.
    Hex,
    /// `%X`.
    HexUpper,
}

/// After this many digits, all further digits of any double are zero.
const ALL_DIGITS: usize = 1_100;

/// Formats a double. Without a precision it has the fewest digits that parse back to the same
/// value.
pub fn format_float(float: f64, verb: FloatVerb, precision: Option<usize>) -> String {
    if float.is_nan() {
        return "NaN".into();
    }
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    let size = float.abs();
    let text = match verb {
        FloatVerb::Plain => plain(size, precision),
        FloatVerb::Exponent => exponent(size, precision, 'e'),
        FloatVerb::ExponentUpper => exponent(size, precision, 'E'),
        FloatVerb::General => general(size, precision, 'e'),
        FloatVerb::GeneralUpper => general(size, precision, 'E'),
        FloatVerb::Binary => binary(size),
        FloatVerb::Hex => hex(size, precision),
        FloatVerb::HexUpper => hex(size, precision).to_uppercase(),
    };
    if float.is_sign_negative() { format!("-{text}") } else { text }
}

fn zeros(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n('0', count));
}

fn plain(size: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else { return crate::digits::plain(size) };
    let exact = precision.min(ALL_DIGITS);
    let mut out = format!("{size:.exact$}");
    zeros(&mut out, precision - exact);
    out
}

/// Digits without a point, and the decimal exponent of the first one.
fn digits(size: f64, count: Option<usize>) -> (String, i32) {
    let text = match count {
        None => crate::digits::shortest(size),
        Some(count) => format!("{size:.*e}", count.clamp(1, ALL_DIGITS) - 1),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or_default())
}

fn power(out: &mut String, mark: char, power: i32) {
    let sign = if power < 0 { '-' } else { '+' };
    // Writing to a string cannot fail.
    let _ = write!(out, "{mark}{sign}{:02}", power.unsigned_abs());
}

fn exponent(size: f64, precision: Option<usize>, mark: char) -> String {
    let (digits, exponent) = digits(size, precision.map(|p| p.saturating_add(1)));
    spell_exponent(&digits, exponent, precision, mark)
}

fn spell_exponent(digits: &str, exponent: i32, precision: Option<usize>, mark: char) -> String {
    let (first, rest) = digits.split_at(1.min(digits.len()));
    let mut out = first.to_owned();
    let wanted = precision.unwrap_or(rest.len());
    if wanted > 0 {
        out.push('.');
        out.push_str(rest);
        zeros(&mut out, wanted.saturating_sub(rest.len()));
    }
    power(&mut out, mark, exponent);
    out
}

fn general(size: f64, precision: Option<usize>, mark: char) -> String {
    if size == 0.0 {
        return "0".into();
    }
    let precision = precision.map(|p| p.max(1));
    let (all, exponent) = digits(size, precision);
    let digits = all.trim_end_matches('0');
    let limit = precision.map_or(6, |p| i32::try_from(p).unwrap_or(i32::MAX));
    if exponent < -4 || exponent >= limit {
        return spell_exponent(digits, exponent, None, mark);
    }
    let mut out = String::new();
    if exponent < 0 {
        out.push_str("0.");
        zeros(&mut out, exponent.unsigned_abs() as usize - 1);
        out.push_str(digits);
        return out;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(digits);
        zeros(&mut out, whole - digits.len());
    } else {
        let (left, right) = digits.split_at(whole);
        out.push_str(left);
        out.push('.');
        out.push_str(right);
    }
    out
}

/// The mantissa, and the power of two of its lowest bit.
fn parts(size: f64) -> (u64, i32) {
    let bits = size.to_bits();
    let exponent = (bits >> 52) as i32 & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

fn binary(size: f64) -> String {
    let (mantissa, exponent) = parts(size);
    format!("{mantissa}p{exponent:+}")
}

fn hex(size: f64, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = parts(size);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // One bit before the point, sixty bits after it.
        let shift = mantissa.leading_zeros() - 3;
        mantissa <<= shift;
        exponent += 60 - shift.cast_signed();
    }
    if let Some(precision) = precision.filter(|p| *p < 15) {
        let shift = precision as u32 * 4;
        let extra = (mantissa << shift) & ((1 << 60) - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & (1 << 61) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut out = format!("0x{}", mantissa >> 60 & 1);
    mantissa <<= 4;
    if precision.map_or(mantissa != 0, |precision| precision > 0) {
        out.push('.');
    }
    let mut left = precision;
    while left.map_or(mantissa != 0, |left| left > 0) {
        let _ = write!(out, "{:x}", mantissa >> 60);
        mantissa <<= 4;
        left = left.map(|left| left - 1);
    }
    power(&mut out, 'p', exponent);
    out
}

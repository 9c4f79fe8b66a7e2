//! The digits of doubles: the fewest that Go needs.

/// The fewest digits that parse back to the same number, as in `1.25e3`.
///
/// If two results are equally short and equally near, Go picks the one with the even last digit.
/// The standard library picks the larger one.
pub(crate) fn shortest(float: f64) -> String {
    let text = format!("{float:e}");
    let mantissa = text.split_once('e').map_or(text.as_str(), |(mantissa, _)| mantissa);
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let even = format!("{float:.decimals$e}");
    if even.parse() == Ok(float) { even } else { text }
}

/// Without an exponent.
pub(crate) fn plain(float: f64) -> String {
    const EXACT: f64 = (1_u64 << 53) as f64;
    if float.fract() == 0.0 && float.abs() < EXACT {
        return float.to_string();
    }
    let text = shortest(float);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let sign = if float < 0.0 { "-" } else { "" };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let point = exponent.parse().unwrap_or(0) + 1_isize;
    match usize::try_from(point) {
        Ok(point) => match digits.split_at_checked(point) {
            Some(("", fraction)) => format!("{sign}0.{fraction}"),
            Some((whole, "")) => format!("{sign}{whole}"),
            Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
            None => format!("{sign}{digits:0<point$}"),
        },
        Err(_) => format!("{sign}0.{:0>1$}{digits}", "", point.unsigned_abs()),
    }
}

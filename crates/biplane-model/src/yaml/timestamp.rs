//! Recognizes timestamps. They stay strings, but the printer has to quote them.

use std::ops::RangeInclusive;

/// Whether the string has one of the forms `2001-2-3`, `2001-2-3 4:5:6.7` and `2001-2-3T4:5:6.7Z`,
/// the last also with a lowercase `t` or an offset such as `+01:00`, and is a valid date.
pub(super) fn is_timestamp(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-') else { return false };
    if year.len() != 4 || !year.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let Ok(year) = year.parse::<u32>() else { return false };
    let Some((month, rest)) = number(rest, 1..=12) else { return false };
    let Some(rest) = rest.strip_prefix('-') else { return false };
    let Some((_, rest)) = number(rest, 1..=days_in(year, month)) else { return false };
    match rest.as_bytes().first() {
        None => true,
        Some(b'T' | b't') => rest.get(1..).and_then(clock).is_some_and(is_zone),
        // Any number of spaces may separate date and time.
        Some(b' ') => clock(rest.trim_start_matches(' ')) == Some(""),
        Some(_) => false,
    }
}

/// Parses `4:5:6.7` and returns the rest.
fn clock(text: &str) -> Option<&str> {
    let (_, rest) = number(text, 0..=23)?;
    let (_, rest) = number(rest.strip_prefix(':')?, 0..=59)?;
    let (_, rest) = number(rest.strip_prefix(':')?, 0..=59)?;
    let Some(fraction) = rest.strip_prefix(['.', ',']) else { return Some(rest) };
    let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    Some(if after.len() == fraction.len() { rest } else { after })
}

fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let &[b'+' | b'-', h1, h2, b':', m1, m2] = text.as_bytes() else { return false };
    let two = |tens: u8, ones: u8| {
        (tens.is_ascii_digit() && ones.is_ascii_digit())
            .then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
    };
    // Offsets of 24 hours are accepted, because they occur in practice.
    two(h1, h2).is_some_and(|hours| hours <= 24) && two(m1, m2).is_some_and(|minutes| minutes <= 60)
}

/// Parses a number of one or two digits within the range.
fn number(text: &str, range: RangeInclusive<u32>) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    let number = number.parse().ok()?;
    range.contains(&number).then_some((number, rest))
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

//! Between seconds since 1970 and dates of the Gregorian calendar, in UTC.
//!
//! Years are counted from March, so that the leap day is the last one; 400 of them repeat exactly.

const DAY: i64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// `YYYY-MM-DDThh:mm:ss`.
pub(super) fn format(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let shifted = days + EPOCH;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Days since 1970.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Seconds since 1970 and nanoseconds, from RFC 3339.
pub(super) fn parse(text: &str) -> Option<(i64, i32)> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.strip_prefix('T')?.split_at_checked(8)?;
    let year = field(date, 0..4, Some("-"))?;
    let month = field(date, 5..7, Some("-"))?;
    let day = field(date, 8..10, None)?;
    let hour = field(time, 0..2, Some(":"))?;
    let minute = field(time, 3..5, Some(":"))?;
    let second = field(time, 6..8, None)?;
    let valid = (1..=12).contains(&month)
        && (1..=month_length(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !valid {
        return None;
    }
    let zone = rest.find(['Z', '+', '-'])?;
    let (part, zone) = rest.split_at_checked(zone)?;
    let nanos = match part.strip_prefix('.') {
        Some(digits) if !digits.is_empty() => nanos(digits)?,
        None if part.is_empty() => 0,
        _ => return None,
    };
    let seconds = days(year, month, day) * DAY + hour * 3_600 + minute * 60 + second;
    Some((seconds - offset(zone)?, nanos))
}

/// Seconds that a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let hours = field(rest, 0..2, Some(":"))?;
    let minutes = field(rest, 3..5, None)?;
    (rest.len() == 5 && hours <= 24 && minutes < 60)
        .then_some(sign * (hours * 3_600 + minutes * 60))
}

/// The number at a place in a text, and what has to follow it.
fn field(text: &str, place: std::ops::Range<usize>, next: Option<&str>) -> Option<i64> {
    let end = place.end;
    let digits = text.get(place).filter(|t| all_digits(t))?;
    if let Some(next) = next
        && !text.get(end..)?.starts_with(next)
    {
        return None;
    }
    digits.parse().ok()
}

/// Nanoseconds from the digits behind a decimal point, nine at most.
pub(super) fn nanos(digits: &str) -> Option<i32> {
    if digits.len() > 9 || !all_digits(digits) {
        return None;
    }
    format!("{digits:0<9}").parse().ok()
}

pub(super) fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

//! Formats and parses points in time by Go's layouts.

use std::io::Write as _;

use super::point::{Civil, DAYS, GoTime, MONTHS, days_in};
use super::quote_bytes;

/// An element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    /// Before or after noon, in capitals or not.
    Noon {
        capital: bool,
    },
    /// The abbreviation of the zone.
    ZoneName,
    /// The offset of the zone.
    Offset {
        z: bool,
        colon: bool,
        parts: u8,
    },
    /// A fraction of a second: its separator, its digits, and whether zeros are kept.
    Fraction {
        separator: u8,
        digits: usize,
        zeros: bool,
    },
}

/// The spellings that stand for elements, longer ones before their own beginnings.
const ELEMENTS: &[(&[u8], Element)] = &[
    (b"January", Element::LongMonth),
    (b"Monday", Element::LongWeekday),
    (b"MST", Element::ZoneName),
    (b"01", Element::ZeroMonth),
    (b"02", Element::ZeroDay),
    (b"03", Element::ZeroHour12),
    (b"04", Element::ZeroMinute),
    (b"05", Element::ZeroSecond),
    (b"06", Element::Year),
    (b"002", Element::ZeroYearDay),
    (b"15", Element::Hour),
    (b"1", Element::NumMonth),
    (b"2006", Element::LongYear),
    (b"2", Element::Day),
    (b"__2", Element::UnderYearDay),
    (b"_2", Element::UnderDay),
    (b"3", Element::Hour12),
    (b"4", Element::Minute),
    (b"5", Element::Second),
    (b"PM", Element::Noon { capital: true }),
    (b"pm", Element::Noon { capital: false }),
    (b"-070000", Element::Offset { z: false, colon: false, parts: 3 }),
    (b"-07:00:00", Element::Offset { z: false, colon: true, parts: 3 }),
    (b"-0700", Element::Offset { z: false, colon: false, parts: 2 }),
    (b"-07:00", Element::Offset { z: false, colon: true, parts: 2 }),
    (b"-07", Element::Offset { z: false, colon: false, parts: 1 }),
    (b"Z070000", Element::Offset { z: true, colon: false, parts: 3 }),
    (b"Z07:00:00", Element::Offset { z: true, colon: true, parts: 3 }),
    (b"Z0700", Element::Offset { z: true, colon: false, parts: 2 }),
    (b"Z07:00", Element::Offset { z: true, colon: true, parts: 2 }),
    (b"Z07", Element::Offset { z: true, colon: false, parts: 1 }),
];

/// The element at the start of a layout, and its length.
fn element(layout: &[u8]) -> Option<(Element, usize)> {
    let no_lower_case = |at: usize| !layout.get(at).is_some_and(u8::is_ascii_lowercase);
    match layout {
        [b'J', b'a', b'n', ..] if !layout.starts_with(b"January") => {
            return no_lower_case(3).then_some((Element::Month, 3));
        }
        [b'M', b'o', b'n', ..] if !layout.starts_with(b"Monday") => {
            return no_lower_case(3).then_some((Element::Weekday, 3));
        }
        // An underscore, and then the year.
        [b'_', b'2', b'0', b'0', b'6', ..] => return None,
        [separator @ (b'.' | b','), digit @ (b'0' | b'9'), ..] => {
            let rest = layout.get(1..).unwrap_or_default();
            let digits = rest.iter().take_while(|byte| *byte == digit).count();
            let more = rest.get(digits).is_some_and(u8::is_ascii_digit);
            let fraction =
                Element::Fraction { separator: *separator, digits, zeros: *digit == b'0' };
            return (!more).then_some((fraction, digits + 1));
        }
        _ => {}
    }
    let found = ELEMENTS.iter().find(|(spelling, _)| layout.starts_with(spelling));
    found.map(|(spelling, element)| (*element, spelling.len()))
}

/// The literal text before the first element, the element with its spelling, and the rest.
type Chunk<'a> = (&'a [u8], Option<(Element, &'a [u8])>, &'a [u8]);

fn chunk(layout: &[u8]) -> Chunk<'_> {
    for at in 0..layout.len() {
        let (prefix, rest) = layout.split_at(at);
        if let Some((element, length)) = element(rest) {
            let (spelling, suffix) = rest.split_at(length);
            return (prefix, Some((element, spelling)), suffix);
        }
    }
    (layout, None, b"")
}

impl GoTime {
    /// The text in a layout of Go.
    pub fn format(&self, layout: &[u8]) -> Vec<u8> {
        format(self, layout)
    }

    /// The text as RFC 3339 with the digits of the fraction that are needed.
    pub fn rfc3339(&self) -> String {
        String::from_utf8_lossy(&self.format(b"2006-01-02T15:04:05.999999999Z07:00")).into_owned()
    }
}

fn format(time: &GoTime, layout: &[u8]) -> Vec<u8> {
    let civil = time.civil();
    let mut out = Vec::with_capacity(layout.len() + 16);
    let mut layout = layout;
    loop {
        let (prefix, element, suffix) = chunk(layout);
        out.extend_from_slice(prefix);
        let Some((element, _)) = element else { return out };
        write(&mut out, element, &civil, time);
        layout = suffix;
    }
}

fn write(out: &mut Vec<u8>, element: Element, civil: &Civil, time: &GoTime) {
    let month = MONTHS.get(usize::from(civil.month - 1)).copied().unwrap_or_default();
    let day = DAYS.get(usize::from(civil.weekday)).copied().unwrap_or_default();
    let hour12 = if civil.hour.is_multiple_of(12) { 12 } else { civil.hour % 12 };
    // Writing to memory cannot fail.
    let _ = match element {
        Element::LongMonth => write!(out, "{month}"),
        Element::Month => write!(out, "{month:.3}"),
        Element::NumMonth => write!(out, "{}", civil.month),
        Element::ZeroMonth => write!(out, "{:02}", civil.month),
        Element::LongWeekday => write!(out, "{day}"),
        Element::Weekday => write!(out, "{day:.3}"),
        Element::Day => write!(out, "{}", civil.day),
        Element::UnderDay => write!(out, "{:2}", civil.day),
        Element::ZeroDay => write!(out, "{:02}", civil.day),
        Element::UnderYearDay => write!(out, "{:3}", civil.year_day),
        Element::ZeroYearDay => write!(out, "{:03}", civil.year_day),
        Element::Hour => write!(out, "{:02}", civil.hour),
        Element::Hour12 => write!(out, "{hour12}"),
        Element::ZeroHour12 => write!(out, "{hour12:02}"),
        Element::Minute => write!(out, "{}", civil.minute),
        Element::ZeroMinute => write!(out, "{:02}", civil.minute),
        Element::Second => write!(out, "{}", civil.second),
        Element::ZeroSecond => write!(out, "{:02}", civil.second),
        Element::LongYear if civil.year < 0 => write!(out, "-{:04}", -civil.year),
        Element::LongYear => write!(out, "{:04}", civil.year),
        Element::Year => write!(out, "{:02}", civil.year.unsigned_abs() % 100),
        Element::Noon { capital } => {
            let text = if civil.hour >= 12 { "pm" } else { "am" };
            write!(out, "{}", if capital { text.to_uppercase() } else { text.to_owned() })
        }
        Element::ZoneName if time.zone().is_empty() => {
            offset(out, time.offset(), false, 2);
            Ok(())
        }
        Element::ZoneName => write!(out, "{}", time.zone()),
        Element::Offset { z: true, .. } if time.offset() == 0 => write!(out, "Z"),
        Element::Offset { colon, parts, .. } => {
            offset(out, time.offset(), colon, parts);
            Ok(())
        }
        Element::Fraction { separator, digits, zeros } => {
            fraction(out, time.subsecond(), separator, digits, zeros);
            Ok(())
        }
    };
}

/// An offset in hours, minutes and seconds. The sign is that of its whole minutes.
fn offset(out: &mut Vec<u8>, seconds: i32, colon: bool, parts: u8) {
    let minutes = seconds / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    let colon = if colon { ":" } else { "" };
    let (hour, minute) = (minutes.abs() / 60, minutes.abs() % 60);
    let second = if minutes < 0 { -seconds % 60 } else { seconds % 60 };
    let _ = write!(out, "{sign}{hour:02}");
    if parts > 1 {
        let _ = write!(out, "{colon}{minute:02}");
    }
    if parts > 2 {
        let _ = write!(out, "{colon}{second:02}");
    }
}

fn fraction(out: &mut Vec<u8>, nanos: u32, separator: u8, digits: usize, zeros: bool) {
    if !zeros && nanos == 0 {
        return;
    }
    let all = format!("{nanos:09}");
    let text = all.get(..digits).unwrap_or(&all);
    let text = if zeros { text } else { text.trim_end_matches('0') };
    if !text.is_empty() {
        out.push(separator);
        out.extend_from_slice(text.as_bytes());
    }
}

/// The reason why a text does not fit a layout.
#[derive(Debug)]
enum Problem {
    /// The text does not have the form of the element.
    Form,
    /// A number is out of its range.
    Range(&'static str),
}

/// What was read so far.
#[derive(Debug, Default)]
struct Fields {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
    afternoon: Option<bool>,
    utc: bool,
    offset: Option<i32>,
    zone: Option<Vec<u8>>,
}

/// Parses a text by a layout. The local zone is UTC. The error is Go's message.
pub fn parse(layout: &[u8], text: &[u8]) -> Result<GoTime, String> {
    let fail = |element: &[u8], value: &[u8]| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote_bytes(text),
            quote_bytes(layout),
            quote_bytes(value),
            quote_bytes(element)
        )
    };
    let because = |why: &str| format!("parsing time {}: {why}", quote_bytes(text));
    let mut fields = Fields::default();
    let (mut rest, mut value) = (layout, text);
    loop {
        let (prefix, found, suffix) = chunk(rest);
        value = skip(value, prefix).map_err(|left| fail(prefix, left))?;
        let Some((element, spelling)) = found else {
            if value.is_empty() {
                break;
            }
            return Err(because(&format!("extra text: {}", quote_bytes(value))));
        };
        rest = suffix;
        let hold = value;
        match fields.read(element, &mut value, rest) {
            Ok(()) => {}
            Err(Problem::Form) => return Err(fail(spelling, hold)),
            Err(Problem::Range(what)) => return Err(because(&format!("{what} out of range"))),
        }
    }
    fields.time().map_err(because)
}

/// The text after a prefix. Spaces in the prefix match any number of spaces.
fn skip<'a>(value: &'a [u8], prefix: &[u8]) -> Result<&'a [u8], &'a [u8]> {
    let (mut value, mut prefix) = (value, prefix);
    while let Some((first, rest)) = prefix.split_first() {
        if *first == b' ' {
            if value.first().is_some_and(|byte| *byte != b' ') {
                return Err(value);
            }
            prefix = cut_spaces(prefix);
            value = cut_spaces(value);
            continue;
        }
        match value.split_first() {
            Some((byte, tail)) if byte == first => value = tail,
            _ => return Err(value),
        }
        prefix = rest;
    }
    Ok(value)
}

fn cut_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    text.get(spaces..).unwrap_or_default()
}

/// A number of at most `most` digits. If `fixed`, it has exactly that many.
fn number(value: &mut &[u8], most: usize, fixed: bool) -> Result<i64, Problem> {
    let digits = value.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || (fixed && digits != most) {
        return Err(Problem::Form);
    }
    let (text, rest) = value.split_at(digits);
    *value = rest;
    Ok(text.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// The position of the name at the start, whatever its case.
fn name(value: &mut &[u8], names: &[&str], length: Option<usize>) -> Result<i64, Problem> {
    for (at, name) in (0_i64..).zip(names) {
        let name = name.as_bytes();
        let name = name.get(..length.unwrap_or(name.len())).unwrap_or(name);
        if let Some((start, rest)) = value.split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name)
        {
            *value = rest;
            return Ok(at);
        }
    }
    Err(Problem::Form)
}

/// Takes bytes from the start.
fn take<'a>(value: &mut &'a [u8], length: usize) -> Result<&'a [u8], Problem> {
    let (start, rest) = value.split_at_checked(length).ok_or(Problem::Form)?;
    *value = rest;
    Ok(start)
}

/// A separator and digits, as nanoseconds. Digits beyond the ninth do not count.
fn nanos(text: &[u8]) -> Result<u32, Problem> {
    let Some((b'.' | b',', digits)) = text.split_first() else { return Err(Problem::Form) };
    let digits = digits.get(..9).unwrap_or(digits);
    // Go reads the digits with a sign.
    match digits.split_first() {
        Some((b'+', rest)) if rest.iter().all(u8::is_ascii_digit) && !rest.is_empty() => {}
        Some((b'-', rest)) if rest.iter().all(u8::is_ascii_digit) && !rest.is_empty() => {
            if rest.iter().any(|digit| *digit != b'0') {
                return Err(Problem::Range("fractional second"));
            }
        }
        Some(_) if digits.iter().all(u8::is_ascii_digit) => {}
        _ => return Err(Problem::Form),
    }
    let number = digits.iter().filter(|byte| byte.is_ascii_digit());
    let number = number.fold(0_u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    Ok((digits.len()..9).fold(number, |sum, _| sum * 10))
}

fn checked(number: i64, limit: i64, what: &'static str) -> Result<i64, Problem> {
    if number < limit { Ok(number) } else { Err(Problem::Range(what)) }
}

impl Fields {
    /// Reads one element from the start of a value. `layout` is what follows the element.
    fn read(&mut self, element: Element, value: &mut &[u8], layout: &[u8]) -> Result<(), Problem> {
        match element {
            Element::Year => {
                let year = signed(take(value, 2)?)?;
                self.year = year + if year >= 69 { 1900 } else { 2000 };
            }
            Element::LongYear => {
                if !value.first().is_some_and(u8::is_ascii_digit) {
                    return Err(Problem::Form);
                }
                self.year = signed(take(value, 4)?)?;
            }
            Element::Month => self.month = Some(name(value, &MONTHS, Some(3))? + 1),
            Element::LongMonth => self.month = Some(name(value, &MONTHS, None)? + 1),
            Element::NumMonth | Element::ZeroMonth => {
                let month = number(value, 2, element == Element::ZeroMonth)?;
                if !(1..=12).contains(&month) {
                    return Err(Problem::Range("month"));
                }
                self.month = Some(month);
            }
            Element::Weekday => _ = name(value, &DAYS, Some(3))?,
            Element::LongWeekday => _ = name(value, &DAYS, None)?,
            Element::Day | Element::UnderDay | Element::ZeroDay => {
                if element == Element::UnderDay {
                    *value = value.strip_prefix(b" ").unwrap_or(value);
                }
                self.day = Some(number(value, 2, element == Element::ZeroDay)?);
            }
            Element::UnderYearDay | Element::ZeroYearDay => {
                for _ in 0..2 {
                    if element == Element::UnderYearDay {
                        *value = value.strip_prefix(b" ").unwrap_or(value);
                    }
                }
                self.year_day = Some(number(value, 3, element == Element::ZeroYearDay)?);
            }
            Element::Hour => self.hour = checked(number(value, 2, false)?, 24, "hour")?,
            Element::Hour12 | Element::ZeroHour12 => {
                let fixed = element == Element::ZeroHour12;
                self.hour = checked(number(value, 2, fixed)?, 13, "hour")?;
            }
            Element::Minute | Element::ZeroMinute => {
                let fixed = element == Element::ZeroMinute;
                self.minute = checked(number(value, 2, fixed)?, 60, "minute")?;
            }
            Element::Second | Element::ZeroSecond => {
                let fixed = element == Element::ZeroSecond;
                self.second = checked(number(value, 2, fixed)?, 60, "second")?;
                self.hidden_fraction(value, layout)?;
            }
            Element::Noon { capital } => {
                self.afternoon = Some(match (take(value, 2)?, capital) {
                    (b"PM", true) | (b"pm", false) => true,
                    (b"AM", true) | (b"am", false) => false,
                    _ => return Err(Problem::Form),
                });
            }
            Element::Offset { z: true, .. } if value.first() == Some(&b'Z') => {
                *value = value.get(1..).unwrap_or_default();
                self.utc = true;
            }
            Element::Offset { colon, parts, .. } => self.offset(value, colon, parts)?,
            Element::ZoneName => {
                if let Some(rest) = value.strip_prefix(b"UTC") {
                    *value = rest;
                    self.utc = true;
                } else {
                    let length = zone_name(value).ok_or(Problem::Form)?;
                    self.zone = Some(take(value, length)?.to_vec());
                }
            }
            Element::Fraction { digits, zeros: true, .. } => {
                let text = value.get(..=digits).ok_or(Problem::Form)?;
                self.nanos = nanos(text)?;
                *value = value.get(digits + 1..).unwrap_or_default();
            }
            Element::Fraction { .. } => self.fraction(value)?,
        }
        Ok(())
    }

    /// A fraction in the text that the layout does not mention.
    fn hidden_fraction(&mut self, value: &mut &[u8], layout: &[u8]) -> Result<(), Problem> {
        match chunk(layout) {
            (_, Some((Element::Fraction { .. }, _)), _) => Ok(()),
            _ => self.fraction(value),
        }
    }

    fn fraction(&mut self, value: &mut &[u8]) -> Result<(), Problem> {
        let [b'.' | b',', b'0'..=b'9', tail @ ..] = *value else { return Ok(()) };
        let length = 2 + tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (text, rest) = value.split_at(length);
        self.nanos = nanos(text)?;
        *value = rest;
        Ok(())
    }

    fn offset(&mut self, value: &mut &[u8], colon: bool, parts: u8) -> Result<(), Problem> {
        let length = usize::from(parts) * 2 + 1 + if colon { usize::from(parts) - 1 } else { 0 };
        let text = value.get(..length).ok_or(Problem::Form)?;
        let (sign, mut text) = text.split_first().ok_or(Problem::Form)?;
        let mut numbers = [0; 3];
        let mut problem = false;
        for (at, part) in numbers.iter_mut().take(usize::from(parts)).enumerate() {
            if at > 0 && colon {
                text = text.strip_prefix(b":").ok_or(Problem::Form)?;
            }
            // Go complains about the range of the numbers before one that is none.
            let Ok(number) = number(&mut text, 2, true) else {
                problem = true;
                break;
            };
            *part = number;
        }
        let [hours, minutes, seconds] = numbers;
        checked(hours, 25, "time zone offset hour")?;
        checked(minutes, 61, "time zone offset minute")?;
        checked(seconds, 61, "time zone offset second")?;
        let total = ((hours * 60 + minutes) * 60 + seconds) as i32;
        self.offset = Some(match sign {
            b'+' if !problem => total,
            b'-' if !problem => -total,
            _ => return Err(Problem::Form),
        });
        *value = value.get(length..).unwrap_or_default();
        Ok(())
    }

    fn time(mut self) -> Result<GoTime, &'static str> {
        match self.afternoon {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            _ => {}
        }
        let (month, day) = self.date()?;
        if day < 1 || day > i64::from(days_in(month as u8, i128::from(self.year))) {
            return Err("day out of range");
        }
        let time_of_day = (self.hour * 60 + self.minute) * 60 + self.second;
        let seconds = GoTime::unix_seconds(self.year, month, day, time_of_day);
        if self.utc {
            return Ok(GoTime::utc(seconds, self.nanos));
        }
        // An offset of minus one second means "none" to Go.
        let zone = self.zone.as_deref().map(String::from_utf8_lossy);
        if let Some(offset) = self.offset.filter(|offset| *offset != -1) {
            let name = match zone.as_deref() {
                None if offset == 0 => "UTC",
                None => "",
                Some(name) => name,
            };
            let seconds = seconds - i64::from(offset);
            return Ok(GoTime::in_zone(seconds, self.nanos, offset, name));
        }
        let Some(zone) = zone else { return Ok(GoTime::utc(seconds, self.nanos)) };
        let hours = zone.strip_prefix("GMT").and_then(|hours| hours.parse::<i32>().ok());
        let offset = hours.unwrap_or(0) * 3600;
        Ok(GoTime::in_zone(seconds, self.nanos, offset, &zone))
    }

    /// Month and day, also from the day of the year.
    fn date(&self) -> Result<(i64, i64), &'static str> {
        let Some(year_day) = self.year_day else {
            return Ok((self.month.unwrap_or(1), self.day.unwrap_or(1)));
        };
        let (mut month, mut day) = (1_u8, year_day);
        while month < 12 && day > i64::from(days_in(month, i128::from(self.year))) {
            day -= i64::from(days_in(month, i128::from(self.year)));
            month += 1;
        }
        if !(1..=31).contains(&day) {
            return Err("day-of-year out of range");
        }
        if self.month.is_some_and(|other| other != i64::from(month)) {
            return Err("day-of-year does not match month");
        }
        if self.day.is_some_and(|other| other != day) {
            return Err("day-of-year does not match day");
        }
        Ok((i64::from(month), day))
    }
}

/// A number with an optional sign, as Go reads years.
fn signed(text: &[u8]) -> Result<i64, Problem> {
    crate::num::parse_int(text).map_err(|_| Problem::Form)
}

/// The length of what looks like the abbreviation of a zone.
fn zone_name(value: &[u8]) -> Option<usize> {
    if value.len() < 3 {
        return None;
    }
    if value.starts_with(b"ChST") || value.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = value.strip_prefix(b"GMT") {
        return Some(3 + signed_hours(rest));
    }
    if matches!(value, [b'+' | b'-', ..]) {
        return Some(signed_hours(value)).filter(|length| *length > 0);
    }
    let capitals = value.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    match capitals {
        3 => Some(3),
        4 if value.get(3) == Some(&b'T') || value.starts_with(b"WITA") => Some(4),
        5 if value.get(4) == Some(&b'T') => Some(5),
        _ => None,
    }
}

/// The length of a sign and an hour of at most 23.
fn signed_hours(value: &[u8]) -> usize {
    let Some((b'+' | b'-', digits)) = value.split_first() else { return 0 };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let hours = digits.get(..length).map(crate::num::parse_int);
    match hours {
        Some(Ok(0..=23)) => length + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> GoTime {
        GoTime::in_zone(1_136_239_445, 123_456_000, -25_200, "MST")
    }

    #[test]
    fn formats_every_element() {
        let check = |layout: &str, text: &str| {
            let formatted = sample().format(layout.as_bytes());
            assert_eq!(String::from_utf8(formatted).unwrap(), text, "{layout}");
        };
        check("Mon Jan _2 15:04:05 2006", "Mon Jan  2 15:04:05 2006");
        check("Monday, 02-Jan-06 03:04:05.000 PM MST", "Monday, 02-Jan-06 03:04:05.123 PM MST");
        check("2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.123456-07:00");
        check("002 __2 1/2 3:4:5pm -07 -070000", "002   2 1/2 3:4:5pm -07 -070000");
        check("_2006 Januaryx Janx Monx", "_2006 Januaryx Janx Monx");
        check("05.0001", "05.0001");
    }

    #[test]
    fn reads_what_it_prints_and_says_why_it_cannot() {
        let layout = b"2006-01-02 15:04:05.000000 -0700 MST";
        let printed = sample().format(layout);
        assert_eq!(parse(layout, &printed).unwrap(), sample());
        for (layout, text, message) in [
            ("2006-01-02", "x", r#"parsing time "x" as "2006-01-02": cannot parse "x" as "2006""#),
            ("2006-01-02", "2021-13-01", r#"parsing time "2021-13-01": month out of range"#),
            ("2006-01-02", "2021-02-30", r#"parsing time "2021-02-30": day out of range"#),
            ("2006", "2021x", r#"parsing time "2021x": extra text: "x""#),
        ] {
            assert_eq!(parse(layout.as_bytes(), text.as_bytes()).unwrap_err(), message);
        }
    }
}

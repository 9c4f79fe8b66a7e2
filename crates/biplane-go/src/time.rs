//! Parses points in time and durations like Go.

mod layout;
mod point;

use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};

pub use layout::parse;
pub use point::{Civil, GoTime, format_duration, month_name, round_duration, weekday_name};

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A point in time: seconds since 1970 and nanoseconds, ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    seconds: i64,
    nanos: u32,
}

impl Instant {
    /// The same point in time, if the calendar covers it.
    pub fn timestamp(self) -> Option<jiff::Timestamp> {
        jiff::Timestamp::new(self.seconds, i32::try_from(self.nanos).ok()?).ok()
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub fn subsecond(self) -> u32 {
        self.nanos
    }

    /// Nanoseconds since 1970.
    pub fn nanos(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }
}

/// Parses what Go's parser accepts as RFC 3339. That is slightly more than the standard: an hour of
/// one digit, a comma before the fraction, offsets of 24 hours.
pub fn instant(text: &str) -> Option<Instant> {
    let mut rest = text.as_bytes();
    let year = number(&mut rest, 4)?;
    expect(&mut rest, b'-')?;
    let month = number(&mut rest, 2)?;
    expect(&mut rest, b'-')?;
    let day = number(&mut rest, 2)?;
    expect(&mut rest, b'T')?;
    let hour = if rest.get(1).is_some_and(u8::is_ascii_digit) {
        number(&mut rest, 2)?
    } else {
        number(&mut rest, 1)?
    };
    expect(&mut rest, b':')?;
    let minute = number(&mut rest, 2)?;
    expect(&mut rest, b':')?;
    let second = number(&mut rest, 2)?;
    let nanos = fraction(&mut rest);
    let offset = offset(&mut rest)?;
    if !rest.is_empty() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let date =
        Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let midnight = date.to_datetime(Time::midnight()).duration_since(EPOCH).as_secs();
    let seconds = midnight + (hour * 60 + minute) * 60 + second - offset;
    Some(Instant { seconds, nanos })
}

/// Parses RFC 3339 in which the hour has two digits and the fraction begins with a point.
pub fn strict_instant(text: &str) -> Option<Instant> {
    instant(text).filter(|_| text.as_bytes().get(13) == Some(&b':') && !text.contains(','))
}

/// Date and time in UTC, from seconds since 1970.
pub fn civil(seconds: i64) -> Option<DateTime> {
    EPOCH.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn number(rest: &mut &[u8], width: usize) -> Option<i64> {
    let (digits, tail) = rest.split_at_checked(width)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    *rest = tail;
    Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

fn expect(rest: &mut &[u8], byte: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[byte])?;
    Some(())
}

fn fraction(rest: &mut &[u8]) -> u32 {
    let [b'.' | b',', tail @ ..] = *rest else { return 0 };
    let length = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return 0;
    }
    let (digits, tail) = tail.split_at(length);
    *rest = tail;
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0'));
    padded.take(9).fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'))
}

/// Seconds east of Greenwich.
fn offset(rest: &mut &[u8]) -> Option<i64> {
    let (sign, tail) = rest.split_first()?;
    *rest = tail;
    let sign = match sign {
        b'Z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = number(rest, 2)?;
    expect(rest, b':')?;
    let minutes = number(rest, 2)?;
    (hours <= 24 && minutes <= 60).then_some(sign * (hours * 60 + minutes) * 60)
}

/// The reason why a string is not a duration, with Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The string is not a duration, or is too long for one.
    #[error("time: invalid duration {}", quote(.0))]
    Invalid(String),
    /// A number has no unit.
    #[error("time: missing unit in duration {}", quote(.0))]
    MissingUnit(String),
    /// The unit of a number is unknown.
    #[error("time: unknown unit {} in duration {}", quote(unit), quote(text))]
    UnknownUnit {
        /// The unknown unit.
        unit: String,
        /// The whole string.
        text: String,
    },
}

/// A duration in nanoseconds. It may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoDuration(i64);

impl GoDuration {
    /// The duration in nanoseconds.
    pub fn nanos(self) -> i64 {
        self.0
    }

    /// Whole seconds and the remaining nanoseconds, both with the sign of the duration.
    pub fn parts(self) -> (i64, i32) {
        (self.0 / 1_000_000_000, (self.0 % 1_000_000_000) as i32)
    }
}

impl TryFrom<GoDuration> for Duration {
    type Error = std::num::TryFromIntError;

    /// Fails for a negative duration.
    fn try_from(duration: GoDuration) -> Result<Self, Self::Error> {
        u64::try_from(duration.0).map(Self::from_nanos)
    }
}

impl From<Duration> for GoDuration {
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

const LIMIT: u64 = 1 << 63;

impl std::str::FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (whole, fraction, scale, tail) = decimal(rest).ok_or_else(invalid)?;
            let end = tail.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(end);
            if unit.is_empty() {
                return Err(DurationError::MissingUnit(text.to_owned()));
            }
            let factor = factor(unit).ok_or_else(|| DurationError::UnknownUnit {
                unit: unit.to_owned(),
                text: text.to_owned(),
            })?;
            if whole > LIMIT / factor {
                return Err(invalid());
            }
            let part = whole * factor + (fraction as f64 * (factor as f64 / scale)) as u64;
            // Two halves of the range also cancel out in Go.
            total = total.wrapping_add(part);
            if part > LIMIT || total > LIMIT {
                return Err(invalid());
            }
            rest = tail;
        }
        match i64::try_from(total) {
            Ok(total) => Ok(Self(if negative { -total } else { total })),
            Err(_) if negative => Ok(Self(i64::MIN)),
            Err(_) => Err(invalid()),
        }
    }
}

/// The number at the start: its whole part, its fraction over a power of ten, and the rest.
fn decimal(text: &str) -> Option<(u64, u64, f64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, mut rest) = text.split_at(length);
    let mut whole: u64 = 0;
    for digit in digits.bytes() {
        if whole > LIMIT / 10 {
            return None;
        }
        whole = whole * 10 + u64::from(digit - b'0');
        if whole > LIMIT {
            return None;
        }
    }
    let (mut fraction, mut scale): (u64, f64) = (0, 1.0);
    let mut length_of_fraction = 0;
    if let Some(tail) = rest.strip_prefix('.') {
        length_of_fraction = tail.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, tail) = tail.split_at(length_of_fraction);
        for digit in digits.bytes() {
            // Further digits do not matter once the counter is full.
            if fraction > (LIMIT - 1) / 10 {
                break;
            }
            let longer = fraction * 10 + u64::from(digit - b'0');
            if longer > LIMIT {
                break;
            }
            fraction = longer;
            scale *= 10.0;
        }
        rest = tail;
    }
    (length > 0 || length_of_fraction > 0).then_some((whole, fraction, scale, rest))
}

fn factor(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Quotes like Go's time package, which escapes everything except printable ASCII, byte by byte.
fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

fn quote_bytes(text: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text {
        match *byte {
            byte @ (b'"' | b'\\') => out.extend(['\\', char::from(byte)]),
            byte @ b' '..=b'\x7f' => out.push(char::from(byte)),
            byte => _ = write!(out, "\\x{byte:02x}"),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{GoDuration, instant};

    #[test]
    fn reads_instants_of_any_offset_and_orders_them() {
        let utc = instant("2031-05-01T10:00:00Z").unwrap();
        assert_eq!(utc, instant("2031-05-01T12:30:00+02:30").unwrap());
        assert!(utc < instant("2031-05-01T10:00:00.000000001Z").unwrap());
        assert_eq!(instant("1970-01-01T0:00:01Z").unwrap().seconds, 1);
        assert_eq!(instant("2000-02-29T00:00:00Z").unwrap().seconds, 951_782_400);
        assert!(instant("2000-01-01T00:00:00,5Z").is_some());
        assert!(instant("2000-01-01T00:00:00+24:60").is_some());
    }

    #[test]
    fn rejects_what_go_rejects() {
        for text in [
            "",
            "yesterday",
            "2031-05-01",
            "2031-05-01T10:00:00",
            "2031-02-29T00:00:00Z",
            "2031-13-01T00:00:00Z",
            "2031-05-01T24:00:00Z",
            "2031-05-01T10:00:60Z",
            "2031-05-01t10:00:00Z",
            "2031-05-01T10:00:00z",
            "2031-05-01T10:00:00.Z",
            "2031-05-01T10:00:00Z ",
            "2031-05-01T10:00:00+0200",
            "2031-05-01T10:00:00+25:00",
        ] {
            assert_eq!(instant(text), None, "{text}");
        }
    }

    #[test]
    fn reads_durations() {
        for (text, nanos) in [
            ("0", 0),
            ("5m", 300_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("-1.5s", -1_500_000_000),
            ("+.5us", 500),
            ("1µs", 1_000),
            ("100ms", 100_000_000),
            ("-9223372036854775808ns", i64::MIN),
            ("2562047h", 9_223_369_200_000_000_000),
            ("0.9223372036854775807999h", 3_320_413_933_267),
        ] {
            assert_eq!(text.parse::<GoDuration>(), Ok(GoDuration(nanos)), "{text}");
        }
    }

    #[test]
    fn says_in_go_s_words_why_a_text_is_no_duration() {
        for (text, message) in [
            ("", r#"time: invalid duration """#),
            ("x", r#"time: invalid duration "x""#),
            ("5", r#"time: missing unit in duration "5""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("é\"", r#"time: invalid duration "\xc3\xa9\"""#),
            ("3000000h", r#"time: invalid duration "3000000h""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
        ] {
            assert_eq!(text.parse::<GoDuration>().unwrap_err().to_string(), message);
        }
    }
}

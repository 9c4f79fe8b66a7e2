//! `google.protobuf.Timestamp` and `google.protobuf.Duration`, and their JSON strings.

use std::fmt;

use biplane_go::time::{civil, strict_instant};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time: seconds since 1970 in UTC, and nanoseconds, which always count forward.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Message)]
pub struct Timestamp {
    /// Seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds, less than a second.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// A duration. Seconds and nanoseconds have the same sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Message)]
pub struct Duration {
    /// Seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds, less than a second.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

const SECOND: i32 = 1_000_000_000;
/// From the year 1 to the end of the year 9999.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
/// Ten thousand years.
const LONGEST: i64 = 315_576_000_000;

impl Timestamp {
    /// Formats RFC 3339. `None` if the time is out of range.
    pub fn to_rfc3339(&self) -> Option<String> {
        if !TIMES.contains(&self.seconds) || !(0..SECOND).contains(&self.nanos) {
            return None;
        }
        Some(format!("{}{}Z", civil(self.seconds)?, fraction(self.nanos)))
    }

    /// Parses RFC 3339 with any offset.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let time = strict_instant(text)?;
        let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        // Go's parser accepts more than nine digits of a fraction, and an offset of sixty minutes.
        let valid = digits <= 9 && !text.ends_with(":60") && TIMES.contains(&time.seconds());
        valid.then_some(Self { seconds: time.seconds(), nanos: time.subsecond().cast_signed() })
    }
}

impl Duration {
    /// Formats the duration in seconds. `None` if it is not valid.
    pub fn to_text(&self) -> Option<String> {
        let opposed = (self.seconds < 0 && self.nanos > 0) || (self.seconds > 0 && self.nanos < 0);
        if opposed
            || self.seconds.abs_diff(0) > LONGEST as u64
            || self.nanos.abs_diff(0) >= SECOND as u32
        {
            return None;
        }
        let sign = if self.seconds < 0 || self.nanos < 0 { "-" } else { "" };
        Some(format!("{sign}{}{}s", self.seconds.abs_diff(0), fraction(self.nanos)))
    }

    /// Parses a duration in seconds.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.strip_suffix('s')?;
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let padded = whole.len() > 1 && whole.starts_with('0');
        if padded || text.is_empty() || !all_digits(whole) {
            return None;
        }
        let seconds: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let nanos = nanos(part)?;
        (seconds <= LONGEST).then_some(Self { seconds: sign * seconds, nanos: sign as i32 * nanos })
    }
}

/// A fraction of a second with three, six or nine digits. Empty if it is zero.
fn fraction(nanos: i32) -> String {
    let nanos = nanos.abs_diff(0);
    match nanos {
        0 => String::new(),
        _ if nanos.is_multiple_of(1_000_000) => format!(".{:03}", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1_000) => format!(".{:06}", nanos / 1_000),
        _ => format!(".{nanos:09}"),
    }
}

/// Nanoseconds from the digits after a decimal point, at most nine.
fn nanos(digits: &str) -> Option<i32> {
    if digits.len() > 9 || !all_digits(digits) {
        return None;
    }
    format!("{digits:0<9}").parse().ok()
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// Fails for times that a message cannot hold.
impl TryFrom<std::time::SystemTime> for Timestamp {
    type Error = std::num::TryFromIntError;

    fn try_from(time: std::time::SystemTime) -> Result<Self, Self::Error> {
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => Ok(Self {
                seconds: since.as_secs().try_into()?,
                nanos: since.subsec_nanos().try_into()?,
            }),
            Err(before) => {
                let before = before.duration();
                let nanos: i32 = before.subsec_nanos().try_into()?;
                let seconds = i64::try_from(before.as_secs())?;
                Ok(if nanos == 0 {
                    Self { seconds: -seconds, nanos: 0 }
                } else {
                    Self { seconds: -seconds - 1, nanos: 1_000_000_000 - nanos }
                })
            }
        }
    }
}

impl From<std::time::Duration> for Duration {
    fn from(span: std::time::Duration) -> Self {
        let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        Self { seconds, nanos: span.subsec_nanos().cast_signed() }
    }
}

/// Fails for a negative duration.
impl TryFrom<Duration> for std::time::Duration {
    type Error = std::num::TryFromIntError;

    fn try_from(span: Duration) -> Result<Self, Self::Error> {
        let seconds = u64::try_from(span.seconds)?;
        // More nanoseconds than a second would carry over, and might overflow.
        let nanos = u32::try_from(span.nanos)?.min(SECOND as u32 - 1);
        Ok(Self::new(seconds, nanos))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_rfc3339();
        serializer
            .serialize_str(&text.ok_or_else(|| serde::ser::Error::custom("time is out of range"))?)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_text();
        serializer.serialize_str(
            &text.ok_or_else(|| serde::ser::Error::custom("duration is out of range"))?,
        )
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_str(Text { parse: Self::from_rfc3339, what: "a time as in RFC 3339" })
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text { parse: Self::from_text, what: "a duration in seconds" })
    }
}

struct Text<T> {
    parse: fn(&str) -> Option<T>,
    what: &'static str,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests;

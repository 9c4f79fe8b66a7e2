//! Times and durations as people write and read them.

use jiff::civil;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Why a text is no time.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("expected a time such as 14:00, 2026-01-15 or 2026-01-15T14:00:00Z but got {0:?}")]
pub struct NoTime(pub String);

/// Reads a point in time: RFC 3339, a date, a date with a time, or the last time that the clock
/// showed an hour and a minute. Without an offset it is UTC.
pub fn point(text: &str, now: Timestamp) -> Result<Timestamp, NoTime> {
    let no_time = || NoTime(text.to_owned());
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let utc = |time: civil::DateTime| {
        time.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).map_err(|_| no_time())
    };
    if text.contains('-') {
        if let Ok(time) = text.parse::<civil::DateTime>() {
            return utc(time);
        }
        if let Ok(date) = text.parse::<civil::Date>() {
            return utc(date.at(0, 0, 0, 0));
        }
        return Err(no_time());
    }
    let time: civil::Time = text.parse().map_err(|_| no_time())?;
    if !text.contains(':') {
        return Err(no_time());
    }
    let today = now.to_zoned(TimeZone::UTC).date();
    let at = utc(today.to_datetime(time))?;
    if at <= now {
        return Ok(at);
    }
    let yesterday = today.yesterday().map_err(|_| no_time())?;
    utc(yesterday.to_datetime(time))
}

/// Reads how far to look back: a duration as Go writes it, or days (`7d`) or weeks (`2w`).
pub fn back(text: &str, now: Timestamp) -> Option<Timestamp> {
    let days = |unit: char, days: i64| {
        let count: i64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(days)?.checked_mul(86_400)
    };
    let seconds = days('d', 1).or_else(|| days('w', 7));
    let duration = if let Some(seconds) = seconds {
        SignedDuration::from_secs(seconds)
    } else {
        let duration: biplane_go::time::GoDuration = text.parse().ok()?;
        let duration = std::time::Duration::try_from(duration).ok()?;
        SignedDuration::try_from(duration).ok()?
    };
    if duration.is_negative() {
        return None;
    }
    now.checked_sub(duration).ok()
}

/// The time of day, to the second.
pub fn clock(time: Timestamp) -> String {
    time.strftime("%H:%M:%S").to_string()
}

/// Date and time, to the second.
pub fn date(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// RFC 3339 with as many digits as the time has.
pub fn rfc3339(time: Timestamp) -> String {
    time.to_string()
}

/// A duration in microseconds with three digits and one or two units: `412 µs`, `6.1 ms`, `41 ms`,
/// `2.5 s`, `1 m 58 s`, `3 h 5 m`.
pub fn took(microseconds: i64) -> String {
    let us = microseconds.max(0);
    let decimal = |value: i64, unit: i64, name: &str| {
        let tenths = (value * 10 + unit / 2) / unit;
        if tenths >= 100 || tenths % 10 == 0 {
            format!("{} {name}", (value + unit / 2) / unit)
        } else {
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
    };
    match us {
        0..=999 => format!("{us} µs"),
        1_000..=999_499 => decimal(us, 1_000, "ms"),
        999_500..=59_949_999 => decimal(us, 1_000_000, "s"),
        _ => {
            let seconds = (us + 500_000) / 1_000_000;
            match seconds {
                ..3_600 => format!("{} m {} s", seconds / 60, seconds % 60),
                3_600..86_400 => format!("{} h {} m", seconds / 3_600, seconds % 3_600 / 60),
                _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
            }
        }
    }
}

/// A number of bytes with three digits.
pub fn bytes(count: usize) -> String {
    let decimal = |unit: usize, name: &str| {
        let tenths = (count * 10 + unit / 2) / unit;
        if tenths >= 100 {
            format!("{} {name}", tenths / 10)
        } else {
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
    };
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => decimal(1024, "KiB"),
        _ => decimal(1_048_576, "MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn points_in_time_are_read_as_people_write_them() {
        let now = at("2026-11-16T13:30:00Z");
        for (text, want) in [
            ("2026-11-16T00:43:41.135218167Z", "2026-11-16T00:43:41.135218167Z"),
            ("2026-11-16T02:00:00+02:00", "2026-11-16T00:00:00Z"),
            ("2026-11-16T02:00", "2026-11-16T02:00:00Z"),
            ("2026-11-16 02:00:01", "2026-11-16T02:00:01Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("13:30", "2026-11-16T13:30:00Z"),
            ("13:00:05", "2026-11-16T13:00:05Z"),
            // The clock has not shown it today.
            ("14:00", "2026-11-15T14:00:00Z"),
        ] {
            assert_eq!(point(text, now), Ok(at(want)), "{text}");
        }
        for text in ["", "soon", "14", "25:00", "2026-13-01", "-1:00"] {
            assert_eq!(point(text, now), Err(NoTime(text.to_owned())));
        }
    }

    #[test]
    fn one_can_look_back_for_hours_and_days() {
        let now = at("2026-11-16T13:30:00Z");
        for (text, want) in [
            ("1h", Some("2026-11-16T12:30:00Z")),
            ("90s", Some("2026-11-16T13:28:30Z")),
            ("1h30m", Some("2026-11-16T12:00:00Z")),
            ("7d", Some("2026-11-09T13:30:00Z")),
            ("2w", Some("2026-11-02T13:30:00Z")),
            ("-1h", None),
            ("-1d", None),
            ("1", None),
            ("9223372036854775807d", None),
        ] {
            assert_eq!(back(text, now), want.map(at), "{text}");
        }
    }

    #[test]
    fn durations_have_three_digits_and_one_or_two_units() {
        for (microseconds, want) in [
            (0, "0 µs"),
            (999, "999 µs"),
            (1_000, "1 ms"),
            (6_100, "6.1 ms"),
            (41_200, "41 ms"),
            (999_499, "999 ms"),
            (999_500, "1 s"),
            (2_500_000, "2.5 s"),
            (59_940_000, "60 s"),
            (118_000_000, "1 m 58 s"),
            (11_100_000_000, "3 h 5 m"),
            (180_000_000_000, "2 d 2 h"),
            (-5, "0 µs"),
        ] {
            assert_eq!(took(microseconds), want, "{microseconds}");
        }
        assert_eq!(bytes(12), "12 B");
        assert_eq!(bytes(2_970), "2.9 KiB");
        assert_eq!(bytes(28_570), "27 KiB");
        assert_eq!(bytes(4_194_304), "4.0 MiB");
    }
}

//! Points in time as Go's `time.Time` has them: with a zone, and for years far beyond the calendar.

use std::fmt;
use std::sync::Arc;

/// Seconds from Go's absolute zero, the first day of the year -292277022399, to 1970.
const ABSOLUTE: u64 = 9_223_372_028_715_321_600;
/// That first day, in days before the first day of the year zero.
const ABSOLUTE_YEAR: i128 = -292_277_022_399;
/// Seconds from 1970 back to the first day of the year one.
const ZERO: i64 = -62_135_596_800;
const DAY: u64 = 86_400;

/// The names of the months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The names of the days of the week.
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A point in time with the offset and the abbreviation of its zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoTime {
    seconds: i64,
    nanos: u32,
    offset: i32,
    zone: Arc<str>,
}

/// Date and time of day in the zone of a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year. It may be negative.
    pub year: i64,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
    /// The hour.
    pub hour: u8,
    /// The minute.
    pub minute: u8,
    /// The second.
    pub second: u8,
    /// The day of the year, from 1.
    pub year_day: u16,
    /// The day of the week. Sunday is 0.
    pub weekday: u8,
}

impl GoTime {
    /// A point in time in UTC.
    pub fn utc(seconds: i64, nanos: u32) -> Self {
        Self::in_zone(seconds, nanos, 0, "UTC")
    }

    /// A point in time in a zone: its offset in seconds east of Greenwich, and its abbreviation.
    pub fn in_zone(seconds: i64, nanos: u32, offset: i32, zone: &str) -> Self {
        Self { seconds, nanos, offset, zone: zone.into() }
    }

    /// The first moment of the year one in UTC, which Go takes for "no time".
    pub fn zero() -> Self {
        Self::utc(ZERO, 0)
    }

    /// Whether this is the first moment of the year one.
    pub fn is_zero(&self) -> bool {
        self.seconds == ZERO && self.nanos == 0
    }

    /// Seconds since 1970.
    pub fn seconds(&self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub fn subsecond(&self) -> u32 {
        self.nanos
    }

    /// Nanoseconds since 1970. They wrap around beyond the years 1678 and 2262, as in Go.
    pub fn unix_nanos(&self) -> i64 {
        self.seconds.wrapping_mul(1_000_000_000).wrapping_add(i64::from(self.nanos))
    }

    /// Seconds east of Greenwich.
    pub fn offset(&self) -> i32 {
        self.offset
    }

    /// The abbreviation of the zone. It is empty if only the offset is known.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// The order of two points in time, whatever their zones.
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }

    /// The point in time some nanoseconds later, in the same zone offset.
    #[must_use]
    pub fn plus(&self, nanos: i64) -> Self {
        let sum = i64::from(self.nanos) + nanos.rem_euclid(1_000_000_000);
        let seconds = nanos.div_euclid(1_000_000_000) + sum / 1_000_000_000;
        Self {
            seconds: self.seconds.wrapping_add(seconds),
            nanos: (sum % 1_000_000_000) as u32,
            ..self.clone()
        }
    }

    /// The nanoseconds since another point in time, or the nearest limit.
    pub fn since(&self, other: &Self) -> i64 {
        let seconds = i128::from(self.seconds) - i128::from(other.seconds);
        let nanos = i128::from(self.nanos) - i128::from(other.nanos);
        let total = seconds * 1_000_000_000 + nanos;
        i64::try_from(total).unwrap_or(if total < 0 { i64::MIN } else { i64::MAX })
    }

    /// Date and time of day in the zone.
    pub fn civil(&self) -> Civil {
        let local = self.seconds.wrapping_add(i64::from(self.offset)) as u64;
        let absolute = local.wrapping_add(ABSOLUTE);
        let (days, seconds) = (absolute / DAY, absolute % DAY);
        let days_from_year_zero = i128::from(days) + days_before(ABSOLUTE_YEAR);
        let mut year = days_from_year_zero * 400 / 146_097;
        while days_before(year) > days_from_year_zero {
            year -= 1;
        }
        while days_before(year + 1) <= days_from_year_zero {
            year += 1;
        }
        let year_day = (days_from_year_zero - days_before(year)) as u16;
        let (mut month, mut day) = (1_u8, year_day);
        while day >= days_in(month, year) {
            day -= days_in(month, year);
            month += 1;
        }
        Civil {
            year: year as i64,
            month,
            day: day as u8 + 1,
            hour: (seconds / 3600) as u8,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            year_day: year_day + 1,
            // The first day of the year zero was a Saturday.
            weekday: (days_from_year_zero + 6).rem_euclid(7) as u8,
        }
    }

    /// A date and a time of day as seconds since 1970, if the zone were UTC. Months and days beyond
    /// their limits count into the next ones.
    pub fn unix_seconds(year: i64, month: i64, day: i64, time_of_day: i64) -> i64 {
        let months = i128::from(month) - 1;
        let year = i128::from(year) + months.div_euclid(12);
        let month = months.rem_euclid(12) as u8 + 1;
        let before: i128 = (1..month).map(|month| i128::from(days_in(month, year))).sum();
        let days = days_before(year) + before + i128::from(day) - 1 - days_before(1970);
        (days * i128::from(DAY) + i128::from(time_of_day)) as i64
    }

    /// The same point in time in another zone.
    #[must_use]
    pub fn with_zone(&self, offset: i32, zone: &str) -> Self {
        Self::in_zone(self.seconds, self.nanos, offset, zone)
    }
}

impl fmt::Display for GoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.format(b"2006-01-02 15:04:05.999999999 -0700 MST");
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

/// The number of days from the first day of the year zero to that of another year.
fn days_before(year: i128) -> i128 {
    // The year zero has 366 days.
    let last = year - 1;
    year * 365 + last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400) + 1
}

/// The number of days of a month, from 1.
pub(super) fn days_in(month: u8, year: i128) -> u16 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The English name of a month, from 1. Other numbers print as in Go.
pub fn month_name(month: i64) -> String {
    let name = usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at));
    name.map_or_else(|| format!("%!Month({month})"), |name| (*name).to_owned())
}

/// The English name of a day of the week. Sunday is 0. Other numbers print as in Go.
pub fn weekday_name(day: i64) -> String {
    let name = usize::try_from(day).ok().and_then(|at| DAYS.get(at));
    name.map_or_else(|| format!("%!Weekday({day})"), |name| (*name).to_owned())
}

/// A duration in nanoseconds as Go prints it, as in `1h2m3.5s`.
pub fn format_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    let decimal = |unit: u64, digits: usize| {
        let text = format!("{}.{:0digits$}", size / unit, size % unit);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(1_000, 3)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(1_000_000, 6)),
        _ => {
            let whole = size / 1_000_000_000;
            let fraction = format!("{}.{:09}", whole % 60, size % 1_000_000_000);
            let seconds = fraction.trim_end_matches('0').trim_end_matches('.').to_owned();
            match (whole / 3600, whole / 60 % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// Rounds a duration to a multiple of another, half away from zero. Beyond the limits it is the
/// limit.
pub fn round_duration(nanos: i64, multiple: i64) -> i64 {
    if multiple <= 0 {
        return nanos;
    }
    let (value, unit) = (i128::from(nanos), i128::from(multiple));
    let rest = value.abs() % unit;
    let down = value.abs() - rest;
    let size = if rest * 2 < unit { down } else { down + unit };
    let rounded = if value < 0 { -size } else { size };
    i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_calendar_far_beyond_four_digits() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 +0000 UTC"),
            (-1, "1969-12-31 23:59:59 +0000 UTC"),
            (951_782_400, "2000-02-29 00:00:00 +0000 UTC"),
            (ZERO, "0001-01-01 00:00:00 +0000 UTC"),
            (-62_198_755_200, "-0001-01-01 00:00:00 +0000 UTC"),
            (253_402_300_800, "10000-01-01 00:00:00 +0000 UTC"),
            (i64::MAX, "292277026596-12-04 15:30:07 +0000 UTC"),
        ] {
            assert_eq!(GoTime::utc(seconds, 0).to_string(), text);
        }
        let civil = GoTime::utc(1_709_164_800, 0).civil();
        assert_eq!((civil.year, civil.year_day, civil.weekday), (2024, 60, 4));
        assert_eq!(GoTime::unix_seconds(2024, 14, 31, 0), GoTime::unix_seconds(2025, 3, 3, 0));
    }

    #[test]
    fn prints_and_rounds_durations() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (3_723_000_000_000, "1h2m3s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(format_duration(nanos), text);
        }
        assert_eq!(round_duration(-1_500_000_000, 1_000_000_000), -2_000_000_000);
        assert_eq!(round_duration(i64::MAX, 1_000_000_000), i64::MAX);
    }
}

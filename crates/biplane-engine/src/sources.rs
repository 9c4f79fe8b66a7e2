//! Sources of time and randomness, which callers can replace.

use std::sync::atomic::{AtomicU64, Ordering};

use biplane_go::time::GoDuration;
use jiff::Timestamp;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // this is the implementation of Clock
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock with a fixed time.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// A source of unique or random values.
pub trait Ids: Send + Sync {
    /// A UUID in its usual form.
    fn uuid(&self) -> String;
    /// A random number.
    fn number(&self) -> u64;
}

/// Random values.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    #[allow(clippy::disallowed_methods)] // this is the implementation of Ids
    fn uuid(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    #[allow(clippy::disallowed_methods)] // this is the implementation of Ids
    fn number(&self) -> u64 {
        // Some bits of each half are fixed. No bit is fixed in both.
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        high ^ low
    }
}

/// Sequential values, for reproducible runs.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

impl Ids for CountingIds {
    fn uuid(&self) -> String {
        uuid::Uuid::from_u64_pair(0, self.number()).to_string()
    }

    fn number(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Parses a duration in Go's format (`1h30m`, `1.5s`, `300ms`). Returns `None` for other strings
/// and for negative durations.
pub fn parse_duration(text: &str) -> Option<std::time::Duration> {
    text.parse::<GoDuration>().ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn random_numbers_use_every_bit() {
        let numbers: Vec<_> = (0..200).map(|_| SystemIds.number()).collect();
        let (ones, zeros) = numbers.iter().fold((0, 0), |(o, z), n| (o | n, z | !n));
        assert_eq!((ones, zeros), (u64::MAX, u64::MAX));
    }

    #[test]
    fn durations_read_as_go_writes_them() {
        // RQ-1, T-22
        for (text, want) in [
            ("24h", Some(Duration::from_hours(24))),
            ("1h30m", Some(Duration::from_mins(90))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("1ms", Some(Duration::from_millis(1))),
            ("0", Some(Duration::ZERO)),
            ("0s", Some(Duration::ZERO)),
            ("", None),
            ("5", None),
            ("-5m", None),
            ("not-a-duration", None),
        ] {
            assert_eq!(parse_duration(text), want, "{text}");
        }
    }
}

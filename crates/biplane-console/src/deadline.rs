//! The deadline of a command: set once at the start, then passed to everything that may take long.

use std::time::{Duration, Instant};

/// The message for work that missed its deadline, as in Go's `context` package.
pub const EXCEEDED: &str = "context deadline exceeded";

/// The point in time by which a command must finish. It is set once, when the command starts, and
/// passed to everything that may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// `None` if the deadline is too far away to be represented by the clock.
    at: Option<Instant>,
    allowed: Duration,
}

/// The deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{EXCEEDED}")]
pub struct DeadlineExceeded;

impl Deadline {
    /// A deadline this far in the future.
    pub fn after(allowed: Duration) -> Self {
        Self { at: Instant::now().checked_add(allowed), allowed }
    }

    /// How long the command may take in total.
    pub fn allowed(self) -> Duration {
        self.allowed
    }

    /// The point in time; `None` if it is too far away to be represented by the clock.
    pub fn at(self) -> Option<Instant> {
        self.at
    }

    /// How much time is left; zero once the deadline has passed.
    pub fn remaining(self) -> Duration {
        self.at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }

    /// Fails once the deadline has passed.
    pub fn check(self) -> Result<(), DeadlineExceeded> {
        if self.remaining().is_zero() { Err(DeadlineExceeded) } else { Ok(()) }
    }

    /// Returns once the deadline has passed.
    pub async fn passed(self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at.into()).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_without_time_has_passed() {
        let deadline = Deadline::after(Duration::ZERO);
        assert_eq!(deadline.remaining(), Duration::ZERO);
        assert_eq!(deadline.check().unwrap_err().to_string(), "context deadline exceeded");
    }

    #[test]
    fn a_deadline_beyond_the_clock_never_passes() {
        let deadline = Deadline::after(Duration::MAX);
        assert_eq!(deadline.remaining(), Duration::MAX);
        assert_eq!(deadline.check(), Ok(()));
    }

    #[test]
    fn what_remains_is_never_more_than_what_was_allowed() {
        let deadline = Deadline::after(Duration::from_hours(1));
        assert!(deadline.remaining() <= deadline.allowed());
        assert_eq!(deadline.check(), Ok(()));
    }
}

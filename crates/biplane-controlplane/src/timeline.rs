//! The time of queues and breakers: the real one, or one that jumps to whatever is due next.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use biplane_engine::Clock;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of time. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Timeline(Arc<Mutex<Duration>>);

impl Timeline {
    /// The current time.
    pub fn now(&self) -> Instant {
        Instant::now() + self.jumped()
    }

    /// How far this timeline is ahead of real time.
    pub fn jumped(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jumps to a time. Nothing happens if it has passed.
    pub fn jump_to(&self, at: Instant) {
        let mut jumped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now() + *jumped;
        *jumped += at.saturating_duration_since(now);
    }
}

/// A clock that is as far ahead as a timeline.
pub struct JumpingClock<C> {
    /// The clock that the timeline is ahead of.
    pub clock: C,
    /// The timeline.
    pub timeline: Timeline,
}

impl<C> std::fmt::Debug for JumpingClock<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JumpingClock").field("timeline", &self.timeline).finish_non_exhaustive()
    }
}

impl<C: Clock> Clock for JumpingClock<C> {
    fn now(&self) -> Timestamp {
        let ahead = SignedDuration::try_from(self.timeline.jumped()).unwrap_or(SignedDuration::MAX);
        let now = self.clock.now();
        now.checked_add(ahead).unwrap_or(now)
    }
}

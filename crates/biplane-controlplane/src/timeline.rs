//! The time of queues and breakers: the real one, or one that jumps to whatever is due next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use biplane_engine::Clock;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of time. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Timeline(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    jumped: Duration,
    /// When time was stopped.
    stopped: Option<Instant>,
}

impl State {
    fn now(&self) -> Instant {
        self.stopped.unwrap_or_else(Instant::now) + self.jumped
    }
}

impl Timeline {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.lock().now()
    }

    /// How far this timeline has jumped.
    pub fn jumped(&self) -> Duration {
        self.lock().jumped
    }

    /// Jumps to a time. Nothing happens if it has passed.
    pub fn jump_to(&self, at: Instant) {
        let mut state = self.lock();
        let ahead = at.saturating_duration_since(state.now());
        state.jumped += ahead;
    }

    /// Lets time pass by jumps alone from now on. So what happens between two of them happens at the
    /// same time, however long it takes.
    pub fn stop(&self) {
        self.lock().stopped.get_or_insert_with(Instant::now);
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

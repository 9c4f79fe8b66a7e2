//! The bound on requests in flight. It is halved when the server is in trouble and grows by one per
//! second.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A server in trouble refuses many requests at once. They count as one sign.
const BREATH: Duration = Duration::from_secs(1);

/// A bound that follows the server's condition.
#[derive(Debug)]
pub(crate) struct Limit {
    free: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    most: usize,
    now: usize,
    /// Permits that are taken away when they come back.
    owed: usize,
    changed: Instant,
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct InFlight<'a>(&'a Limit);

impl Limit {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let state = State { most, now: most, owed: 0, changed: Instant::now() };
        Self { free: Semaphore::new(most), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place.
    pub(crate) async fn enter(&self) -> InFlight<'_> {
        self.grow();
        // The semaphore is never closed.
        if let Ok(permit) = self.free.acquire().await {
            permit.forget();
        }
        InFlight(self)
    }

    /// Halves the bound, at most once per second.
    pub(crate) fn halve(&self) {
        let mut state = self.state();
        let fresh = state.now == state.most;
        if !fresh && state.changed.elapsed() < BREATH {
            return;
        }
        let less = state.now - (state.now / 2).max(1);
        state.now -= less;
        state.owed += less - self.free.forget_permits(less);
        state.changed = Instant::now();
    }

    /// Adds one for every second since the last change.
    fn grow(&self) {
        let mut state = self.state();
        let seconds = state.changed.elapsed().as_secs() as usize;
        let more = seconds.min(state.most - state.now);
        if more == 0 {
            return;
        }
        state.now += more;
        state.changed = Instant::now();
        let kept = more.min(state.owed);
        state.owed -= kept;
        self.free.add_permits(more - kept);
    }

    /// How many requests may be in flight now.
    #[cfg(test)]
    fn now(&self) -> usize {
        self.state().now
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.owed > 0 {
            state.owed -= 1;
        } else {
            self.0.free.add_permits(1);
        }
        drop(state);
        self.0.grow();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn trouble_halves_once_a_second_and_time_heals() {
        let limit = Limit::new(8);
        limit.halve();
        limit.halve();
        assert_eq!(limit.now(), 4, "the second is the same trouble");
        tokio::time::advance(Duration::from_secs(1)).await;
        limit.halve();
        tokio::time::advance(Duration::from_secs(1)).await;
        limit.halve();
        tokio::time::advance(Duration::from_secs(1)).await;
        limit.halve();
        assert_eq!(limit.now(), 1, "never nothing");
        tokio::time::advance(Duration::from_secs(3)).await;
        let entered = limit.enter().await;
        assert_eq!(limit.now(), 4);
        drop(entered);
        tokio::time::advance(Duration::from_mins(1)).await;
        drop(limit.enter().await);
        assert_eq!(limit.now(), 8);
        assert_eq!(limit.free.available_permits(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_flight_when_the_bound_shrinks_is_not_replaced() {
        let limit = Limit::new(4);
        let mut entered = Vec::new();
        for _ in 0..4 {
            entered.push(limit.enter().await);
        }
        limit.halve();
        entered.truncate(2);
        let full = tokio::time::timeout(Duration::from_millis(1), limit.enter()).await;
        assert!(full.is_err(), "two are in flight, and no more may be");
        entered.truncate(1);
        drop(limit.enter().await);
    }
}

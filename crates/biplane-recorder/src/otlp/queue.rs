//! What waits to be sent: bounded, the oldest goes first, and who puts never waits.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Something that was stored, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A run.
    Run(i64),
    /// A change.
    Change(i64),
}

/// What waits to be sent.
#[derive(Debug)]
pub(super) struct Queue {
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    /// When to give up.
    end: Option<Instant>,
    /// Nothing more is put.
    is_closed: bool,
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts items. What waits already is not put again. Returns how many were dropped for it.
    pub(super) fn put(&self, items: impl Iterator<Item = Item>) -> u64 {
        let mut state = self.state();
        for item in items {
            // A run is told when it begins and when it ends, mostly shortly after.
            if !state.items.iter().rev().take(256).any(|known| *known == item) {
                state.items.push_back(item);
            }
        }
        let mut dropped = 0;
        while state.items.len() > self.limit {
            state.items.pop_front();
            dropped += 1;
        }
        self.changed.notify_all();
        dropped
    }

    /// Nothing more is put.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// Everything must end by then.
    pub(super) fn stop(&self, end: Instant) {
        self.state().end = Some(end);
        self.changed.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state().end.is_some()
    }

    /// Waits for items, and a little longer for more of them. `None` if there will be none, or it is
    /// time to give up.
    pub(super) fn next(&self, most: usize, linger: Duration) -> Option<Vec<Item>> {
        let mut state = self.state();
        while state.items.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + linger;
        while state.items.len() < most && !state.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || state.end.is_some() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.end.is_some_and(|end| Instant::now() >= end) {
            return None;
        }
        let count = state.items.len().min(most);
        Some(state.items.drain(..count).collect())
    }

    /// Rests before another attempt. Returns whether there is time for one. Once everything is to
    /// end, it rests only briefly.
    pub(super) fn rest(&self, pause: Duration) -> bool {
        /// How long to rest when the process ends.
        const SHORT: Duration = Duration::from_millis(100);
        let begun = Instant::now();
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let pause = if state.end.is_some() { pause.min(SHORT) } else { pause };
            let until = begun + pause;
            match state.end {
                Some(end) if now >= end => return false,
                _ if now >= until => return true,
                _ => {}
            }
            let left = until.saturating_duration_since(now);
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Drops what waits. Returns how many that were.
    pub(super) fn clear(&self) -> u64 {
        let mut state = self.state();
        let count = state.items.len() as u64;
        state.items.clear();
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let queue = Queue::new(3);
        assert_eq!(queue.put([Item::Run(1), Item::Run(2), Item::Run(1)].into_iter()), 0);
        assert_eq!(queue.put([Item::Change(1), Item::Run(3)].into_iter()), 1);
        queue.close();
        let rest = [Item::Run(2), Item::Change(1), Item::Run(3)];
        assert_eq!(queue.next(2, Duration::ZERO), Some(rest[..2].to_vec()));
        assert_eq!(queue.next(2, Duration::ZERO), Some(rest[2..].to_vec()));
        assert_eq!(queue.next(2, Duration::ZERO), None);
    }

    #[test]
    fn nobody_waits_after_the_end() {
        let queue = Queue::new(3);
        queue.put([Item::Run(1)].into_iter());
        queue.stop(Instant::now());
        assert!(!queue.rest(Duration::from_mins(10)));
        assert_eq!(queue.next(2, Duration::from_mins(10)), None);
        assert_eq!(queue.clear(), 1);
    }
}

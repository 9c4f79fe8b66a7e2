//! What waits to be written: changes first, then runs.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tonic::Status;

use crate::store::{ChangeRecord, HalfRecord};

/// So many halves of calls wait at most.
const MOST_HALVES: usize = 256;

/// So many bytes of payloads wait at most, unless it is a single one.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// So many changes wait at most.
const MOST_CHANGES: usize = 1024;

/// A batch has at most so many halves.
pub(crate) const BATCH: usize = 64;

/// A batch waits for more for so long.
pub(crate) const GATHER: Duration = Duration::from_millis(50);

/// A change, and who waits for it.
#[derive(Debug)]
pub(crate) struct WaitingChange {
    /// The change.
    pub(crate) record: ChangeRecord,
    /// Who is told when it is stored, or why it is not.
    pub(crate) done: oneshot::Sender<Result<(), Status>>,
}

/// What is to be written next.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Changes.
    pub(crate) changes: Vec<WaitingChange>,
    /// Halves of calls, with the sizes of their payloads.
    pub(crate) halves: Vec<(HalfRecord, usize)>,
    /// Runs of which something was lost.
    pub(crate) lost: Vec<String>,
    /// Whether nothing more will come.
    pub(crate) closed: bool,
}

impl Batch {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.halves.is_empty() && self.lost.is_empty()
    }
}

#[derive(Debug, Default)]
struct State {
    changes: VecDeque<WaitingChange>,
    halves: VecDeque<(HalfRecord, usize)>,
    lost: Vec<String>,
    bytes: usize,
    closed: bool,
    /// Nobody writes any more.
    abandoned: bool,
}

/// The queue of the writer.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    /// Something came.
    filled: Condvar,
    /// There is room.
    emptied: Condvar,
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a half of a call. Waits until there is room.
    pub(crate) fn put(&self, half: HalfRecord, bytes: usize) {
        let mut state = self.state();
        while !state.closed
            && !state.halves.is_empty()
            && (state.halves.len() >= MOST_HALVES || state.bytes + bytes > MOST_BYTES)
        {
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.abandoned {
            return;
        }
        state.bytes += bytes;
        state.halves.push_back((half, bytes));
        drop(state);
        self.filled.notify_one();
    }

    /// Says that something of a run was lost.
    pub(crate) fn lost(&self, trace: String) {
        let mut state = self.state();
        if state.abandoned {
            return;
        }
        state.lost.push(trace);
        drop(state);
        self.filled.notify_one();
    }

    /// Adds a change. It is refused if too many wait.
    pub(crate) fn put_change(&self, change: WaitingChange) -> Result<(), Status> {
        let mut state = self.state();
        if state.closed {
            return Err(Status::unavailable("the recorder is stopping"));
        }
        if state.changes.len() >= MOST_CHANGES {
            return Err(Status::resource_exhausted("too many entries wait to be stored"));
        }
        state.changes.push_back(change);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for something to write, but not for longer than this.
    pub(crate) fn next(&self, patience: Duration) -> Batch {
        let begun = Instant::now();
        let mut gathering: Option<Instant> = None;
        let mut state = self.state();
        loop {
            if !state.halves.is_empty() && gathering.is_none() {
                gathering = Some(Instant::now());
            }
            let full = state.halves.len() >= BATCH || state.bytes >= MOST_BYTES;
            let gathered = gathering.is_some_and(|since| since.elapsed() >= GATHER);
            let idle = gathering.is_none() && begun.elapsed() >= patience;
            if !state.changes.is_empty() || full || gathered || state.closed || idle {
                break;
            }
            let left = match gathering {
                Some(since) => GATHER.saturating_sub(since.elapsed()),
                None => patience.saturating_sub(begun.elapsed()),
            };
            let waited = self.filled.wait_timeout(state, left.max(Duration::from_millis(1)));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = state.halves.len().min(BATCH);
        let halves: Vec<(HalfRecord, usize)> = state.halves.drain(..count).collect();
        state.bytes -= halves.iter().map(|(_, bytes)| bytes).sum::<usize>();
        let batch = Batch {
            changes: state.changes.drain(..).collect(),
            lost: std::mem::take(&mut state.lost),
            closed: state.closed && state.halves.is_empty(),
            halves,
        };
        drop(state);
        self.emptied.notify_all();
        batch
    }

    /// Forgets what waits and takes nothing more, because nobody writes any more.
    pub(crate) fn abandon(&self) {
        let waiting = {
            let mut state = self.state();
            let waiting = std::mem::take(&mut *state);
            (state.closed, state.abandoned) = (true, true);
            waiting
        };
        // Those who wait for a change are told that it is not stored.
        drop(waiting);
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    /// Takes no more changes. What waits is still to be written.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}

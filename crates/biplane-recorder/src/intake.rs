//! Emissions that wait to be digested. When there are too many bytes, the oldest run goes whole.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prost::Message;

use crate::emission::Emission;

/// What an emission takes beside its payload.
const OVERHEAD: usize = 512;

/// So many runs are remembered of which something was taken, or dropped.
const MOST_TRACES: usize = 4096;

/// An emission with the time of its arrival.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The emission.
    pub(crate) emission: Emission,
    /// When it arrived, in microseconds since 1970.
    pub(crate) received: i64,
    /// When it arrived, to measure durations.
    pub(crate) arrived: Instant,
}

impl Waiting {
    fn trace(&self) -> &str {
        self.emission.meta.as_ref().map(|meta| meta.trace_id.as_str()).unwrap_or_default()
    }

    /// What it takes in memory: everything that its sender decides.
    fn size(&self) -> usize {
        let Emission { meta, payload, error, details, .. } = &self.emission;
        let revision = details.revision.as_ref().map_or(0, String::len);
        let named = meta.as_ref().map_or(0, Message::encoded_len);
        payload.len() + error.len() + revision + named + OVERHEAD
    }
}

/// What comes out.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    /// An emission.
    Emission(Box<Waiting>),
    /// Something of a run was dropped of which something was taken before.
    Lost(String),
}

/// What was dropped to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// How many emissions.
    pub(crate) emissions: u64,
    /// The size of their payloads.
    pub(crate) bytes: u64,
}

impl Dropped {
    fn add(&mut self, waiting: &Waiting) {
        self.emissions += 1;
        self.bytes += waiting.emission.payload.len() as u64;
    }
}

/// The last traces that were added.
#[derive(Debug, Default)]
struct Traces {
    known: BTreeSet<String>,
    oldest_first: VecDeque<String>,
}

impl Traces {
    fn add(&mut self, trace: &str) {
        if self.known.insert(trace.to_owned()) {
            self.oldest_first.push_back(trace.to_owned());
        }
        while self.oldest_first.len() > MOST_TRACES {
            if let Some(oldest) = self.oldest_first.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Waiting>,
    bytes: usize,
    /// Runs of which something was taken out.
    begun: Traces,
    /// Runs of which something was dropped. What comes later is dropped, too.
    dropped: Traces,
    lost: VecDeque<String>,
    closed: bool,
}

/// A queue that is bounded in bytes. Adding never waits.
#[derive(Debug)]
pub(crate) struct Intake {
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Intake {
    /// A queue for so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an emission, and returns what was dropped for it, which may be itself.
    pub(crate) fn push(&self, waiting: Waiting) -> Dropped {
        let mut state = self.state();
        let mut dropped = Dropped::default();
        let size = waiting.size();
        if state.closed || size > self.limit || state.dropped.known.contains(waiting.trace()) {
            let trace = waiting.trace().to_owned();
            dropped.add(&waiting);
            state.drop_run(&trace, &mut dropped);
            drop(state);
            self.changed.notify_one();
            return dropped;
        }
        while state.bytes + size > self.limit {
            let Some(trace) = state.oldest() else { break };
            state.drop_run(&trace, &mut dropped);
        }
        if state.dropped.known.contains(waiting.trace()) {
            // Its own run was the oldest.
            dropped.add(&waiting);
        } else {
            state.bytes += size;
            state.queue.push_back(waiting);
        }
        drop(state);
        self.changed.notify_one();
        dropped
    }

    /// Waits for the next. `None` once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<Next> {
        let mut state = self.state();
        loop {
            if let Some(trace) = state.lost.pop_front() {
                return Some(Next::Lost(trace));
            }
            if let Some(waiting) = state.queue.pop_front() {
                state.bytes -= waiting.size();
                let trace = waiting.trace().to_owned();
                state.begun.add(&trace);
                return Some(Next::Emission(Box::new(waiting)));
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes no more. What waits can still be taken out.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// How many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }
}

impl State {
    /// The oldest run of which nothing was taken yet, else the oldest.
    fn oldest(&self) -> Option<String> {
        let whole = self.queue.iter().find(|w| !self.begun.known.contains(w.trace()));
        whole.or(self.queue.front()).map(|waiting| waiting.trace().to_owned())
    }

    fn drop_run(&mut self, trace: &str, dropped: &mut Dropped) {
        let mut bytes = 0;
        self.queue.retain(|waiting| {
            let keep = waiting.trace() != trace;
            if !keep {
                bytes += waiting.size();
                dropped.add(waiting);
            }
            keep
        });
        self.bytes -= bytes;
        if self.begun.known.contains(trace) && !self.dropped.known.contains(trace) {
            self.lost.push_back(trace.to_owned());
        }
        self.dropped.add(trace);
    }
}

#[cfg(test)]
mod tests {
    use biplane_proto::inspector::shipped::StepMeta;
    use biplane_proto::redact::Half;

    use super::*;
    use crate::emission::{Details, Dialect};

    fn waiting(trace: &str, bytes: usize) -> Waiting {
        let emission = Emission {
            dialect: Dialect::Shipped,
            half: Half::Request,
            meta: Some(StepMeta { trace_id: trace.into(), ..StepMeta::default() }),
            payload: vec![b' '; bytes],
            error: String::new(),
            details: Details::default(),
        };
        Waiting { emission, received: 0, arrived: Instant::now() }
    }

    fn rest(intake: &Intake) -> Vec<String> {
        intake.close();
        let mut all = Vec::new();
        while let Some(next) = intake.pop() {
            all.push(match next {
                Next::Emission(waiting) => waiting.trace().to_owned(),
                Next::Lost(trace) => format!("lost {trace}"),
            });
        }
        all
    }

    #[test]
    fn the_oldest_run_goes_whole_and_nothing_of_it_comes_later() {
        let intake = Intake::new(4 * waiting("a", 1000).size());
        for trace in ["a", "b", "a", "c"] {
            assert_eq!(intake.push(waiting(trace, 1000)), Dropped::default());
        }
        assert_eq!(intake.push(waiting("d", 1000)), Dropped { emissions: 2, bytes: 2000 });
        assert_eq!(intake.push(waiting("a", 10)), Dropped { emissions: 1, bytes: 10 });
        assert_eq!(rest(&intake), ["b", "c", "d"]);
        assert_eq!(intake.bytes(), 0);
    }

    #[test]
    fn everything_that_a_sender_decides_counts() {
        let intake = Intake::new(10_000);
        let mut named = waiting("a", 0);
        named.emission.details.revision = Some("r".repeat(4000));
        let mut meta = named.emission.meta.take().unwrap();
        meta.step_name = "s".repeat(4000);
        named.emission.meta = Some(meta);
        intake.push(named.clone());
        assert!(intake.bytes() > 8000, "{}", intake.bytes());
        named.emission.error = "e".repeat(4000);
        assert_eq!(intake.push(named).emissions, 2);
    }

    #[test]
    fn a_run_that_was_begun_is_dropped_last_and_says_so() {
        let intake = Intake::new(3 * waiting("a", 1000).size());
        intake.push(waiting("a", 1000));
        assert!(matches!(intake.pop(), Some(Next::Emission(_))));
        for trace in ["a", "b", "c"] {
            intake.push(waiting(trace, 1000));
        }
        // b has not been begun.
        assert_eq!(intake.push(waiting("d", 1000)).emissions, 1);
        // One that is larger than everything is dropped itself.
        assert_eq!(intake.push(waiting("e", 100_000)).emissions, 1);
        assert_eq!(intake.push(waiting("a", 100_000)).emissions, 2);
        assert_eq!(rest(&intake), ["lost a", "c", "d"]);
    }
}

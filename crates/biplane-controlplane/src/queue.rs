//! The queue of one controller: keys with a due time, each once, with at most one running reconcile
//! per key and a back-off per key.
//!
//! Namespaces take turns: a namespace with thousands of due keys does not delay another one's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use biplane_model::ObjectId;
use tokio::time::Instant;

/// The object that is reconciled. Its kind is the controller's.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace. Empty if it is cluster-scoped.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// Creates a key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl From<&ObjectId> for Key {
    fn from(id: &ObjectId) -> Self {
        Self::new(&id.namespace, &id.name)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// The first delay of a back-off.
const FIRST_BACK_OFF: Duration = Duration::from_secs(1);
/// The longest delay after a reconcile that wrote something once more.
const LONGEST_AGAIN: Duration = Duration::from_secs(30);
/// A reconcile that is to be repeated earlier than this waits for something. Later, it only looks.
const SOON: Duration = Duration::from_secs(10);
/// How many reconciles in a row may follow at once because they wrote something.
const AT_ONCE: u32 = 3;

/// The limits of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many reconciles run at a time.
    pub concurrent: usize,
    /// The longest delay after failures.
    pub longest_back_off: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { concurrent: 100, longest_back_off: Duration::from_mins(1) }
    }
}

/// Why a key is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Something changed.
    Change,
    /// The last reconcile wrote something, or failed.
    Retry,
    /// Changes were held back by the circuit breaker, or it closes.
    Held,
    /// The last reconcile asked to be repeated soon.
    Soon,
    /// It is looked at regularly.
    Poll,
}

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do.
    Done,
    /// Nothing is left to do for a while.
    After(Duration),
    /// Something was written whose effect must be observed.
    Again,
    /// It failed, or waits for something that nobody reports.
    Retry,
    /// It failed for a reason that is not its own.
    NotItsFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Later { at: Instant, ticket: u64 },
    Ready,
    Running,
}

#[derive(Debug)]
struct Entry {
    state: State,
    /// When the key was wanted while its reconcile was running.
    wanted: Option<(Instant, Why)>,
    /// Why it was last wanted.
    why: Why,
    failures: u32,
    /// Reconciles in a row that wrote something.
    agains: u32,
}

impl Entry {
    const NEW: Self =
        Self { state: State::Idle, wanted: None, why: Why::Change, failures: 0, agains: 0 };
}

/// Keys with a due time.
#[derive(Debug)]
pub struct Queue {
    limits: Limits,
    entries: BTreeMap<Key, Entry>,
    later: BTreeSet<(Instant, u64, Key)>,
    /// Keys that are due, by namespace.
    lanes: BTreeMap<String, VecDeque<Key>>,
    /// The namespaces with due keys, the next one first.
    turns: VecDeque<String>,
    running: usize,
    tickets: u64,
}

impl Queue {
    /// An empty queue.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: BTreeMap::new(),
            later: BTreeSet::new(),
            lanes: BTreeMap::new(),
            turns: VecDeque::new(),
            running: 0,
            tickets: 0,
        }
    }

    /// Wants a key at a time. The earliest time counts.
    pub fn add(&mut self, key: &Key, at: Instant, why: Why, now: Instant) {
        let entry = self.entries.entry(key.clone()).or_insert(Entry::NEW);
        match entry.state {
            State::Running => {
                if entry.wanted.is_none_or(|(wanted, _)| at < wanted) {
                    entry.wanted = Some((at, why));
                }
            }
            State::Ready => {}
            State::Later { at: earlier, .. } if earlier <= at => {}
            State::Later { at: later, ticket } => {
                self.later.remove(&(later, ticket, key.clone()));
                self.schedule(key, at, why, now);
            }
            State::Idle => self.schedule(key, at, why, now),
        }
    }

    /// Puts a key that waits for nothing where it belongs.
    fn schedule(&mut self, key: &Key, at: Instant, why: Why, now: Instant) {
        let state = if at <= now {
            self.enter_lane(key);
            State::Ready
        } else {
            self.tickets += 1;
            self.later.insert((at, self.tickets, key.clone()));
            State::Later { at, ticket: self.tickets }
        };
        let entry = self.entries.entry(key.clone()).or_insert(Entry::NEW);
        (entry.state, entry.why) = (state, why);
    }

    fn enter_lane(&mut self, key: &Key) {
        let lane = self.lanes.entry(key.namespace.clone()).or_default();
        if lane.is_empty() {
            self.turns.push_back(key.namespace.clone());
        }
        lane.push_back(key.clone());
    }

    /// Takes the next key to reconcile, if one is due and another reconcile may run.
    pub fn take(&mut self, now: Instant) -> Option<Key> {
        self.promote(now);
        if self.running >= self.limits.concurrent {
            return None;
        }
        let turn = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&turn)?;
        let key = lane.pop_front()?;
        if lane.is_empty() {
            self.lanes.remove(&turn);
        } else {
            self.turns.push_back(turn);
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.state = State::Running;
        }
        self.running += 1;
        Some(key)
    }

    /// The keys that are due, by namespace, each namespace in the order in which they became due.
    pub fn ready(&mut self, now: Instant) -> Vec<Key> {
        self.promote(now);
        self.lanes.values().flatten().cloned().collect()
    }

    /// Takes this key to reconcile it. Returns whether it is due.
    pub fn take_key(&mut self, key: &Key, now: Instant) -> bool {
        self.promote(now);
        if !self.is_ready(key) {
            return false;
        }
        self.leave_lane(key);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.state = State::Running;
        }
        self.running += 1;
        true
    }

    fn leave_lane(&mut self, key: &Key) {
        if let Some(lane) = self.lanes.get_mut(&key.namespace) {
            lane.retain(|waiting| waiting != key);
            if lane.is_empty() {
                self.lanes.remove(&key.namespace);
                self.turns.retain(|turn| *turn != key.namespace);
            }
        }
    }

    /// Moves keys whose time has come to their lanes.
    fn promote(&mut self, now: Instant) {
        while let Some(first) = self.later.first()
            && first.0 <= now
        {
            let Some((_, _, key)) = self.later.pop_first() else { return };
            self.enter_lane(&key);
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.state = State::Ready;
            }
        }
    }

    /// A reconcile has ended.
    pub fn done(&mut self, key: &Key, outcome: Outcome, now: Instant) {
        let longest = self.limits.longest_back_off;
        let Some(entry) = self.entries.get_mut(key).filter(|e| e.state == State::Running) else {
            return;
        };
        self.running -= 1;
        entry.state = State::Idle;
        let wanted = entry.wanted.take();
        if matches!(outcome, Outcome::Done | Outcome::After(_) | Outcome::Again) {
            entry.failures = 0;
        }
        if matches!(outcome, Outcome::Done | Outcome::After(_) | Outcome::Retry) {
            entry.agains = 0;
        }
        let next = match outcome {
            Outcome::Done => None,
            Outcome::After(delay) => {
                // One that asks again and again waits for nothing.
                let soon = delay < SOON && !matches!(entry.why, Why::Soon | Why::Poll);
                Some((now + delay, if soon { Why::Soon } else { Why::Poll }))
            }
            Outcome::Again => {
                entry.agains += 1;
                let delay = match entry.agains.checked_sub(AT_ONCE + 1) {
                    None => Duration::ZERO,
                    Some(more) => back_off(more, LONGEST_AGAIN),
                };
                Some((now + delay, Why::Retry))
            }
            Outcome::Retry => {
                let delay = back_off(entry.failures, longest);
                entry.failures += 1;
                Some((now + delay, Why::Retry))
            }
            Outcome::NotItsFault => Some((now, Why::Retry)),
        };
        let next = match (wanted, next) {
            (Some(wanted), Some(next)) => Some(if wanted.0 <= next.0 { wanted } else { next }),
            (wanted, next) => wanted.or(next),
        };
        match next {
            Some((at, why)) => self.schedule(key, at, why, now),
            None if entry.failures == 0 && entry.agains == 0 => {
                self.entries.remove(key);
            }
            None => {}
        }
    }

    /// Forgets a key, because its object does not exist any more. If its reconcile is running, only
    /// what was wanted after it is forgotten.
    pub fn forget(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match entry.state {
            State::Running => {
                *entry = Entry { state: State::Running, ..Entry::NEW };
                return;
            }
            State::Later { at, ticket } => {
                self.later.remove(&(at, ticket, key.clone()));
            }
            State::Ready => self.leave_lane(key),
            State::Idle => {}
        }
        self.entries.remove(key);
    }

    /// Forgets all keys that are not running.
    pub fn clear(&mut self) {
        self.entries.retain(|_, entry| entry.state == State::Running);
        for entry in self.entries.values_mut() {
            entry.wanted = None;
        }
        self.later.clear();
        self.lanes.clear();
        self.turns.clear();
    }

    /// Whether the reconcile of a key is running.
    pub fn is_running(&self, key: &Key) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.state == State::Running)
    }

    /// Whether a key is due and has not started.
    pub fn is_ready(&self, key: &Key) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.state == State::Ready)
    }

    /// The number of running reconciles.
    pub fn running(&self) -> usize {
        self.running
    }

    /// The number of keys that are due and have not started.
    pub fn depth(&self) -> usize {
        self.lanes.values().map(VecDeque::len).sum()
    }

    /// The key that is taken next of those that are due.
    pub fn first_ready(&self) -> Option<&Key> {
        self.lanes.get(self.turns.front()?)?.front()
    }

    /// When the next key that is not due yet will be.
    pub fn next(&self) -> Option<Instant> {
        self.later.first().map(|(at, _, _)| *at)
    }

    /// When the next key will be due for another reason than to look at it regularly.
    pub fn next_but_polls(&self) -> Option<(Instant, &Key)> {
        let is_poll = |key: &Key| self.entries.get(key).is_some_and(|entry| entry.why == Why::Poll);
        let next = self.later.iter().find(|(_, _, key)| !is_poll(key));
        next.map(|(at, _, key)| (*at, key))
    }
}

/// The delay after a number of earlier failures.
fn back_off(earlier: u32, longest: Duration) -> Duration {
    FIRST_BACK_OFF.saturating_mul(2_u32.saturating_pow(earlier)).min(longest)
}

/// The pause of all queues while the API server cannot be reached or asks for fewer requests.
#[derive(Debug, Default)]
pub struct Pause {
    begun: Option<Instant>,
    until: Option<Instant>,
    length: Duration,
}

impl Pause {
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(10);

    /// A reconcile that began at a time found the server in trouble. Reconciles that began before
    /// the pause found the same trouble.
    pub fn trouble(&mut self, began: Instant, asked: Duration, now: Instant) {
        if self.begun.is_none_or(|begun| began >= begun) {
            self.length = (self.length * 2).clamp(Self::FIRST, Self::LONGEST);
            self.begun = Some(now);
            self.until = Some(now + self.length);
        }
        if !asked.is_zero() {
            self.until = self.until.max(Some(now + asked));
        }
    }

    /// A reconcile that began at a time did not find the server in trouble.
    pub fn no_trouble(&mut self, began: Instant) {
        if self.begun.is_some_and(|begun| began >= begun) {
            *self = Self::default();
        }
    }

    /// When the pause ends, if there is one.
    pub fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests;

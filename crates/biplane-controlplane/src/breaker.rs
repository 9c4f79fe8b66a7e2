//! The circuit breaker: holds back the changes of composite resources that receive too many.
//!
//! Each composite resource has a bucket of tokens. Only news costs tokens: own writes, first lists
//! and changes that cause no further reconcile are free. What is held back is looked at when the
//! next change is allowed, and the circuit closes by itself.

mod changing;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use biplane_engine::composite::breaker;
use biplane_model::{Object, ObjectId};
use tokio::time::Instant;

use crate::metrics::PlaneMetrics;
use crate::queue::Key;
pub use changing::Changing;

/// When a circuit opens and closes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The number of tokens in a full bucket.
    pub burst: f64,
    /// The number of tokens that are added each second.
    pub refill_rate: f64,
    /// How long a circuit stays open.
    pub cooldown: Duration,
    /// How often a change passes while the circuit is open.
    pub half_open: Duration,
    /// Whether the condition says which field keeps changing, and who changes it.
    pub explain: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            burst: 100.0,
            refill_rate: 1.0,
            cooldown: Duration::from_mins(5),
            half_open: Duration::from_secs(30),
            explain: true,
        }
    }
}

/// How many tokens a bucket has for each resource that a composite resource depends on, if that is
/// more than the usual burst. Resources that become ready together change a few times each.
const BURST_PER_DEPENDENCY: f64 = 8.0;
/// How many sources of changes are remembered.
const SOURCES: usize = 16;

/// A change of an object.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The object as it was, if it was known.
    pub before: Option<&'a Object>,
    /// The object as it is now, or as it was last if it is gone.
    pub object: &'a Object,
    /// The price in tokens.
    pub cost: f64,
}

/// What happens to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The composite resource is reconciled.
    Pass,
    /// The composite resource is not reconciled before this time.
    Hold(Instant),
}

#[derive(Debug)]
struct Bucket {
    uid: String,
    capacity: f64,
    tokens: f64,
    refilled: Instant,
    /// The last sources of changes, the newest last.
    sources: VecDeque<String>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    since: Instant,
    /// When a change passed last.
    passed: Instant,
    source: String,
    changing: Option<Changing>,
    /// Whether a change is held back.
    holds: bool,
}

/// The circuit breakers of one controller.
#[derive(Debug)]
pub struct Breaker {
    controller: String,
    limits: Limits,
    metrics: PlaneMetrics,
    buckets: Mutex<BTreeMap<Key, Bucket>>,
}

impl Breaker {
    /// A breaker whose circuits are all closed.
    pub fn new(controller: &str, limits: Limits, metrics: PlaneMetrics) -> Self {
        Self { controller: controller.to_owned(), limits, metrics, buckets: Mutex::default() }
    }

    fn buckets(&self) -> MutexGuard<'_, BTreeMap<Key, Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells which object has a key now. Another object of the same name begins anew, and one that
    /// is being deleted is not held back any more.
    pub fn identify(&self, key: &Key, object: &Object) {
        let mut buckets = self.buckets();
        let Some(bucket) = buckets.get_mut(key) else { return };
        if bucket.uid.is_empty() {
            object.uid().clone_into(&mut bucket.uid);
        }
        if bucket.uid != object.uid() || object.is_being_deleted() {
            buckets.remove(key);
        }
    }

    /// Forgets an object that does not exist any more.
    pub fn forget(&self, key: &Key) {
        self.buckets().remove(key);
    }

    /// Decides about a change. `uid` is that of the composite resource, if it is known. The composite
    /// resource depends on so many objects.
    pub fn admit(
        &self,
        key: &Key,
        uid: &str,
        dependencies: usize,
        event: &Event<'_>,
        now: Instant,
    ) -> Verdict {
        if event.object.is_being_deleted() {
            return Verdict::Pass;
        }
        let mut buckets = self.buckets();
        if event.cost <= 0.0 && buckets.get(key).is_none_or(|bucket| bucket.open.is_none()) {
            return Verdict::Pass;
        }
        let capacity = self.limits.burst.max(BURST_PER_DEPENDENCY * dependencies as f64);
        let bucket = buckets.entry(key.clone()).or_insert_with(|| Bucket {
            uid: uid.to_owned(),
            capacity,
            tokens: capacity,
            refilled: now,
            sources: VecDeque::new(),
            open: None,
        });
        // A composite resource that has got more resources has got their tokens too.
        bucket.tokens += (capacity - bucket.capacity).max(0.0);
        bucket.capacity = capacity;
        bucket.refill(&self.limits, now);
        self.close_if_due(key, bucket, now);
        let source = source(event.object);
        if bucket.sources.len() == SOURCES {
            bucket.sources.pop_front();
        }
        bucket.sources.push_back(source);
        if let Some(open) = &mut bucket.open {
            let next = open.passed + self.limits.half_open;
            if now >= next {
                open.passed = now;
                self.metrics.circuit_event(&self.controller, "HalfOpenAllowed");
                return Verdict::Pass;
            }
            open.holds = true;
            self.metrics.circuit_event(&self.controller, "Dropped");
            return Verdict::Hold(next.min(open.since + self.limits.cooldown));
        }
        self.metrics.circuit_event(&self.controller, "Allowed");
        if bucket.tokens >= event.cost {
            bucket.tokens -= event.cost;
        } else {
            bucket.tokens = 0.0;
            self.open(key, bucket, event, now);
        }
        Verdict::Pass
    }

    /// Opens a circuit. The change that finds the bucket empty still passes.
    fn open(&self, key: &Key, bucket: &mut Bucket, event: &Event<'_>, now: Instant) {
        let source = most_frequent(&bucket.sources);
        let changing = event.before.and_then(|before| Changing::between(before, event.object));
        let (field, manager) =
            changing.as_ref().map_or(("", ""), |c| (c.field.as_str(), c.manager.as_str()));
        tracing::warn!(
            controller = self.controller, key = %key, source, field, manager,
            "too many watch events, allowing events periodically"
        );
        self.metrics.circuit_opened(&self.controller);
        bucket.open = Some(Open { since: now, passed: now, source, changing, holds: false });
    }

    fn close_if_due(&self, key: &Key, bucket: &mut Bucket, now: Instant) {
        let cooled = |open: &Open| now >= open.since + self.limits.cooldown;
        if bucket.open.as_ref().is_some_and(cooled) {
            bucket.open = None;
            bucket.sources.clear();
            tracing::info!(controller = self.controller, key = %key, "watch events are allowed again");
            self.metrics.circuit_closed(&self.controller);
        }
    }

    /// A reconcile starts. It sees everything that was held back.
    pub fn started(&self, key: &Key, now: Instant) {
        let mut buckets = self.buckets();
        let Some(bucket) = buckets.get_mut(key) else { return };
        self.close_if_due(key, bucket, now);
        if let Some(open) = &mut bucket.open
            && std::mem::take(&mut open.holds)
            && now >= open.passed + self.limits.half_open
        {
            open.passed = now;
            self.metrics.circuit_event(&self.controller, "HalfOpenAllowed");
        }
    }

    /// When to reconcile a composite resource next because of its open circuit: because something
    /// is held back, or because it closes.
    pub fn next(&self, key: &Key) -> Option<Instant> {
        let buckets = self.buckets();
        let open = buckets.get(key)?.open.as_ref()?;
        let closes = open.since + self.limits.cooldown;
        Some(if open.holds { closes.min(open.passed + self.limits.half_open) } else { closes })
    }

    /// Forgets full buckets: a new one would be the same.
    pub fn tidy(&self, now: Instant) {
        self.buckets().retain(|_, bucket| {
            bucket.refill(&self.limits, now);
            bucket.open.is_some() || bucket.tokens < bucket.capacity
        });
    }

    /// Whether the circuit of a key is open.
    pub fn is_open(&self, key: &Key) -> bool {
        self.buckets().get(key).is_some_and(|bucket| bucket.open.is_some())
    }
}

impl Bucket {
    fn refill(&mut self, limits: &Limits, now: Instant) {
        let elapsed = now.saturating_duration_since(self.refilled).as_secs_f64();
        self.tokens = (self.tokens + elapsed * limits.refill_rate).min(self.capacity);
        self.refilled = now;
    }
}

impl breaker::Breaker for Breaker {
    fn triggered_by(&self, xr: &ObjectId) -> Option<String> {
        let buckets = self.buckets();
        Some(buckets.get(&Key::from(xr))?.open.as_ref()?.source.clone())
    }

    fn explanation(&self, xr: &ObjectId) -> Option<String> {
        if !self.limits.explain {
            return None;
        }
        let buckets = self.buckets();
        let changing = buckets.get(&Key::from(xr))?.open.as_ref()?.changing.as_ref()?;
        Some(changing.to_string())
    }
}

/// `Kind/name`, with the namespace if there is one.
fn source(object: &Object) -> String {
    match object.namespace() {
        "" => format!("{}/{}", object.kind(), object.name()),
        namespace => format!("{}/{} ({namespace})", object.kind(), object.name()),
    }
}

/// The most frequent source. Of several, the one that reaches the number last.
fn most_frequent(sources: &VecDeque<String>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut most, mut found) = (0, "");
    for source in sources {
        let count = counts.entry(source).or_default();
        *count += 1;
        if *count >= most {
            (most, found) = (*count, source);
        }
    }
    found.to_owned()
}

#[cfg(test)]
mod tests;

//! Events: what a controller tells users about an object, and the recorder that decides which
//! repetitions are worth a write.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use biplane_model::{Object, ObjectId};
use tokio::time::Instant;

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Expected behaviour.
    Normal,
    /// A problem that a user should look at.
    Warning,
}

impl EventType {
    /// The spelling of the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regarding {
    /// Kind, namespace and name.
    pub id: ObjectId,
    /// Its UID. `kubectl describe` finds events by it.
    pub uid: String,
    /// Its version when the event happened.
    pub resource_version: String,
}

impl From<&Object> for Regarding {
    fn from(object: &Object) -> Self {
        Self {
            id: object.id(),
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
        }
    }
}

/// A Kubernetes event about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object.
    pub regarding: Regarding,
    /// The severity.
    pub r#type: EventType,
    /// A machine-readable reason.
    pub reason: String,
    /// A human-readable message.
    pub message: String,
    /// The controller that reports it.
    pub component: String,
    /// Additional annotations on the event.
    pub annotations: BTreeMap<String, String>,
    /// How often it has happened. More than one updates the event that was written first.
    pub count: u32,
}

/// Takes events. Recording never fails and never waits, because a lost event must not fail or delay
/// a reconcile.
pub trait Events: Send + Sync {
    /// Records an event.
    fn record(&self, event: Event);
    /// Forgets an object, because it does not exist any more.
    fn forget(&self, _uid: &str) {}
}

/// How long after the event before a standing warning is written again. The API server forgets an
/// event an hour after it was last written.
const REFRESH: [Duration; 4] = [
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_mins(45),
];
/// Events that are told within this time belong to the same reconcile, or to ones that follow each
/// other at once.
const BURST: Duration = Duration::from_secs(2);
/// After this time without being recorded, an event counts as new: the API server has forgotten it.
const FORGOTTEN: Duration = Duration::from_hours(1);
/// How many different events of one object are remembered: more than a composite resource with
/// hundreds of unready resources has.
const REMEMBERED: usize = 1024;
/// So many objects are remembered before those are looked for about which nothing was recorded for
/// an hour. Nobody may have told that they are gone.
const FEW: usize = 1024;

/// Passes on what is news.
///
/// - A new event is passed on.
/// - An event that has not been recorded for an hour is passed on.
/// - A Normal event is passed on again only if something else has been told about the object since,
///   in another burst of events.
/// - A standing Warning is passed on again after 1, 5 and 30 minutes, and then every 45 minutes.
pub struct Recorder<E> {
    sink: E,
    began: Instant,
    known: Mutex<Known>,
}

/// What was told about each object, by its UID.
#[derive(Debug, Default)]
struct Known {
    of: BTreeMap<Box<str>, Vec<Told>>,
    /// So many objects are remembered before forgotten ones are looked for again.
    enough: usize,
}

/// An event that was passed on. The newest is last. There are many of these, so times are
/// milliseconds since the recorder began.
#[derive(Debug)]
struct Told {
    key: u64,
    /// When it was passed on.
    at: u64,
    /// When it was recorded, passed on or not.
    seen: u64,
    count: u32,
    /// How often it was passed on again.
    refreshed: u16,
}

impl Told {
    fn is_forgotten(&self, now: u64) -> bool {
        // Another thread may have been later, and first.
        now.saturating_sub(self.seen) >= FORGOTTEN.as_millis() as u64
    }
}

impl Known {
    /// What was told about an object.
    fn about(&mut self, uid: &str, now: u64) -> &mut Vec<Told> {
        if self.of.len() >= self.enough.max(FEW) && !self.of.contains_key(uid) {
            self.of.retain(|_, told| told.iter().any(|told| !told.is_forgotten(now)));
            self.enough = 2 * self.of.len();
        }
        self.of.entry(uid.into()).or_default()
    }
}

impl<E> fmt::Debug for Recorder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl<E: Events> Recorder<E> {
    /// Passes news on to `sink`.
    pub fn new(sink: E) -> Self {
        Self { sink, began: Instant::now(), known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides whether an event is news, and how often it has happened.
    fn news(&self, event: &Event) -> Option<u32> {
        let key = key(event);
        let now = self.began.elapsed().as_millis() as u64;
        let mut known = self.known();
        let told = known.about(&event.regarding.uid, now);
        let Some(position) = told.iter().position(|t| t.key == key) else {
            if told.len() == REMEMBERED {
                told.remove(0);
            }
            told.push(Told { key, count: 1, refreshed: 0, at: now, seen: now });
            return Some(1);
        };
        let newest = told.last().map_or(now, |newest| newest.at);
        let again = &mut told[position];
        again.count = again.count.saturating_add(1);
        let forgotten = again.is_forgotten(now);
        again.seen = now;
        let after = |time: u64, earlier: u64| Duration::from_millis(time.saturating_sub(earlier));
        let due = match event.r#type {
            EventType::Normal => after(newest, again.at) > BURST,
            EventType::Warning => {
                let wait = REFRESH.get(usize::from(again.refreshed)).or(REFRESH.last()).copied();
                after(now, again.at) >= wait.unwrap_or_default()
            }
        };
        if !due && !forgotten {
            return None;
        }
        let mut again = told.remove(position);
        again.refreshed = again.refreshed.saturating_add(1);
        again.at = now;
        let count = again.count;
        told.push(again);
        Some(count)
    }
}

impl<E: Events> Events for Recorder<E> {
    fn record(&self, event: Event) {
        if let Some(count) = self.news(&event) {
            self.sink.record(Event { count, ..event });
        }
    }

    fn forget(&self, uid: &str) {
        self.known().of.remove(uid);
        self.sink.forget(uid);
    }
}

impl<E: Events + ?Sized> Events for std::sync::Arc<E> {
    fn record(&self, event: Event) {
        (**self).record(event);
    }

    fn forget(&self, uid: &str) {
        (**self).forget(uid);
    }
}

/// A hash of everything that makes two events of an object the same.
fn key(event: &Event) -> u64 {
    let mut parts = vec![event.r#type.as_str(), &event.reason, &event.message, &event.component];
    for (name, value) in &event.annotations {
        parts.extend([name.as_str(), value.as_str()]);
    }
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use biplane_model::Gvk;

    use super::*;

    struct Nowhere;

    impl Events for Nowhere {
        fn record(&self, _: Event) {}
    }

    #[tokio::test(start_paused = true)]
    async fn objects_of_which_nothing_is_heard_are_forgotten() {
        let recorder = Recorder::new(Nowhere);
        let record = |uid: String| {
            let id = ObjectId::new(Gvk::new("example.org/v1", "Thing"), "", "a");
            recorder.record(Event {
                regarding: Regarding { id, uid, resource_version: "1".into() },
                r#type: EventType::Normal,
                reason: "Compose".into(),
                message: "done".into(),
                component: "defined/thing".into(),
                annotations: BTreeMap::new(),
                count: 1,
            });
        };
        for hour in 0..3 {
            for number in 0..FEW - 1 {
                record(format!("{hour}-{number}"));
            }
            record("stays".into());
            tokio::time::advance(Duration::from_mins(59)).await;
            record("stays".into());
            tokio::time::advance(Duration::from_mins(1)).await;
        }
        let known = recorder.known();
        assert_eq!(known.of.len(), FEW);
        assert_eq!(known.of["stays"][0].count, 6, "it was heard of all the time");
    }
}

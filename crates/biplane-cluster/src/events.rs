//! Events: what a controller tells users about an object, and the recorder that decides which
//! repetitions are worth a write.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};
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

/// Passes on what is news.
///
/// - A new event is passed on.
/// - An event that has not been recorded for an hour is passed on.
/// - A Normal event is passed on again only if something else has been told about the object since,
///   in another burst of events.
/// - A standing Warning is passed on again after 1, 5 and 30 minutes, and then every 45 minutes.
pub struct Recorder<E> {
    sink: E,
    known: Mutex<BTreeMap<String, Vec<Told>>>,
}

/// An event that was passed on. The newest is last.
#[derive(Debug)]
struct Told {
    key: u64,
    count: u32,
    /// How often it was passed on again.
    refreshed: usize,
    /// When it was passed on.
    at: Instant,
    /// When it was recorded, passed on or not.
    seen: Instant,
}

impl<E> fmt::Debug for Recorder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl<E: Events> Recorder<E> {
    /// Passes news on to `sink`.
    pub fn new(sink: E) -> Self {
        Self { sink, known: Mutex::default() }
    }

    /// Decides whether an event is news, and how often it has happened.
    fn news(&self, event: &Event) -> Option<u32> {
        let key = key(event);
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let told = known.entry(event.regarding.uid.clone()).or_default();
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
        let forgotten = now.duration_since(std::mem::replace(&mut again.seen, now)) >= FORGOTTEN;
        let due = match event.r#type {
            EventType::Normal => newest.duration_since(again.at) > BURST,
            EventType::Warning => {
                let wait = REFRESH.get(again.refreshed).or(REFRESH.last()).copied();
                now.duration_since(again.at) >= wait.unwrap_or_default()
            }
        };
        if !due && !forgotten {
            return None;
        }
        let mut again = told.remove(position);
        again.refreshed += 1;
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
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
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

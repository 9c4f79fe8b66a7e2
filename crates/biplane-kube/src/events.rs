//! Writes events about objects to the API server.
//!
//! Recording an event puts it into a queue. Four events are written at a time, so that reconciles go
//! first. A repeated event updates the one that was written before.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use biplane_cluster::{Cluster, Event, Events, Part, Patch, Write, WriteError};
use biplane_model::{Gvk, Object, ObjectId, names};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::metrics::{Counters, Sent};

/// How many events wait at most.
const QUEUE: usize = 10_000;
/// How many events are written at a time.
const IN_FLIGHT: u32 = 4;
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// An event that could not be written so often is dropped. It would be minutes old.
const ATTEMPTS: u32 = 10;
/// The longest name of an event.
const LONGEST_NAME: usize = 253;
/// The server forgets an event this long after it was last written.
const FORGOTTEN: Duration = Duration::from_hours(1);
/// Events of so many objects are remembered before forgotten ones are looked for.
const FEW: usize = 1024;
/// Events about objects without a namespace are written to this one.
const DEFAULT_NAMESPACE: &str = "default";

/// A source of the current time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

enum Message {
    Event(Box<Event>),
    /// Answered when everything before it has been written.
    Flush(oneshot::Sender<()>),
}

/// An event that was written.
#[derive(Debug)]
struct Place {
    /// What makes it the same as another, as a hash.
    event: u64,
    /// The number in its name.
    number: i64,
    /// When it was last written.
    at: Instant,
}

/// The events that were written, by the UIDs of their objects.
#[derive(Debug, Default)]
struct Places {
    of: BTreeMap<Box<str>, Vec<Place>>,
    /// So many objects are remembered before forgotten events are looked for again.
    enough: usize,
}

impl Places {
    fn number(&self, event: &Event) -> Option<i64> {
        let hash = hash(event);
        let places = self.of.get(&*event.regarding.uid)?;
        places.iter().find(|place| place.event == hash).map(|place| place.number)
    }

    fn remember(&mut self, event: &Event, number: i64) {
        let at = Instant::now();
        if self.of.len() >= self.enough.max(FEW) {
            // Nobody may have told that an object is gone.
            self.of.retain(|_, places| {
                places.retain(|place| at.duration_since(place.at) < FORGOTTEN);
                !places.is_empty()
            });
            self.enough = 2 * self.of.len();
        }
        let places = self.of.entry((*event.regarding.uid).into()).or_default();
        let event = hash(event);
        places.retain(|place| place.event != event && at.duration_since(place.at) < FORGOTTEN);
        places.push(Place { event, number, at });
    }
}

/// Writes events. It is best behind a [`biplane_cluster::Recorder`], which decides what is news.
pub struct EventSink {
    queue: mpsc::Sender<Message>,
    written: Arc<Written>,
    is_full: AtomicBool,
    task: AbortHandle,
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}

/// What the tasks share.
struct Written {
    cluster: Arc<dyn Cluster>,
    counters: Counters,
    manager: String,
    now: Now,
    /// The number in the last name. It never repeats.
    last: AtomicI64,
    places: Mutex<Places>,
    /// The events that are being written, by a hash. Whoever has the same to write waits.
    busy: Mutex<BTreeMap<u64, Arc<tokio::sync::Mutex<()>>>>,
}

impl EventSink {
    /// Writes events to a cluster as a field manager.
    pub fn new(
        cluster: Arc<dyn Cluster>,
        counters: Counters,
        manager: impl Into<String>,
        now: Now,
    ) -> Self {
        let (queue, messages) = mpsc::channel(QUEUE);
        let written = Arc::new(Written {
            cluster,
            counters,
            manager: manager.into(),
            now,
            last: AtomicI64::new(0),
            places: Mutex::default(),
            busy: Mutex::default(),
        });
        let task = tokio::spawn(work(messages, Arc::clone(&written))).abort_handle();
        Self { queue, written, is_full: AtomicBool::new(false), task }
    }

    /// Waits until the events so far have been written. Returns whether they were in time.
    pub async fn flush(&self, by: Instant) -> bool {
        let (done, flushed) = oneshot::channel();
        let all = async {
            self.queue.send(Message::Flush(done)).await.ok()?;
            flushed.await.ok()
        };
        matches!(timeout_at(by, all).await, Ok(Some(())))
    }
}

impl Drop for EventSink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Events for EventSink {
    fn record(&self, event: Event) {
        let is_full = self.queue.try_send(Message::Event(Box::new(event))).is_err();
        let was_full = self.is_full.swap(is_full, Ordering::Relaxed);
        if is_full {
            self.written.count("dropped");
            if !was_full {
                tracing::warn!("events are dropped because {QUEUE} of them are waiting");
            }
        }
    }

    fn forget(&self, uid: &str) {
        self.written.places().of.remove(uid);
    }
}

async fn work(mut messages: mpsc::Receiver<Message>, written: Arc<Written>) {
    let slots = Arc::new(Semaphore::new(IN_FLIGHT as usize));
    while let Some(message) = messages.recv().await {
        match message {
            Message::Event(event) => {
                let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
                let written = Arc::clone(&written);
                tokio::spawn(async move {
                    written.write(&event).await;
                    drop(slot);
                });
            }
            Message::Flush(done) => {
                let all = slots.acquire_many(IN_FLIGHT).await;
                // Whoever asked may have gone.
                let _ = done.send(());
                drop(all);
            }
        }
    }
}

impl Written {
    fn count(&self, outcome: &'static str) {
        self.counters.events.get_or_create(&Sent { outcome }).inc();
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<tokio::sync::Mutex<()>>>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an event after all others that are the same.
    async fn write(&self, event: &Event) {
        let mut hasher = DefaultHasher::new();
        (&event.regarding.uid, hash(event)).hash(&mut hasher);
        let key = hasher.finish();
        let turn = Arc::clone(self.busy().entry(key).or_default());
        {
            let _mine = turn.lock().await;
            self.write_now(event).await;
        }
        let mut busy = self.busy();
        // Here and in the map: nobody else waits.
        if Arc::strong_count(&turn) == 2 {
            busy.remove(&key);
        }
    }

    async fn write_now(&self, event: &Event) {
        // The time of the event is that of its first attempt.
        let now = (self.now)();
        let before = self.places().number(event);
        if event.count > 1
            && let Some(number) = before
        {
            let again = json!({"count": event.count, "lastTimestamp": seconds(now)});
            let id = id(event, number);
            match self.persist(|by| self.patch(&id, &again, by)).await {
                Ok(()) => return self.was_written(event, number),
                // The server has forgotten it.
                Err(WriteError::NotFound(_)) => {}
                Err(error) => return self.failed(event, &error),
            }
        }
        let number = self.number(now);
        let object = object(event, now, number);
        match self.persist(|by| self.create(&object, by)).await {
            // It exists if an earlier attempt was not answered.
            Ok(()) | Err(WriteError::AlreadyExists(_)) => self.was_written(event, number),
            Err(error) => self.failed(event, &error),
        }
    }

    fn was_written(&self, event: &Event, number: i64) {
        self.places().remember(event, number);
        self.count("written");
    }

    fn failed(&self, event: &Event, error: &WriteError) {
        self.count("failed");
        tracing::debug!(object = %event.regarding.id, reason = event.reason, %error, "cannot write an event");
    }

    async fn create(&self, object: &Object, by: Instant) -> Result<(), WriteError> {
        let how = Write::by(&self.manager);
        self.cluster.create(object.clone(), &how, by).await.map(drop)
    }

    async fn patch(
        &self,
        id: &ObjectId,
        changes: &serde_json::Value,
        by: Instant,
    ) -> Result<(), WriteError> {
        let (how, patch) = (Write::by(&self.manager), Patch::Merge(changes.clone()));
        self.cluster.patch(id, Part::Main, &patch, &how, by).await.map(drop)
    }

    /// Repeats a write until the server has an answer to it.
    async fn persist<F>(&self, write: impl Fn(Instant) -> F) -> Result<(), WriteError>
    where
        F: Future<Output = Result<(), WriteError>>,
    {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let error = match write(Instant::now() + PATIENCE).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let asked = match &error {
                WriteError::Throttled { after, .. } => *after,
                WriteError::Unavailable(_) | WriteError::TimedOut(_) | WriteError::Internal(_)
                    if attempt < ATTEMPTS =>
                {
                    Duration::ZERO
                }
                _ => return Err(error),
            };
            sleep(wait.max(asked)).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Ok(())
    }

    /// A number that grows.
    fn number(&self, now: Timestamp) -> i64 {
        let now = i64::try_from(now.as_nanosecond()).unwrap_or_default();
        let step = |last: i64| Some(now.max(last + 1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        now.max(last.unwrap_or_default() + 1)
    }
}

/// The event as an object of the API.
fn object(event: &Event, now: Timestamp, number: i64) -> Object {
    let ObjectId { gvk, namespace, name } = &event.regarding.id;
    let place = id(event, number);
    let time = seconds(now);
    let mut involved = json!({
        "apiVersion": gvk.api_version(), "kind": gvk.kind, "name": name,
        "uid": event.regarding.uid, "resourceVersion": event.regarding.resource_version,
    });
    if !namespace.is_empty() {
        involved["namespace"] = namespace.as_str().into();
    }
    let mut value = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"namespace": place.namespace, "name": place.name},
        "involvedObject": involved,
        "type": event.r#type.as_str(), "reason": event.reason, "message": event.message,
        "source": {"component": event.component}, "reportingComponent": event.component,
        "firstTimestamp": time, "lastTimestamp": time, "count": event.count.max(1),
    });
    if !event.annotations.is_empty() {
        value["metadata"]["annotations"] = json!(event.annotations);
    }
    Object::from_value(value).unwrap_or_default()
}

/// Where an event is: its name is that of the object, and a number.
fn id(event: &Event, number: i64) -> ObjectId {
    let ObjectId { namespace, name, .. } = &event.regarding.id;
    let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
    let usual = format!("{name}.{number:x}");
    let is_name = usual.len() <= LONGEST_NAME && names::is_subdomain(&usual);
    let name = if is_name { usual } else { format!("event.{number:x}") };
    ObjectId::new(Gvk::new("v1", "Event"), namespace, &name)
}

/// A time as the API has it: without fractions.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What makes two events of an object the same.
fn hash(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    (event.r#type.as_str(), &event.reason, &event.message, &event.component).hash(&mut hasher);
    event.annotations.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use biplane_cluster::memory::ApiServer;
    use biplane_cluster::memory::{Answer, Fault, When};
    use biplane_cluster::{EventType, List, Query, Regarding};

    use super::*;

    fn event(message: &str, count: u32) -> Event {
        let id = ObjectId::new(Gvk::new("example.org/v1", "Thing"), "", "a");
        Event {
            regarding: Regarding { id, uid: "u".into(), resource_version: "7".into() },
            r#type: EventType::Warning,
            reason: "Compose".into(),
            message: message.into(),
            component: "defined/thing".into(),
            annotations: BTreeMap::from([("controller".into(), "x".into())]),
            count,
        }
    }

    fn sink(server: &Arc<ApiServer>) -> EventSink {
        let now: Now = Arc::new(|| Timestamp::from_second(1_800_000_000).unwrap());
        let cluster = Arc::clone(server) as Arc<dyn Cluster>;
        EventSink::new(cluster, Counters::default(), "crossplane", now)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_hours(1)
    }

    async fn written(server: &ApiServer) -> Vec<Object> {
        let how = List::live();
        let kind = Gvk::new("v1", "Event");
        server.list(&kind, &Query::default(), &how, soon()).await.unwrap().objects
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_event_updates_the_first() {
        let server = Arc::new(ApiServer::default());
        let sink = sink(&server);
        sink.record(event("one", 1));
        sink.record(event("two", 1));
        sink.record(event("one", 4));
        assert!(sink.flush(soon()).await);
        let all = written(&server).await;
        let mut counts: Vec<_> = all
            .iter()
            .map(|e| (e.str_at(&["message"]), e.at(&["count"]).unwrap().as_i64()))
            .collect();
        counts.sort_unstable();
        assert_eq!(counts, [("one", Some(4)), ("two", Some(1))]);
        let one = all.iter().find(|e| e.str_at(&["message"]) == "one").unwrap();
        assert_eq!(one.namespace(), "default");
        assert_eq!(one.str_at(&["involvedObject", "uid"]), "u");
        assert_eq!(one.str_at(&["source", "component"]), "defined/thing");
        assert_eq!(one.str_at(&["lastTimestamp"]), "2027-01-15T08:00:00Z");
        assert_eq!(one.annotation("controller"), "x");

        sink.forget("u");
        sink.record(event("one", 9));
        assert!(sink.flush(soon()).await);
        assert_eq!(written(&server).await.len(), 3, "the old one is not known any more");
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_the_server_has_forgotten_are_not_remembered() {
        let server = Arc::new(ApiServer::default());
        let sink = sink(&server);
        let about = |number: usize| {
            let mut event = event("one", 1);
            event.regarding.uid = format!("u-{number}");
            event
        };
        for hour in 0..3 {
            for number in 0..FEW {
                sink.record(about(hour * FEW + number));
            }
            assert!(sink.flush(soon()).await);
            tokio::time::advance(FORGOTTEN).await;
        }
        assert_eq!(sink.written.places().of.len(), FEW);
        assert!(sink.written.busy().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_in_trouble_gets_the_event_later_and_once() {
        let server = Arc::new(ApiServer::default());
        let sink = sink(&server);
        let fault = |call, when, answer| Fault { call, when, crash: false, answer };
        server.inject(fault(0, When::Before, Answer::Throttled));
        sink.record(event("one", 1));
        assert!(sink.flush(soon()).await);
        server.restart();
        server.inject(fault(0, When::After, Answer::Unavailable));
        sink.record(event("two", 1));
        assert!(sink.flush(soon()).await);
        assert_eq!(written(&server).await.len(), 2);
        let count = |outcome| sink.written.counters.events.get_or_create(&Sent { outcome }).get();
        assert_eq!((count("written"), count("failed")), (2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_into_the_queue_is_counted() {
        let server = Arc::new(ApiServer::default());
        let sink = sink(&server);
        for n in 0..QUEUE + 5 {
            sink.record(event(&n.to_string(), 1));
        }
        let dropped =
            sink.written.counters.events.get_or_create(&Sent { outcome: "dropped" }).get();
        assert_eq!(dropped, 5);
        assert!(!sink.flush(Instant::now()).await, "there is no time left");
    }
}

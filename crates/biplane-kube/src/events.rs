//! Writes events about objects to the API server.
//!
//! Recording an event puts it into a queue. Four events are written at a time, so that reconciles go
//! first. A repeated event updates the one that was written before.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use biplane_cluster::{Cluster, Event, Events, Part, Patch, Write, WriteError};
use biplane_model::{Object, ObjectId, names};
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
/// Events about objects without a namespace are written to this one.
const DEFAULT_NAMESPACE: &str = "default";

/// A source of the current time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

enum Message {
    Event(Box<Event>),
    /// Answered when everything before it has been written.
    Flush(oneshot::Sender<()>),
}

/// Where an event was written, if it was. Held while it is being written.
type Place = Arc<tokio::sync::Mutex<Option<ObjectId>>>;

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
    /// The events of each object, by a hash.
    places: Mutex<BTreeMap<String, BTreeMap<u64, Place>>>,
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
        self.written.places.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
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

    fn place(&self, event: &Event) -> Place {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let of_object = places.entry(event.regarding.uid.clone()).or_default();
        Arc::clone(of_object.entry(hash(event)).or_default())
    }

    async fn write(&self, event: &Event) {
        let place = self.place(event);
        let mut place = place.lock().await;
        // The time of the event is that of its first attempt.
        let now = (self.now)();
        if event.count > 1
            && let Some(id) = &*place
        {
            let again = json!({"count": event.count, "lastTimestamp": seconds(now)});
            match self.persist(|by| self.patch(id, &again, by)).await {
                Ok(()) => return self.count("written"),
                // The server forgets events after an hour.
                Err(WriteError::NotFound(_)) => {}
                Err(error) => return self.failed(event, &error),
            }
        }
        let object = self.object(event, now);
        let id = object.id();
        match self.persist(|by| self.create(&object, by)).await {
            // It exists if an earlier attempt was not answered.
            Ok(()) | Err(WriteError::AlreadyExists(_)) => {
                *place = Some(id);
                self.count("written");
            }
            Err(error) => self.failed(event, &error),
        }
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

    /// The event as an object of the API.
    fn object(&self, event: &Event, now: Timestamp) -> Object {
        let ObjectId { gvk, namespace, name } = &event.regarding.id;
        let place = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
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
            "metadata": {"namespace": place, "name": self.name(name, now)},
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

    /// The name of the object, and a number that grows.
    fn name(&self, regarding: &str, now: Timestamp) -> String {
        let now = i64::try_from(now.as_nanosecond()).unwrap_or_default();
        let step = |last: i64| Some(now.max(last + 1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let number = now.max(last.unwrap_or_default() + 1);
        let name = format!("{regarding}.{number:x}");
        if name.len() <= LONGEST_NAME && names::is_subdomain(&name) {
            name
        } else {
            format!("event.{number:x}")
        }
    }
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
    use biplane_model::Gvk;

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

//! Tests of the recorder of events: what is news and what is a repetition.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use biplane_cluster::{Event, EventType, Events, Recorder, Regarding};
use biplane_model::{Gvk, ObjectId};

#[derive(Default)]
struct Sink(Mutex<Vec<String>>);

impl Events for Sink {
    fn record(&self, event: Event) {
        let Event { message, count, .. } = event;
        self.0.lock().unwrap().push(format!("{message} x{count}"));
    }
}

struct World {
    sink: Arc<Sink>,
    recorder: Recorder<Arc<Sink>>,
}

impl World {
    fn new() -> Self {
        let sink = Arc::new(Sink::default());
        Self { recorder: Recorder::new(sink.clone()), sink }
    }

    fn about(&self, uid: &str, r#type: EventType, message: &str) {
        self.recorder.record(Event {
            regarding: Regarding {
                id: ObjectId::new(Gvk::new("example.org/v1", "Thing"), "ns", "a"),
                uid: uid.into(),
                resource_version: "1".into(),
            },
            r#type,
            reason: "Reason".into(),
            message: message.into(),
            component: "test".into(),
            annotations: [].into(),
            count: 1,
        });
    }

    fn normal(&self, message: &str) {
        self.about("uid", EventType::Normal, message);
    }

    fn warning(&self, message: &str) {
        self.about("uid", EventType::Warning, message);
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.sink.0.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_in_every_reconcile_is_told_once() {
    let world = World::new();
    for _ in 0..5 {
        world.normal("a is not ready");
        world.normal("b is not ready");
        tokio::time::advance(Duration::from_mins(10)).await;
    }
    assert_eq!(world.told(), ["a is not ready x1", "b is not ready x1"]);
}

#[tokio::test(start_paused = true)]
async fn a_normal_event_is_told_again_when_something_else_happened_since() {
    let world = World::new();
    world.normal("not ready");
    tokio::time::advance(Duration::from_mins(1)).await;
    world.normal("selected another revision");
    tokio::time::advance(Duration::from_mins(1)).await;
    world.normal("not ready");
    world.normal("not ready");
    assert_eq!(world.told(), ["not ready x1", "selected another revision x1", "not ready x2"]);
}

#[tokio::test(start_paused = true)]
async fn a_standing_warning_is_refreshed_before_the_server_forgets_it() {
    let world = World::new();
    let mut minutes = Vec::new();
    for minute in 0..200 {
        world.warning("it fails");
        if !world.told().is_empty() {
            minutes.push(minute);
        }
        tokio::time::advance(Duration::from_mins(1)).await;
    }
    // After 1, 5, 30 minutes, and then every 45.
    assert_eq!(minutes, [0, 1, 6, 36, 81, 126, 171]);
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_events_of_one_object_are_told_once_each() {
    let world = World::new();
    for _ in 0..3 {
        for n in 0..500 {
            world.normal(&format!("resource {n} is not ready"));
        }
        tokio::time::advance(Duration::from_mins(1)).await;
    }
    assert_eq!(world.told().len(), 500);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_forgotten_is_told_again() {
    let world = World::new();
    world.normal("not ready");
    tokio::time::advance(Duration::from_mins(59)).await;
    world.normal("not ready");
    tokio::time::advance(Duration::from_mins(61)).await;
    world.normal("not ready");
    assert_eq!(world.told(), ["not ready x1", "not ready x3"]);
}

#[tokio::test(start_paused = true)]
async fn objects_are_told_apart_and_can_be_forgotten() {
    let world = World::new();
    world.about("one", EventType::Normal, "m");
    world.about("two", EventType::Normal, "m");
    world.about("one", EventType::Warning, "m");
    assert_eq!(world.told().len(), 3, "another object, another type");
    world.recorder.forget("one");
    world.about("one", EventType::Normal, "m");
    world.about("two", EventType::Normal, "m");
    assert_eq!(world.told(), ["m x1"]);
}

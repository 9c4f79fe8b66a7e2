//! Tests of the circuit breaker: when it opens, what it holds back, and when it closes.

use biplane_engine::composite::breaker::Breaker as _;
use biplane_function::metrics::Metrics;
use biplane_model::Gvk;
use serde_json::json;

use super::*;

struct World {
    breaker: Breaker,
    metrics: Metrics,
    now: Instant,
}

fn xr_id() -> ObjectId {
    ObjectId::new(Gvk::new("example.org/v1", "Thing"), "ns", "xr")
}

fn key() -> Key {
    Key::from(&xr_id())
}

fn xr_object(uid: &str, touch: u32) -> Object {
    Object::from_value(json!({
        "apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {
            "name": "xr", "namespace": "ns", "uid": uid, "resourceVersion": touch.to_string(),
            "annotations": {"example.org/touch": touch.to_string()},
            "managedFields": [
                {"manager": "kubectl-annotate", "operation": "Update", "apiVersion": "example.org/v1",
                 "fieldsType": "FieldsV1", "time": "2024-01-01T00:00:00Z",
                 "fieldsV1": {"f:metadata": {"f:annotations": {"f:example.org/touch": {}}}}},
                {"manager": "crossplane", "operation": "Update", "apiVersion": "example.org/v1",
                 "fieldsType": "FieldsV1", "time": "2024-01-01T00:00:09Z",
                 "fieldsV1": {"f:metadata": {"f:finalizers": {}}}},
            ],
        },
    }))
    .unwrap()
}

impl World {
    fn new() -> Self {
        let metrics = Metrics::default();
        let breaker = Breaker::new("c", Limits::default(), PlaneMetrics::new(&metrics));
        Self { breaker, metrics, now: Instant::now() }
    }

    fn touch(&self, touch: u32) -> Verdict {
        let (before, object) = (xr_object("u", touch - 1), xr_object("u", touch));
        let event = Event { before: Some(&before), object: &object, cost: 2.0 };
        self.breaker.admit(&key(), "u", 1, &event, self.now)
    }

    fn count(&self, result: &str) -> u64 {
        let line = format!("circuit_breaker_events_total{{controller=\"c\",result=\"{result}\"}} ");
        let text = self.metrics.text();
        text.lines().find_map(|l| l.strip_prefix(&line)).map_or(0, |n| n.parse().unwrap())
    }
}

#[test]
fn the_event_that_finds_the_bucket_empty_opens_the_circuit_and_passes() {
    // CB-1, CB-2
    let world = World::new();
    for touch in 1..=50 {
        assert_eq!(world.touch(touch), Verdict::Pass);
        assert_eq!(world.breaker.triggered_by(&xr_id()), None, "{touch}");
    }
    assert_eq!(world.touch(51), Verdict::Pass);
    assert_eq!(world.breaker.triggered_by(&xr_id()).as_deref(), Some("Thing/xr (ns)"));
    assert_eq!(
        world.breaker.explanation(&xr_id()).as_deref(),
        Some(
            "Field manager \"kubectl-annotate\" keeps changing its field \
             metadata.annotations[example.org/touch]."
        )
    );
    assert_eq!(world.touch(52), Verdict::Hold(world.now + Duration::from_secs(30)));
    assert_eq!((world.count("Allowed"), world.count("Dropped")), (51, 1));
}

#[test]
fn while_it_is_open_one_passes_every_half_minute_and_then_it_closes() {
    // CB-3
    let mut world = World::new();
    for touch in 1..=51 {
        world.touch(touch);
    }
    let opened = world.now;
    let closes = opened + Duration::from_mins(5);
    assert_eq!(world.breaker.next(&key()), Some(closes), "nothing is held back");
    world.now += Duration::from_secs(10);
    let next = opened + Duration::from_secs(30);
    assert_eq!(world.touch(52), Verdict::Hold(next));
    assert_eq!(world.breaker.next(&key()), Some(next), "the next change is due");
    world.now = next;
    world.breaker.started(&key(), world.now);
    assert_eq!(world.count("HalfOpenAllowed"), 1);
    assert_eq!(world.breaker.next(&key()), Some(closes), "it saw everything");
    world.now += Duration::from_secs(1);
    assert_eq!(world.touch(53), Verdict::Hold(next + Duration::from_secs(30)));
    world.now = closes;
    world.breaker.started(&key(), world.now);
    assert_eq!(world.breaker.triggered_by(&xr_id()), None, "it closes by itself");
    assert_eq!(world.breaker.next(&key()), None);
    assert_eq!(world.touch(54), Verdict::Pass);
}

#[test]
fn slow_changes_never_open_it() {
    let mut world = World::new();
    for touch in 1..=500 {
        world.now += Duration::from_secs(2);
        assert_eq!(world.touch(touch), Verdict::Pass);
    }
    assert!(!world.breaker.is_open(&key()));
    world.now += Duration::from_secs(2);
    world.breaker.tidy(world.now);
    assert!(world.breaker.buckets().is_empty(), "a full bucket is forgotten");
}

#[test]
fn the_state_follows_the_uid_and_deleted_objects_are_not_held_back() {
    // CB-4
    let world = World::new();
    for touch in 1..=52 {
        world.touch(touch);
    }
    let mut deleted = xr_object("u", 53);
    deleted.set_meta("deletionTimestamp", "2024-01-01T00:00:00Z");
    let event = Event { before: None, object: &deleted, cost: 2.0 };
    assert_eq!(world.breaker.admit(&key(), "u", 1, &event, world.now), Verdict::Pass);
    assert!(world.breaker.is_open(&key()), "unrecorded");
    world.breaker.identify(&key(), &xr_object("u", 54));
    assert!(world.breaker.is_open(&key()), "the same object");
    world.breaker.identify(&key(), &xr_object("other", 55));
    assert!(!world.breaker.is_open(&key()), "another object of the same name");
}

#[test]
fn what_costs_nothing_opens_nothing_and_many_resources_have_a_larger_burst() {
    let world = World::new();
    let object = xr_object("u", 1);
    let event = |cost| Event { before: None, object: &object, cost };
    for _ in 0..1000 {
        let free = world.breaker.admit(&key(), "u", 1, &event(0.0), world.now);
        assert_eq!(free, Verdict::Pass);
    }
    // The first change may come before the resources.
    world.breaker.admit(&key(), "u", 0, &event(2.0), world.now);
    for _ in 0..239 {
        world.breaker.admit(&key(), "u", 60, &event(2.0), world.now);
    }
    assert!(!world.breaker.is_open(&key()));
}

#[test]
fn the_most_frequent_source_is_named() {
    let sources = |all: &[&str]| all.iter().map(|&s| s.to_owned()).collect::<VecDeque<_>>();
    assert_eq!(most_frequent(&sources(&["a", "b", "a"])), "a");
    assert_eq!(most_frequent(&sources(&["a", "a", "b", "b"])), "b", "the last to reach it");
    assert_eq!(most_frequent(&sources(&[])), "");
}

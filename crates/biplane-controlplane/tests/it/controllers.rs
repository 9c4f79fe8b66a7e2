//! Tests of controllers in general: starting, replacing, stopping, mapping and retrying.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use biplane_controlplane::queue::Limits;
use biplane_controlplane::{Controller, Key, Watch};
use biplane_engine::failure::Class;
use biplane_engine::{ReconcileError, Requeue};
use biplane_model::Gvk;
use serde_json::json;
use tokio::time::Instant;

use crate::world::{Setup, World, object};

/// What a controller reconciled, and when.
type Log = Arc<Mutex<Vec<(String, u64)>>>;

/// A controller of Parts that is also woken by ConfigMaps with the name of a Part.
fn parts(
    log: &Log,
    answer: impl Fn(usize) -> Result<Requeue, ReconcileError> + Send + Sync + 'static,
) -> Controller {
    let (log, begin) = (Arc::clone(log), Instant::now());
    let answer = Arc::new(answer);
    let mapped = Watch::mapped("ConfigMap", Gvk::new("v1", "ConfigMap"), |map| {
        vec![Key::new(map.namespace(), map.name())]
    });
    let watches = vec![Watch::own("Part", Gvk::new("example.org/v1", "Part")), mapped];
    Controller::new("parts", watches, Limits::default(), move |key: Key| {
        let mut log = log.lock().unwrap();
        log.push((key.to_string(), begin.elapsed().as_secs()));
        let answer = answer(log.len());
        async move { answer }
    })
}

fn part(name: &str) -> biplane_model::Object {
    object(json!({"apiVersion": "example.org/v1", "kind": "Part",
        "metadata": {"name": name, "namespace": "ns"}, "spec": {"a": 1}}))
}

fn failed() -> ReconcileError {
    ReconcileError { text: "no".into(), class: Class::Other, fatal: None }
}

#[tokio::test(start_paused = true)]
async fn objects_and_what_is_mapped_to_them_are_reconciled() {
    let mut world = World::new(Setup::default()).await;
    let log = Log::default();
    world.create(part("a")).await;
    world.plane.add(parts(&log, |_| Ok(Requeue::No)));
    world.run_seconds(1).await;
    world.create(part("b")).await;
    world
        .create(object(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "ns"}})))
        .await;
    world.run_seconds(1).await;
    let mut names: Vec<_> = log.lock().unwrap().iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    assert_eq!(names, ["ns/a", "ns/a", "ns/b"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure() {
    let mut world = World::new(Setup::default()).await;
    world.create(part("a")).await;
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let watches = vec![Watch::own("Part", Gvk::new("example.org/v1", "Part"))];
    world.plane.add(Controller::new("panics", watches, Limits::default(), move |_| {
        let n = counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            assert!(n > 1, "a reconcile that panics");
            Ok(Requeue::No)
        }
    }));
    world.run_seconds(60).await;
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_up_to_a_minute() {
    let mut world = World::new(Setup::default()).await;
    let log = Log::default();
    world.create(part("a")).await;
    world.plane.add(parts(&log, |_| Err(failed())));
    world.run_seconds(200).await;
    let times: Vec<_> = log.lock().unwrap().iter().map(|(_, at)| *at).collect();
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    let errors = "controller_runtime_reconcile_errors_total{controller=\"parts\"}";
    assert_eq!(world.metric(errors), 9);
}

#[tokio::test(start_paused = true)]
async fn a_controller_is_replaced_when_its_specification_changes() {
    let mut world = World::new(Setup::default()).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    world.runs();
    world.ensure("1").await;
    world.run_seconds(5).await;
    assert_eq!(world.runs(), 0, "nothing changed");
    world.ensure("2").await;
    world.writes();
    world.run_seconds(5).await;
    assert_eq!(world.runs(), 1, "everything is looked at");
    assert_eq!(world.writes(), [""; 0]);
    let name = "composite/things.example.org";
    let count = |what| format!("engine_controllers_{what}_total{{controller=\"{name}\"}}");
    assert_eq!(world.metric(&count("started")), 2);
    assert_eq!(world.metric(&count("stopped")), 1);

    world.plane.registry().stop(name).await;
    assert!(!world.plane.registry().is_running(name));
    world.delete(&world.of_kind("ConfigMap")[0].id()).await;
    world.run_seconds(90).await;
    assert_eq!(world.runs(), 0, "it does not run any more");
    world.plane.registry().stop(name).await;
    world.ensure("2").await;
    world.run_seconds(5).await;
    assert_eq!(world.of_kind("ConfigMap").len(), 5);
    assert!(world.is_ready(&id).await);
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_running_reconciles() {
    let mut world = World::new(Setup::default()).await;
    world.create(part("a")).await;
    let ended = Arc::new(Mutex::new(None));
    let (done, begin) = (Arc::clone(&ended), Instant::now());
    let watches = vec![Watch::own("Part", Gvk::new("example.org/v1", "Part"))];
    world.plane.add(Controller::new("slow", watches, Limits::default(), move |_| {
        let done = Arc::clone(&done);
        async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            *done.lock().unwrap() = Some(begin.elapsed());
            Ok(Requeue::Now)
        }
    }));
    let registry = world.plane.registry().clone();
    let stopped = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        registry.stop("slow").await;
        begin.elapsed()
    });
    world.run_seconds(60).await;
    assert_eq!(ended.lock().unwrap().map(|d| d.as_secs()), Some(5));
    assert_eq!(stopped.await.unwrap().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn watches_of_kinds_that_nobody_depends_on_end() {
    // RT-5
    let mut world = World::new(Setup::default()).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    let count = |what| {
        format!(
            "engine_watches_{what}_total{{controller=\"composite/things.example.org\",type=\"Dependency\"}}"
        )
    };
    assert_eq!((world.metric(&count("started")), world.metric(&count("stopped"))), (1, 0));
    world.delete(&id).await;
    world.run_seconds(130).await;
    assert_eq!((world.metric(&count("started")), world.metric(&count("stopped"))), (1, 1));
    world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    assert_eq!(world.metric(&count("started")), 2);
}

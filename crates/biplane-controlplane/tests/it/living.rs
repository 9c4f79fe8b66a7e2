//! Tests of composite resources that live: they become ready with few writes, are left alone at
//! rest, and follow what changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::Part;
use biplane_cluster::memory::{Answer, Entry, Fault, When};
use biplane_controlplane::composite::Settings;
use biplane_runner::RunError;
use serde_json::json;

use crate::world::{Answering, Setup, World, object, pipeline, response, revision};

#[tokio::test(start_paused = true)]
async fn five_resources_are_ready_after_eight_writes_and_two_runs() {
    let mut world = World::new(Setup::default()).await;
    let id = world.create_thing("ns", "xr").await;
    world.writes();
    world.run_seconds(30).await;
    assert!(world.is_ready(&id).await, "{:?}", world.conditions(&id).await);
    let mut want = vec!["Patch Thing xr"];
    want.extend(["Apply ConfigMap"; 5]);
    want.extend(["ApplyStatus Thing xr"; 2]);
    assert_eq!(world.writes(), want);
    assert_eq!(world.runs(), 2, "own writes wake nobody");
    assert_eq!(
        world.metric(
            "engine_controllers_started_total{controller=\"composite/things.example.org\"}"
        ),
        1
    );
    let dependency = "engine_watches_started_total{controller=\"composite/things.example.org\",type=\"Dependency\"}";
    assert_eq!(world.metric(dependency), 1);
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    for realtime in [true, false] {
        let interval = Duration::from_mins(1);
        let settings = Settings { realtime, poll_interval: interval, ..Settings::default() };
        let mut world = World::new(Setup { settings, ..Setup::default() }).await;
        for i in 0..10 {
            world.create_thing("ns", &format!("xr-{i}")).await;
        }
        world.run_seconds(30).await;
        world.writes();
        world.runs();
        let events = world.events();
        world.run(interval * 10).await;
        assert_eq!(world.writes(), [""; 0], "realtime: {realtime}");
        assert_eq!(world.events(), events, "realtime: {realtime}");
        // The functions allow their responses for a minute.
        let runs = world.runs();
        assert!((90..=120).contains(&runs), "{runs} runs, realtime: {realtime}");
    }
}

#[tokio::test(start_paused = true)]
async fn failing_and_unready_ones_are_left_alone_too() {
    let mut world = World::new(Setup {
        runner: Some(Arc::new(Answering(
            |request: biplane_proto::function::v1::RunFunctionRequest| {
                let name = request
                    .observed
                    .as_ref()
                    .and_then(|s| s.composite.as_ref())
                    .and_then(|c| c.resource.as_ref());
                if name.is_some_and(|xr| xr.name() == "bad") {
                    return Err(RunError::Other("boom".into()));
                }
                Ok(response(json!({"desired": {"resources": {
                    "a": {"resource": {"apiVersion": "v1", "kind": "ConfigMap"}},
                }}})))
            },
        ))),
        ..Setup::default()
    })
    .await;
    let bad = world.create_thing("ns", "bad").await;
    let unready = world.create_thing("ns", "unready").await;
    world.run_seconds(30).await;
    assert!(
        world
            .conditions(&bad)
            .await
            .iter()
            .any(|c| c.starts_with("Synced=False") && c.ends_with("boom"))
    );
    assert!(
        world.conditions(&unready).await.contains(&"Ready=False Unready resources: a".to_owned())
    );
    world.writes();
    world.runs();
    world.run(Duration::from_mins(10)).await;
    assert_eq!(world.writes(), [""; 0]);
    let runs = world.runs();
    assert!((19..=21).contains(&runs), "the failing one every 30 seconds: {runs}");
}

#[tokio::test(start_paused = true)]
async fn a_composed_resource_that_is_deleted_or_changed_comes_back() {
    let mut world = World::new(Setup::default()).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    let maps = world.of_kind("ConfigMap");
    world.delete(&maps[0].id()).await;
    world.writes();
    world.run_seconds(1).await;
    assert_eq!(world.of_kind("ConfigMap").len(), 5);
    assert!(world.writes().contains(&"Apply ConfigMap".to_owned()));
    // One that loses its label leaves the watch.
    let unlabelled = json!({"metadata": {"labels": {"crossplane.io/composite": null}}});
    world.patch(&maps[1].id(), Part::Main, unlabelled).await;
    world.run_seconds(1).await;
    let map = world.get(&maps[1].id()).await.unwrap();
    assert_eq!(map.label("crossplane.io/composite"), "xr");
    world.patch(&maps[2].id(), Part::Main, json!({"data": {"size": "7"}})).await;
    world.writes();
    world.runs();
    world.run_seconds(1).await;
    assert_eq!(world.get(&maps[2].id()).await.unwrap().str_at(&["data", "size"]), "3");
    assert_eq!(world.writes(), ["Apply ConfigMap"]);
    assert_eq!(world.runs(), 2, "one that writes, one that looks");
    assert!(world.is_ready(&id).await);
}

#[tokio::test(start_paused = true)]
async fn without_realtime_only_polls_look_at_composed_resources() {
    let settings = Settings { realtime: false, ..Settings::default() };
    let mut world = World::new(Setup { settings, ..Setup::default() }).await;
    world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    world.delete(&world.of_kind("ConfigMap")[0].id()).await;
    world.run_seconds(5).await;
    assert_eq!(world.of_kind("ConfigMap").len(), 4);
    world.run_seconds(66).await;
    assert_eq!(world.of_kind("ConfigMap").len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_a_hundred_ready_ones_writes_nothing() {
    let mut world = World::new(Setup::default()).await;
    for i in 0..100 {
        world.create_thing(&format!("ns-{}", i % 7), &format!("xr-{i}")).await;
    }
    world.run_seconds(30).await;
    let server = Arc::clone(&world.server);
    drop(world);
    let mut world = World::on(server, Setup::default()).await;
    let calls = world.server.calls();
    world.run_seconds(30).await;
    assert_eq!(world.writes(), [""; 0]);
    assert_eq!(world.runs(), 100, "each is looked at once");
    assert!(world.server.calls() > calls);
    for thing in world.of_kind("Thing") {
        assert!(world.is_ready(&thing.id()).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_revision_reaches_those_that_follow_it() {
    let mut world = World::new(Setup::default()).await;
    let follows = world.create_thing("ns", "follows").await;
    let mut manual = crate::world::thing("ns", "manual");
    manual.set_at(&["spec", "crossplane", "compositionUpdatePolicy"], "Manual").unwrap();
    let manual = world.create(manual).await.id();
    world.run_seconds(5).await;
    world.runs();
    let mut spec = pipeline();
    spec["pipeline"][0]["input"]["resources"].as_array_mut().unwrap().pop();
    world.server.seed([revision(2, &spec)]);
    world.run_seconds(5).await;
    let revision_of = async |world: &World, id| {
        let path = ["spec", "crossplane", "compositionRevisionRef", "name"];
        world.get(id).await.unwrap().str_at(&path).to_owned()
    };
    assert_eq!(revision_of(&world, &follows).await, "comp-2");
    assert_eq!(revision_of(&world, &manual).await, "comp-1");
    assert_eq!(world.of_kind("ConfigMap").len(), 4 + 5);
    assert_eq!(world.runs(), 2, "the other one was not woken");
    // The status of a revision says whether functions have what it takes.
    let checked = json!({"status": {"conditions": []}});
    world.patch(&revision(2, &spec).id(), Part::Main, checked).await;
    world.run_seconds(5).await;
    assert_eq!(world.runs(), 0, "the status of a revision wakes nobody");
    // Those that follow it use what it says, although nobody reads it again.
    let labels = json!({"metadata": {"labels": {"crossplane.io/composition-name": "other"}}});
    world.patch(&revision(2, &spec).id(), Part::Main, labels).await;
    world.run_seconds(5).await;
    assert_eq!(revision_of(&world, &follows).await, "comp-1", "it belongs to another one now");
}

#[tokio::test(start_paused = true)]
async fn a_required_resource_that_changes_wakes_who_requires_it() {
    let requires = |request: biplane_proto::function::v1::RunFunctionRequest| {
        let found = request.required_resources.get("settings").and_then(|r| r.items.first());
        let text =
            found.and_then(|r| r.resource.as_ref()).map(|o| o.str_at(&["data", "text"]).to_owned());
        Ok(response(json!({
            "requirements": {"resources": {"settings": {
                "apiVersion": "v1", "kind": "ConfigMap", "matchLabels": {"labels": {"role": "settings"}},
            }}},
            "desired": {"composite": {"resource": {"status": {"text": text.unwrap_or_default()}}}},
        })))
    };
    let runner = Some(Arc::new(Answering(requires)) as _);
    let mut world = World::new(Setup { runner, ..Setup::default() }).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    let settings = object(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "s", "namespace": "elsewhere", "labels": {"role": "settings"}},
        "data": {"text": "one"}}));
    let settings = world.create(settings).await.id();
    world.run_seconds(5).await;
    let text = async || world.get(&id).await.unwrap().str_at(&["status", "text"]).to_owned();
    assert_eq!(text().await, "one");
    world.patch(&settings, Part::Main, json!({"data": {"text": "two"}})).await;
    world.run_seconds(5).await;
    let text = async || world.get(&id).await.unwrap().str_at(&["status", "text"]).to_owned();
    assert_eq!(text().await, "two");
    // Others of the kind wake nobody.
    world.runs();
    let other = object(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "o", "namespace": "elsewhere"}}));
    world.create(other).await;
    world.run_seconds(5).await;
    assert_eq!(world.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn namespaces_take_turns() {
    let settings = Settings { concurrent: 1, ..Settings::default() };
    let mut world = World::new(Setup { settings, ..Setup::default() }).await;
    for i in 0..200 {
        world.create_thing("big", &format!("xr-{i:03}")).await;
    }
    let small = world.create_thing("small", "xr").await;
    let before = world.server.journal_len();
    world.run_seconds(30).await;
    assert!(world.is_ready(&small).await);
    let journal = world.server.journal();
    let patched = journal[before..].iter().filter_map(|entry| match entry {
        Entry::Write { object, .. } if object.kind() == "Thing" => {
            Some(object.namespace().to_owned())
        }
        _ => None,
    });
    let order: Vec<String> = patched.collect();
    let turn = order.iter().position(|namespace| namespace == "small").unwrap();
    assert!(turn <= 4, "it waited for {turn} writes of the other namespace");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_one_goes_and_nothing_is_remembered() {
    let mut world = World::new(Setup::default()).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    world.delete(&id).await;
    world.writes();
    world.run_seconds(5).await;
    assert_eq!(world.writes(), ["Patch Thing xr"]);
    assert!(world.get(&id).await.unwrap_err().is_not_found());
    assert_eq!(world.of_kind("ConfigMap").len(), 0);
    world.runs();
    let reconciles = world.plane.reconciles();
    // Another object of the same name begins anew.
    world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    assert!(world.is_ready(&id).await);
    assert_eq!((world.runs(), world.plane.reconciles() - reconciles), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_server_in_trouble_makes_all_wait_once() {
    for answer in [Answer::Unavailable, Answer::Throttled] {
        let mut world = World::new(Setup::default()).await;
        let mut all = BTreeSet::new();
        for i in 0..20 {
            all.insert(world.create_thing("ns", &format!("xr-{i}")).await);
        }
        world.server.restart();
        let fault = Fault { call: 3, when: When::Before, crash: true, answer };
        world.server.inject(fault);
        world.run_seconds(5).await;
        let failed = world.plane.reconciles();
        assert!(failed <= 21 * 20, "{failed} reconciles");
        world.server.restart();
        world.run_seconds(11).await;
        for id in &all {
            assert!(world.is_ready(id).await, "no back-off of its own keeps {id} waiting");
        }
        assert!(
            world.metric("queue_pauses_total{controller=\"composite/things.example.org\"}") > 0
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_running_reconciles_but_not_for_ever() {
    use async_trait::async_trait;
    use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
    use biplane_runner::{Call, FunctionRunner};

    struct Slow(Duration);

    #[async_trait]
    impl FunctionRunner for Slow {
        async fn run(
            &self,
            _: &Call,
            _: RunFunctionRequest,
        ) -> Result<RunFunctionResponse, RunError> {
            tokio::time::sleep(self.0).await;
            Ok(RunFunctionResponse::default())
        }
    }
    for (seconds, ends) in [(3, true), (60, false)] {
        let runner = Some(Arc::new(Slow(Duration::from_secs(seconds))) as _);
        let mut world = World::new(Setup { runner, ..Setup::default() }).await;
        let id = world.create_thing("ns", "xr").await;
        let begin = tokio::time::Instant::now();
        world.run_seconds(1).await;
        let took = begin.elapsed().as_secs();
        // Two steps of three seconds, or a second and the grace of ten.
        assert_eq!(took, if ends { 6 } else { 11 });
        assert_eq!(world.conditions(&id).await.is_empty(), !ends);
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_looked_at_once_in_a_while_and_the_metrics_tell() {
    // Answers without a time to live are good for ever.
    let answer = |_| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let a = json!({"resource": map, "ready": "READY_TRUE"});
        Ok(response(json!({"desired": {"resources": {"a": a}}})))
    };
    let setup = Setup {
        runner: Some(Arc::new(Answering(answer))),
        sync_interval: Some(Duration::from_hours(1)),
        ..Setup::default()
    };
    let mut world = World::new(setup).await;
    let ids = [world.create_thing("ns", "a").await, world.create_thing("ns", "b").await];
    world.run_seconds(10).await;
    world.runs();
    world.writes();
    world.run(Duration::from_mins(59)).await;
    assert_eq!(world.runs(), 0);
    world.run(Duration::from_mins(8)).await;
    assert_eq!((world.runs(), world.writes().len()), (2, 0), "each once, and nothing is written");
    let skipped = world.metric("writes_skipped_total");
    assert!(skipped >= 2, "{skipped}");
    assert_eq!(world.metric("writes_skipped_wrongly_total"), 0);
    let queue = "composite/things.example.org";
    let depth = format!("workqueue_depth{{controller=\"{queue}\",name=\"{queue}\"}}");
    assert!(world.metrics.text().contains(&format!("{depth} 0")), "{}", world.metrics.text());
    // What is deleted is not looked at any more.
    for id in &ids {
        world.delete(id).await;
    }
    world.run_seconds(10).await;
    let reconciles = world.plane.reconciles();
    world.run(Duration::from_hours(5)).await;
    assert_eq!(world.plane.reconciles(), reconciles);
}

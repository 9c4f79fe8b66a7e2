//! Tests of writing at once, as a live control plane does: few writes to a ready composite
//! resource, and none when nothing has changed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::memory::{ApiServer, Entry, Fault};
use biplane_cluster::{Cluster as _, Delete, Part, Quiet, Recorder, Skipping, Source, Write};
use biplane_engine::Requeue;
use biplane_engine::composite::{Layout, Writing};
use biplane_functions::registry;
use biplane_model::Object;
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, FunctionRunner, InProcess, RunError};
use biplane_schema::structural::Schema;
use serde_json::{Value, json};

use crate::crashing::definition;
use crate::world::{World, response, revision, wants};

/// A deadline that no test reaches.
fn soon() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_hours(1)
}

/// A cluster of an API server, and everything that writes on it as a live control plane does.
struct Live {
    server: Arc<ApiServer>,
    quiet: Arc<Quiet>,
    world: World,
}

impl Live {
    fn new(steps: usize) -> Self {
        let server = Arc::new(ApiServer::default());
        for (kind, plural) in [("Thing", "things"), ("Part", "parts")] {
            server.register(&definition(kind, plural)).unwrap();
        }
        let mut world = World::on(server.clone(), steps);
        let quiet = Arc::new(Quiet::new(server.clone(), Skipping::Verify));
        world.reconciler.context.cluster = quiet.clone();
        world.reconciler.context.events = Arc::new(Recorder::new(server.clone()));
        world.reconciler.behaviour.writing = Writing::LIVE;
        world.reconciler.behaviour.realtime = true;
        world.reconciler.behaviour.poll_interval = Duration::ZERO;
        Self { server, quiet, world }
    }

    /// The writes and events since the last call.
    fn since(&self, before: &mut usize) -> (Vec<String>, Vec<String>) {
        let journal = self.server.journal();
        let (mut writes, mut events) = (Vec::new(), Vec::new());
        for entry in &journal[*before..] {
            match entry {
                Entry::Write { verb, object } => {
                    writes.push(format!("{verb:?} {}", object.kind()));
                }
                Entry::Event(event) => events.push(event.message.clone()),
            }
        }
        *before = journal.len();
        (writes, events)
    }

    /// Reconciles once more and checks that nothing was written or told.
    async fn is_quiet(&self, what: &str) {
        let mut before = self.server.journal_len();
        for _ in 0..3 {
            let _ = self.world.reconcile().await;
        }
        let (writes, events) = self.since(&mut before);
        assert!(writes.is_empty(), "{what}: {writes:?}");
        assert!(events.is_empty(), "{what}: {events:?}");
        assert_eq!(self.quiet.wrong(), 0, "{what}: an apply was skipped wrongly");
    }
}

/// A pipeline of patch-and-transform with five ConfigMaps, and auto-ready.
fn pipeline() -> Value {
    let resources: Vec<_> = (0..5)
        .map(|i| {
            json!({
                "name": format!("map-{i}"),
                "base": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"i": i.to_string()}},
                "patches": [{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size",
                    "toFieldPath": "data.size", "transforms": [{"type": "convert", "convert": {"toType": "string"}}]}],
            })
        })
        .collect();
    json!({
        "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"}, "mode": "Pipeline",
        "pipeline": [
            {"step": "compose", "functionRef": {"name": "function-patch-and-transform"}, "input": {
                "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources}},
            {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
        ],
    })
}

fn with_functions(live: &mut Live) {
    live.world.reconciler.context.runner = Arc::new(InProcess::new(registry()));
    live.world.seed(revision("comp-2", "comp-uid", 2, &pipeline()));
}

#[tokio::test]
async fn five_resources_are_ready_after_eight_writes_and_two_runs() {
    let mut live = Live::new(0);
    with_functions(&mut live);
    let mut before = live.server.journal_len();
    assert_eq!(live.world.reconcile().await, Ok(Requeue::Again));
    let (writes, _) = live.since(&mut before);
    let mut want = vec!["Patch Thing"];
    want.extend(["Apply ConfigMap"; 5]);
    want.push("ApplyStatus Thing");
    assert_eq!(writes, want);
    assert!(matches!(live.world.reconcile().await, Ok(Requeue::After(_))));
    assert_eq!(live.since(&mut before).0, ["ApplyStatus Thing"]);
    assert_eq!(
        live.world.conditions(),
        [
            "Responsive=True/WatchCircuitClosed",
            "Synced=True/ReconcileSuccess",
            "Ready=True/Available",
        ]
    );
    let xr = live.world.xr();
    assert_eq!(
        xr.at(&["metadata", "finalizers"]),
        Some(&json!(["composite.apiextensions.crossplane.io"]))
    );
    assert_eq!(xr.label("crossplane.io/composite"), "xr");
    let crossplane = xr.at(&["spec", "crossplane"]).unwrap();
    assert_eq!(crossplane["resourceRefs"].as_array().unwrap().len(), 5);
    assert_eq!(crossplane["compositionRevisionRef"]["name"], "comp-2");
    let generation = xr.generation();
    for condition in xr.at(&["status", "conditions"]).unwrap().as_array().unwrap() {
        assert_eq!(condition["observedGeneration"], generation, "{condition}");
    }
    live.is_quiet("ready").await;
}

#[tokio::test]
async fn a_change_of_the_desired_state_is_applied_and_nothing_else() {
    let mut live = Live::new(0);
    with_functions(&mut live);
    for _ in 0..2 {
        live.world.reconcile().await.unwrap();
    }
    live.world.change_xr(|xr| xr.set_at(&["spec", "size"], 4).unwrap());
    let mut before = live.server.journal_len();
    live.world.reconcile().await.unwrap();
    // The generation of the conditions follows the spec only when a user changes it through the
    // server. Here only the resources change.
    assert_eq!(live.since(&mut before).0, ["Apply ConfigMap"; 5]);
    let mut spec = pipeline();
    spec["pipeline"][0]["input"]["resources"].as_array_mut().unwrap().pop();
    live.world.seed(revision("comp-3", "comp-uid", 3, &spec));
    live.world.reconcile().await.unwrap();
    // What is not desired any more goes before the references forget it.
    assert_eq!(
        live.since(&mut before).0,
        ["Patch ConfigMap", "Delete ConfigMap", "Patch Thing", "ApplyStatus Thing"]
    );
    live.world.reconcile().await.unwrap();
    live.is_quiet("after a change").await;
}

#[tokio::test]
async fn a_failing_a_paused_and_an_unready_one_are_quiet_too() {
    let live = Live::new(1);
    *live.world.script.responses.lock().unwrap() = vec![Err("boom".into())];
    let error = live.world.reconcile().await.unwrap_err();
    assert!(error.text.ends_with("boom"), "{error}");
    assert!(live.world.conditions().iter().any(|c| c.starts_with("Synced=False/ReconcileError")));
    assert_eq!(
        live.world.xr().str_at(&["spec", "crossplane", "compositionRef", "name"]),
        "comp",
        "what was decided before the failure is written"
    );
    live.is_quiet("failing").await;

    let unready = response(json!({"desired": {"resources": {
        "a": {"resource": {"apiVersion": "v1", "kind": "ConfigMap"}},
        "b": {"resource": {"apiVersion": "v1", "kind": "ConfigMap"}},
    }}}));
    live.world.respond([unready]);
    for _ in 0..2 {
        live.world.reconcile().await.unwrap();
    }
    let not_ready = "Ready=False/Creating Unready resources: a, b";
    assert!(live.world.conditions().contains(&not_ready.to_owned()));
    live.is_quiet("unready").await;

    let paused = ["metadata", "annotations", "crossplane.io/paused"];
    live.world.change_xr(|xr| xr.set_at(&paused, "true").unwrap());
    live.world.reconcile().await.unwrap();
    assert!(live.world.conditions().iter().any(|c| c.starts_with("Synced=False/ReconcilePaused")));
    live.is_quiet("paused").await;
}

#[tokio::test]
async fn a_failure_keeps_the_status_that_functions_set_before() {
    let live = Live::new(1);
    let wanted = json!({"desired": {"composite": {"resource": {"status": {"phase": "up"}}}}});
    live.world.respond([response(wanted)]);
    for _ in 0..2 {
        live.world.reconcile().await.unwrap();
    }
    assert_eq!(live.world.xr().str_at(&["status", "phase"]), "up");
    *live.world.script.responses.lock().unwrap() = vec![Err("boom".into())];
    live.world.reconcile().await.unwrap_err();
    assert_eq!(live.world.xr().str_at(&["status", "phase"]), "up");
    // What functions do not want any more goes.
    live.world.respond([response(json!({}))]);
    live.world.reconcile().await.unwrap();
    assert_eq!(live.world.xr().at(&["status", "phase"]), None);
}

#[tokio::test]
async fn a_deleted_one_goes_with_one_write() {
    let live = Live::new(1);
    live.world.respond([wants(&["a"])]);
    for _ in 0..2 {
        live.world.reconcile().await.unwrap();
    }
    live.server.delete(&live.world.id(), &Delete::default(), soon()).await.unwrap();
    let id = live.world.id();
    let mut before = live.server.journal_len();
    assert_eq!(live.world.reconciler.reconcile(&id.namespace, &id.name).await, Ok(Requeue::No));
    assert_eq!(live.since(&mut before).0, ["Patch Thing"], "no status after the last finalizer");
    assert!(live.server.get(&id, Source::Live, soon()).await.is_err());
    assert!(!live.server.objects().iter().any(|o| o.kind() == "ConfigMap"), "they went with it");
}

#[tokio::test]
async fn while_others_hold_a_deleted_one_its_status_is_written_once() {
    let live = Live::new(1);
    live.world.change_xr(|xr| {
        xr.set_at(&["metadata", "finalizers"], json!(["example.org/hold"])).unwrap();
    });
    live.world.respond([wants(&["a"])]);
    for _ in 0..2 {
        live.world.reconcile().await.unwrap();
    }
    live.server.delete(&live.world.id(), &Delete::default(), soon()).await.unwrap();
    let mut before = live.server.journal_len();
    live.world.reconcile().await.unwrap();
    assert_eq!(live.since(&mut before).0, ["Patch Thing", "PatchStatus Thing"]);
    assert!(live.world.conditions().contains(&"Ready=False/Deleting".to_owned()));
    live.is_quiet("deleting").await;
}

/// Someone changes the composite resource while its functions run.
#[tokio::test]
async fn a_write_that_came_first_is_a_silent_reason_to_try_again() {
    let live = Live::new(1);
    live.world.respond([wants(&["a"])]);
    live.world.reconcile().await.unwrap();
    let calls = {
        live.server.restart();
        live.world.reconcile().await.unwrap();
        live.server.calls()
    };
    assert!(calls > 0);
    for call in 0..calls {
        let live = Live::new(1);
        live.world.respond([wants(&["a"])]);
        live.server.restart();
        let answer = biplane_cluster::memory::Answer::Conflict;
        live.server.inject(Fault { answer, ..Fault::before(call) });
        match live.world.reconcile().await {
            Ok(_) => {}
            // A read cannot conflict.
            Err(error) => assert!(error.text.contains("injected fault"), "{error}"),
        }
        let warned = live.world.events().iter().any(|e| e.contains("onflict"));
        assert!(!warned, "call {call}: {:?}", live.world.events());
    }
}

#[tokio::test]
async fn status_fields_that_the_definition_does_not_declare_are_named_and_the_rest_is_kept() {
    let mut live = Live::new(1);
    let schema = json!({"type": "object", "properties": {"status": {"type": "object", "properties": {
        "phase": {"type": "string"}, "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    }}}});
    live.world.reconciler.behaviour.schema = Some(Arc::new(Schema::parse(&schema).unwrap()));
    let status = json!({"phase": "up", "extra": {"deep": 1}});
    live.world
        .respond([response(json!({"desired": {"composite": {"resource": {"status": status}}}}))]);
    for _ in 0..2 {
        live.world.reconcile().await.unwrap();
    }
    let xr = live.world.xr();
    assert_eq!(xr.str_at(&["status", "phase"]), "up");
    assert_eq!(xr.at(&["status", "extra"]), None);
    let text = "status fields that the CompositeResourceDefinition does not declare were left out: status.extra";
    let conditions = live.world.conditions();
    assert!(conditions.contains(&format!("Synced=False/ReconcileError {text}")), "{conditions:?}");
    let told = format!("Warning ComposeResources: {text}");
    assert_eq!(live.world.events().iter().filter(|e| **e == told).count(), 1);
    live.is_quiet("undeclared").await;
}

/// FC-20 as the live recordings show it: a server refuses a field of the wrong type with an internal
/// error, so it is not a mere invalid resource.
#[tokio::test]
async fn a_field_of_the_wrong_type_fails_the_composition_and_names_the_resource() {
    let live = Live::new(1);
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"i": {"type": "integer"}}}}});
    let mut typed = definition("Part", "parts");
    typed
        .set_at(&["spec", "versions"], json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]))
        .unwrap();
    live.server.register(&typed).unwrap();
    let resource = json!({"apiVersion": "example.org/v1", "kind": "Part", "spec": {"i": "text"}});
    live.world
        .respond([response(json!({"desired": {"resources": {"a": {"resource": resource}}}}))]);
    let error = live.world.reconcile().await.unwrap_err();
    let text = "cannot compose resources: cannot apply composed resource \"a\": failed to create typed patch object";
    assert!(error.text.starts_with(text), "{error}");
    let conditions = live.world.conditions();
    assert!(
        conditions.iter().any(|c| c.starts_with(&format!("Synced=False/ReconcileError {text}"))),
        "{conditions:?}"
    );
    live.is_quiet("malformed").await;
}

#[tokio::test]
async fn a_smaller_time_to_live_and_an_earlier_poll_win() {
    for (ttls, poll, want) in [
        (&["60s", "10s", "30s"][..], None, Some(10.0)),
        (&["10s"], Some("5s"), Some(5.0)),
        (&["10s"], Some("1h"), Some(10.0)),
        (&[], Some("7s"), Some(7.0)),
        (&["0s"], None, None),
    ] {
        let live = Live::new(ttls.len());
        if let Some(poll) = poll {
            let path = ["metadata", "annotations", "crossplane.io/poll-interval"];
            live.world.change_xr(|xr| xr.set_at(&path, poll).unwrap());
        }
        let answers = ttls.iter().map(|ttl| {
            let mut answer = wants(&["a"]);
            answer.meta = response(json!({"meta": {"ttl": ttl}})).meta;
            answer
        });
        let answers: Vec<_> = answers.collect();
        live.world.respond(answers.iter().cloned().cycle().take(answers.len() * 4));
        live.world.reconcile().await.unwrap();
        let answer = live.world.reconcile().await.unwrap();
        match (answer, want) {
            (Requeue::After(wait), Some(want)) => {
                let wait = wait.as_secs_f64();
                assert!((want * 0.9..=want * 1.1).contains(&wait), "{ttls:?} {poll:?}: {wait}");
            }
            (Requeue::No, None) => {}
            (other, _) => panic!("{ttls:?} {poll:?}: {other:?}"),
        }
    }
}

/// Without jitter, all composite resources that were created together would be polled together.
#[tokio::test]
async fn polls_of_many_are_spread() {
    let live = Live::new(1);
    let mut world = live.world;
    world.reconciler.context.ids = Arc::new(biplane_engine::SystemIds);
    world.reconciler.behaviour.poll_interval = Duration::from_mins(1);
    world.respond([wants(&["a"])]);
    world.reconcile().await.unwrap();
    let mut waits = Vec::new();
    for _ in 0..50 {
        let Ok(Requeue::After(wait)) = world.reconcile().await else { panic!("no poll") };
        waits.push(wait.as_secs_f64());
    }
    let (low, high) =
        (waits.iter().copied().fold(f64::MAX, f64::min), waits.iter().copied().fold(0.0, f64::max));
    assert!(low >= 54.0 && high <= 66.0, "{low} {high}");
    assert!(high - low > 3.0, "{low} {high}");
}

/// Replaces the composed resource by another of the same name, and desires nothing.
struct Swap(Arc<ApiServer>);

#[async_trait]
impl FunctionRunner for Swap {
    async fn run(
        &self,
        _call: &Call,
        _request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let found = self.0.objects().into_iter().find(|o| o.kind() == "ConfigMap");
        if let Some(mut other) = found {
            self.0.delete(&other.id(), &Delete::default(), soon()).await.unwrap();
            other.set_meta("uid", "");
            other.set_meta("resourceVersion", "");
            self.0.create(other, &Write::by("someone"), soon()).await.unwrap();
        }
        Ok(RunFunctionResponse::default())
    }
}

/// A resource of the same name that someone made in the meantime is not deleted.
#[tokio::test]
async fn only_the_very_object_that_was_observed_is_deleted() {
    for writing in [Writing::LIVE, Writing::Stepwise] {
        let mut live = Live::new(1);
        live.world.reconciler.behaviour.writing = writing;
        live.world.respond([wants(&["a"])]);
        for _ in 0..2 {
            live.world.reconcile().await.unwrap();
        }
        live.world.reconciler.context.runner = Arc::new(Swap(live.server.clone()));
        assert_eq!(live.world.reconcile().await, Ok(Requeue::Now), "a conflict");
        let objects = live.server.objects();
        assert!(objects.iter().any(|o| o.kind() == "ConfigMap"), "{writing:?}");
    }
}

#[tokio::test]
async fn a_legacy_one_publishes_and_keeps_the_time_of_it() {
    let mut live = Live::new(1);
    live.world = {
        let mut world = World::live(Layout::Legacy, "", 1);
        world.reconciler.behaviour.writing = Writing::LIVE;
        world
    };
    let world = &live.world;
    world.change_xr(|xr| {
        let secret = json!({"name": "conn", "namespace": "secrets"});
        xr.set_at(&["spec", "writeConnectionSecretToRef"], secret).unwrap();
    });
    world.respond([response(
        json!({"desired": {"composite": {"connectionDetails": {"user": "YWRtaW4="}}}}),
    )]);
    for _ in 0..3 {
        world.reconcile().await.unwrap();
        let path = ["status", "connectionDetails", "lastPublishedTime"];
        assert_eq!(world.xr().str_at(&path), "2024-01-01T00:00:00Z");
    }
    let published = "Normal PublishConnectionSecret: Successfully published connection details";
    assert_eq!(world.events().iter().filter(|e| *e == published).count(), 1);
}

#[tokio::test]
async fn a_composed_resource_that_someone_changed_is_put_right() {
    let live = Live::new(1);
    live.world.respond([wants(&["a"])]);
    for _ in 0..2 {
        live.world.reconcile().await.unwrap();
    }
    let find = || live.server.objects().into_iter().find(|o| o.kind() == "ConfigMap").unwrap();
    let mut changed: Object = find();
    changed.set_at(&["data", "k"], "other").unwrap();
    let someone = Write::by("someone");
    live.server.update(&changed, Part::Main, &someone, soon()).await.unwrap();
    let mut before = live.server.journal_len();
    live.world.reconcile().await.unwrap();
    assert_eq!(live.since(&mut before).0, ["Apply ConfigMap"]);
    assert_eq!(find().str_at(&["data", "k"]), "v");
    live.is_quiet("after drift").await;
}

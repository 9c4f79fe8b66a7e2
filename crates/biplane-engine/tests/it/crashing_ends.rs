//! Crash tests of what happens besides composing: connection details are published, and a composite
//! resource is deleted. A crash at any call changes nothing about how it ends.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::memory::{Answer, Fault, When};
use biplane_cluster::{Delete, Quiet, Skipping};
use biplane_engine::composite::{Layout, Writing};
use biplane_model::{Object, Value};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{World, response};

/// What happens to a composite resource that is at rest.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// It gets its first connection details.
    Published,
    /// Its connection details change.
    Changed,
    /// It is deleted.
    Deleted,
}

/// Starts the control plane anew: what it remembered is gone.
fn start(world: &mut World, writing: Writing) {
    world.reconciler.behaviour.writing = writing;
    if writing != Writing::Stepwise {
        let quiet = Quiet::new(world.cluster.cluster(), Skipping::Skip);
        world.reconciler.context.cluster = Arc::new(quiet);
    }
}

/// Functions answer with two ConfigMaps and, perhaps, with connection details.
fn respond(world: &World, details: Option<&str>) {
    let map = |name: &str| {
        json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": name},
            "metadata": {"namespace": "maps"}}, "ready": "READY_TRUE"})
    };
    let mut desired = json!({"resources": {"a": map("a"), "b": map("b")}});
    if let Some(details) = details {
        desired["composite"] = json!({"connectionDetails": {"user": details}});
    }
    world.respond([response(json!({"desired": desired}))]);
}

/// Reconciles until the stored objects no longer change.
async fn settle(world: &World) {
    for _ in 0..6 {
        let before = world.cluster.objects();
        world.reconcile().await.expect("an undisturbed reconcile");
        if world.cluster.objects() == before {
            return;
        }
    }
    panic!("still writing after six reconciles: {:?}", world.writes());
}

/// All stored objects, without fields that count writes or objects.
fn state(world: &World) -> Vec<Value> {
    let mut objects: Vec<_> = world.cluster.objects();
    for object in &mut objects {
        for counted in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
            object.remove_at(&["metadata", counted]);
        }
    }
    objects.into_iter().map(Object::into_value).collect()
}

/// Lets something happen, with a crash at `fault`. Also returns the number of calls of the first
/// reconcile.
async fn run(event: Event, writing: Writing, fault: Option<Fault>) -> (Vec<Value>, usize) {
    let mut world = World::live(Layout::Legacy, "", 1);
    start(&mut world, writing);
    world.change_xr(|xr| {
        let secret = json!({"name": "conn", "namespace": "secrets"});
        xr.set_at_or_ignore(&["spec", "writeConnectionSecretToRef"], secret);
    });
    respond(&world, if matches!(event, Event::Published) { None } else { Some("YWRtaW4=") });
    settle(&world).await;
    match event {
        Event::Published => respond(&world, Some("YWRtaW4=")),
        Event::Changed => respond(&world, Some("cm9vdA==")),
        Event::Deleted => {
            let by = Instant::now() + Duration::from_mins(1);
            let (cluster, id) = (world.cluster.cluster(), world.id());
            cluster.delete(&id, &Delete::default(), by).await.expect("it is deleted");
        }
    }
    start(&mut world, writing);
    world.cluster.restart();
    if let Some(fault) = fault {
        world.cluster.inject(fault);
    }
    let reconciled = world.reconcile().await;
    assert_eq!(reconciled.is_err(), fault.is_some(), "{event:?}, {fault:?}: {reconciled:?}");
    let calls = world.cluster.calls();
    world.cluster.restart();
    start(&mut world, writing);
    settle(&world).await;
    (state(&world), calls)
}

/// Checks every crash point after an event. Returns the state at the end.
async fn check(event: Event, writing: Writing) -> Vec<Value> {
    let (want, calls) = run(event, writing, None).await;
    assert!(calls >= 2, "{event:?}: {calls} calls");
    for call in 0..calls {
        for when in [When::Before, When::After] {
            let fault = Fault { call, when, crash: true, answer: Answer::Unavailable };
            let (got, _) = run(event, writing, Some(fault)).await;
            let (got, want) = (json!(got), json!(want));
            assert!(got == want, "{event:?}, {writing:?}, {fault:?}:\n{got}\n{want}");
        }
    }
    want
}

fn find<'a>(state: &'a [Value], kind: &str) -> Option<&'a Value> {
    state.iter().find(|object| object["kind"] == kind)
}

#[tokio::test]
async fn a_crash_at_any_call_loses_no_connection_details() {
    for writing in [Writing::Stepwise, Writing::LIVE] {
        for (event, user) in [(Event::Published, "YWRtaW4="), (Event::Changed, "cm9vdA==")] {
            let state = check(event, writing).await;
            let secret = find(&state, "Secret").expect("a Secret");
            assert_eq!(secret["data"], json!({"user": user}), "{event:?}, {writing:?}");
        }
    }
}

#[tokio::test]
async fn a_crash_at_any_call_of_a_deletion_leaves_no_composite_resource() {
    // Upstream's steps end with the status of an object that is gone, which is an error.
    let state = check(Event::Deleted, Writing::LIVE).await;
    assert_eq!(find(&state, "Thing"), None);
}

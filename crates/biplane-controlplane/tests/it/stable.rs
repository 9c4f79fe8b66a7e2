//! Tests of virtual time: a control plane runs until it is stable, and time passes in jumps.

use std::sync::Arc;
use std::time::Duration;

use biplane_controlplane::Key;
use biplane_controlplane::dispatcher::{Limit, Stability};
use biplane_proto::function::v1::RunFunctionRequest;
use biplane_runner::RunError;
use serde_json::json;

use crate::world::{Answering, Setup, World, response};

const LIMIT: Limit = Limit { reconciles: 100, time: Duration::from_hours(1) };

#[tokio::test]
async fn it_ends_when_nothing_is_due_but_polls() {
    let mut world = World::new(Setup::default()).await;
    let id = world.create_thing("ns", "xr").await;
    let begin = std::time::Instant::now();
    assert_eq!(world.plane.run_until_stable(&LIMIT).await.unwrap(), Stability::Stable);
    assert!(world.is_ready(&id).await);
    assert_eq!(world.runs(), 2);
    assert!(world.plane.timeline().jumped().is_zero(), "nothing had to wait");
    assert!(begin.elapsed() < Duration::from_mins(1));
    // And on, after a change.
    world.delete(&world.of_kind("ConfigMap")[0].id()).await;
    assert_eq!(world.plane.run_until_stable(&LIMIT).await.unwrap(), Stability::Stable);
    assert_eq!(world.of_kind("ConfigMap").len(), 5);
}

#[tokio::test]
async fn time_jumps_over_back_offs() {
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let runner = Answering(move |_| {
        if tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 10 {
            return Err(RunError::Other("not yet".into()));
        }
        Ok(response(json!({})))
    });
    let runner = Some(Arc::new(runner) as _);
    let mut world = World::new(Setup { runner, ..Setup::default() }).await;
    let id = world.create_thing("ns", "xr").await;
    assert_eq!(world.plane.run_until_stable(&LIMIT).await.unwrap(), Stability::Stable);
    assert!(world.is_ready(&id).await);
    let jumped = world.plane.timeline().jumped().as_secs();
    assert!((179..=182).contains(&jumped), "1+2+4+8+16+30+30+30+30+30 seconds: {jumped}");
}

#[tokio::test]
async fn what_never_settles_is_named() {
    let runner = Answering(|_| Err(RunError::Other("never".into())));
    let runner = Some(Arc::new(runner) as _);
    let mut world = World::new(Setup { runner, ..Setup::default() }).await;
    world.create_thing("ns", "xr").await;
    let limit = Limit { reconciles: 5, ..LIMIT };
    let still_due = Stability::StillDue {
        controller: "composite/things.example.org".into(),
        key: Key::new("ns", "xr"),
    };
    assert_eq!(world.plane.run_until_stable(&limit).await.unwrap(), still_due);
    assert_eq!(world.plane.reconciles(), 5);
    let limit = Limit { time: Duration::from_secs(20), ..LIMIT };
    assert_eq!(world.plane.run_until_stable(&limit).await.unwrap(), still_due);
}

#[tokio::test]
async fn in_steps_a_round_is_what_was_due_when_it_began() {
    let mut world = World::new(Setup::default()).await;
    let ids = [world.create_thing("ns", "a").await, world.create_thing("ns", "b").await];
    let controller = "composite/things.example.org".to_owned();
    let both = [Key::new("ns", "a"), Key::new("ns", "b")].map(|key| (controller.clone(), key));
    let patience = Duration::from_mins(1);
    assert_eq!(world.plane.due(patience).await.unwrap(), both);
    // Asking changes nothing.
    assert_eq!(world.plane.due(patience).await.unwrap(), both);
    assert_eq!(world.runs(), 0);
    for (controller, key) in &both {
        assert!(world.plane.step(controller, key).await);
    }
    assert!(!world.is_ready(&ids[0]).await, "what was composed has not been observed");
    assert_eq!(world.plane.due(patience).await.unwrap(), both);
    for (controller, key) in &both {
        assert!(world.plane.step(controller, key).await);
        assert!(!world.plane.step(controller, key).await, "it is not due any more");
    }
    assert_eq!(world.plane.due(patience).await.unwrap(), []);
    assert!(world.is_ready(&ids[0]).await && world.is_ready(&ids[1]).await);
    assert_eq!(world.runs(), 4);
}

#[tokio::test]
async fn in_steps_time_jumps_no_further_than_one_is_patient() {
    let runner = Some(Arc::new(Answering(|_| Err(RunError::Other("never".into())))) as _);
    let mut world = World::new(Setup { runner, ..Setup::default() }).await;
    world.create_thing("ns", "xr").await;
    let mut steps = 0;
    loop {
        let due = world.plane.due(Duration::from_secs(10)).await.unwrap();
        let [(controller, key)] = &due[..] else { break };
        assert!(world.plane.step(controller, key).await);
        steps += 1;
    }
    assert_eq!(steps, 5, "after 0, 1, 2, 4 and 8 seconds; 16 are too many");
}

/// A function that copies a field of the status to a composed resource must see what it has set.
#[tokio::test]
async fn what_functions_put_into_the_status_is_shown_to_them() {
    let runner = Answering(|request: RunFunctionRequest| {
        let xr = request.observed.and_then(|o| o.composite).and_then(|c| c.resource);
        let seen = xr.map(|xr| xr.str_at(&["status", "address"]).to_owned()).unwrap_or_default();
        Ok(response(json!({"desired": {
            "composite": {"resource": {"status": {"address": "there"}}, "ready": "READY_TRUE"},
            "resources": if seen.is_empty() { json!({}) } else {
                json!({"map": {"ready": "READY_TRUE", "resource": {"apiVersion": "v1",
                    "kind": "ConfigMap", "data": {"address": seen}}}})
            },
        }})))
    });
    let runner = Some(Arc::new(runner) as _);
    let mut world = World::new(Setup { runner, ..Setup::default() }).await;
    world.create_thing("ns", "xr").await;
    assert_eq!(world.plane.run_until_stable(&LIMIT).await.unwrap(), Stability::Stable);
    let maps = world.of_kind("ConfigMap");
    assert_eq!(maps.len(), 1);
    assert_eq!(maps[0].str_at(&["data", "address"]), "there");
    assert_eq!(world.runs(), 3);
}

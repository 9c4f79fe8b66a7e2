//! Tests of virtual time: a control plane runs until it is stable, and time passes in jumps.

use std::sync::Arc;
use std::time::Duration;

use biplane_controlplane::Key;
use biplane_controlplane::dispatcher::{Limit, Stability};
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

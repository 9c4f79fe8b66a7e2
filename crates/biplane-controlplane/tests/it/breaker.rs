//! Tests of the circuit breaker in a running control plane.

use std::time::Duration;

use biplane_cluster::Part;
use serde_json::json;

use crate::world::{Setup, World, pipeline, revision};

const OPENS: &str = "circuit_breaker_opens_total{controller=\"composite/things.example.org\"}";
const CLOSES: &str = "circuit_breaker_closes_total{controller=\"composite/things.example.org\"}";

async fn touch(world: &World, id: &biplane_model::ObjectId, i: u32) {
    let patch = json!({"metadata": {"annotations": {"example.org/touch": i.to_string()}}});
    world.patch(id, Part::Main, patch).await;
}

#[tokio::test(start_paused = true)]
async fn many_quick_changes_open_the_circuit_and_it_closes_by_itself() {
    // CB-1, CB-2, CB-3, CB-5
    let mut world = World::new(Setup::default()).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    for i in 0..70 {
        touch(&world, &id, i).await;
        world.run(Duration::from_millis(100)).await;
    }
    assert_eq!(world.metric(OPENS), 1);
    let message = "Responsive=False Too many watch events from Thing/xr (ns). Allowing events \
        periodically. Field manager \"somebody\" keeps changing its field \
        metadata.annotations[example.org/touch].";
    // What was held back is looked at half a minute later, without another event.
    world.runs();
    world.run_seconds(31).await;
    assert_eq!(world.runs(), 1, "{:?}", world.conditions(&id).await);
    assert!(world.conditions(&id).await.contains(&message.to_owned()));
    world.run_seconds(300).await;
    assert_eq!(world.metric(CLOSES), 1);
    assert!(world.conditions(&id).await.contains(&"Responsive=True".to_owned()));
    // And then it is quiet.
    world.writes();
    world.run_seconds(600).await;
    assert_eq!(world.writes(), [""; 0]);
    assert_eq!((world.metric(OPENS), world.metric(CLOSES)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn while_it_is_open_events_reach_it_every_half_minute() {
    let mut world = World::new(Setup::default()).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    for i in 0..70 {
        touch(&world, &id, i).await;
        world.run(Duration::from_millis(10)).await;
    }
    assert_eq!(world.metric(OPENS), 1);
    world.runs();
    for i in 70..190 {
        touch(&world, &id, i).await;
        world.run_seconds(1).await;
    }
    let runs = world.runs();
    // Every half minute, and every minute because of the functions.
    assert!((4..=7).contains(&runs), "{runs}");
    // Another object of the same name begins anew.
    world.delete(&id).await;
    world.run_seconds(5).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    assert!(world.conditions(&id).await.contains(&"Responsive=True".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn own_writes_first_lists_and_many_resources_at_once_cost_nothing() {
    let mut spec = pipeline();
    let base = spec["pipeline"][0]["input"]["resources"][0].clone();
    let resources: Vec<_> = (0..60)
        .map(|i| {
            let mut resource = base.clone();
            resource["name"] = json!(format!("map-{i}"));
            resource
        })
        .collect();
    spec["pipeline"][0]["input"]["resources"] = json!(resources);
    let mut world = World::new(Setup::default()).await;
    let mut revisions: Vec<_> = (2..1002).map(|i| revision(i, &pipeline())).collect();
    revisions.push(revision(5000, &spec));
    world.server.seed(revisions);
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(5).await;
    assert_eq!(world.of_kind("ConfigMap").len(), 60);
    for map in world.of_kind("ConfigMap") {
        world.patch(&map.id(), Part::Main, json!({"data": {"seen": "by somebody"}})).await;
        world.run(Duration::from_millis(1)).await;
    }
    for map in world.of_kind("ConfigMap") {
        world.patch(&map.id(), Part::Main, json!({"data": {"seen": "twice"}})).await;
    }
    world.run_seconds(5).await;
    assert_eq!(world.metric(OPENS), 0);
    assert!(world.conditions(&id).await.contains(&"Responsive=True".to_owned()));
}

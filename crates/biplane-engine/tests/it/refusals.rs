//! Tests of writes that the API server refuses, because of a conflict or because of their content.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_cluster::WriteError;
use biplane_cluster::memory::{Answer, Fault};
use biplane_engine::Requeue;
use biplane_engine::composite::breaker::Breaker;
use biplane_engine::composite::dependencies::{Dependencies, Tracked};
use biplane_engine::failure::{Class, Failure};
use biplane_model::ObjectId;
use biplane_proto::function::v1::ResourceSelector;
use serde_json::json;

use crate::world::{World, response};

/// A fixture whose pipeline desires two resources and a status of the composite resource.
fn world() -> World {
    let world = World::new(1);
    let resource =
        json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap"}, "ready": "READY_TRUE"});
    world.respond([response(json!({"desired": {
        "composite": {"resource": {"status": {"phase": "up"}}},
        "resources": {"a": resource, "b": resource},
    }}))]);
    world
}

/// The same fixture, where one call fails with the given answer.
fn answering(call: usize, answer: Answer) -> World {
    let world = world();
    world.cluster.inject(Fault { answer, ..Fault::before(call) });
    world
}

/// Returns the number of calls of an undisturbed reconcile, and how many of them are writes.
async fn calls() -> (usize, usize) {
    let world = world();
    let answer = world.reconcile().await.unwrap();
    assert!(matches!(answer, Requeue::After(_)), "{answer:?}");
    (world.cluster.calls(), world.writes().len())
}

#[tokio::test]
async fn someone_faster_is_a_silent_reason_to_try_again() {
    // E1, XR-13.1, XR-23
    let (calls, writes) = calls().await;
    let mut retried = 0;
    for call in 0..calls {
        let world = answering(call, Answer::Conflict);
        match world.reconcile().await {
            Ok(Requeue::Now) => {
                retried += 1;
                let events = world.events();
                assert!(
                    !events.iter().any(|e| e.starts_with("Warning")),
                    "call {call}: {events:?}"
                );
                let conditions = world.conditions();
                let failed = conditions.iter().any(|c| c.starts_with("Synced=False"));
                assert!(!failed, "call {call}: {conditions:?}");
            }
            Ok(other) => panic!("call {call} was refused, and the answer is {other:?}"),
            // A read cannot conflict.
            Err(error) => assert_eq!(error.class, Class::Unavailable, "call {call}: {error}"),
        }
    }
    assert_eq!(retried, writes);
}

#[tokio::test]
async fn an_invalid_resource_is_reported_and_the_others_are_applied() {
    // FC-20, XR-17, XR-18
    let (calls, _) = calls().await;
    let mut found = 0;
    for call in 0..calls {
        let world = answering(call, Answer::Invalid);
        let answer = world.reconcile().await;
        for (name, other) in [("a", "b"), ("b", "a")] {
            let refused = format!(
                "Warning ComposeResources: cannot apply composed resource \"{name}\": injected fault before call {call}"
            );
            if !world.events().contains(&refused) {
                continue;
            }
            found += 1;
            assert_eq!(answer, Ok(Requeue::Now));
            let events = world.events();
            let text =
                format!("Normal ComposeResources: Composed resource \"{name}\" is not yet valid");
            assert!(events.contains(&text), "{events:?}");
            let text = format!("Synced=False/ReconcileError Unsynced resources: {name}");
            let conditions = world.conditions();
            assert!(conditions.contains(&text), "{conditions:?}");
            // The pipeline decides readiness.
            assert!(conditions.contains(&"Ready=True/Available".to_owned()), "{conditions:?}");
            let applied = world.applied();
            let names: Vec<_> = applied
                .iter()
                .map(|o| o.annotation("crossplane.io/composition-resource-name"))
                .filter(|name| !name.is_empty())
                .collect();
            assert_eq!(names, [other]);
        }
    }
    assert_eq!(found, 2);
}

#[tokio::test]
async fn an_invalid_status_is_reported_in_words_that_do_not_change() {
    // XR-13.3
    let (calls, _) = calls().await;
    let mut found = 0;
    for call in 0..calls {
        let world = answering(call, Answer::Invalid);
        let Err(error) = world.reconcile().await else { continue };
        if !error.text.contains("some resources were invalid") {
            continue;
        }
        found += 1;
        let text = "cannot compose resources: some resources were invalid, check events";
        assert_eq!(error.text, text);
        let events = world.events();
        let refused = format!("injected fault before call {call}");
        let told = |e: &String| {
            e.starts_with("Warning ComposeResources: cannot compose resources: ")
                && e.ends_with(&refused)
        };
        assert!(events.iter().any(told), "{events:?}");
        let conditions = world.conditions();
        assert!(
            conditions.contains(&format!("Synced=False/ReconcileError {text}")),
            "{conditions:?}"
        );
    }
    // The references and the status.
    assert_eq!(found, 2);
}

/// Cannot watch anything, for this reason.
struct Blind(WriteError);

#[async_trait]
impl Dependencies for Blind {
    async fn track(&self, _xr: &ObjectId, _dependencies: Tracked) -> Result<(), Failure> {
        Err(self.0.clone().into())
    }

    fn forget(&self, _xr: &ObjectId) {}

    fn requirements(&self, _xr: &ObjectId, _step: &str) -> Vec<(String, ResourceSelector)> {
        Vec::new()
    }
}

#[tokio::test]
async fn a_watch_that_does_not_start_is_reported() {
    // XR-14
    let mut world = world();
    world.reconciler.dependencies = Arc::new(Blind(WriteError::Forbidden("boom".into())));
    let text = "cannot watch resource for changes: boom";
    assert_eq!(world.reconcile().await.unwrap_err().text, text);
    assert!(world.events().contains(&format!("Warning WatchComposedResources: {text}")));
    assert!(world.conditions().contains(&format!("Synced=False/ReconcileError {text}")));
}

#[tokio::test]
async fn a_conflict_while_a_watch_starts_is_reported_and_tried_again() {
    // XR-14, XR-23
    let mut world = world();
    world.reconciler.dependencies = Arc::new(Blind(WriteError::Conflict("boom".into())));
    assert_eq!(world.reconcile().await, Ok(Requeue::Now));
    let text = "Warning WatchComposedResources: cannot watch resource for changes: boom";
    assert!(world.events().contains(&text.to_owned()));
}

struct Drowned;

impl Breaker for Drowned {
    fn triggered_by(&self, _xr: &ObjectId) -> Option<String> {
        Some("ConfigMap/noisy".into())
    }
}

#[tokio::test]
async fn too_many_events_are_told_and_stop_nothing() {
    // XR-3
    let mut world = world();
    world.reconciler.breaker = Arc::new(Drowned);
    assert!(matches!(world.reconcile().await, Ok(Requeue::After(_))));
    let conditions = world.conditions();
    let text = "Responsive=False/WatchCircuitOpen Too many watch events from ConfigMap/noisy. Allowing events periodically.";
    assert!(conditions.contains(&text.to_owned()), "{conditions:?}");
    assert!(conditions.contains(&"Ready=True/Available".to_owned()), "{conditions:?}");
}

//! Crash tests of the reconcilers of definitions (XRDs): they stop before or after any single call,
//! and a restarted control plane reaches the same state as an undisturbed one.

use std::sync::Arc;

use biplane_cluster::memory::{Answer, ApiServer, Fault, When};
use biplane_model::{Object, Value};
use serde_json::json;

use crate::plane::{Plane, XRD, instance, server, xrd, xrd_id};

/// What happens while the control plane crashes.
#[derive(Clone, Copy, Debug)]
enum Story {
    Created,
    Changed,
    Deleted,
}

/// A server in the state before the story, and what the user does then.
async fn begin(story: Story, scope: &str) -> Arc<ApiServer> {
    let server = server();
    let plane = Plane::start(&server);
    plane.create(xrd(scope)).await;
    match story {
        Story::Created => {}
        Story::Changed => {
            plane.settle(XRD).await;
            let change = json!({"spec": {"defaultCompositionUpdatePolicy": "Manual", "metadata": {"labels": {"a": "b"}}}});
            plane.patch(&xrd_id(XRD), change).await;
        }
        Story::Deleted => {
            plane.settle(XRD).await;
            let namespace = if scope == "Namespaced" { "ns" } else { "" };
            for name in ["one", "two"] {
                plane.create(instance("XBox", namespace, name, &[])).await;
            }
            if scope == "LegacyCluster" {
                plane.create(instance("Box", "ns", "claim", &[])).await;
            }
            plane.delete(&xrd_id(XRD)).await;
        }
    }
    server.restart();
    server
}

/// All stored objects, without fields that count writes or objects.
fn state(server: &ApiServer) -> Vec<Value> {
    let mut objects = server.objects();
    for object in &mut objects {
        for counted in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
            object.remove_at(&["metadata", counted]);
        }
    }
    objects.into_iter().map(Object::into_value).collect()
}

/// Lives through the story with a crash at `fault`. Also returns the number of calls before the
/// restart.
async fn live(story: Story, scope: &str, fault: Option<Fault>) -> (Vec<Value>, Vec<String>, usize) {
    let server = begin(story, scope).await;
    if let Some(fault) = fault {
        server.inject(fault);
    }
    let plane = Plane::start(&server);
    let mut failed = false;
    for _ in 0..6 {
        failed |= plane.once(XRD).await.iter().any(Result::is_err);
    }
    assert_eq!(failed, fault.is_some(), "{fault:?} was not noticed");
    let calls = server.calls();
    server.restart();
    let plane = Plane::start(&server);
    plane.settle(XRD).await;
    (state(&server), plane.running.names(), calls)
}

async fn check(story: Story, scope: &str) {
    let (want, running, calls) = live(story, scope, None).await;
    assert_eq!(want.is_empty(), matches!(story, Story::Deleted), "{story:?} {scope}: {want:?}");
    assert!(calls > 12, "{calls}");
    for call in 0..calls {
        for when in [When::Before, When::After] {
            let fault = Fault { call, when, crash: true, answer: Answer::Unavailable };
            let (got, got_running, _) = live(story, scope, Some(fault)).await;
            assert!(got == want, "{story:?} {scope} {fault:?}:\n{}\n{}", json!(got), json!(want));
            assert_eq!(got_running, running, "{story:?} {scope} {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_crash_while_a_definition_is_established_changes_nothing() {
    for scope in ["LegacyCluster", "Cluster", "Namespaced"] {
        check(Story::Created, scope).await;
    }
}

#[tokio::test]
async fn a_crash_while_a_definition_changes_changes_nothing() {
    for scope in ["LegacyCluster", "Namespaced"] {
        check(Story::Changed, scope).await;
    }
}

#[tokio::test]
async fn a_crash_while_a_definition_is_deleted_changes_nothing() {
    for scope in ["LegacyCluster", "Cluster", "Namespaced"] {
        check(Story::Deleted, scope).await;
    }
}

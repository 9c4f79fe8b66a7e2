//! Crash tests of the claim reconciler: it stops before or after any single call, and later
//! reconciles reach the same state as undisturbed ones.

use biplane_cluster::memory::{Answer, Fault, When};
use biplane_cluster::{Cluster as _, Delete};
use biplane_engine::claim::Syncing;
use biplane_model::{Object, Value};
use serde_json::json;

use crate::claim_world::{Plane, soon};

/// A situation in which the claim needs something.
#[derive(Clone, Copy, Debug)]
enum Situation {
    /// The claim is new.
    New,
    /// Its composite resource has just become ready.
    Ready,
    /// A user changed it.
    Changed,
    /// Connection details changed.
    NewDetails,
    /// Its composite resource was patched by an earlier control plane.
    Migrated,
    /// It is being deleted, and its composite resource is to go first or not.
    Deleted { foreground: bool },
    /// It is being deleted, and its composite resource is gone.
    DeletedLast,
}

use Situation::{Changed, Deleted, DeletedLast, Migrated, New, NewDetails, Ready};

async fn plane(situation: Situation, syncing: Syncing) -> Plane {
    let mut plane = Plane::legacy().await;
    plane.claims.behaviour.syncing =
        if matches!(situation, Migrated) { Syncing::ClientSide } else { syncing };
    let foreground = matches!(situation, Deleted { foreground: true } | DeletedLast);
    let policy = if foreground { "Foreground" } else { "Background" };
    plane
        .claim_it(json!({"size": 1, "color": "red", "compositeDeletePolicy": policy,
            "writeConnectionSecretToRef": {"name": "conn"}}))
        .await;
    match situation {
        New => return plane,
        Ready => {
            plane.reconcile_claim().await.unwrap();
            plane.reconcile_xrs().await;
            return plane;
        }
        _ => plane.settle().await,
    }
    match situation {
        Changed => {
            let change =
                json!({"metadata": {"labels": {"a": "b"}}, "spec": {"size": 2, "color": null}});
            plane.patch(&plane.claim(), change).await;
        }
        NewDetails => {
            for secret in plane.all("Secret").iter().filter(|secret| secret.name() != "conn") {
                plane.patch(secret, json!({"data": {"token": "bmV3", "user": null}})).await;
            }
        }
        Deleted { .. } | DeletedLast => {
            plane.server.delete(&plane.claim().id(), &Delete::default(), soon()).await.unwrap();
        }
        _ => {}
    }
    if matches!(situation, DeletedLast) {
        plane.server.delete(&plane.xr().id(), &Delete::default(), soon()).await.unwrap();
        plane.reconcile_xrs().await;
    }
    plane.claims.behaviour.syncing = syncing;
    plane
}

/// All stored objects, without fields that count writes.
fn state(plane: &Plane) -> Vec<Value> {
    let mut objects = plane.server.objects();
    for object in &mut objects {
        for counted in ["resourceVersion", "generation"] {
            object.remove_at(&["metadata", counted]);
        }
        // The order tells who wrote last.
        if let Some(Value::Array(mut managers)) = object.remove_at(&["metadata", "managedFields"]) {
            managers.sort_by_key(|manager| {
                manager["manager"].to_string() + &manager["subresource"].to_string()
            });
            object.set_at_or_ignore(&["metadata", "managedFields"], managers);
        }
    }
    objects.into_iter().map(Object::into_value).collect()
}

/// Reconciles with a crash at `fault`, and then until nothing changes. Also returns the number of
/// calls of the first reconcile.
async fn run(situation: Situation, syncing: Syncing, fault: Option<Fault>) -> (Vec<Value>, usize) {
    let mut plane = plane(situation, syncing).await;
    plane.restart();
    if let Some(fault) = fault {
        plane.server.inject(fault);
    }
    let reconciled = plane.reconcile_claim().await;
    assert_eq!(reconciled.is_err(), fault.is_some(), "{situation:?} {fault:?}: {reconciled:?}");
    let calls = plane.server.calls();
    plane.restart();
    plane.settle().await;
    plane.is_quiet("after a crash").await;
    (state(&plane), calls)
}

async fn check(situation: Situation, syncing: Syncing) {
    let (want, calls) = run(situation, syncing, None).await;
    assert!(calls > 1, "{situation:?}");
    for call in 0..calls {
        for when in [When::Before, When::After] {
            let fault = Fault { call, when, crash: true, answer: Answer::Unavailable };
            let (got, _) = run(situation, syncing, Some(fault)).await;
            assert!(
                got == want,
                "{situation:?}, {syncing:?}, {fault:?}:\n{}\n{}",
                json!(got),
                json!(want)
            );
        }
    }
}

const SITUATIONS: [Situation; 7] = [
    New,
    Ready,
    Changed,
    NewDetails,
    Deleted { foreground: false },
    Deleted { foreground: true },
    DeletedLast,
];

#[tokio::test]
async fn a_crash_at_any_call_changes_nothing_server_side() {
    for situation in SITUATIONS.into_iter().chain([Migrated]) {
        check(situation, Syncing::ServerSide).await;
    }
}

#[tokio::test]
async fn a_crash_at_any_call_changes_nothing_client_side() {
    for situation in SITUATIONS {
        check(situation, Syncing::ClientSide).await;
    }
}

//! Tests of the claim reconciler: binding, syncing in both directions, secrets, pausing, deletion.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::memory::{Answer, Fault, When};
use biplane_cluster::{Cluster as _, Delete, Part, Patch, ReadError, Write};
use biplane_engine::Requeue;
use biplane_engine::claim::Syncing;
use biplane_model::{Object, Value};
use serde_json::json;

use crate::claim_world::{Plane, object, shown, soon};
use crate::disturbed::{Disturbed, Reads};

const WAITING: &str = "Ready=False/Waiting Claim is waiting for composite resource to become Ready";

fn keys(object: &Object, path: &[&str]) -> Vec<String> {
    let map = object.at(path).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

/// A plane whose claim is bound and ready.
async fn ready(spec: Value) -> Plane {
    let plane = Plane::legacy().await;
    plane.claim_it(spec).await;
    plane.settle().await;
    plane
}

#[tokio::test]
async fn a_claim_needs_five_writes_to_be_ready() {
    let plane = Plane::legacy().await;
    plane.claim_it(json!({"size": 1})).await;
    let mut before = plane.server.journal_len();
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
    let (writes, events) = plane.since(&mut before);
    assert_eq!(writes, ["Patch Widget", "Apply XWidget", "PatchStatus Widget"]);
    let bind = |text: &str| format!("Normal BindCompositeResource: {text}");
    let [bound, unready] =
        ["Successfully bound composite resource", "Composite resource is not yet ready"].map(bind);
    assert_eq!(events, [bound, unready]);
    assert_eq!(shown(&plane.claim()), ["Synced=True/ReconcileSuccess", WAITING]);

    // The composite resource is being created: the claim waits.
    before = plane.server.journal_len();
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::After(Duration::from_secs(2))));
    assert_eq!(plane.since(&mut before), (vec![], vec![]));

    plane.reconcile_xrs().await;
    before = plane.server.journal_len();
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
    let (writes, events) = plane.since(&mut before);
    assert_eq!(writes, ["Patch Widget", "PatchStatus Widget"]);
    assert_eq!(events, Vec::<String>::new());
    let custom = "CapacityChecked=True/Fits fits well";
    let want = ["Synced=True/ReconcileSuccess", "Ready=True/Available", custom];
    assert_eq!(shown(&plane.claim()), want);
    plane.is_quiet("ready").await;
}

#[tokio::test]
async fn an_unready_composite_resource_is_shown_once_it_had_time() {
    // CLM-8, and the claim sees what is selected even if nothing ever becomes ready.
    let plane = Plane::legacy().await;
    plane.never_ready().await;
    plane.claim_it(json!({"size": 1})).await;
    plane.reconcile_claim().await.unwrap();
    plane.reconcile_xrs().await;
    plane.clock.advance(Duration::from_secs(1));
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::After(Duration::from_secs(1))));
    plane.clock.advance(Duration::from_secs(1));
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
    let claim = plane.claim();
    assert_eq!(claim.str_at(&["spec", "compositionRef", "name"]), "legacy-claim-main");
    assert_eq!(claim.str_at(&["status", "note"]), "made");
    assert!(shown(&claim).contains(&WAITING.to_owned()));
    plane.is_quiet("waiting").await;

    // A change of the claim is not held back, nor is a claim on a clock that is behind.
    let plane = Plane::legacy().await;
    plane.claim_it(json!({"size": 1})).await;
    plane.reconcile_claim().await.unwrap();
    plane.patch(&plane.claim(), json!({"spec": {"size": 2}})).await;
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
    assert_eq!(plane.xr().at(&["spec", "size"]), Some(&json!(2)));
}

#[tokio::test]
async fn the_claim_refers_to_its_composite_resource_before_that_exists() {
    // SYN-1, SYN-5, case 19
    for syncing in [Syncing::ServerSide, Syncing::ClientSide] {
        let mut plane = Plane::legacy().await;
        plane.claims.behaviour.syncing = syncing;
        plane.claim_it(json!({})).await;
        plane.server.restart();
        // Calls: claim, definition, name, patch of the claim, composite resource.
        plane.server.inject(Fault {
            call: 4,
            when: When::Before,
            crash: true,
            answer: Answer::Unavailable,
        });
        plane.reconcile_claim().await.unwrap_err();
        assert_eq!(plane.all("XWidget"), []);
        let claim = plane.claim();
        let name = claim.str_at(&["spec", "resourceRef", "name"]).to_owned();
        assert_eq!(name, "order-bbbbb");
        plane.restart();
        plane.reconcile_claim().await.unwrap();
        let xr = plane.xr();
        assert_eq!(xr.name(), name);
        assert_eq!(xr.label("crossplane.io/claim-name"), "order");
        assert_eq!(xr.label("crossplane.io/claim-namespace"), plane.namespace);
        let claim_ref = json!({"apiVersion": claim.api_version(), "kind": "Widget",
            "namespace": plane.namespace, "name": "order"});
        assert_eq!(xr.at(&["spec", "claimRef"]), Some(&claim_ref));
    }
}

#[tokio::test]
async fn a_name_that_is_taken_is_not_used() {
    // SYN-1
    let plane = Plane::legacy().await;
    let gvk = &plane.claims.behaviour.xr;
    let taken = |letter: char| {
        object(json!({"apiVersion": gvk.api_version(), "kind": gvk.kind,
            "metadata": {"name": format!("order-{letter}bbbb")}, "spec": {}}))
    };
    plane.server.seed("bcd".chars().map(taken));
    plane.claim_it(json!({})).await;
    plane.reconcile_claim().await.unwrap();
    assert_eq!(plane.claim().str_at(&["spec", "resourceRef", "name"]), "order-fbbbb");

    let plane = Plane::legacy().await;
    plane.server.seed("bcdfghjklm".chars().map(taken));
    plane.claim_it(json!({})).await;
    assert_eq!(
        plane.reconcile_claim().await.unwrap_err().text,
        "cannot bind and sync claim with composite resource: cannot generate a name for composite resource: cannot generate a name for a resource"
    );
}

#[tokio::test]
async fn what_is_removed_from_a_claim_is_removed_from_its_composite_resource() {
    // SYN-2, SYN-3, case 20 and 21
    let plane = Plane::legacy().await;
    let metadata = json!({
        "labels": {"team": "blue", "stage": "dev", "app.kubernetes.io/name": "x"},
        "annotations": {"a/b": "c", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    });
    plane.create_claim("order", metadata, json!({"size": 1, "color": "red"})).await;
    plane.settle().await;
    let xr = plane.xr();
    assert_eq!((xr.label("team"), xr.label("stage"), xr.annotation("a/b")), ("blue", "dev", "c"));
    assert_eq!(xr.label("app.kubernetes.io/name"), "");
    assert_eq!(keys(&xr, &["metadata", "annotations"]), ["a/b"]);
    assert_eq!(xr.str_at(&["spec", "color"]), "red");

    let removed = json!({"metadata": {"labels": {"team": null}, "annotations": {"a/b": null}},
        "spec": {"color": null}});
    plane.patch(&plane.claim(), removed).await;
    plane.settle().await;
    let xr = plane.xr();
    assert_eq!((xr.label("team"), xr.label("stage"), xr.annotation("a/b")), ("", "dev", ""));
    assert_eq!(xr.at(&["spec", "color"]), None);
    // A status field that the composite resource loses is lost on the claim.
    assert_eq!(plane.claim().str_at(&["status", "note"]), "made");
    let (how, patch) = (Write::by("other"), Patch::Merge(json!({"status": {"note": null}})));
    plane.server.patch(&xr.id(), Part::Status, &patch, &how, soon()).await.unwrap();
    plane.reconcile_claim().await.unwrap();
    assert_eq!(plane.claim().at(&["status", "note"]), None);
}

#[tokio::test]
async fn a_composite_resource_of_another_claim_is_left_alone() {
    // CLM-3, case 23
    let plane = ready(json!({})).await;
    let xr = plane.xr();
    let bound = json!({"resourceRef": plane.claim().at(&["spec", "resourceRef"]).unwrap()});
    plane.create_claim("thief", json!({}), bound).await;
    let namespace = &plane.namespace;
    assert_eq!(plane.claims.reconcile(namespace, "thief").await, Ok(Requeue::No));
    let thief = plane.all("Widget").into_iter().find(|claim| claim.name() == "thief").unwrap();
    let text = "refusing to operate on composite resource \"order-bbbbb\" that is not bound to this claim: bound to claim \"order\"";
    assert_eq!(shown(&thief), [format!("Synced=False/ReconcileError {text}")]);
    assert_eq!(plane.claim_events().last().unwrap().message, text);
    assert_eq!(plane.xr(), xr);

    // Nor is it deleted with the wrong claim, which stays until somebody helps.
    plane.patch(&thief, json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    plane.server.delete(&thief.id(), &Delete::default(), soon()).await.unwrap();
    assert_eq!(plane.claims.reconcile(namespace, "thief").await, Ok(Requeue::No));
    assert_eq!(plane.xr(), xr);
}

#[tokio::test]
async fn an_enforced_composition_wins_over_that_of_the_claim() {
    // CLM-6, SYN-3, SYN-4, case 24
    let plane = Plane::legacy().await;
    let definition = plane.only("CompositeResourceDefinition");
    let enforced = json!({"spec": {"enforcedCompositionRef": {"name": "legacy-claim-main"}}});
    plane.patch(&definition, enforced).await;
    plane.claim_it(json!({"compositionRef": {"name": "other"}})).await;
    plane.settle().await;
    for object in [plane.claim(), plane.xr()] {
        assert_eq!(object.str_at(&["spec", "compositionRef", "name"]), "legacy-claim-main");
    }
    plane.is_quiet("enforced").await;
}

#[tokio::test]
async fn a_composition_of_the_claim_s_own_stays() {
    let plane = ready(json!({"compositionRef": {"name": "legacy-claim-main"}})).await;
    let xr = plane.xr();
    assert_eq!(xr.str_at(&["spec", "compositionRef", "name"]), "legacy-claim-main");
    // The composite resource is changed behind the claim's back.
    plane.patch(&xr, json!({"spec": {"compositionRef": {"name": "other"}}})).await;
    plane.reconcile_claim().await.unwrap();
    assert_eq!(plane.xr().str_at(&["spec", "compositionRef", "name"]), "legacy-claim-main");
    assert_eq!(plane.claim().str_at(&["spec", "compositionRef", "name"]), "legacy-claim-main");
}

#[tokio::test]
async fn a_taken_over_composition_is_put_back_too() {
    let plane = ready(json!({})).await;
    plane.patch(&plane.xr(), json!({"spec": {"compositionRef": {"name": "other"}}})).await;
    plane.reconcile_claim().await.unwrap();
    assert_eq!(plane.xr().str_at(&["spec", "compositionRef", "name"]), "legacy-claim-main");
    plane.is_quiet("put back").await;
}

#[tokio::test]
async fn who_says_which_revision_is_used_depends_on_the_policy() {
    // SYN-3, SYN-4, case 25
    let plane = ready(json!({})).await;
    let newest = plane.claim().str_at(&["spec", "compositionRevisionRef", "name"]).to_owned();
    assert_eq!(newest, plane.only("CompositionRevision").name());
    // Automatic: the composite resource says it.
    let other = json!({"spec": {"compositionRevisionRef": {"name": "mine"}}});
    plane.patch(&plane.claim(), other.clone()).await;
    plane.settle().await;
    for object in [plane.claim(), plane.xr()] {
        assert_eq!(object.str_at(&["spec", "compositionRevisionRef", "name"]), newest);
    }
    // Manual: the claim says it.
    let manual = json!({"spec": {"compositionUpdatePolicy": "Manual"}});
    plane.patch(&plane.claim(), manual).await;
    plane.settle().await;
    assert_eq!(plane.xr().str_at(&["spec", "compositionUpdatePolicy"]), "Manual");
    plane.patch(&plane.claim(), other).await;
    plane.reconcile_claim().await.unwrap();
    for object in [plane.claim(), plane.xr()] {
        assert_eq!(object.str_at(&["spec", "compositionRevisionRef", "name"]), "mine");
    }
}

#[tokio::test]
async fn smuggled_fields_do_not_reach_the_composite_resource() {
    // SYN-3, case 22: the schema would drop them, so the claim is seeded as it is.
    let plane = Plane::legacy().await;
    let mut claim = plane.claim_it(json!({"size": 1})).await;
    claim.set_at_or_ignore(&["spec", "resourceRefs"], json!([{"name": "victim"}]));
    plane.server.seed([claim]);
    plane.reconcile_claim().await.unwrap();
    assert_eq!(plane.xr().at(&["spec", "resourceRefs"]), None);
}

#[tokio::test]
async fn the_external_name_of_a_composite_resource_wins() {
    // SYN-2, SYN-4
    const NAME: &str = "crossplane.io/external-name";
    let plane = Plane::legacy().await;
    plane.create_claim("order", json!({"annotations": {NAME: "wish"}}), json!({})).await;
    plane.settle().await;
    assert_eq!(plane.xr().annotation(NAME), "wish");
    plane.patch(&plane.xr(), json!({"metadata": {"annotations": {NAME: "truth"}}})).await;
    plane.settle().await;
    assert_eq!((plane.xr().annotation(NAME), plane.claim().annotation(NAME)), ("truth", "truth"));
    plane.patch(&plane.claim(), json!({"metadata": {"annotations": {NAME: "again"}}})).await;
    plane.settle().await;
    assert_eq!((plane.xr().annotation(NAME), plane.claim().annotation(NAME)), ("truth", "truth"));
    plane.is_quiet("external name").await;
}

#[tokio::test]
async fn reconcile_requests_reach_the_composite_resource() {
    const REQUEST: &str = "crossplane.io/reconcile-requested-at";
    let plane = ready(json!({})).await;
    plane.patch(&plane.claim(), json!({"metadata": {"annotations": {REQUEST: "now"}}})).await;
    plane.settle().await;
    assert_eq!(plane.xr().annotation(REQUEST), "now");
    plane.is_quiet("requested").await;
}

#[tokio::test]
async fn a_paused_claim_is_left_alone_even_while_it_is_deleted() {
    // CLM-1
    let plane = ready(json!({"size": 1})).await;
    let paused =
        |value: Value| json!({"metadata": {"annotations": {"crossplane.io/paused": value}}});
    plane.patch(&plane.claim(), paused(json!("true"))).await;
    plane.patch(&plane.claim(), json!({"spec": {"size": 2}})).await;
    let mut before = plane.server.journal_len();
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
    let text = "Reconciliation (including deletion) is paused via the pause annotation";
    let (writes, events) = plane.since(&mut before);
    assert_eq!(writes, ["PatchStatus Widget"]);
    assert_eq!(events, [format!("Normal ReconciliationPaused: {text}")]);
    let annotations = plane.claim_events().pop().unwrap().annotations;
    assert_eq!(annotations.keys().collect::<Vec<_>>(), ["controller"]);
    assert_eq!(shown(&plane.claim())[0], format!("Synced=False/ReconcilePaused {text}"));
    plane.is_quiet("paused").await;
    plane.server.delete(&plane.claim().id(), &Delete::default(), soon()).await.unwrap();
    plane.reconcile_claim().await.unwrap();
    assert_eq!(plane.xr().at(&["spec", "size"]), Some(&json!(1)));
    plane.is_quiet("paused and deleted").await;

    plane.patch(&plane.claim(), paused(Value::Null)).await;
    plane.reconcile_claim().await.unwrap();
    assert_eq!(plane.all("Widget"), []);
}

#[tokio::test]
async fn a_claim_goes_at_once_or_after_its_composite_resource() {
    // CLM-5, case 27
    for (policy, stays) in [("Background", false), ("Foreground", true)] {
        let plane = ready(json!({"compositeDeletePolicy": policy})).await;
        // Something holds the composite resource.
        let hold = json!({"metadata": {"finalizers":
            ["composite.apiextensions.crossplane.io", "example.org/hold"]}});
        plane.patch(&plane.xr(), hold).await;
        plane.server.delete(&plane.claim().id(), &Delete::default(), soon()).await.unwrap();
        let mut before = plane.server.journal_len();
        let again = plane.reconcile_claim().await.unwrap();
        assert!(plane.xr().is_being_deleted());
        let (_, events) = plane.since(&mut before);
        let deleted = "Normal DeleteCompositeResource: Successfully deleted composite resource";
        if stays {
            assert_eq!((again, events), (Requeue::Now, vec![]));
            assert!(shown(&plane.claim()).contains(&"Ready=False/Deleting".to_owned()));
            plane.is_quiet("deleting").await;
            plane.patch(&plane.xr(), json!({"metadata": {"finalizers": null}})).await;
            before = plane.server.journal_len();
            assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
            assert_eq!(plane.since(&mut before).1, [deleted]);
        } else {
            assert_eq!((again, events), (Requeue::No, vec![deleted.to_owned()]));
        }
        assert_eq!(plane.all("Widget"), []);
    }
}

#[tokio::test]
async fn a_claim_that_others_hold_says_that_it_is_deleting() {
    let plane = ready(json!({})).await;
    let hold = json!({"metadata": {"finalizers":
        ["finalizer.apiextensions.crossplane.io", "example.org/hold"]}});
    plane.patch(&plane.claim(), hold).await;
    plane.server.delete(&plane.claim().id(), &Delete::default(), soon()).await.unwrap();
    plane.reconcile_claim().await.unwrap();
    plane.reconcile_xrs().await;
    assert_eq!(plane.all("XWidget"), []);
    let conditions = shown(&plane.claim());
    assert_eq!(conditions[..2], ["Synced=True/ReconcileSuccess", "Ready=False/Deleting"]);
    plane.is_quiet("held by others").await;
}

#[tokio::test]
async fn connection_details_are_propagated_when_they_change() {
    // CLM-9, CON-1, case 28
    let plane = ready(json!({"writeConnectionSecretToRef": {"name": "conn"}})).await;
    let secret = |plane: &Plane| {
        plane.all("Secret").into_iter().find(|secret| secret.name() == "conn").unwrap()
    };
    let of_xr = |plane: &Plane| {
        plane.all("Secret").into_iter().find(|secret| secret.name() != "conn").unwrap()
    };
    let first = secret(&plane);
    assert_eq!(first.get("data"), Some(&json!({"token": "czNjcjN0", "user": "Ym90"})));
    assert_eq!(first.str_at(&["type"]), "connection.crossplane.io/v1alpha1");
    let owner = first.at(&["metadata", "ownerReferences"]).unwrap();
    assert_eq!((&owner[0]["name"], &owner[0]["controller"]), (&json!("order"), &json!(true)));
    let published = |plane: &Plane| {
        plane.claim().str_at(&["status", "connectionDetails", "lastPublishedTime"]).to_owned()
    };
    assert_eq!(published(&plane), "2024-01-01T00:00:00Z");
    plane.is_quiet("published").await;

    plane.clock.advance(Duration::from_hours(1));
    plane.is_quiet("an hour later").await;
    // A value changes and a key goes.
    let change = json!({"data": {"user": null, "token": "bmV3"}});
    plane.patch(&of_xr(&plane), change).await;
    plane.reconcile_claim().await.unwrap();
    assert_eq!(secret(&plane).get("data"), Some(&json!({"token": "bmV3"})));
    assert_eq!(published(&plane), "2024-01-01T01:00:00Z");
    let text = "Successfully propagated connection details from composite resource";
    assert_eq!(plane.claim_events().last().unwrap().message, text);
    plane.is_quiet("published again").await;
}

#[tokio::test]
async fn secrets_of_others_are_neither_read_nor_overwritten() {
    // CON-1, case 28
    let wrapped =
        |text: &str| format!("cannot propagate connection details from composite resource: {text}");
    let plane = Plane::legacy().await;
    plane.claim_it(json!({"writeConnectionSecretToRef": {"name": "conn"}})).await;
    let foreign = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "conn", "namespace": plane.namespace}, "data": {}});
    plane.server.seed([object(foreign)]);
    plane.reconcile_claim().await.unwrap();
    plane.reconcile_xrs().await;
    let text = wrapped(
        "cannot create or update connection secret: refusing to modify uncontrolled secret of type \"Opaque\"",
    );
    assert_eq!(plane.reconcile_claim().await.unwrap_err().text, text);
    assert_eq!(shown(&plane.claim())[0], format!("Synced=False/ReconcileError {text}"));
    plane.is_quiet("refused").await;

    let plane = ready(json!({"writeConnectionSecretToRef": {"name": "conn"}})).await;
    for secret in plane.all("Secret").iter().filter(|secret| secret.name() != "conn") {
        plane.patch(secret, json!({"metadata": {"ownerReferences": null}})).await;
    }
    let text = wrapped("cannot establish control of existing connection secret");
    assert_eq!(plane.reconcile_claim().await.unwrap_err().text, text);
    let last = plane.claim_events().pop().unwrap();
    assert_eq!((last.reason.as_str(), &last.message), ("PropagateConnectionSecret", &text));
}

#[tokio::test]
async fn a_composite_resource_that_was_patched_is_moved_to_server_side_apply() {
    // CLM-4, SSA-1
    let mut plane = Plane::legacy().await.client_side();
    plane.claim_it(json!({"size": 1, "color": "red"})).await;
    plane.settle().await;
    plane.claims.behaviour.syncing = Syncing::ServerSide;
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::Again));
    plane.settle().await;
    let managers = plane.xr().at(&["metadata", "managedFields"]).cloned().unwrap();
    let managers: Vec<_> = managers
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["manager"].as_str().unwrap().to_owned())
        .collect();
    assert!(managers.contains(&"apiextensions.crossplane.io/claim".to_owned()), "{managers:?}");
    assert!(!managers.contains(&"before-first-apply".to_owned()), "{managers:?}");
    plane.is_quiet("moved").await;
    // Now removed fields are removed.
    plane.patch(&plane.claim(), json!({"spec": {"color": null}})).await;
    plane.settle().await;
    assert_eq!(plane.xr().at(&["spec", "color"]), None);
}

#[tokio::test]
async fn with_patches_removed_fields_stay_and_come_back() {
    // SYN-8
    let plane = Plane::legacy().await.client_side();
    plane.claim_it(json!({"size": 1, "color": "red"})).await;
    plane.settle().await;
    plane.is_quiet("client side").await;
    let claim = plane.claim();
    // Fields that only the composite resource has are filled in.
    assert_eq!(claim.str_at(&["spec", "compositionUpdatePolicy"]), "Automatic");
    assert_eq!(claim.str_at(&["spec", "compositionRef", "name"]), "legacy-claim-main");
    assert_eq!(
        claim.at(&["spec", "compositionRevisionRef"]),
        plane.xr().at(&["spec", "compositionRevisionRef"])
    );
    assert_eq!(claim.at(&["spec", "claimRef"]), None);
    assert_eq!(claim.str_at(&["status", "note"]), "made");
    assert!(shown(&claim).contains(&"Ready=True/Available".to_owned()));

    plane.patch(&claim, json!({"spec": {"color": null, "size": 2}})).await;
    plane.settle().await;
    assert_eq!(plane.xr().str_at(&["spec", "color"]), "red");
    assert_eq!(plane.xr().at(&["spec", "size"]), Some(&json!(2)));
    assert_eq!(plane.claim().str_at(&["spec", "color"]), "red");
    plane.is_quiet("client side again").await;
}

#[tokio::test]
async fn failures_are_told_and_conflicts_are_not() {
    // CLM-10, COM-5
    let plane = Plane::legacy().await;
    plane.claim_it(json!({"size": 1})).await;
    for (call, answer, want) in [
        (3, Answer::Unavailable, "cannot add finalizer to claim: cannot update object: "),
        (
            4,
            Answer::Unavailable,
            "cannot bind and sync claim with composite resource: cannot apply composite resource: ",
        ),
    ] {
        plane.server.restart();
        plane.server.inject(Fault { call, when: When::Before, crash: false, answer });
        let error = plane.reconcile_claim().await.unwrap_err();
        assert!(error.text.starts_with(want), "{error}");
        assert_eq!(shown(&plane.claim())[0], format!("Synced=False/ReconcileError {error}"));
        let event = plane.claim_events().pop().unwrap();
        assert_eq!((event.reason.as_str(), event.message), ("BindCompositeResource", error.text));
    }
    plane.settle().await;
    plane.patch(&plane.claim(), json!({"spec": {"size": 2}})).await;
    let mut before = plane.server.journal_len();
    plane.server.restart();
    // Calls: claim, composite resource, definition, composite resource again.
    let fault = Fault { call: 3, when: When::Before, crash: false, answer: Answer::Conflict };
    plane.server.inject(fault);
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::Now));
    assert_eq!(plane.since(&mut before), (vec![], vec![]));
}

#[tokio::test]
async fn a_claim_that_does_not_exist_needs_nothing() {
    let plane = Plane::legacy().await;
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
}

#[tokio::test]
async fn an_existing_composite_resource_can_be_claimed() {
    let plane = Plane::legacy().await;
    let gvk = plane.claims.behaviour.xr.clone();
    let existing = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind,
        "metadata": {"name": "made-by-hand", "annotations": {"crossplane.io/external-name": "e"}},
        "spec": {"size": 9}});
    plane.server.create(object(existing), &Write::by("kubectl"), soon()).await.unwrap();
    let reference =
        json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "name": "made-by-hand"});
    plane.claim_it(json!({"resourceRef": reference, "color": "red"})).await;
    plane.settle().await;
    let (claim, xr) = (plane.claim(), plane.xr());
    assert_eq!(xr.str_at(&["spec", "claimRef", "name"]), "order");
    assert_eq!(xr.str_at(&["spec", "color"]), "red");
    assert_eq!(claim.annotation("crossplane.io/external-name"), "e");
    let bound = "Successfully bound composite resource";
    assert!(plane.claim_events().iter().any(|event| event.message == bound));
    plane.is_quiet("claimed").await;
}

#[tokio::test]
async fn a_stale_cache_leaks_nothing() {
    // SYN-1, SYN-5: the claim is known to be bound, so no second composite resource is made.
    let mut plane = ready(json!({"size": 1})).await;
    let uncached = Disturbed::uncached(plane.server.clone(), "XWidget");
    plane.claims.context.cluster = uncached;
    plane.patch(&plane.claim(), json!({"spec": {"size": 2}})).await;
    plane.reconcile_claim().await.unwrap();
    assert_eq!(plane.xr().at(&["spec", "size"]), Some(&json!(2)));
    // The claim does not go before the server has said that the composite resource is gone.
    plane.server.delete(&plane.claim().id(), &Delete::default(), soon()).await.unwrap();
    plane.reconcile_claim().await.unwrap();
    assert!(plane.xr().is_being_deleted());
    assert_eq!(plane.all("Widget"), []);
}

#[tokio::test]
async fn a_claim_can_go_after_the_kind_of_its_composite_resource() {
    for (crd_exists, goes) in [(false, true), (true, false)] {
        let mut plane = ready(json!({})).await;
        plane.server.delete(&plane.xr().id(), &Delete::default(), soon()).await.unwrap();
        plane.reconcile_xrs().await;
        plane.server.delete(&plane.claim().id(), &Delete::default(), soon()).await.unwrap();
        let unknown = || ReadError::UnknownKind("no matches for kind".into());
        let reads: Reads = Box::new(move |gvk, _| (gvk.kind == "XWidget").then(unknown));
        plane.claims.context.cluster = Arc::new(Disturbed { inner: plane.server.clone(), reads });
        if crd_exists {
            let crd = json!({"apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": plane.claims.behaviour.xrd}});
            plane.server.seed([object(crd)]);
        }
        let reconciled = plane.reconcile_claim().await;
        assert_eq!(reconciled.is_ok(), goes, "{reconciled:?}");
        assert_eq!(plane.all("Widget").is_empty(), goes);
    }
}

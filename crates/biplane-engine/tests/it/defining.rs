//! Tests of the reconcilers of definitions (XRDs): establishing, changing, deleting, failing.

use biplane_cluster::memory::{Answer, Fault, When};
use biplane_engine::Requeue;
use biplane_engine::composite::Layout;
use biplane_engine::controllers::{Controller, ControllerError};
use biplane_model::Gvk;
use serde_json::json;

use crate::plane::{CLAIMS, Plane, XRD, crd_id, instance, shown_conditions, xrd, xrd_id};

const EXAMPLE: &str = "example.org/v1";

/// XRD-1, XRD-3, XRD-4, XRD-6, XRD-7
#[tokio::test]
async fn a_definition_is_established_with_few_writes() {
    let plane = Plane::new();
    plane.create(xrd("Namespaced")).await;
    assert_eq!(plane.defined.reconcile("", XRD).await, Ok(Requeue::Now));
    assert!(plane.running.names().is_empty(), "the CRD was not established yet");
    assert_eq!(plane.defined.reconcile("", XRD).await, Ok(Requeue::No));

    let stored = plane.get(&xrd_id(XRD)).await.unwrap();
    assert_eq!(shown_conditions(&stored), ["Established=True/WatchingCompositeResource 1"]);
    assert_eq!(
        stored.at(&["metadata", "finalizers"]),
        Some(&json!(["defined.apiextensions.crossplane.io"]))
    );
    assert_eq!(
        stored.at(&["status", "controllers"]),
        Some(&json!({
            "compositeResourceType": {"apiVersion": EXAMPLE, "kind": "XBox"},
            "compositeResourceClaimType": {"apiVersion": "", "kind": ""},
        }))
    );
    assert_eq!(
        plane.writes()[1..],
        [
            format!("Patch CompositeResourceDefinition {XRD}"),
            format!("Create CustomResourceDefinition {XRD}"),
            format!("PatchStatus CompositeResourceDefinition {XRD}"),
        ]
    );
    assert_eq!(
        plane.events(),
        [
            format!("Normal EstablishComposite: Applied composite resource CustomResourceDefinition: {XRD}"),
            "Normal EstablishComposite: waiting for composite resource CustomResourceDefinition to be established".to_owned(),
        ]
    );
    assert_eq!(plane.running.names(), [format!("composite/{XRD}")]);
    let Controller::Composite(it) = plane.running.get(&format!("composite/{XRD}")) else {
        panic!()
    };
    assert_eq!((it.gvk.clone(), it.layout), (Gvk::new(EXAMPLE, "XBox"), Layout::Modern));
    let behaviour = it.behaviour();
    assert!(behaviour.publish.is_none());
    assert!(behaviour.schema.unwrap().declares_status("lastHandledReconcileAt"));
}

/// OFF-1
#[tokio::test]
async fn claims_are_offered_once_both_kinds_are_served() {
    let plane = Plane::new();
    plane.create(xrd("LegacyCluster")).await;
    // The kind of the composite resources is not there yet, so the claims have to wait.
    for _ in 0..3 {
        assert_eq!(plane.offered.reconcile("", XRD).await, Ok(Requeue::Now));
    }
    assert!(plane.running.names().is_empty());
    plane.settle(XRD).await;

    let stored = plane.get(&xrd_id(XRD)).await.unwrap();
    let mut conditions = shown_conditions(&stored);
    conditions.sort();
    assert_eq!(
        conditions,
        [
            "Established=True/WatchingCompositeResource 1",
            "Offered=True/WatchingCompositeResourceClaim 1",
        ]
    );
    assert_eq!(
        stored.at(&["status", "controllers", "compositeResourceClaimType"]),
        Some(&json!({"apiVersion": EXAMPLE, "kind": "Box"}))
    );
    assert_eq!(plane.running.names(), [format!("claim/{XRD}"), format!("composite/{XRD}")]);
    let Controller::Claim(it) = plane.running.get(&format!("claim/{XRD}")) else { panic!() };
    assert_eq!((it.gvk.kind.as_str(), it.composite.kind.as_str()), ("Box", "XBox"));
    let Controller::Composite(it) = plane.running.get(&format!("composite/{XRD}")) else {
        panic!()
    };
    assert!(it.behaviour().publish.is_some(), "legacy composite resources publish");
    assert!(plane.get(&crd_id(CLAIMS)).await.is_some());
}

#[tokio::test]
async fn a_definition_without_claims_is_not_offered() {
    let plane = Plane::new();
    plane.create(xrd("Cluster")).await;
    plane.settle(XRD).await;
    let before = plane.server.calls();
    assert_eq!(plane.offered.reconcile("", XRD).await, Ok(Requeue::No));
    assert_eq!(plane.server.calls() - before, 1, "only the definition is read");
    assert_eq!(plane.running.names(), [format!("composite/{XRD}")]);
}

#[tokio::test]
async fn nothing_is_written_at_rest_nor_after_a_restart() {
    for scope in ["LegacyCluster", "Cluster", "Namespaced"] {
        let mut plane = Plane::new();
        plane.create(xrd(scope)).await;
        plane.settle(XRD).await;
        let before = plane.server.journal_len();
        for restart in [false, true, false] {
            if restart {
                plane = Plane::start(&plane.server);
            }
            assert_eq!(plane.once(XRD).await, [Ok(Requeue::No), Ok(Requeue::No)]);
            let journal = plane.server.journal();
            assert_eq!(journal.len(), before, "{scope}: {:?}", &journal[before..]);
        }
        assert!(!plane.running.names().is_empty(), "a restart starts the controllers again");
    }
}

/// XRD-5, OFF-2
#[tokio::test]
async fn a_changed_definition_restarts_the_controller_of_its_composite_resources() {
    let plane = Plane::new();
    plane.create(xrd("LegacyCluster")).await;
    plane.settle(XRD).await;
    plane.patch(&xrd_id(XRD), json!({"spec": {"defaultCompositionUpdatePolicy": "Manual"}})).await;
    plane.settle(XRD).await;

    let log = plane.running.log.lock().unwrap().clone();
    let composite = format!("composite/{XRD}");
    assert_eq!(
        log,
        [
            format!("start {composite}"),
            format!("start claim/{XRD}"),
            format!("stop {composite}"),
            format!("start {composite}"),
        ]
    );
    let stored = plane.get(&xrd_id(XRD)).await.unwrap();
    assert_eq!(shown_conditions(&stored)[0], "Established=True/WatchingCompositeResource 2");
    let restart = "Normal RestartComposite: XRD specification changed; restarting controller to apply updates";
    assert_eq!(plane.events().iter().filter(|event| *event == restart).count(), 1);
    let crd = plane.get(&crd_id(XRD)).await.unwrap();
    let policy = crd.at(&["spec", "versions"]).unwrap().pointer(
        "/0/schema/openAPIV3Schema/properties/spec/properties/compositionUpdatePolicy/default",
    );
    assert_eq!(policy, Some(&json!("Manual")));
}

/// CRD-2
#[tokio::test]
async fn what_others_change_in_a_crd_is_changed_back() {
    let plane = Plane::new();
    plane.create(xrd("Cluster")).await;
    plane.settle(XRD).await;
    let before = plane.get(&crd_id(XRD)).await.unwrap();
    let change = json!({
        "metadata": {"labels": {"theirs": "x"}, "ownerReferences": null},
        "spec": {"names": {"shortNames": ["bx"]}},
    });
    plane.patch(&crd_id(XRD), change).await;
    plane.settle(XRD).await;
    let after = plane.get(&crd_id(XRD)).await.unwrap();
    for path in [&["spec"][..], &["metadata", "labels"], &["metadata", "ownerReferences"]] {
        assert_eq!(after.at(path), before.at(path));
    }
}

#[tokio::test]
async fn a_deleted_crd_comes_back() {
    let plane = Plane::new();
    plane.create(xrd("Cluster")).await;
    plane.settle(XRD).await;
    plane.delete(&crd_id(XRD)).await;
    assert!(plane.get(&crd_id(XRD)).await.is_none());
    plane.settle(XRD).await;
    assert!(plane.get(&crd_id(XRD)).await.is_some());
}

/// XRD-10, COM-7
#[tokio::test]
async fn a_crd_of_somebody_else_is_refused() {
    let plane = Plane::new();
    let definition = plane.create(xrd("Cluster")).await;
    let mut theirs = biplane_schema::xcrd::composite(&definition).unwrap();
    theirs.set_at_or_ignore(
        &["metadata", "ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "theirs", "controller": true}]),
    );
    plane.create(theirs.clone()).await;
    let error = plane.defined.reconcile("", XRD).await.unwrap_err();
    let text = format!(
        "cannot apply rendered composite resource CustomResourceDefinition: existing object is not controlled by UID \"{}\"",
        definition.uid()
    );
    assert_eq!(error.text, text);
    assert_eq!(plane.events(), [format!("Warning EstablishComposite: {text}")]);
    let stored = plane.get(&xrd_id(XRD)).await.unwrap();
    assert!(shown_conditions(&stored).is_empty());

    // Their CRD stays when the definition goes.
    plane.delete(&xrd_id(XRD)).await;
    plane.settle(XRD).await;
    assert!(plane.get(&xrd_id(XRD)).await.is_none());
    assert!(plane.get(&crd_id(XRD)).await.is_some());
}

#[tokio::test]
async fn a_crd_of_nobody_is_adopted() {
    let plane = Plane::new();
    let definition = plane.create(xrd("Cluster")).await;
    let mut crd = biplane_schema::xcrd::composite(&definition).unwrap();
    crd.remove_at(&["metadata", "ownerReferences"]);
    plane.create(crd).await;
    plane.settle(XRD).await;
    let crd = plane.get(&crd_id(XRD)).await.unwrap();
    assert_eq!(biplane_model::owner::controller_of(&crd).unwrap().uid, definition.uid());
}

/// XRD-2
#[tokio::test]
async fn a_definition_that_cannot_be_rendered_is_reported_and_can_be_deleted() {
    let plane = Plane::new();
    plane.create(xrd("Cluster")).await;
    plane.settle(XRD).await;
    let versions = json!([{"name": "v1", "served": true, "referenceable": true}]);
    plane.patch(&xrd_id(XRD), json!({"spec": {"versions": versions}})).await;
    let error = plane.defined.reconcile("", XRD).await.unwrap_err();
    let text = format!(
        "cannot render composite resource CustomResourceDefinition: cannot generate CRD for \"Composite Resource\" \"{XRD}\": custom resource validation cannot be nil"
    );
    assert_eq!(error.text, text);
    assert_eq!(plane.events().last(), Some(&format!("Warning RenderCRD: {text}")));
    let stored = plane.get(&xrd_id(XRD)).await.unwrap();
    assert_eq!(shown_conditions(&stored), ["Established=True/WatchingCompositeResource 1"]);

    plane.delete(&xrd_id(XRD)).await;
    plane.settle(XRD).await;
    assert!(plane.get(&xrd_id(XRD)).await.is_none());
    assert!(plane.get(&crd_id(XRD)).await.is_none());
}

/// CRD-12
#[tokio::test]
async fn claims_with_names_of_composite_resources_are_refused() {
    let plane = Plane::new();
    let mut definition = xrd("LegacyCluster");
    definition.set_at_or_ignore(&["spec", "claimNames", "kind"], "XBox");
    plane.create(definition).await;
    let error = plane.offered.reconcile("", XRD).await.unwrap_err();
    let text = "cannot render composite resource claim CustomResourceDefinition: invalid resource claim names: \"XBox\" conflicts with composite resource name";
    assert_eq!(error.text, text);
    assert_eq!(plane.events(), [format!("Warning RenderCRD: {text}")]);
}

/// XRD-8, XRD-9
#[tokio::test]
async fn a_deleted_definition_takes_its_composite_resources_along() {
    for (scope, namespace) in [("Cluster", ""), ("Namespaced", "ns")] {
        let plane = Plane::new();
        plane.create(xrd(scope)).await;
        plane.settle(XRD).await;
        let held = plane.create(instance("XBox", namespace, "held", &["composite"])).await.id();
        let free = plane.create(instance("XBox", namespace, "free", &[])).await.id();
        plane.delete(&xrd_id(XRD)).await;

        assert_eq!(plane.defined.reconcile("", XRD).await, Ok(Requeue::Now));
        let stored = plane.get(&xrd_id(XRD)).await.unwrap();
        let condition =
            format!("Established=False/TerminatingCompositeResource {}", stored.generation());
        assert_eq!(shown_conditions(&stored), [condition]);
        assert!(plane.get(&free).await.is_none());
        assert!(plane.get(&held).await.unwrap().is_being_deleted());
        assert_eq!(plane.running.names().len(), 1, "it has to let go of the one that is held");
        let waiting =
            "Normal TerminateComposite: waiting for defined composite resources to be deleted";
        assert_eq!(plane.events().last().map(String::as_str), Some(waiting));

        // Waiting costs no writes.
        let before = plane.server.journal_len();
        assert_eq!(plane.defined.reconcile("", XRD).await, Ok(Requeue::Now));
        assert_eq!(plane.server.journal_len(), before);

        plane.patch(&held, json!({"metadata": {"finalizers": null}})).await;
        plane.settle(XRD).await;
        assert!(plane.running.names().is_empty());
        let deleted = format!(
            "Normal TerminateComposite: Deleted composite resource CustomResourceDefinition: {XRD}"
        );
        assert_eq!(plane.events().last(), Some(&deleted));
        assert!(plane.server.objects().is_empty(), "{:?}", plane.server.objects());
    }
}

/// OFF-3
#[tokio::test]
async fn a_deleted_definition_takes_its_claims_along() {
    let plane = Plane::new();
    plane.create(xrd("LegacyCluster")).await;
    plane.settle(XRD).await;
    let held = plane.create(instance("Box", "ns", "held", &["claim"])).await.id();
    plane.delete(&xrd_id(XRD)).await;
    assert_eq!(plane.offered.reconcile("", XRD).await, Ok(Requeue::Now));
    let waiting = "Normal RedactClaim: waiting for defined composite resource claims to be deleted";
    assert_eq!(plane.events().last().map(String::as_str), Some(waiting));
    let stored = plane.get(&xrd_id(XRD)).await.unwrap();
    assert!(
        shown_conditions(&stored)[1].starts_with("Offered=False/TerminatingCompositeResourceClaim")
    );
    plane.patch(&held, json!({"metadata": {"finalizers": null}})).await;
    plane.settle(XRD).await;
    let deleted = format!(
        "Normal RedactClaim: Deleted composite resource claim CustomResourceDefinition: {CLAIMS}"
    );
    assert!(plane.events().contains(&deleted), "{:?}", plane.events());
    assert!(plane.server.objects().is_empty(), "{:?}", plane.server.objects());
}

#[tokio::test]
async fn claims_go_even_if_the_definition_does_not_name_them_any_more() {
    let plane = Plane::new();
    plane.create(xrd("LegacyCluster")).await;
    plane.settle(XRD).await;
    plane.patch(&xrd_id(XRD), json!({"spec": {"claimNames": null}})).await;
    plane.settle(XRD).await;
    plane.delete(&xrd_id(XRD)).await;
    plane.settle(XRD).await;
    assert!(plane.server.objects().is_empty(), "{:?}", plane.server.objects());
}

#[tokio::test]
async fn a_definition_that_vanished_has_no_controllers() {
    let plane = Plane::new();
    plane.create(xrd("LegacyCluster")).await;
    plane.settle(XRD).await;
    plane.patch(&xrd_id(XRD), json!({"metadata": {"finalizers": null}})).await;
    plane.delete(&xrd_id(XRD)).await;
    assert_eq!(plane.once(XRD).await, [Ok(Requeue::No), Ok(Requeue::No)]);
    assert!(plane.running.names().is_empty());
}

/// XRD-10
#[tokio::test]
async fn controllers_that_do_not_start_or_stop_are_reported() {
    for (error, what) in [
        (ControllerError::Start("why".into()), "cannot start composite resource controller: why"),
        (
            ControllerError::Watch("why".into()),
            "cannot start composite resource controller watches: why",
        ),
        (ControllerError::Stop("why".into()), "cannot stop composite resource controller: why"),
    ] {
        let plane = Plane::new();
        plane.create(xrd("Cluster")).await;
        *plane.running.refuses.lock().unwrap() = Some(error);
        assert_eq!(plane.defined.reconcile("", XRD).await, Ok(Requeue::Now));
        assert_eq!(plane.defined.reconcile("", XRD).await.unwrap_err().text, what);
        assert_eq!(plane.events().last(), Some(&format!("Warning EstablishComposite: {what}")));
        let stored = plane.get(&xrd_id(XRD)).await.unwrap();
        assert!(shown_conditions(&stored).is_empty());
        *plane.running.refuses.lock().unwrap() = None;
        plane.settle(XRD).await;
        assert_eq!(plane.running.names().len(), 1);
    }
}

/// COM-5
#[tokio::test]
async fn a_conflict_is_tried_again_without_a_word() {
    for call in 1..4 {
        let plane = Plane::new();
        plane.create(xrd("Cluster")).await;
        plane.server.restart();
        let fault = Fault { call, when: When::Before, crash: false, answer: Answer::Conflict };
        plane.server.inject(fault);
        let answer = plane.defined.reconcile("", XRD).await;
        // A read cannot conflict, it fails.
        if answer.is_ok() {
            assert_eq!(answer, Ok(Requeue::Now));
            let warned = plane.events().iter().any(|event| event.starts_with("Warning"));
            assert!(!warned, "{:?}", plane.events());
        }
        plane.server.restart();
        plane.settle(XRD).await;
    }
}

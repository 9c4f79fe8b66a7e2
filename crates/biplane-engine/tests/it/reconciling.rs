//! Tests of the reconcile loop: pausing, deletion, failures, readiness, requeueing.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::memory::{ApiServer, Fault};
use biplane_engine::Requeue;
use biplane_engine::composite::{Authorizer, Layout};
use serde_json::json;

use crate::world::{World, object, response, wants};

#[tokio::test]
async fn an_absent_composite_resource_is_no_trouble() {
    // XR-1, T-1
    let world = World::new(1);
    let answer = world.reconciler.reconcile("ns", "nobody").await;
    assert_eq!(answer, Ok(Requeue::No));
    assert!(world.writes().is_empty());
}

#[tokio::test]
async fn a_read_that_fails_is_returned_and_nothing_is_written() {
    // XR-1, T-2
    let world = World::new(1);
    world.cluster.inject(Fault::before(0));
    let error = world.reconcile().await.unwrap_err();
    assert_eq!(error.text, "cannot get composite resource: injected fault before call 0");
    assert!(world.writes().is_empty());
}

#[tokio::test]
async fn a_paused_composite_resource_is_left_alone_even_while_it_is_deleted() {
    // XR-4, T-3, T-4
    let world = World::new(1);
    world.change_xr(|xr| {
        xr.set_at_or_ignore(&["metadata", "annotations", "crossplane.io/paused"], "true");
        xr.set_at_or_ignore(&["metadata", "deletionTimestamp"], "2024-01-01T00:00:00Z");
        xr.set_at_or_ignore(
            &["metadata", "finalizers"],
            json!(["composite.apiextensions.crossplane.io"]),
        );
    });
    assert_eq!(world.reconcile().await, Ok(Requeue::No));
    assert_eq!(
        world.conditions(),
        [
            "Responsive=True/WatchCircuitClosed",
            "Synced=False/ReconcilePaused Reconciliation (including deletion) is paused via the pause annotation",
        ]
    );
    assert_eq!(
        world.events(),
        ["Normal ReconciliationPaused: Reconciliation is paused via the pause annotation"]
    );
    assert!(world.xr().at(&["metadata", "finalizers"]).is_some());
    assert_eq!(world.writes(), ["UpdateStatus Thing xr"]);
}

#[tokio::test]
async fn only_the_exact_word_pauses() {
    // T-3
    for value in ["True", ""] {
        let world = World::new(1);
        world.change_xr(|xr| {
            xr.set_at_or_ignore(&["metadata", "annotations", "crossplane.io/paused"], value);
        });
        world.reconcile().await.unwrap();
        assert!(world.conditions().iter().any(|c| c.starts_with("Ready=")), "{value:?}");
    }
}

#[tokio::test]
async fn deletion_removes_the_finalizer_and_deletes_nothing_else() {
    // XR-6, T-6
    let world = World::new(1);
    world.change_xr(|xr| {
        xr.set_at_or_ignore(&["metadata", "deletionTimestamp"], "2024-01-01T00:00:00Z");
        xr.set_at_or_ignore(
            &["metadata", "finalizers"],
            json!(["composite.apiextensions.crossplane.io", "other"]),
        );
    });
    assert_eq!(world.reconcile().await, Ok(Requeue::No));
    assert_eq!(world.xr().at(&["metadata", "finalizers"]), Some(&json!(["other"])));
    assert_eq!(
        world.conditions(),
        [
            "Responsive=True/WatchCircuitClosed",
            "Ready=False/Deleting",
            "Synced=True/ReconcileSuccess"
        ]
    );
    assert_eq!(world.writes(), ["Update Thing xr", "UpdateStatus Thing xr"]);
}

#[tokio::test]
async fn a_finalizer_that_cannot_be_removed_is_reported() {
    // XR-6, T-5
    let world = World::new(1);
    world.change_xr(|xr| {
        xr.set_at_or_ignore(&["metadata", "deletionTimestamp"], "2024-01-01T00:00:00Z");
        xr.set_at_or_ignore(
            &["metadata", "finalizers"],
            json!(["composite.apiextensions.crossplane.io"]),
        );
    });
    world.cluster.inject(Fault::before(1));
    let text = "cannot remove composite resource finalizer: cannot update object: injected fault before call 1";
    assert_eq!(world.reconcile().await.unwrap_err().text, text);
    assert_eq!(
        world.conditions(),
        [
            "Responsive=True/WatchCircuitClosed".to_owned(),
            "Ready=False/Deleting".to_owned(),
            format!("Synced=False/ReconcileError {text}"),
        ]
    );
}

#[tokio::test]
async fn a_revision_must_have_a_valid_pipeline() {
    // XR-11, T-8
    for (condition, why) in [
        (json!([]), "pipeline status unknown"),
        (json!([{"type": "ValidPipeline", "status": "False", "reason": "x", "message": "M"}]), "M"),
    ] {
        let world = World::new(1);
        let spec = json!({"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"}});
        let mut revision = crate::world::revision("comp-2", "comp-uid", 2, &spec);
        revision.set_at_or_ignore(&["status", "conditions"], condition);
        world.seed(revision);
        assert_eq!(
            world.reconcile().await.unwrap_err().text,
            format!(
                "selected CompositionRevision comp-2 does not have a valid function pipeline: {why}"
            )
        );
    }
}

#[tokio::test]
async fn a_function_that_fails_leaves_readiness_as_it_was() {
    // XR-13, T-9
    let world = World::new(1);
    world.change_xr(|xr| {
        xr.set_at_or_ignore(&["status", "conditions"], json!([
            {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2023-01-01T00:00:00Z"},
        ]));
    });
    *world.script.responses.lock().unwrap() = vec![Err("boom".into())];
    let text = "cannot compose resources: cannot run Composition pipeline step \"step-0\": boom";
    assert_eq!(world.reconcile().await.unwrap_err().text, text);
    let conditions = world.conditions();
    assert!(conditions.contains(&"Ready=True/Available".to_owned()), "{conditions:?}");
    assert!(conditions.contains(&format!("Synced=False/ReconcileError {text}")), "{conditions:?}");
    assert_eq!(world.events().last().unwrap(), &format!("Warning ComposeResources: {text}"));
}

#[tokio::test]
async fn a_fatal_result_keeps_what_was_said_before_it_and_doubts_other_conditions() {
    // XR-13, FC-10, T-12, T-42
    let world = World::with_layout(Layout::Legacy, "", 1);
    world.change_xr(|xr| {
        xr.set_at_or_ignore(&["status"], json!({
            "claimConditionTypes": ["Old"],
            "conditions": [{"type": "DatabaseReady", "status": "True", "reason": "r", "lastTransitionTime": "2023-01-01T00:00:00Z"}],
        }));
    });
    world.respond([response(json!({
        "conditions": [
            {"type": "InternalSync", "status": "STATUS_CONDITION_FALSE", "reason": "A"},
            {"type": "BucketReady", "status": "STATUS_CONDITION_TRUE", "reason": "B", "target": "TARGET_COMPOSITE_AND_CLAIM"},
            {"type": "Ready", "status": "STATUS_CONDITION_TRUE", "reason": "C"},
        ],
        "results": [
            {"severity": "SEVERITY_NORMAL", "message": "one"},
            {"severity": "SEVERITY_FATAL", "message": "oh no"},
            {"severity": "SEVERITY_NORMAL", "message": "never"},
        ],
    }))]);
    let error = world.reconcile().await.unwrap_err();
    assert_eq!(error.fatal.unwrap().message, "oh no");
    assert_eq!(
        world.conditions(),
        [
            "DatabaseReady=Unknown/FatalError A fatal error occurred before the status of this condition could be determined.",
            "Responsive=True/WatchCircuitClosed",
            "Synced=False/ReconcileError cannot compose resources: pipeline step \"step-0\" returned a fatal result: oh no",
            "InternalSync=False/A",
            "BucketReady=True/B",
        ]
    );
    let xr = world.xr();
    assert_eq!(xr.at(&["status", "claimConditionTypes"]), Some(&json!(["Old", "BucketReady"])));
    assert_eq!(
        xr.at(&["status", "conditions"]).unwrap()[0]["lastTransitionTime"],
        "2023-01-01T00:00:00Z"
    );
    let events = world.events();
    assert_eq!(
        &events[events.len() - 2..],
        [
            "Warning ComposeResources: cannot compose resources: pipeline step \"step-0\" returned a fatal result: oh no",
            "Normal ComposeResources: Pipeline step \"step-0\": one",
        ]
    );
    assert!(world.applied().is_empty());
}

#[tokio::test]
async fn a_write_that_is_refused_is_explained_by_our_rights() {
    // XR-13, XR-24, T-11, T-59
    let world = || {
        let server = Arc::new(ApiServer::default());
        server.refuse(["create", "patch"]);
        let mut world = World::on(server, 1);
        let user = "system:serviceaccount:system:biplane".into();
        world.reconciler.authorizer = Some(Authorizer { user });
        world.respond([wants(&["a"])]);
        world
    };
    let why = "system:serviceaccount:system:biplane is not allowed to [create, patch] resource configmaps/v1 in namespace ns";
    let undisturbed = world();
    undisturbed.reconcile().await.unwrap();
    for call in 0..undisturbed.cluster.calls() {
        let world = world();
        world.cluster.inject(Fault::before(call));
        let Err(error) = world.reconcile().await else { continue };
        let blamed = error.text.contains("cannot apply composed resource \"a\"");
        assert_eq!(error.text.ends_with(&format!(", {why}]")), blamed, "{error}");
        if blamed {
            let told = format!("Warning RoleBasedAccessControl: {why}");
            assert!(world.events().contains(&told), "{:?}", world.events());
            return;
        }
    }
    panic!("no call applied the composed resource");
}

#[tokio::test]
async fn unready_resources_are_named_and_bring_us_back_at_once() {
    // XR-17, XR-19, RQ-2, T-13
    let world = World::new(1);
    let resource = |ready: &str| json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap"}, "ready": ready});
    let (no, yes) = (resource("READY_UNSPECIFIED"), resource("READY_TRUE"));
    world.respond([response(json!({"desired": {"resources": {
        "elephant": no, "cow": no, "cat": no, "snake": no, "pig": yes, "dog": yes,
    }}}))]);
    assert_eq!(world.reconcile().await, Ok(Requeue::Now));
    assert!(world.conditions().contains(
        &"Ready=False/Creating Unready resources: cat, cow, elephant, and 1 more".to_owned()
    ));
    let told = world.events().iter().filter(|e| e.ends_with("is not yet ready")).count();
    assert_eq!(told, 4);
}

#[tokio::test]
async fn the_pipelines_word_on_readiness_counts_more_than_the_resources() {
    // XR-19, T-16
    for (ready, want) in
        [("READY_FALSE", "Ready=False/Creating"), ("READY_TRUE", "Ready=True/Available")]
    {
        let world = World::new(1);
        let mut answer = wants(&["a"]);
        let stated = response(json!({"desired": {"composite": {"ready": ready}}}));
        answer.desired.as_mut().unwrap().composite = stated.desired.unwrap().composite;
        answer.desired.as_mut().unwrap().resources.get_mut("a").unwrap().ready = 0;
        world.respond([answer]);
        assert_eq!(world.reconcile().await, Ok(Requeue::Now));
        assert!(world.conditions().contains(&want.to_owned()), "{:?}", world.conditions());
    }
}

#[tokio::test]
async fn polling_follows_the_annotation_within_its_bounds() {
    // RQ-1, T-22
    for (annotation, low, high) in [
        (None, 540.0, 660.0),
        (Some("24h"), 21.6 * 3600.0, 26.4 * 3600.0),
        (Some("1ms"), 0.9, 1.1),
        (Some("not-a-duration"), 540.0, 660.0),
        (Some("-5m"), 540.0, 660.0),
        (Some("0s"), 540.0, 660.0),
    ] {
        let world = World::live(Layout::Modern, "ns", 1);
        world.respond([wants(&["a"])]);
        if let Some(annotation) = annotation {
            world.change_xr(|xr| {
                xr.set_at_or_ignore(
                    &["metadata", "annotations", "crossplane.io/poll-interval"],
                    annotation,
                );
            });
        }
        let Ok(Requeue::After(wait)) = world.reconcile().await else { panic!("{annotation:?}") };
        assert!((low..=high).contains(&wait.as_secs_f64()), "{annotation:?} {wait:?}");
    }
}

#[tokio::test]
async fn with_watches_only_the_time_to_live_brings_us_back() {
    // RQ-2, RQ-3, T-23, T-24
    for (ttl, come_back) in [(Some("60s"), true), (None, false)] {
        let mut world = World::new(1);
        world.reconciler.behaviour.realtime = true;
        world.reconciler.behaviour.poll_interval = Duration::ZERO;
        let mut answer = wants(&["a"]);
        answer.desired.as_mut().unwrap().resources.get_mut("a").unwrap().ready = 0;
        answer.meta = response(json!({"meta": {"ttl": ttl}})).meta;
        world.respond([answer]);
        match (world.reconcile().await.unwrap(), come_back) {
            (Requeue::After(wait), true) => assert!((54.0..=66.0).contains(&wait.as_secs_f64())),
            (Requeue::No, false) => {}
            (other, _) => panic!("{ttl:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_claim_hears_what_is_meant_for_it_without_the_step() {
    // EV-3, EV-5, T-18
    for (layout, namespace, claim_exists, hears) in [
        (Layout::Legacy, "", true, true),
        (Layout::Legacy, "", false, false),
        (Layout::Modern, "ns", true, false),
    ] {
        let world = World::live(layout, namespace, 1);
        world.change_xr(|xr| {
            xr.set_at_or_ignore(&["spec", "claimRef"], json!({"apiVersion": "example.org/v1", "kind": "Claim", "namespace": "team", "name": "c"}));
        });
        if claim_exists {
            world.seed(object(json!({"apiVersion": "example.org/v1", "kind": "Claim", "metadata": {"namespace": "team", "name": "c"}})));
        }
        world.respond([response(json!({"results": [
            {"severity": "SEVERITY_NORMAL", "message": "M", "reason": "R", "target": "TARGET_COMPOSITE_AND_CLAIM"},
        ]}))]);
        world.reconcile().await.unwrap();
        let events = world.events();
        assert!(events.contains(&"Normal R: Pipeline step \"step-0\": M".to_owned()), "{events:?}");
        assert_eq!(events.contains(&"Normal R: M".to_owned()), hears, "{layout:?} {events:?}");
    }
}

#[tokio::test]
async fn a_reconcile_that_was_asked_for_is_noted() {
    // XR-5
    let world = World::live(Layout::Modern, "ns", 1);
    world.change_xr(|xr| {
        xr.set_at_or_ignore(
            &["metadata", "annotations", "crossplane.io/reconcile-requested-at"],
            "token",
        );
    });
    let handled = "Normal ReconcileRequestHandled: Handling reconcile request";
    for _ in 0..2 {
        world.respond([wants(&["a"])]);
        world.reconcile().await.unwrap();
        assert_eq!(world.xr().str_at(&["status", "lastHandledReconcileAt"]), "token");
    }
    assert_eq!(world.events().iter().filter(|event| *event == handled).count(), 1);
}

#[tokio::test]
async fn finalizer_references_and_label_are_one_write() {
    // XR-7, SEL-4, SEL-9, CFG-1, T-34
    let world = World::new(1);
    world.respond([wants(&["a"])]);
    world.reconcile().await.unwrap();
    let writes = world.writes();
    assert_eq!(writes.iter().filter(|w| **w == "Update Thing xr").count(), 1, "{writes:?}");
    assert_eq!(
        world.events(),
        [
            "Normal SelectComposition: Successfully selected composition: comp",
            "Normal SelectComposition: Selected composition revision: comp-1",
        ]
    );
}

//! Tests of composing: requests, desired state, garbage collection, references, connection details.

use biplane_engine::composite::{Layout, composed_manager};
use biplane_model::Object;
use serde_json::{Value, json};

use crate::world::{World, object, response, wants};

fn composed(name: &str, owner: Option<&str>) -> Object {
    let mut composed = object(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("cm-{name}"), "namespace": "ns", "uid": format!("uid-{name}"),
            "labels": {"crossplane.io/composite": "xr", "mine": "yes"},
            "annotations": {"crossplane.io/composition-resource-name": name},
        },
    }));
    if let Some(uid) = owner {
        let owner = json!([{"apiVersion": "x", "kind": "Thing", "name": "xr", "uid": uid, "controller": true}]);
        composed.set_at_or_ignore(&["metadata", "ownerReferences"], owner);
    }
    composed
}

fn refer(world: &World, names: &[&str]) {
    let references: Vec<_> = names
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name}))
        .collect();
    world.change_xr(|xr| xr.set_at_or_ignore(&["spec", "crossplane", "resourceRefs"], references));
}

#[tokio::test]
async fn references_that_lead_nowhere_or_to_others_are_not_observed() {
    // FC-1, T-37, T-38
    let world = World::new(1);
    world.seed(composed("a", Some("xr-uid")));
    world.seed(composed("b", Some("someone")));
    refer(&world, &["", "cm-a", "cm-b", "cm-gone"]);
    world.reconcile().await.unwrap();
    let observed = world.requests()[0].observed.clone().unwrap();
    assert_eq!(observed.resources.keys().collect::<Vec<_>>(), ["a"]);
    assert!(world.cluster.objects().iter().any(|o| o.name() == "cm-b"));
}

#[tokio::test]
async fn a_composed_resource_without_its_annotation_is_an_error() {
    // FC-1, T-39
    let world = World::new(1);
    world.seed(composed("", Some("xr-uid")));
    refer(&world, &["cm-"]);
    assert_eq!(
        world.reconcile().await.unwrap_err().text,
        "cannot compose resources: cannot get existing composed resources: encountered composed resource without required \"crossplane.io/composition-resource-name\" annotation"
    );
}

#[tokio::test]
async fn each_step_gets_what_the_one_before_returned() {
    // FC-5, FC-8, T-40, T-41
    let world = World::new(2);
    let first = response(
        json!({"desired": {"resources": {"a": {"ready": "READY_FALSE"}}}, "context": {"k": 1}}),
    );
    world.respond([first.clone(), response(json!({}))]);
    world.reconcile().await.unwrap();
    let requests = world.requests();
    assert_eq!(requests[0].desired, Some(biplane_proto::function::v1::State::default()));
    assert_eq!(requests[0].context, Some(biplane_proto::Struct::default()));
    assert_eq!(requests[0].meta.as_ref().unwrap().capabilities, [1, 2, 3, 4, 5]);
    assert_eq!(requests[1].desired, first.desired);
    assert_eq!(requests[1].context, first.context);
    assert!(world.applied().is_empty(), "the second step returned nothing, so nothing is wanted");
}

#[tokio::test]
async fn what_exists_can_be_neither_renamed_nor_moved() {
    // FC-12, T-48
    let world = World::new(1);
    world.seed(composed("a", Some("xr-uid")));
    refer(&world, &["cm-a"]);
    world.respond([response(json!({"desired": {"resources": {"a": {"resource": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "namespace": "other"},
    }}}}}))]);
    world.reconcile().await.unwrap();
    let applied = world.applied();
    assert_eq!((applied[0].name(), applied[0].namespace()), ("cm-a", "ns"));
}

#[tokio::test]
async fn another_namespace_is_overridden_with_a_warning() {
    // FC-13, T-49
    let world = World::new(1);
    world.respond([response(json!({"desired": {"resources": {"x": {"resource": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns-b"},
    }}}}}))]);
    world.reconcile().await.unwrap();
    assert_eq!(world.applied()[0].namespace(), "ns");
    assert!(world.events().contains(
        &"Warning NamespaceOverridden: cannot create composed resource \"x\" in namespace \"ns-b\", using XR namespace \"ns\" instead".to_owned()
    ));
}

#[tokio::test]
async fn names_are_generated_from_parent_and_resource() {
    // FC-14, NM-2, T-46, T-47
    let world = World::new(1);
    world.change_xr(|xr| {
        xr.set_meta("uid", "75e4a668-035f-4ce8-8c45-f4d3ac850155");
        xr.set_at_or_ignore(&["metadata", "labels", "crossplane.io/composite"], "parent-xr");
    });
    let long = "test-resource-with-a-super-duper-really-long-name-to-test-compaction";
    world.respond([response(json!({"desired": {"resources": {
        long: {"resource": {"apiVersion": "v1", "kind": "ConfigMap"}},
        "z": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fixed"}}},
    }}}))]);
    world.reconcile().await.unwrap();
    let applied = world.applied();
    assert_eq!(applied[0].name(), "parent-xr-e5ac98dc40a2");
    assert_eq!(applied[0].generate_name(), "parent-xr-");
    assert_eq!((applied[1].name(), applied[1].generate_name()), ("fixed", ""));
}

#[tokio::test]
async fn an_invalid_name_stops_everything_before_the_first_write() {
    // FC-15, FC-25, T-51
    let world = World::new(1);
    world.seed(composed("old", Some("xr-uid")));
    refer(&world, &["cm-old"]);
    world.respond([response(json!({"desired": {"resources": {"x": {"resource": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Invalid_Name"},
    }}}}}))]);
    assert_eq!(
        world.reconcile().await.unwrap_err().text,
        "cannot compose resources: cannot apply composed resource \"x\" because it has an invalid name \"Invalid_Name\". Must be a valid RFC 1123 subdomain name."
    );
    assert!(!world.writes().iter().any(|w| w.contains("ConfigMap")), "{:?}", world.writes());
}

#[tokio::test]
async fn a_foreign_controller_of_a_desired_resource_is_an_error() {
    // FC-14, T-53
    let world = World::new(1);
    world.respond([response(json!({"desired": {"resources": {"x": {"resource": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "ownerReferences": [
            {"apiVersion": "x", "kind": "Y", "name": "boss", "uid": "u", "controller": true},
        ]},
    }}}}}))]);
    assert_eq!(
        world.reconcile().await.unwrap_err().text,
        "cannot compose resources: cannot render metadata for composed resource \"x\": cannot set controller reference: n is already controlled by Y boss (UID u)"
    );
}

#[tokio::test]
async fn garbage_loses_its_labels_and_goes_and_what_nobody_controls_stays() {
    // FC-17, FC-18, T-54
    let world = World::new(1);
    world.seed(composed("a", Some("xr-uid")));
    world.seed(composed("b", None));
    refer(&world, &["cm-a", "cm-b"]);
    world.reconcile().await.unwrap();
    let writes = world.writes();
    let position = |write: &str| writes.iter().position(|w| w == write);
    assert!(position("Update ConfigMap cm-a") < position("Delete ConfigMap cm-a"), "{writes:?}");
    assert!(world.cluster.objects().iter().any(|o| o.name() == "cm-b"));
    assert_eq!(world.xr().at(&["spec", "crossplane", "resourceRefs"]), Some(&json!([])));
    let deleted = world.cluster.journal().into_iter().find_map(|entry| match entry {
        biplane_cluster::memory::Entry::Write {
            verb: biplane_cluster::memory::Verb::Delete,
            object,
        } => Some(object),
        _ => None,
    });
    assert_eq!(deleted.unwrap().at(&["metadata", "labels"]), Some(&json!({"mine": "yes"})));
}

#[tokio::test]
async fn references_are_sorted_and_written_before_anything_else() {
    // FC-18, T-57
    let world = World::with_layout(Layout::Modern, "", 1);
    let resource = |version: &str, kind: &str, name: &str| json!({"resource": {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "n"}}});
    world.respond([response(json!({"desired": {"resources": {
        "1": resource("v1", "B", "b"), "2": resource("v1", "A", "z"), "3": resource("v1", "A", "a"),
    }}}))]);
    world.reconcile().await.unwrap();
    let references = world.xr().at(&["spec", "crossplane", "resourceRefs"]).cloned().unwrap();
    let names: Vec<_> = references.as_array().unwrap().iter().map(|r| r["name"].clone()).collect();
    assert_eq!(names, [json!("a"), json!("z"), json!("b")]);
    assert_eq!(references[0]["namespace"], "n");
    let writes = world.writes();
    let first_apply = writes.iter().position(|w| w.starts_with("Apply ")).unwrap();
    assert_eq!(writes[first_apply], "Apply Thing xr");
}

#[tokio::test]
async fn the_field_manager_is_derived_from_name_and_kind() {
    // SSA-3, T-63
    let xr = |version: &str, namespace: &str| {
        let mut xr = object(
            json!({"apiVersion": version, "kind": "XBucket", "metadata": {"name": "my-bucket"}}),
        );
        xr.set_meta("namespace", namespace);
        xr
    };
    let want = "apiextensions.crossplane.io/composed/bf2a3e0df72e39724f8b1f3e7919d9ff837f443ac060a6930505e9bc21b4eea6";
    assert_eq!(composed_manager(&xr("example.org/v1", "")), want);
    assert_eq!(composed_manager(&xr("example.org/v2", "ns")), want);
}

#[tokio::test]
async fn a_function_that_always_asks_for_something_new_is_called_six_times() {
    // FFR-1, T-65
    let world = World::new(1);
    world.respond((0..9).map(|i| {
        response(json!({"requirements": {"resources": {"r": {"apiVersion": "v1", "kind": "ConfigMap", "matchName": format!("n{i}")}}}}))
    }));
    assert_eq!(
        world.reconcile().await.unwrap_err().text,
        "cannot compose resources: cannot run Composition pipeline step \"step-0\": requirements didn't stabilize after the maximum number of iterations (5)"
    );
    assert_eq!(world.requests().len(), 6);
}

#[tokio::test]
async fn what_was_required_last_time_is_given_from_the_start() {
    // FC-6, DEP-2, T-66
    let world = World::new(1);
    world.seed(object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg", "namespace": "ns"}})));
    let asks = response(json!({"requirements": {"resources": {
        "r": {"apiVersion": "v1", "kind": "ConfigMap", "matchName": "cfg", "namespace": "ns"},
    }}}));
    world.respond([asks]);
    let xr = world.xr();
    world.reconcile().await.unwrap();
    assert_eq!(world.requests().len(), 2);
    world.seed(xr);
    world.reconcile().await.unwrap();
    let requests = world.requests();
    assert_eq!(requests.len(), 3, "one call is enough when everything is there already");
    assert_eq!(requests[2].required_resources["r"].items.len(), 1);
}

#[tokio::test]
async fn connection_details_are_published_once() {
    // SC-7, SC-8, SC-9, T-26
    let world = World::live(Layout::Legacy, "", 1);
    world.change_xr(|xr| {
        xr.set_at_or_ignore(
            &["spec", "writeConnectionSecretToRef"],
            json!({"name": "conn", "namespace": "secrets"}),
        );
    });
    world.respond([response(
        json!({"desired": {"composite": {"connectionDetails": {"user": "YWRtaW4="}}}}),
    )]);
    let published = "Normal PublishConnectionSecret: Successfully published connection details";
    let find = |world: &World| world.cluster.objects().into_iter().find(|o| o.name() == "conn");
    world.reconcile().await.unwrap();
    let secret = find(&world).expect("a secret");
    assert_eq!(secret.at(&["data"]), Some(&json!({"user": "YWRtaW4="})));
    assert_eq!(secret.str_at(&["type"]), "connection.crossplane.io/v1alpha1");
    assert_eq!(world.events().iter().filter(|e| *e == published).count(), 1);
    assert_eq!(
        world.xr().str_at(&["status", "connectionDetails", "lastPublishedTime"]),
        "2024-01-01T00:00:00Z"
    );
    world.reconcile().await.unwrap();
    assert_eq!(
        world.events().iter().filter(|e| *e == published).count(),
        1,
        "nothing new to publish"
    );
}

#[tokio::test]
async fn the_status_is_what_the_pipeline_wants_and_spec_is_left_alone() {
    // FC-22, T-60, T-89
    let world = World::new(1);
    world.change_xr(|xr| xr.set_at_or_ignore(&["status", "foo"], 1));
    world.respond([response(json!({"desired": {"composite": {"resource": {"status": {"widgets": 42}, "spec": {"a": 1}}}}}))]);
    world.reconcile().await.unwrap();
    let xr = world.xr();
    assert_eq!(xr.at(&["status", "widgets"]), Some(&json!(42)));
    assert_eq!(xr.at(&["status", "foo"]), None);
    assert_eq!(xr.at(&["spec", "a"]), None);
}

#[tokio::test]
async fn results_without_severity_are_warnings_without_a_second_prefix() {
    // EV-4, T-43
    let world = World::new(1);
    world.respond([response(
        json!({"results": [{"message": "m", "target": "TARGET_COMPOSITE_AND_CLAIM"}]}),
    )]);
    world.reconcile().await.unwrap();
    assert!(world.events().contains(
        &"Warning ComposeResources: Pipeline step \"step-0\" returned a result of unknown severity (assuming warning): m".to_owned()
    ));
}

#[tokio::test]
async fn an_input_that_is_not_an_object_is_an_error() {
    // FC-6, T-45
    let world = World::new(0);
    let spec: Value = json!({
        "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"},
        "pipeline": [{"step": "s", "functionRef": {"name": "fn"}, "input": "hi"}],
    });
    world.seed(crate::world::revision("comp-2", "comp-uid", 2, &spec));
    let text = world.reconcile().await.unwrap_err().text;
    assert!(
        text.starts_with(
            "cannot compose resources: cannot unmarshal input for Composition pipeline step \"s\": "
        ),
        "{text}"
    );
}

#[tokio::test]
async fn the_same_desired_state_is_applied_the_same_way_every_time() {
    // IMP-1
    let journal = || async {
        let world = World::new(2);
        world.respond([wants(&["b", "a", "c"])]);
        world.reconcile().await.unwrap();
        world.cluster.journal()
    };
    assert_eq!(journal().await, journal().await);
}

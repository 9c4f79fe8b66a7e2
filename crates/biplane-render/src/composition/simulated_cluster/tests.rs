//! Tests what a reconcile changes in the simulated cluster.

#![allow(clippy::needless_pass_by_value)] // literals are easier to read

use serde_json::json;

use super::*;
use crate::RENDER_TIME;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn xr(name: &str) -> Object {
    object(json!({"apiVersion": "example.org/v1", "kind": "XApp", "metadata": {"name": name},
        "spec": {"colour": "red"}}))
}

fn thing(name: &str, spec: Value) -> Object {
    object(json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name},
        "spec": spec}))
}

fn output(composed: &[Object], deleted: &[Object]) -> CompositeOutput {
    let structs = |objects: &[Object]| objects.iter().cloned().map(Struct::from).collect();
    CompositeOutput {
        composed_resources: structs(composed),
        deleted_resources: structs(deleted),
        ..CompositeOutput::default()
    }
}

/// SSA-1
#[test]
fn what_is_no_longer_wanted_goes_and_what_others_wrote_stays() {
    let nested = Nested::default();
    let mut existing = thing("t", json!({"theirs": 1}));
    existing.set_at_or_ignore(&["status", "ready"], true);
    let mut cluster = SimulatedCluster::new(&xr("a"), &[existing], &nested);
    let id = thing("t", json!({})).id();
    let spec = |cluster: &SimulatedCluster<'_>| cluster.get(&id).unwrap().get("spec").cloned();

    let both = thing("t", json!({"a": 1, "b": {"c": [1, 2]}}));
    cluster.take_in(&xr("a").id(), "c", &output(&[both], &[])).unwrap();
    assert_eq!(spec(&cluster), Some(json!({"theirs": 1, "a": 1, "b": {"c": [1, 2]}})));
    let one = thing("t", json!({"a": 2}));
    cluster.take_in(&xr("a").id(), "c", &output(&[one], &[])).unwrap();
    assert_eq!(spec(&cluster), Some(json!({"theirs": 1, "a": 2})));
    let after = cluster.get(&id).unwrap();
    assert_eq!(after.at(&["status", "ready"]), Some(&json!(true)));
    assert_eq!(after.at(&["metadata"]), Some(&json!({"name": "t"})));
}

/// RX-21, FC-18, FC-22
#[test]
fn references_are_laid_over_the_spec_and_a_status_takes_the_place_of_the_old_one() {
    let nested = Nested::default();
    let mut before = xr("a");
    before.set_at_or_ignore(&["status"], json!({"old": 1}));
    let mut cluster = SimulatedCluster::new(&before, &[], &nested);
    let after = json!({"apiVersion": "example.org/v1", "kind": "XApp", "metadata": {"name": "a"},
        "spec": {"crossplane": {"resourceRefs": []}},
        "status": {"conditions": [{"type": "Ready", "lastTransitionTime": "now"}]}});
    let output = CompositeOutput {
        composite_resource: Some(object(after).into()),
        ..CompositeOutput::default()
    };
    cluster.take_in(&before.id(), "c", &output).unwrap();
    let after = cluster.get(&before.id()).unwrap();
    let machinery = json!({"compositionRef": {"name": "c"}, "resourceRefs": []});
    assert_eq!(after.get("spec"), Some(&json!({"colour": "red", "crossplane": machinery})));
    assert_eq!(after.label(COMPOSITE), "a");
    let condition = json!({"type": "Ready", "lastTransitionTime": RENDER_TIME});
    assert_eq!(after.get("status"), Some(&json!({"conditions": [condition]})));
}

#[test]
fn what_exists_belongs_to_its_owner() {
    let nested = Nested::default();
    let owned = |name: &str, kind: &str, owner: &str, uid: &str| {
        let mut object = thing(name, json!({}));
        let owner = json!([{"apiVersion": "example.org/v1", "kind": kind, "name": owner,
            "uid": uid, "controller": true}]);
        object.set_at_or_ignore(&["metadata", "ownerReferences"], owner);
        object
    };
    let mut branch = owned("branch", "XApp", "a", "u-a");
    branch.set_meta("uid", "u-branch");
    let twig = owned("twig", "Thing", "branch", "u-branch");
    let stray = owned("stray", "Thing", "branch", "u-other");
    let mut cluster = SimulatedCluster::new(&xr("a"), &[branch.clone(), twig, stray], &nested);
    let names = |cluster: &SimulatedCluster<'_>, id: &ObjectId| -> Vec<String> {
        cluster.composed(id).iter().map(|object| object.name().to_owned()).collect()
    };
    // Resources without a known owner are passed to the engine, which rejects them.
    assert_eq!(names(&cluster, &xr("a").id()), ["branch", "stray"]);
    assert_eq!(names(&cluster, &branch.id()), ["twig"]);

    cluster.take_in(&xr("a").id(), "c", &output(&[], &[branch.clone()])).unwrap();
    assert_eq!(names(&cluster, &xr("a").id()), ["stray"]);
    assert_eq!(names(&cluster, &branch.id()), Vec::<String>::new());
    assert_eq!(cluster.objects().len(), 2);
}

#[test]
fn owners_that_own_each_other_are_no_end_of_work() {
    let nested = Nested::default();
    let owned = |name: &str, owner: &str| {
        let mut object = thing(name, json!({}));
        let owner = json!([{"apiVersion": "example.org/v1", "kind": "Thing", "name": owner,
            "uid": "", "controller": true}]);
        object.set_at_or_ignore(&["metadata", "ownerReferences"], owner);
        object
    };
    let cluster = SimulatedCluster::new(&xr("a"), &[owned("b", "c"), owned("c", "b")], &nested);
    assert_eq!(cluster.composites().unwrap(), [xr("a").id()]);
    let (b, c) = (thing("b", json!({})).id(), thing("c", json!({})).id());
    assert!(cluster.check_composer(&b, &c).is_err());
}

/// RE-26, RE-31
#[test]
fn a_composite_resource_that_is_shown_as_a_whole_was_not_composed() {
    let nested = Nested::default();
    let mut before = xr("a");
    before.set_at_or_ignore(&["status"], json!({"old": 1}));
    let mut cluster = SimulatedCluster::new(&before, &[], &nested);
    let mut whole = before.clone();
    whole.set_meta("resourceVersion", "999");
    whole.set_meta("uid", "u");
    whole.set_at_or_ignore(&["status"], json!({"new": 1}));
    whole.set_at_or_ignore(&["spec", "writeConnectionSecretToRef"], json!({"name": "s"}));
    let output =
        CompositeOutput { composite_resource: Some(whole.into()), ..CompositeOutput::default() };
    cluster.take_in(&before.id(), "c", &output).unwrap();
    let after = cluster.get(&before.id()).unwrap();
    assert_eq!(after.get("status"), Some(&json!({"new": 1})));
    let spec = json!({"colour": "red", "writeConnectionSecretToRef": {"name": "s"}});
    assert_eq!(after.get("spec"), Some(&spec));
    assert_eq!(after.get("metadata"), Some(&json!({"name": "a"})));
}

/// RX-21
#[test]
fn what_changes_of_a_composite_resource_is_references_and_status() {
    let nested = Nested::default();
    let mut composite = xr("a");
    composite.set_meta("namespace", "n");
    composite.set_at_or_ignore(
        &["spec", "crossplane"],
        json!({"compositionRef": {}, "resourceRefs": []}),
    );
    composite.set_at_or_ignore(&["status"], json!({"x": 1}));
    let cluster = SimulatedCluster::new(&composite, &[], &nested);
    let want = json!({"apiVersion": "example.org/v1", "kind": "XApp",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"crossplane": {"resourceRefs": []}}, "status": {"x": 1}});
    assert_eq!(cluster.changed(&composite), object(want));
}

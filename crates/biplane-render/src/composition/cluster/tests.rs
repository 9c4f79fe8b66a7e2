//! Tests who composes whom, and which objects are shown.

#![allow(clippy::needless_pass_by_value)] // literals are easier to read

use biplane_model::Value;
use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn named(kind: &str, name: &str) -> Object {
    object(json!({"apiVersion": "example.org/v1", "kind": kind, "metadata": {"name": name}}))
}

fn owned(kind: &str, name: &str, owner: &Object) -> Object {
    let mut object = named(kind, name);
    let owner = json!([{"apiVersion": "example.org/v1", "kind": owner.kind(),
        "name": owner.name(), "uid": composite_uid(owner), "controller": true}]);
    object.set_at_or_ignore(&["metadata", "ownerReferences"], owner);
    object
}

/// A cluster in which XApps and XParts are composed.
fn cluster(observed: &[Object], more: &[Object]) -> RenderCluster {
    let composition = |kind: &str| {
        let type_ref = json!({"apiVersion": "example.org/v1", "kind": kind});
        object(json!({"metadata": {"name": kind}, "spec": {"compositeTypeRef": type_ref}}))
    };
    let compositions = vec![composition("XApp"), composition("XPart")];
    let nested = Nested { compositions, definitions: Vec::new() };
    let root = named("XApp", "a");
    let cluster = RenderCluster::new(&root, observed, Arc::new(nested));
    cluster.server.seed([root]);
    cluster.server.seed(observed.iter().cloned());
    cluster.server.seed(more.iter().cloned());
    cluster
}

fn names(objects: &[Object]) -> Vec<String> {
    objects.iter().map(|object| object.name().to_owned()).collect()
}

#[test]
fn what_exists_belongs_to_its_owner_and_parents_come_first() {
    let root = named("XApp", "a");
    let part = owned("XPart", "part", &root);
    let leaf = owned("Leaf", "leaf", &part);
    let cluster = cluster(&[leaf, part.clone(), named("Leaf", "free")], &[]);
    let state = cluster.state();
    // An observed resource without an owner is the composite resource's.
    assert_eq!(names(&state.composed(&root.id())), ["free", "part"]);
    assert_eq!(names(&state.composed(&part.id())), ["leaf"]);
    assert_eq!(cluster.composites(&state).unwrap(), [root.id(), part.id()]);
    assert_eq!(state.others(&part.id()).count(), 3);
}

#[test]
fn only_what_was_given_or_comes_later_is_shown() {
    let composition = named("Composition", "c");
    let revision = owned("CompositionRevision", "c-1", &composition);
    let cluster = cluster(&[], &[composition, revision, named("XApp", "required")]);
    cluster.hide_the_rest();
    let shown = |cluster: &RenderCluster| cluster.state().objects.into_keys().collect::<Vec<_>>();
    assert_eq!(shown(&cluster), [named("XApp", "a").id()]);
    cluster.server.seed([named("Secret", "new")]);
    assert_eq!(shown(&cluster), [named("XApp", "a").id(), named("Secret", "new").id()]);
    // What is required may be composed later.
    cluster.server.seed([owned("XApp", "required", &named("XApp", "a"))]);
    assert_eq!(shown(&cluster).len(), 3);
}

#[test]
fn owners_that_own_each_other_are_no_end_of_work() {
    let (b, c) = (named("XPart", "b"), named("XPart", "c"));
    let cluster = cluster(&[owned("XPart", "b", &c), owned("XPart", "c", &b)], &[]);
    let state = cluster.state();
    assert_eq!(cluster.composites(&state).unwrap(), [named("XApp", "a").id()]);
    assert!(cluster.check_composer(&composite_uid(&b), &c.id()).is_err());
}

#[test]
fn nothing_is_composed_by_two_or_by_itself_or_too_deep() {
    let root = named("XApp", "a");
    let mut chain = vec![root.clone()];
    for depth in 1..DEEPEST {
        let above = chain.last().unwrap().clone();
        chain.push(owned("XPart", &format!("p{depth}"), &above));
    }
    let (first, last) = (&chain[1], chain.last().unwrap());
    let cluster = cluster(&chain[1..], &[]);
    let error = |composer: &Object, composed: &Object| {
        let checked = cluster.check_composer(&composite_uid(composer), &composed.id());
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(error(&root, first), "");
    assert_eq!(error(last, &named("Leaf", "leaf")), "");
    assert!(error(last, &root).starts_with(
        "a composite resource composes itself: XApp.example.org a composes XPart.example.org p1"
    ));
    let both =
        "XPart.example.org p2 is composed by both XPart.example.org p1 and XApp.example.org a";
    assert_eq!(error(&root, &chain[2]), both);
    let deeper = owned("XPart", "deep", last);
    cluster.server.seed([deeper.clone()]);
    let text = error(&deeper, &named("Leaf", "leaf"));
    assert!(text.starts_with("composite resources nest more than 10 deep: "), "{text}");
    // Somebody who is not known composes nothing of ours.
    assert!(cluster.check_composer("u-other", &first.id()).is_ok());
}

#[test]
fn composers_are_found_without_looking_at_everything_again() {
    let root = named("XApp", "a");
    let first = owned("Leaf", "first", &root);
    let cluster = cluster(&[], std::slice::from_ref(&first));
    let check = |object: &Object| cluster.check_composer(&composite_uid(&root), &object.id());
    let looked_at = || cluster.uids.lock().unwrap().len();
    assert!(check(&first).is_ok());
    assert_eq!(looked_at(), 2);
    for number in 0..10 {
        let more = owned("Leaf", &number.to_string(), &root);
        assert!(check(&more).is_ok());
        cluster.server.seed([more.clone()]);
        assert!(check(&more).is_ok());
    }
    assert_eq!(looked_at(), 2);
    // Somebody new is found.
    let part = owned("XPart", "part", &root);
    cluster.server.seed([part.clone()]);
    assert!(cluster.check_composer(&composite_uid(&part), &first.id()).is_err());
}

/// RX-21
#[test]
fn what_changes_of_a_composite_resource_is_references_and_status() {
    let mut composite = named("XApp", "a");
    composite.set_meta("namespace", "n");
    let machinery = json!({"compositionRef": {}, "resourceRefs": []});
    composite.set_at_or_ignore(&["spec", "crossplane"], machinery);
    composite.set_at_or_ignore(&["status"], json!({"x": 1}));
    let want = json!({"apiVersion": "example.org/v1", "kind": "XApp",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"crossplane": {"resourceRefs": []}}, "status": {"x": 1}});
    assert_eq!(cluster(&[], &[]).changed(&composite), object(want));
}

//! Tests which composite resource is assigned which observed resource.

#![allow(clippy::needless_pass_by_value)] // literals are easier to read

use serde_json::json;

use super::*;

fn object(kind: &str, metadata: Value) -> Object {
    Object::from_value(json!({"apiVersion": "example.org/v1", "kind": kind, "metadata": metadata}))
        .unwrap()
}

fn xr(namespace: &str, name: &str) -> Object {
    let mut xr = object("XApp", json!({"name": name}));
    if !namespace.is_empty() {
        xr.set_meta("namespace", namespace);
    }
    xr
}

fn owned(name: &str, kind: &str, owner: &str, uid: &str) -> Object {
    let owner = json!({"apiVersion": "example.org/v1", "kind": kind, "name": owner, "uid": uid,
        "controller": true});
    object("Thing", json!({"name": name, "ownerReferences": [owner]}))
}

fn labelled(namespace: &str, name: &str, composite: &str) -> Object {
    object("Thing", json!({"name": name, "namespace": namespace, "labels": {COMPOSITE: composite}}))
}

/// The names of the resources assigned to each composite resource, in order.
fn shared(composites: &[Object], observed: &[Object]) -> Result<Vec<Vec<String>>, String> {
    let shares = assign(&mut composites.to_vec(), observed.to_vec()).map_err(|e| e.to_string())?;
    let names = |composite: &Object| {
        let share = shares.get(&composite.id()).into_iter().flatten();
        share.map(|object| object.name().to_owned()).collect()
    };
    Ok(composites.iter().map(names).collect())
}

#[test]
fn one_composite_resource_gets_everything() {
    let observed = [owned("a", "XOther", "x", "u"), labelled("", "b", "x"), object("C", json!({}))];
    assert_eq!(shared(&[xr("", "one")], &observed).unwrap(), [["a", "b", ""]]);
}

#[test]
fn resources_go_to_the_composite_resource_that_owns_them_however_far_above() {
    let mut two = xr("", "two");
    two.set_meta("uid", "u-two");
    let part = owned("part", "XApp", "one", &composite_uid(&xr("", "one")));
    let twig = owned("twig", "Thing", "part", "whatever");
    let leaf = owned("leaf", "Thing", "twig", "whatever");
    // The UID takes precedence over the name. A matching name with another UID is left to the
    // engine, which reports it.
    let moved = owned("moved", "XApp", "one", "u-two");
    let other = owned("other", "XApp", "two", "u-elsewhere");
    let observed = [leaf, moved, twig, other, part];
    let want = [vec!["leaf", "twig", "part"], vec!["moved", "other"]];
    assert_eq!(shared(&[xr("", "one"), two], &observed).unwrap(), want);
}

#[test]
fn resources_without_an_owner_go_by_the_label_of_the_top() {
    let mut below = xr("", "below");
    below.set_at_or_ignore(&["metadata", "labels", COMPOSITE], "top");
    let observed = [labelled("", "a", "one"), labelled("n", "b", "top"), labelled("", "c", "one")];
    assert_eq!(shared(&[xr("", "one"), below], &observed).unwrap(), [vec!["a", "c"], vec!["b"]]);
    // Composite resources in different namespaces may have the same name.
    let observed = [labelled("y", "a", "one"), labelled("x", "b", "one")];
    assert_eq!(shared(&[xr("x", "one"), xr("y", "one")], &observed).unwrap(), [["b"], ["a"]]);
}

#[test]
fn what_is_nobodys_or_anybodys_is_refused() {
    let two = [xr("", "one"), xr("", "two")];
    let mut same = two.clone();
    same[0].set_at_or_ignore(&["metadata", "labels", COMPOSITE], "two");
    let circle = [owned("a", "Thing", "b", ""), owned("b", "Thing", "a", "")];
    for (composites, observed, named) in [
        (&two, &[object("Thing", json!({"name": "a"}))][..], "Thing.example.org a"),
        (&two, &[labelled("", "a", "three")], "Thing.example.org a"),
        (&two, &[owned("a", "XApp", "three", "u")], "Thing.example.org a"),
        (&same, &[labelled("n", "a", "two")], "Thing.example.org n/a"),
        (&two, &circle, "Thing.example.org a, Thing.example.org b"),
    ] {
        let error = shared(composites, observed).unwrap_err();
        let first = error.lines().next().unwrap();
        let start = "invalid observed resources: these belong to none of the composite resources, or to several: ";
        assert_eq!(first, format!("{start}{named}"));
    }
    assert_eq!(shared(&two, &[]).unwrap(), [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn an_earlier_state_tells_uid_and_status_and_nothing_else() {
    let mut earlier = xr("", "one");
    earlier.set_meta("uid", "u-1");
    earlier.set_at_or_ignore(&["spec"], json!({"colour": "red"}));
    let conditions = json!([{"type": "Ready"}, {"type": "Painted"}, {"type": "Synced"}]);
    earlier.set_at_or_ignore(&["status"], json!({"address": "there", "conditions": conditions}));
    let mut set = xr("", "two");
    set.set_meta("uid", "u-2");
    set.set_at_or_ignore(&["status"], json!({}));
    let mut other = earlier.clone();
    other.set_meta("name", "two");
    let mut composites = [xr("", "one"), set.clone()];
    let shares = assign(&mut composites, vec![earlier, other]).unwrap();
    assert_eq!(shares, Ownership::new());
    let mut want = xr("", "one");
    want.set_meta("uid", "u-1");
    want.set_at_or_ignore(
        &["status"],
        json!({"address": "there", "conditions": [{"type": "Painted"}]}),
    );
    assert_eq!(composites, [want, set]);

    // Conditions that every reconcile sets are not kept.
    let mut earlier = xr("", "one");
    earlier.set_at_or_ignore(&["status"], json!({"conditions": [{"type": "Ready"}]}));
    let mut composites = [xr("", "one")];
    assign(&mut composites, vec![earlier]).unwrap();
    assert_eq!(composites, [xr("", "one")]);
}

#[test]
fn two_of_a_name_are_rivals_unless_their_owners_differ() {
    let named = |mut object: Object, resource: &str| {
        object.set_at_or_ignore(&["metadata", "annotations", RESOURCE_NAME], resource);
        object
    };
    let warnings =
        |observed: &[Object]| rivals(&Ownership::from([(xr("", "one").id(), observed.to_vec())]));
    let (a, b) = (labelled("", "a", "one"), owned("b", "XApp", "one", "u"));
    let below = owned("c", "XPart", "part", "u");
    assert_eq!(
        warnings(&[named(a.clone(), "x"), named(b.clone(), "x"), named(below.clone(), "x")]),
        [
            "observed resources Thing.example.org a and Thing.example.org b are both \"x\" of the Composition; the last one counts"
        ]
    );
    assert_eq!(warnings(&[named(a.clone(), "x"), named(b, "y"), below]), [""; 0]);
    assert_eq!(warnings(&[named(a.clone(), "x"), named(a, "x")]), [""; 0]);
}

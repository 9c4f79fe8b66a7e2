//! Tests of what several watches of one kind know together.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn object(version: u64) -> Object {
    Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "ns", "name": "a", "uid": "u",
            "resourceVersion": version.to_string(), "labels": {"l": "x"}},
        "data": {"version": version.to_string()}}))
    .unwrap()
}

fn watch(query: Query, form: Form) -> Arc<Watch> {
    let gvk = Gvk::new("v1", "ConfigMap");
    let kind = Kind { gvk, plural: "configmaps".into(), namespaced: true };
    let watch = Watch::new(Arc::new(kind), query, form);
    watch.cache().begin();
    watch.cache().finish("1", Instant::now());
    watch.phase.send_replace(Phase::Synced);
    Arc::new(watch)
}

fn labelled() -> Query {
    Query::labels(BTreeMap::from([("l".to_owned(), "x".to_owned())]))
}

/// What a watch hears from the server.
fn hears(watch: &Watch, object: &Object, gone: bool) {
    let mut cache = watch.cache();
    if gone {
        cache.gone(&Item::new(object, None));
    } else {
        cache.put(&Item::new(object, None), Via::Watch);
    }
    cache.set_version(object.resource_version());
}

/// The version that the watches know, or why they know none.
fn version(watches: &[Arc<Watch>]) -> String {
    match known(watches, &object(1).id()) {
        Cached::Object(object) => object.resource_version().to_owned(),
        Cached::Absent => "absent".into(),
        Cached::Unknown => "unknown".into(),
    }
}

/// The same watches in both orders.
fn in_both_orders(one: &Arc<Watch>, two: &Arc<Watch>) -> [Vec<Arc<Watch>>; 2] {
    [vec![Arc::clone(one), Arc::clone(two)], vec![Arc::clone(two), Arc::clone(one)]]
}

#[test]
fn an_object_that_one_watch_saw_go_is_not_read_from_a_slower_one() {
    for (query, gone) in [(labelled(), "unknown"), (Query::default(), "absent")] {
        let (fast, slow) = (watch(query, Form::Whole), watch(Query::default(), Form::Metadata));
        for watches in in_both_orders(&fast, &slow) {
            // The answer to our own write, which all watches take.
            for watch in &watches {
                watch.cache().put(&Item::new(&object(5), None), Via::Answer);
            }
            assert_eq!(version(&watches), "5");
            hears(&fast, &object(6), true);
            assert_eq!(version(&watches), "unknown", "the slow one still has it");
            hears(&slow, &object(6), true);
            assert_eq!(version(&watches), "absent");
            // As it was.
            for watch in &watches {
                let began = Instant::now();
                watch.cache().begin();
                watch.cache().finish("1", began);
            }
        }
        let alone = [Arc::clone(&fast)];
        hears(&fast, &object(5), false);
        hears(&fast, &object(6), true);
        assert_eq!(version(&alone), gone);
    }
}

#[test]
fn the_newest_version_of_several_watches_is_read() {
    let (one, two) = (watch(labelled(), Form::Whole), watch(Query::default(), Form::Whole));
    for watches in in_both_orders(&one, &two) {
        hears(&one, &object(7), false);
        hears(&two, &object(5), false);
        assert_eq!(version(&watches), "7");
    }
    let metadata = watch(Query::default(), Form::Metadata);
    hears(&metadata, &Form::Metadata.of(object(9)), false);
    for watches in in_both_orders(&one, &metadata) {
        assert_eq!(version(&watches), "unknown", "nobody has its body");
    }
}

#[test]
fn a_watch_that_has_not_heard_of_an_object_does_not_deny_it() {
    let (told, behind) = (watch(labelled(), Form::Metadata), watch(Query::default(), Form::Whole));
    hears(&told, &Form::Metadata.of(object(5)), false);
    for watches in in_both_orders(&told, &behind) {
        assert_eq!(version(&watches), "unknown");
    }
}

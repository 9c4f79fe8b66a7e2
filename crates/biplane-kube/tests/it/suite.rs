//! What the in-memory cluster and a real API server answer alike.
//!
//! Every case runs on both. Where the two say the same in other words, or where one cannot know what
//! the other does, the case says so and why.

use std::collections::{BTreeMap, BTreeSet};

use biplane_cluster::{
    Apply, Delete, Deleted, Effect, Form, List, Part, Patch, Precondition, Query, ReadError,
    Source, Subscribe, WriteError,
};
use biplane_model::{Gvk, Object, ObjectId};
use serde_json::json;
use tokio::time::Instant;

use crate::soon;
use crate::world::{World, by, map_kind, read_until};

/// Runs every case on both clusters.
macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $case() {
                super::$case(&super::World::memory(stringify!($case)).await).await;
            })*
        }
        mod live {
            $(#[tokio::test] async fn $case() {
                super::$case(&super::World::live(stringify!($case)).await).await;
            })*
        }
    };
}

on_both!(
    an_object_lives_from_create_to_delete,
    what_is_missing_is_not_found,
    writes_have_preconditions,
    a_dry_run_stores_nothing,
    an_apply_says_what_it_did,
    wrong_objects_are_refused,
    lists_have_pages_and_forms,
    lists_select,
    a_subscription_follows_its_selection,
    finalizers_hold_an_object,
    status_is_its_own_part,
    an_object_is_one_in_two_versions,
    cached_reads_are_never_old,
    kinds_are_known_or_not,
    a_late_call_does_nothing,
);

fn number(object: &Object, path: &[&str]) -> Option<i64> {
    object.at(path).and_then(serde_json::Value::as_i64)
}

fn names(objects: &[Object]) -> Vec<&str> {
    objects.iter().map(Object::name).collect()
}

async fn an_object_lives_from_create_to_delete(world: &World) {
    let cluster = &world.cluster;
    let created = cluster.create(world.map("a", "x", "1"), &by(), soon()).await.unwrap();
    assert!(!created.uid().is_empty() && !created.resource_version().is_empty());
    assert_eq!(created.gvk(), map_kind());
    let managers = created.at(&["metadata", "managedFields"]).unwrap();
    assert_eq!(managers[0]["manager"], "test");
    let id = world.map_id("a");
    for source in [Source::Live, Source::Cache] {
        assert_eq!(cluster.get(&id, source, soon()).await.unwrap(), created);
    }
    let again = cluster.create(world.map("a", "x", "1"), &by(), soon()).await;
    assert_eq!(again, Err(WriteError::AlreadyExists("configmaps \"a\" already exists".into())));

    let mut changed = created.clone();
    changed.set_at(&["data", "d"], "2").unwrap();
    let updated = cluster.update(&changed, Part::Main, &by(), soon()).await.unwrap();
    assert_eq!(updated.str_at(&["data", "d"]), "2");
    let merge = Patch::Merge(json!({"data": {"d": null, "e": "3"}}));
    let patched = cluster.patch(&id, Part::Main, &merge, &by(), soon()).await.unwrap();
    assert_eq!(patched.get("data"), Some(&json!({"e": "3"})));
    let json = Patch::Json(vec![json!({"op": "add", "path": "/data/f", "value": "4"})]);
    let patched = cluster.patch(&id, Part::Main, &json, &by(), soon()).await.unwrap();
    assert_eq!(patched.get("data"), Some(&json!({"e": "3", "f": "4"})));
    // The server reads an apply as YAML.
    let text = "ä \u{7f} \u{85} \u{2028} \u{feff} 😀 \"\\ \t\n: - yes";
    let mut intent = world.map("a", "", text);
    intent.set_at(&["data", "e"], "5").unwrap();
    let how = Apply::forced("other");
    let applied = cluster.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
    assert_eq!(applied.object.get("data"), Some(&json!({"d": text, "e": "5", "f": "4"})));
    assert_eq!(applied.object.uid(), created.uid());

    let gone = cluster.delete(&id, &Delete::default(), soon()).await;
    assert_eq!(gone, Ok(Deleted::Gone));
    for source in [Source::Live, Source::Cache] {
        assert!(cluster.get(&id, source, soon()).await.unwrap_err().is_not_found());
    }
    let mut nameless = world.map("a", "", "1");
    nameless.remove_at(&["metadata", "name"]);
    nameless.set_meta("generateName", "many-");
    let first = cluster.create(nameless.clone(), &by(), soon()).await.unwrap();
    let second = cluster.create(nameless, &by(), soon()).await.unwrap();
    assert!(first.name().starts_with("many-") && first.name() != second.name());
}

async fn what_is_missing_is_not_found(world: &World) {
    world.define_thing().await;
    let (cluster, id) = (&world.cluster, world.thing_id("v1", "a"));
    let text = format!("things.{} \"a\" not found", world.group());
    let read = cluster.get(&id, Source::Live, soon()).await;
    assert_eq!(read, Err(ReadError::NotFound(text.clone())));
    let missing = Err(WriteError::NotFound(text.clone()));
    let patch = Patch::Merge(json!({"spec": {"x": 1}}));
    assert_eq!(cluster.patch(&id, Part::Main, &patch, &by(), soon()).await, missing);
    let deleted = cluster.delete(&id, &Delete::default(), soon()).await;
    assert_eq!(deleted, Err(WriteError::NotFound(text)));
    let (intent, how) = (world.thing("a", &json!({})), Apply::forced("t"));
    let applied = cluster.apply(&intent, Part::Status, None, &how, soon()).await;
    assert!(applied.unwrap_err().is_not_found());
    // A ConfigMap has no status. The two say so in other words: a server does not even know the
    // path.
    cluster.create(world.map("m", "", "1"), &by(), soon()).await.unwrap();
    let patch = Patch::Merge(json!({"status": {"x": 1}}));
    let patched = cluster.patch(&world.map_id("m"), Part::Status, &patch, &by(), soon()).await;
    let words = if world.is_memory {
        "configmaps \"m\" not found"
    } else {
        "the server could not find the requested resource"
    };
    assert_eq!(patched, Err(WriteError::NotFound(words.into())));
}

async fn writes_have_preconditions(world: &World) {
    world.define_thing().await;
    let cluster = &world.cluster;
    let first = cluster.create(world.thing("a", &json!({"x": 1})), &by(), soon()).await.unwrap();
    let (id, part) = (world.thing_id("v1", "a"), Part::Main);
    let patch = |x: u8| Patch::Merge(json!({"spec": {"x": x}}));
    let fenced = by().only_if(Precondition::unchanged(&first));
    let second = cluster.patch(&id, part, &patch(2), &fenced, soon()).await.unwrap();
    assert_eq!(number(&second, &["spec", "x"]), Some(2));

    let modified = WriteError::Conflict(format!(
        "Operation cannot be fulfilled on things.{} \"a\": the object has been modified; please apply your changes to the latest version and try again",
        world.group()
    ));
    let patched = cluster.patch(&id, part, &patch(3), &fenced, soon()).await;
    assert_eq!(patched, Err(modified.clone()));
    let replace = json!({"op": "replace", "path": "/spec/x", "value": 3});
    let operations = Patch::Json(vec![replace]);
    let patched = cluster.patch(&id, part, &operations, &fenced, soon()).await;
    assert_eq!(patched, Err(modified.clone()));
    let intent = world.thing("a", &json!({"x": 3}));
    let how = Apply::forced("test").only_if(Precondition::unchanged(&first));
    let applied = cluster.apply(&intent, part, None, &how, soon()).await;
    assert_eq!(applied, Err(modified.clone()));
    let updated = cluster.update(&second, part, &fenced, soon()).await;
    assert_eq!(updated, Err(modified));

    let other = Precondition { uid: "other".into(), ..Precondition::default() };
    let conflict = |answer: Result<(), WriteError>| match answer {
        Err(WriteError::Conflict(text)) => text,
        answer => panic!("{answer:?}"),
    };
    let how = by().only_if(other.clone());
    let patched = cluster.patch(&id, part, &patch(3), &how, soon()).await.map(drop);
    // A server checks this field of a patch as it checks any other. It says so in these words.
    let words = if world.is_memory {
        "UID in precondition: other"
    } else {
        "metadata.uid: Invalid value: \"other\": field is immutable"
    };
    assert!(conflict(patched).contains(words));
    let how = Apply::forced("test").only_if(other.clone());
    let applied = cluster.apply(&intent, part, None, &how, soon()).await.map(drop);
    assert!(conflict(applied).contains("other"));
    let how = Delete { only_if: other, ..Delete::default() };
    let deleted = cluster.delete(&id, &how, soon()).await.map(drop);
    assert!(conflict(deleted).contains("the UID in the precondition (other)"));
    let how = Delete { only_if: Precondition::unchanged(&first), ..Delete::default() };
    let deleted = cluster.delete(&id, &how, soon()).await.map(drop);
    assert!(conflict(deleted).contains("the ResourceVersion in the precondition"));
    let stored = cluster.get(&id, Source::Live, soon()).await.unwrap();
    assert_eq!(stored, second, "none of them left a trace");
    let how = Delete { only_if: Precondition::unchanged(&second), ..Delete::default() };
    assert_eq!(cluster.delete(&id, &how, soon()).await, Ok(Deleted::Gone));
}

async fn a_dry_run_stores_nothing(world: &World) {
    let cluster = &world.cluster;
    let mut dry = by();
    dry.dry_run = true;
    let created = cluster.create(world.map("a", "", "1"), &dry, soon()).await.unwrap();
    assert!(!created.uid().is_empty());
    let id = world.map_id("a");
    assert!(cluster.get(&id, Source::Live, soon()).await.unwrap_err().is_not_found());
    let how = Apply { write: dry.clone(), force: true };
    let intent = world.map("a", "", "1");
    let applied = cluster.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
    assert_eq!(applied.effect, Effect::Created);

    let real = Apply::forced("test");
    let stored = cluster.apply(&intent, Part::Main, None, &real, soon()).await.unwrap().object;
    let mut effects = Vec::new();
    for (data, known) in [("1", None), ("2", None), ("1", Some(&stored)), ("2", Some(&stored))] {
        let intent = world.map("a", "", data);
        let applied = cluster.apply(&intent, Part::Main, known, &how, soon()).await.unwrap();
        assert_eq!(applied.object.str_at(&["data", "d"]), data);
        effects.push(applied.effect);
    }
    let (same, other) = (Effect::Unchanged, Effect::Changed);
    assert_eq!(effects, [same, other, same, other]);
    let merge = Patch::Merge(json!({"data": {"d": "3"}}));
    let patched = cluster.patch(&id, Part::Main, &merge, &dry, soon()).await.unwrap();
    assert_eq!(patched.str_at(&["data", "d"]), "3");
    let how = Delete { dry_run: true, ..Delete::default() };
    assert_eq!(cluster.delete(&id, &how, soon()).await, Ok(Deleted::Gone));
    for source in [Source::Live, Source::Cache] {
        assert_eq!(cluster.get(&id, source, soon()).await.unwrap(), stored);
    }
}

async fn an_apply_says_what_it_did(world: &World) {
    world.define_thing().await;
    let cluster = &world.cluster;
    let how = Apply::forced("test");
    let mut known = None;
    let mut effects = Vec::new();
    for x in [1, 1, 2] {
        let intent = world.thing("a", &json!({"x": x}));
        let applied = cluster.apply(&intent, Part::Main, known.as_ref(), &how, soon()).await;
        let applied = applied.unwrap();
        effects.push(applied.effect);
        known = Some(applied.object);
    }
    assert_eq!(effects, [Effect::Created, Effect::Unchanged, Effect::Changed]);
    // A server does not say whether it changed an object. Without the object as it was before, and
    // without a watch, that is not known, and it may be news.
    let intent = world.thing("a", &json!({"x": 2}));
    let applied = cluster.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
    let expected = if world.is_memory { Effect::Unchanged } else { Effect::Changed };
    assert_eq!(applied.effect, expected);
    let (kind, following) = (world.thing_kind("v1"), Subscribe::default());
    let followed = cluster.subscribe(&kind, &world.here(), &following, soon()).await;
    let _subscription = followed.unwrap();
    let applied = cluster.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
    assert_eq!(applied.effect, Effect::Unchanged, "a watch knows");

    let other = Apply { force: false, ..Apply::forced("other") };
    let intent = world.thing("a", &json!({"x": 9}));
    let applied = cluster.apply(&intent, Part::Main, None, &other, soon()).await;
    let text = "Apply failed with 1 conflict: conflict with \"test\": .spec.x";
    assert_eq!(applied, Err(WriteError::Conflict(text.into())));
}

async fn wrong_objects_are_refused(world: &World) {
    world.define_thing().await;
    let cluster = &world.cluster;
    let created = cluster.create(world.thing("a", &json!({"x": "one"})), &by(), soon()).await;
    let text = format!(
        "Thing.{} \"a\" is invalid: spec.x: Invalid value: \"string\": spec.x in body must be of type integer: \"string\"",
        world.group()
    );
    assert_eq!(created, Err(WriteError::Invalid(text)));
    let intent = world.thing("a", &json!({"x": {}}));
    let how = Apply::forced("test");
    let applied = cluster.apply(&intent, Part::Main, None, &how, soon()).await;
    let Err(WriteError::Malformed(text)) = applied else { panic!("{applied:?}") };
    assert!(text.starts_with("failed to create typed patch object"), "{text}");
    let intent = world.thing("a", &json!({"unknown": 1}));
    let applied = cluster.apply(&intent, Part::Main, None, &how, soon()).await;
    let Err(WriteError::Malformed(text)) = applied else { panic!("{applied:?}") };
    assert!(text.ends_with(".spec.unknown: field not declared in schema"), "{text}");

    let mut versioned = world.thing("a", &json!({}));
    versioned.set_meta("resourceVersion", "1");
    let created = cluster.create(versioned, &by(), soon()).await;
    let text = "resourceVersion should not be set on objects to be created";
    assert_eq!(created, Err(WriteError::BadRequest(text.into())));
    let mut nowhere = world.thing("a", &json!({}));
    nowhere.remove_at(&["metadata", "namespace"]);
    let created = cluster.create(nowhere, &by(), soon()).await;
    let text = "an empty namespace may not be set during creation";
    assert_eq!(created, Err(WriteError::BadRequest(text.into())));
    let mut nameless = world.thing("a", &json!({}));
    nameless.remove_at(&["metadata", "name"]);
    let applied = cluster.apply(&nameless, Part::Main, None, &how, soon()).await;
    assert!(matches!(applied, Err(WriteError::Invalid(_))), "{applied:?}");
    let updated = cluster.create(world.thing("b", &json!({})), &by(), soon()).await.unwrap();
    let mut unversioned = updated;
    unversioned.set_meta("resourceVersion", "");
    let updated = cluster.update(&unversioned, Part::Main, &by(), soon()).await;
    let text = format!(
        "things.{} \"b\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        world.group()
    );
    assert_eq!(updated, Err(WriteError::Invalid(text)));
}

async fn lists_have_pages_and_forms(world: &World) {
    world.define_thing().await;
    let cluster = &world.cluster;
    for n in 0..7 {
        let thing = world.thing(&format!("t{n}"), &json!({"x": n}));
        cluster.create(thing, &by(), soon()).await.unwrap();
    }
    let kind = world.thing_kind("v1");
    let mut how = List { limit: 3, form: Form::Metadata, ..List::live() };
    let mut pages = Vec::new();
    let mut versions = BTreeSet::new();
    loop {
        let page = cluster.list(&kind, &world.here(), &how, soon()).await.unwrap();
        for object in &page.objects {
            assert!(object.get("spec").is_none() && !object.uid().is_empty());
            assert_eq!(object.gvk(), kind);
        }
        versions.insert(page.version);
        pages.push(names(&page.objects).join(" "));
        how.next = page.next;
        if how.next.is_empty() {
            break;
        }
    }
    assert_eq!(pages, ["t0 t1 t2", "t3 t4 t5", "t6"]);
    assert_eq!(versions.len(), 1, "pages of one list");
    let page = cluster.list(&kind, &world.here(), &List::live(), soon()).await.unwrap();
    let spec = |object: &Object| number(object, &["spec", "x"]);
    assert_eq!(page.objects.iter().filter_map(spec).sum::<i64>(), 21);
    let maps = cluster.list(&map_kind(), &world.here(), &List::live(), soon()).await.unwrap();
    assert!(maps.objects.iter().all(|object| object.gvk() == map_kind()));
}

async fn lists_select(world: &World) {
    let cluster = &world.cluster;
    for (name, label) in [("a", "only-here"), ("b", "y"), ("c", "only-here"), ("d", "")] {
        cluster.create(world.map(name, label, "1"), &by(), soon()).await.unwrap();
    }
    let here = world.here();
    let x = BTreeMap::from([("l".to_owned(), "only-here".to_owned())]);
    let labelled = BTreeSet::from(["l".to_owned()]);
    let cases = [
        (Query { labels: x.clone(), ..here.clone() }, "a c"),
        (Query { labelled: labelled.clone(), ..here.clone() }, "a b c"),
        (Query { name: "b".into(), ..here.clone() }, "b"),
        (Query { name: "d".into(), labelled, ..here.clone() }, ""),
        (Query { labels: x, namespace: String::new(), ..here.clone() }, "a c"),
        (Query { namespace: "elsewhere".into(), ..here.clone() }, ""),
    ];
    let maps = map_kind();
    for with_watch in [false, true] {
        let how = Subscribe::default();
        let mut watch = None;
        if with_watch {
            watch = Some(cluster.subscribe(&maps, &Query::default(), &how, soon()).await.unwrap());
        }
        for (query, expected) in &cases {
            for form in [Form::Whole, Form::Metadata] {
                for how in [List::live(), List::cached()] {
                    let how = List { form, ..how };
                    let page = cluster.list(&maps, query, &how, soon()).await.unwrap();
                    let found = names(&page.objects).join(" ");
                    assert_eq!(found, *expected, "{query:?} {how:?} {with_watch}");
                    let whole = page.objects.iter().any(|object| object.get("data").is_some());
                    assert_eq!(whole, form == Form::Whole && !expected.is_empty());
                }
            }
        }
        drop(watch);
    }
}

async fn a_subscription_follows_its_selection(world: &World) {
    let cluster = &world.cluster;
    let (maps, how) = (map_kind(), Subscribe::default());
    cluster.create(world.map("a", "x", "1"), &by(), soon()).await.unwrap();
    cluster.create(world.map("b", "", "1"), &by(), soon()).await.unwrap();
    let labels = BTreeMap::from([("l".to_owned(), "x".to_owned())]);
    let selected = Query { labels, ..world.here() };
    let one = Query { name: "b".into(), ..world.here() };
    let mut all = cluster.subscribe(&maps, &world.here(), &how, soon()).await.unwrap();
    let mut few = cluster.subscribe(&maps, &selected, &how, soon()).await.unwrap();
    let metadata = Subscribe { form: Form::Metadata, ..how.clone() };
    let mut b = cluster.subscribe(&maps, &one, &metadata, soon()).await.unwrap();
    // A server puts a ConfigMap of its own into every namespace only if a controller runs.
    assert_eq!(read_until(&mut all, "synced").await, ["new a=1", "new b=1", "synced"]);
    assert_eq!(read_until(&mut few, "synced").await, ["new a=1", "synced"]);
    assert_eq!(read_until(&mut b, "synced").await, ["new b", "synced"]);

    let label =
        |value: serde_json::Value| Patch::Merge(json!({"metadata": {"labels": {"l": value}}}));
    let (a, b_id) = (world.map_id("a"), world.map_id("b"));
    cluster.patch(&a, Part::Main, &label(json!(null)), &by(), soon()).await.unwrap();
    assert_eq!(read_until(&mut few, "gone a=1").await, ["gone a=1"]);
    assert_eq!(read_until(&mut all, "a=1 was a=1").await, ["a=1 was a=1"]);
    cluster.patch(&b_id, Part::Main, &label(json!("x")), &by(), soon()).await.unwrap();
    assert_eq!(read_until(&mut few, "new b=1").await, ["new b=1"]);
    assert_eq!(read_until(&mut b, "b was b").await, ["b was b"]);
    let data = Patch::Merge(json!({"data": {"d": "2"}}));
    cluster.patch(&b_id, Part::Main, &data, &by(), soon()).await.unwrap();
    assert_eq!(read_until(&mut few, "b=2 was b=1").await, ["b=2 was b=1"]);
    cluster.delete(&b_id, &Delete::default(), soon()).await.unwrap();
    assert_eq!(read_until(&mut few, "gone b=2").await, ["gone b=2"]);
    assert_eq!(read_until(&mut b, "gone b").await.last().unwrap(), "gone b");
    // What was not read is replaced: this reader never heard of the last state.
    assert_eq!(read_until(&mut all, "gone b=1").await, ["gone b=1"]);
    // The same name again is another object.
    cluster.create(world.map("b", "x", "3"), &by(), soon()).await.unwrap();
    assert_eq!(read_until(&mut few, "new b=3").await, ["new b=3"]);
}

async fn finalizers_hold_an_object(world: &World) {
    let cluster = &world.cluster;
    let mut held = world.map("held", "", "1");
    held.set_at(&["metadata", "finalizers"], json!(["example.org/hold"])).unwrap();
    cluster.create(held, &by(), soon()).await.unwrap();
    let how = Subscribe::default();
    let mut all = cluster.subscribe(&map_kind(), &world.here(), &how, soon()).await.unwrap();
    read_until(&mut all, "synced").await;
    let id = world.map_id("held");
    for _ in 0..2 {
        let deleted = cluster.delete(&id, &Delete::default(), soon()).await;
        assert_eq!(deleted, Ok(Deleted::Terminating));
        for source in [Source::Live, Source::Cache] {
            assert!(cluster.get(&id, source, soon()).await.unwrap().is_being_deleted());
        }
    }
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let last = cluster.patch(&id, Part::Main, &patch, &by(), soon()).await.unwrap();
    assert!(last.at(&["metadata", "finalizers"]).is_none());
    for source in [Source::Cache, Source::Live] {
        assert!(cluster.get(&id, source, soon()).await.unwrap_err().is_not_found());
    }
    assert_eq!(read_until(&mut all, "gone held=1").await.last().unwrap(), "gone held=1");
    let mut again = world.map("held", "", "2");
    again.set_at(&["metadata", "finalizers"], json!([])).unwrap();
    cluster.create(again, &by(), soon()).await.unwrap();
    assert_eq!(read_until(&mut all, "new held=2").await, ["new held=2"]);
    let cached = cluster.get(&id, Source::Cache, soon()).await.unwrap();
    assert_eq!(cached.str_at(&["data", "d"]), "2");
}

async fn status_is_its_own_part(world: &World) {
    world.define_thing().await;
    let cluster = &world.cluster;
    let mut thing = world.thing("a", &json!({"x": 1}));
    thing.set_at(&["status", "z"], 1).unwrap();
    let created = cluster.create(thing.clone(), &by(), soon()).await.unwrap();
    assert!(created.get("status").is_none(), "a create does not write the status");
    let mut changed = created.clone();
    changed.set_at(&["status", "z"], 2).unwrap();
    changed.set_at(&["spec", "x"], 2).unwrap();
    let updated = cluster.update(&changed, Part::Status, &by(), soon()).await.unwrap();
    assert_eq!(number(&updated, &["status", "z"]), Some(2));
    assert_eq!(number(&updated, &["spec", "x"]), Some(1), "a status write does not write the rest");
    assert_eq!(updated.generation(), 1);
    let mut intent = world.thing("a", &json!({}));
    intent.make_mut().remove("spec");
    intent.set_at(&["status", "z"], 3).unwrap();
    let how = Apply::forced("other").only_if(Precondition::unchanged(&updated));
    let applied = cluster.apply(&intent, Part::Status, Some(&updated), &how, soon()).await.unwrap();
    assert_eq!(applied.effect, Effect::Changed);
    assert_eq!(number(&applied.object, &["status", "z"]), Some(3));
    let patch = Patch::Merge(json!({"status": {"z": 4}, "spec": {"x": 5}}));
    let id = world.thing_id("v1", "a");
    let patched = cluster.patch(&id, Part::Main, &patch, &by(), soon()).await.unwrap();
    assert_eq!(number(&patched, &["status", "z"]), Some(3));
    assert_eq!((number(&patched, &["spec", "x"]), patched.generation()), (Some(5), 2));
}

async fn an_object_is_one_in_two_versions(world: &World) {
    world.define_thing().await;
    let cluster = &world.cluster;
    let how = Subscribe::default();
    let (one, two) = (world.thing_kind("v1"), world.thing_kind("v2"));
    let mut second = cluster.subscribe(&two, &world.here(), &how, soon()).await.unwrap();
    read_until(&mut second, "synced").await;
    let thing = world.thing("a", &json!({"x": 1, "y": 2}));
    let created = cluster.create(thing, &by(), soon()).await.unwrap();
    let uid = created.uid().to_owned();
    read_until(&mut second, "new a").await;
    for source in [Source::Cache, Source::Live] {
        let other = cluster.get(&world.thing_id("v2", "a"), source, soon()).await.unwrap();
        assert_eq!((other.gvk(), other.uid()), (two.clone(), &*uid));
        assert_eq!(other.get("spec"), Some(&json!({"x": 1})), "v2 has no such field");
    }
    let listed = cluster.list(&two, &world.here(), &List::cached(), soon()).await.unwrap();
    assert_eq!(names(&listed.objects), ["a"]);
    let mut intent = world.thing("a", &json!({"x": 5}));
    intent.set_at(&["apiVersion"], two.api_version()).unwrap();
    let applied =
        cluster.apply(&intent, Part::Main, None, &Apply::forced("other"), soon()).await.unwrap();
    assert_eq!((applied.object.uid(), applied.effect), (&*uid, Effect::Changed));
    for (kind, version) in [(&one, "v1"), (&two, "v2")] {
        let id = world.thing_id(version, "a");
        let read = cluster.get(&id, Source::Cache, soon()).await.unwrap();
        assert_eq!((number(&read, &["spec", "x"]), read.gvk()), (Some(5), kind.clone()));
    }
    let gone = cluster.delete(&world.thing_id("v1", "a"), &Delete::default(), soon()).await;
    assert_eq!(gone, Ok(Deleted::Gone));
    let read = cluster.get(&world.thing_id("v2", "a"), Source::Cache, soon()).await;
    assert!(read.unwrap_err().is_not_found());
    assert_eq!(read_until(&mut second, "gone a").await.last().unwrap(), "gone a");
}

async fn cached_reads_are_never_old(world: &World) {
    let cluster = &world.cluster;
    let (maps, how) = (map_kind(), Subscribe::default());
    let labels = BTreeMap::from([("l".to_owned(), "x".to_owned())]);
    let selected = Query { labels, ..world.here() };
    let metadata = Subscribe { form: Form::Metadata, ..Subscribe::default() };
    // The first runs without a watch, then one of some objects, then of all, then of metadata.
    for round in 0..4 {
        let _watch = match round {
            1 => Some(cluster.subscribe(&maps, &selected, &how, soon()).await.unwrap()),
            2 => Some(cluster.subscribe(&maps, &world.here(), &how, soon()).await.unwrap()),
            3 => {
                Some(cluster.subscribe(&maps, &Query::default(), &metadata, soon()).await.unwrap())
            }
            _ => None,
        };
        for n in 0..10 {
            let name = format!("r{round}-{n}");
            let id = world.map_id(&name);
            let created = cluster.create(world.map(&name, "x", "0"), &by(), soon()).await.unwrap();
            assert_eq!(cluster.get(&id, Source::Cache, soon()).await, Ok(created));
            for data in ["1", "2", "3"] {
                let label = if data == "2" { json!(null) } else { json!("x") };
                let patch = json!({"metadata": {"labels": {"l": label}}, "data": {"d": data}});
                let patch = Patch::Merge(patch);
                let patched = cluster.patch(&id, Part::Main, &patch, &by(), soon()).await.unwrap();
                let read = cluster.get(&id, Source::Cache, soon()).await;
                assert_eq!(read, Ok(patched), "round {round}");
                let page = cluster.list(&maps, &selected, &List::cached(), soon()).await.unwrap();
                let is_listed = page.objects.iter().any(|object| object.name() == name);
                assert_eq!(is_listed, data != "2", "round {round}");
            }
            cluster.delete(&id, &Delete::default(), soon()).await.unwrap();
            let read = cluster.get(&id, Source::Cache, soon()).await;
            assert!(read.unwrap_err().is_not_found(), "round {round}");
            let page = cluster.list(&maps, &selected, &List::cached(), soon()).await.unwrap();
            assert!(page.objects.iter().all(|object| object.name() != name));
        }
    }
}

async fn kinds_are_known_or_not(world: &World) {
    world.define_thing().await;
    let cluster = &world.cluster;
    let scope = async |kind: &Gvk| cluster.is_namespaced(kind, soon()).await;
    assert_eq!(scope(&map_kind()).await, Ok(true));
    assert_eq!(scope(&Gvk::new("v1", "Namespace")).await, Ok(false));
    assert_eq!(scope(&world.thing_kind("v2")).await, Ok(true));
    let odd = Gvk::new("odd.example.org/v1", "Odd");
    let text =
        "failed to get restmapping: no matches for kind \"Odd\" in version \"odd.example.org/v1\"";
    assert_eq!(scope(&odd).await, Err(ReadError::UnknownKind(text.into())));
    // The in-memory cluster takes objects of any kind. A server does not.
    if !world.is_memory {
        let text = "no matches for kind \"Odd\" in version \"odd.example.org/v1\"".to_owned();
        let id = ObjectId::new(odd.clone(), "", "a");
        let read = cluster.get(&id, Source::Live, soon()).await;
        assert_eq!(read, Err(ReadError::UnknownKind(text.clone())));
        let how = Subscribe::default();
        let followed = cluster.subscribe(&odd, &Query::default(), &how, soon()).await;
        assert_eq!(followed.unwrap_err(), ReadError::UnknownKind(text.clone()));
        let object = json!({"apiVersion": "odd.example.org/v1", "kind": "Odd",
            "metadata": {"name": "a"}});
        let created = cluster.create(Object::from_value(object).unwrap(), &by(), soon()).await;
        assert_eq!(created, Err(WriteError::UnknownKind(text)));
    }
}

async fn a_late_call_does_nothing(world: &World) {
    let cluster = &world.cluster;
    let late = Instant::now();
    let read = cluster.get(&world.map_id("a"), Source::Live, late).await;
    assert_eq!(read, Err(ReadError::TimedOut("context deadline exceeded".into())));
    let written = cluster.create(world.map("a", "", "1"), &by(), late).await;
    assert_eq!(written, Err(WriteError::TimedOut("context deadline exceeded".into())));
    let read = cluster.get(&world.map_id("a"), Source::Live, soon()).await;
    assert!(read.unwrap_err().is_not_found());
}

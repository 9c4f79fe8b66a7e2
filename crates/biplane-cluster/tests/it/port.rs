//! Tests of what the port promises and an API server does: preconditions, dry runs, pages,
//! versions, effects, deadlines.

use std::time::Duration;

use biplane_cluster::memory::{ApiServer, Counted};
use biplane_cluster::{
    Apply, Cluster, Delete, Deleted, Effect, Form, List, Part, Patch, Precondition, Query,
    ReadError, Source, Write, WriteError,
};
use biplane_model::{Gvk, Object, ObjectId, Value};
use serde_json::json;

use crate::soon;

fn thing(name: &str, spec: &Value) -> Object {
    let object = json!({"apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {"namespace": "ns", "name": name}, "spec": spec});
    Object::from_value(object).unwrap()
}

fn id(version: &str, name: &str) -> ObjectId {
    ObjectId::new(Gvk::new(version, "Thing"), "ns", name)
}

fn test() -> Write {
    Write::by("test")
}

fn is_conflict<T: std::fmt::Debug>(answer: Result<T, WriteError>) -> String {
    match answer {
        Err(WriteError::Conflict(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_write_with_an_old_version_or_another_uid_is_a_conflict() {
    let server = ApiServer::default();
    let first = server.create(thing("a", &json!({"x": 1})), &test(), soon()).await.unwrap();
    let patch = |x: u8| Patch::Merge(json!({"spec": {"x": x}}));
    let (id, part) = (id("example.org/v1", "a"), Part::Main);
    let fenced = test().only_if(Precondition::unchanged(&first));
    let second = server.patch(&id, part, &patch(2), &fenced, soon()).await.unwrap();
    assert_eq!(second.at(&["spec", "x"]), Some(&json!(2)));

    let modified = "Operation cannot be fulfilled on things.example.org \"a\": the object has been modified; please apply your changes to the latest version and try again";
    let patched = server.patch(&id, part, &patch(3), &fenced, soon()).await;
    assert_eq!(is_conflict(patched), modified);
    let how = Apply::forced("test").only_if(Precondition::unchanged(&first));
    let intent = thing("a", &json!({"x": 3}));
    let applied = server.apply(&intent, part, None, &how, soon()).await;
    assert_eq!(is_conflict(applied), modified);
    let updated = server.update(&second, part, &fenced, soon()).await;
    assert_eq!(is_conflict(updated), modified);

    let other = Precondition { uid: "other".into(), ..Precondition::default() };
    let patched = server.patch(&id, part, &patch(3), &test().only_if(other.clone()), soon()).await;
    assert!(is_conflict(patched).contains("UID in precondition: other"));
    let how = Apply::forced("test").only_if(other.clone());
    assert!(is_conflict(server.apply(&intent, part, None, &how, soon()).await).contains("other"));
    let how = Delete { only_if: other, ..Delete::default() };
    assert!(is_conflict(server.delete(&id, &how, soon()).await).contains("(other)"));
    let how = Delete { only_if: Precondition::unchanged(&first), ..Delete::default() };
    assert!(is_conflict(server.delete(&id, &how, soon()).await).contains("ResourceVersion"));
    let stored = server.get(&id, Source::Live, soon()).await.unwrap();
    assert_eq!(stored, second, "none of them left a trace");
}

#[tokio::test]
async fn a_dry_run_answers_and_stores_nothing() {
    let server = ApiServer::default();
    let dry = Write { dry_run: true, ..test() };
    let created = server.create(thing("a", &json!({"x": 1})), &dry, soon()).await.unwrap();
    assert!(!created.uid().is_empty());
    assert!(server.objects().is_empty());
    let stored = server.create(thing("a", &json!({"x": 1})), &test(), soon()).await.unwrap();
    let how = Apply { write: dry, force: true };
    let intent = thing("a", &json!({"x": 2}));
    let applied = server.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
    assert_eq!(applied.effect, Effect::Changed);
    assert_eq!(applied.object.at(&["spec", "x"]), Some(&json!(2)));
    let how = Delete { dry_run: true, ..Delete::default() };
    let gone = server.delete(&stored.id(), &how, soon()).await;
    assert_eq!(gone, Ok(Deleted::Gone));
    assert_eq!(server.objects(), [stored]);
    assert_eq!(server.journal().len(), 1, "the one create");
}

#[tokio::test]
async fn an_apply_says_what_it_did_and_a_delete_what_is_left() {
    let server = ApiServer::default();
    let how = Apply::forced("test");
    let mut effects = Vec::new();
    for x in [1, 1, 2] {
        let intent = thing("a", &json!({"x": x}));
        let applied = server.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
        effects.push(applied.effect);
    }
    assert_eq!(effects, [Effect::Created, Effect::Unchanged, Effect::Changed]);

    let mut held = thing("held", &json!({}));
    held.set_at(&["metadata", "finalizers"], json!(["example.org/hold"])).unwrap();
    server.create(held, &test(), soon()).await.unwrap();
    let delete = |name: &str| {
        let id = id("example.org/v1", name);
        let server = &server;
        async move { server.delete(&id, &Delete::default(), soon()).await }
    };
    assert_eq!(delete("a").await, Ok(Deleted::Gone));
    assert_eq!(delete("held").await, Ok(Deleted::Terminating));
    assert!(delete("a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn lists_come_in_pages_and_as_metadata() {
    let server = ApiServer::default();
    for n in 0..7 {
        server.create(thing(&format!("t{n}"), &json!({})), &test(), soon()).await.unwrap();
    }
    let kind = Gvk::new("example.org/v1", "Thing");
    let mut how = List { limit: 3, form: Form::Metadata, ..List::live() };
    let mut pages = Vec::new();
    loop {
        let page = server.list(&kind, &Query::default(), &how, soon()).await.unwrap();
        assert!(page.objects.iter().all(|o| o.get("spec").is_none() && !o.uid().is_empty()));
        assert_eq!(page.version, "7");
        pages.push(page.objects.iter().map(|o| o.name().to_owned()).collect::<Vec<_>>().join(" "));
        how.next = page.next;
        if how.next.is_empty() {
            break;
        }
    }
    assert_eq!(pages, ["t0 t1 t2", "t3 t4 t5", "t6"]);
}

fn definition() -> Object {
    let version = |name: &str, fields: &[&str]| {
        let fields: serde_json::Map<_, _> =
            fields.iter().map(|f| ((*f).to_owned(), json!({"type": "integer"}))).collect();
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}}})
    };
    Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [version("v1", &["x", "y"]), version("v2", &["x"])],
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn an_object_is_one_object_in_all_versions_of_its_kind() {
    let server = ApiServer::new(Counted::default());
    server.register(&definition()).unwrap();
    let created = server.create(thing("a", &json!({"x": 1, "y": 2})), &test(), soon()).await;
    let uid = created.unwrap().uid().to_owned();
    let other = server.get(&id("example.org/v2", "a"), Source::Live, soon()).await.unwrap();
    assert_eq!(other.api_version(), "example.org/v2");
    assert_eq!(other.uid(), uid);
    assert_eq!(other.get("spec"), Some(&json!({"x": 1})), "the other version has no such field");
    let kind = Gvk::new("example.org/v2", "Thing");
    let listed = server.list(&kind, &Query::default(), &List::cached(), soon()).await.unwrap();
    assert_eq!(listed.objects, std::slice::from_ref(&other));
    let again = server.create(thing("a", &json!({})), &test(), soon()).await;
    assert!(matches!(again, Err(WriteError::AlreadyExists(_))), "{again:?}");

    let mut intent = thing("a", &json!({"x": 5}));
    intent.set_at(&["apiVersion"], "example.org/v2").unwrap();
    let how = Apply::forced("other");
    let applied = server.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
    assert_eq!((applied.effect, applied.object.uid()), (Effect::Changed, uid.as_str()));
    let first = server.get(&id("example.org/v1", "a"), Source::Live, soon()).await.unwrap();
    assert_eq!(first.at(&["spec", "x"]), Some(&json!(5)));
    assert_eq!(server.objects().len(), 1);
    let gone = server.delete(&id("example.org/v2", "a"), &Delete::default(), soon()).await;
    assert_eq!(gone, Ok(Deleted::Gone));
    assert!(server.objects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_after_its_deadline_fails_and_does_nothing() {
    let server = ApiServer::default();
    let by = soon();
    tokio::time::advance(Duration::from_hours(2)).await;
    let read = server.get(&id("example.org/v1", "a"), Source::Live, by).await;
    assert_eq!(read, Err(ReadError::TimedOut("context deadline exceeded".into())));
    let written = server.create(thing("a", &json!({})), &test(), by).await;
    assert_eq!(written, Err(WriteError::TimedOut("context deadline exceeded".into())));
    assert!(server.objects().is_empty());
}

#[tokio::test]
async fn a_kind_that_nobody_defined_has_no_scope() {
    let server = ApiServer::default();
    let answer = server.is_namespaced(&Gvk::new("odd.example.org/v1", "Odd"), soon()).await;
    let text =
        "failed to get restmapping: no matches for kind \"Odd\" in version \"odd.example.org/v1\"";
    assert_eq!(answer, Err(ReadError::UnknownKind(text.into())));
}

//! Tests of CustomResourceDefinitions in the in-memory API server: they are established, their
//! kinds are served, and their objects go with them.

use biplane_cluster::memory::ApiServer;
use biplane_cluster::{
    Cluster, Delete, Deleted, Part, Patch, ReadError, Source, Write, WriteError,
};
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_schema::crd::is_established;
use serde_json::json;

use crate::soon;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn definition() -> Object {
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Box", "plural": "boxes"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer", "default": 3},
                }}},
            }}}],
        },
    }))
}

fn kind() -> Gvk {
    Gvk::new("example.org/v1", "Box")
}

fn new_box(finalizers: &[&str]) -> Object {
    object(json!({
        "apiVersion": "example.org/v1", "kind": "Box",
        "metadata": {"name": "b", "namespace": "n", "finalizers": finalizers},
        "spec": {"colour": "red"},
    }))
}

#[tokio::test]
async fn a_created_definition_is_established_and_its_kind_is_served() {
    let server = ApiServer::default();
    let unknown = server.is_namespaced(&kind(), soon()).await;
    assert!(matches!(unknown, Err(ReadError::UnknownKind(_))), "{unknown:?}");

    let answer = server.create(definition(), &Write::by("us"), soon()).await.unwrap();
    // The server establishes it after it has answered.
    assert!(!is_established(&answer));
    let stored = server.get(&answer.id(), Source::Live, soon()).await.unwrap();
    assert!(is_established(&stored));
    assert_ne!(stored.resource_version(), answer.resource_version());
    assert_eq!(stored.generation(), 1);
    assert_eq!(stored.at(&["status", "storedVersions"]), Some(&json!(["v1"])));
    assert_eq!(stored.at(&["spec", "conversion"]), Some(&json!({"strategy": "None"})));
    let names = json!({"kind": "Box", "plural": "boxes", "singular": "box", "listKind": "BoxList"});
    assert_eq!(stored.at(&["status", "acceptedNames"]), Some(&names));

    assert_eq!(server.is_namespaced(&kind(), soon()).await, Ok(true));
    let made = server.create(new_box(&[]), &Write::by("us"), soon()).await.unwrap();
    assert_eq!(made.at(&["spec"]), Some(&json!({"size": 3})), "pruned and defaulted");
}

#[tokio::test]
async fn an_update_that_changes_nothing_leaves_the_version_alone() {
    let server = ApiServer::default();
    let id = server.create(definition(), &Write::by("us"), soon()).await.unwrap().id();
    let stored = server.get(&id, Source::Live, soon()).await.unwrap();
    let again = server.update(&stored, Part::Main, &Write::by("us"), soon()).await.unwrap();
    assert_eq!(again.resource_version(), stored.resource_version());
}

#[tokio::test]
async fn the_name_of_a_definition_follows_from_its_names() {
    let server = ApiServer::default();
    let mut wrong = definition();
    wrong.set_meta("name", "wrong.example.org");
    let error = server.create(wrong, &Write::by("us"), soon()).await.unwrap_err();
    let want = "CustomResourceDefinition.apiextensions.k8s.io \"wrong.example.org\" is invalid: \
                metadata.name: Invalid value: \"wrong.example.org\": must be spec.names.plural+\".\"+spec.group";
    assert_eq!(error, WriteError::Invalid(want.into()));
}

#[tokio::test]
async fn objects_go_with_their_definition_and_are_waited_for() {
    let server = ApiServer::default();
    let by = Write::by("us");
    let id = server.create(definition(), &by, soon()).await.unwrap().id();
    let held = server.create(new_box(&["held"]), &by, soon()).await.unwrap().id();
    let free = ObjectId { name: "free".into(), ..held.clone() };
    let mut another = new_box(&[]);
    another.set_meta("name", "free");
    server.create(another, &by, soon()).await.unwrap();

    let deleted = server.delete(&id, &Delete::default(), soon()).await;
    assert_eq!(deleted, Ok(Deleted::Terminating));
    assert!(server.get(&free, Source::Live, soon()).await.unwrap_err().is_not_found());
    assert!(server.get(&held, Source::Live, soon()).await.unwrap().is_being_deleted());
    assert_eq!(server.is_namespaced(&kind(), soon()).await, Ok(true));

    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    server.patch(&held, Part::Main, &release, &by, soon()).await.unwrap();
    assert!(server.objects().is_empty(), "{:?}", server.objects());
    let unknown = server.is_namespaced(&kind(), soon()).await;
    assert!(matches!(unknown, Err(ReadError::UnknownKind(_))), "{unknown:?}");
}

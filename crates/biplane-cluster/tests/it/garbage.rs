//! Tests of deletion and its effect on dependents.

use biplane_cluster::memory::ApiServer;
use biplane_cluster::{Cluster, Delete, Part, Precondition, Propagation, Source, Write};
use biplane_model::{Gvk, Object, ObjectId};
use serde_json::{Value, json};

use crate::soon;

/// A cluster with `owner`, `other`, and dependents of them.
struct World(ApiServer);

fn id(name: &str) -> ObjectId {
    ObjectId::new(Gvk::new("example.org/v1", "Thing"), "ns", name)
}

impl World {
    fn new() -> Self {
        Self(ApiServer::default())
    }

    async fn add(&self, name: &str, owners: &[&str], finalizers: &[&str]) {
        let mut references = Vec::new();
        for owner in owners {
            let uid = self.get(owner).await.unwrap().uid().to_owned();
            references.push(json!({
                "apiVersion": "example.org/v1",
                "kind": "Thing",
                "name": owner,
                "uid": uid,
                "blockOwnerDeletion": true,
            }));
        }
        let object = json!({
            "apiVersion": "example.org/v1",
            "kind": "Thing",
            "metadata": {
                "name": name,
                "namespace": "ns",
                "ownerReferences": references,
                "finalizers": finalizers,
            },
        });
        let object = Object::from_value(object).unwrap();
        self.0.create(object, &Write::by("test"), soon()).await.unwrap();
    }

    async fn get(&self, name: &str) -> Option<Object> {
        self.0.get(&id(name), Source::Live, soon()).await.ok()
    }

    async fn delete(&self, name: &str, propagation: Propagation) {
        self.0.delete(&id(name), &Delete::with(propagation), soon()).await.unwrap();
    }

    async fn release(&self, name: &str) {
        let mut object = self.get(name).await.unwrap();
        object.remove_at(&["metadata", "finalizers"]);
        self.0.update(&object, Part::Main, &Write::by("test"), soon()).await.unwrap();
    }

    fn names(&self) -> Vec<String> {
        self.0.objects().iter().map(|object| object.name().to_owned()).collect()
    }
}

#[tokio::test]
async fn dependents_go_with_their_owner_and_theirs_with_them() {
    let world = World::new();
    world.add("owner", &[], &[]).await;
    world.add("child", &["owner"], &[]).await;
    world.add("grandchild", &["child"], &[]).await;
    world.add("stranger", &[], &[]).await;
    world.delete("owner", Propagation::Background).await;
    assert_eq!(world.names(), ["stranger"]);
}

#[tokio::test]
async fn a_dependent_with_another_owner_stays() {
    let world = World::new();
    world.add("owner", &[], &[]).await;
    world.add("other", &[], &[]).await;
    world.add("child", &["owner", "other"], &[]).await;
    world.delete("owner", Propagation::Background).await;
    assert_eq!(world.names(), ["child", "other"]);
    let child = world.get("child").await.unwrap();
    let owners = child.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0]["name"], "other");
}

#[tokio::test]
async fn orphans_stay_without_their_reference() {
    let world = World::new();
    world.add("owner", &[], &[]).await;
    world.add("child", &["owner"], &[]).await;
    world.delete("owner", Propagation::Orphan).await;
    assert_eq!(world.names(), ["child"]);
    assert_eq!(world.get("child").await.unwrap().at(&["metadata", "ownerReferences"]), None);
}

#[tokio::test]
async fn in_the_foreground_an_owner_waits_for_its_dependents() {
    let world = World::new();
    world.add("owner", &[], &[]).await;
    world.add("child", &["owner"], &[]).await;
    world.add("grandchild", &["child"], &["example.org/hold"]).await;
    world.delete("owner", Propagation::Foreground).await;
    assert_eq!(world.names(), ["child", "grandchild", "owner"]);
    for name in ["child", "grandchild", "owner"] {
        assert!(world.get(name).await.unwrap().is_being_deleted(), "{name}");
    }
    world.release("grandchild").await;
    assert_eq!(world.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let world = World::new();
    world.add("owner", &[], &["example.org/hold"]).await;
    world.add("child", &["owner"], &[]).await;
    world.delete("owner", Propagation::Background).await;
    let owner = world.get("owner").await.unwrap();
    assert!(owner.is_being_deleted());
    assert_eq!(owner.generation(), 2);
    assert_eq!(world.names(), ["child", "owner"]);
    world.release("owner").await;
    assert_eq!(world.names(), Vec::<String>::new());
}

#[tokio::test]
async fn only_the_object_with_the_given_uid_is_deleted() {
    let world = World::new();
    world.add("owner", &[], &[]).await;
    let only_if = Precondition { uid: "other".into(), ..Precondition::default() };
    let how = Delete { only_if, ..Delete::default() };
    let error = world.0.delete(&id("owner"), &how, soon()).await.unwrap_err();
    let uid = world.get("owner").await.unwrap().uid().to_owned();
    assert_eq!(
        error.to_string(),
        format!(
            "Operation cannot be fulfilled on Thing.example.org \"owner\": the UID in the \
             precondition (other) does not match the UID in record ({uid}). The object might \
             have been deleted and then recreated"
        )
    );
}

#[tokio::test]
async fn names_are_generated() {
    let world = World::new();
    let object = json!({
        "apiVersion": "example.org/v1",
        "kind": "Thing",
        "metadata": {"generateName": "thing-", "namespace": "ns"},
    });
    let object = Object::from_value(object).unwrap();
    let first = world.0.create(object.clone(), &Write::by("test"), soon()).await.unwrap();
    let second = world.0.create(object, &Write::by("test"), soon()).await.unwrap();
    assert_ne!(first.name(), second.name());
    assert!(first.name().starts_with("thing-") && first.name().len() == "thing-".len() + 5);
    assert_ne!(first.uid(), second.uid());
    assert_ne!(first.resource_version(), second.resource_version());
}

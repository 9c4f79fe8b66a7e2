//! Tests of the index of Compositions and revisions: the same selection as without it, from fewer
//! reads.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::memory::ApiServer;
use biplane_cluster::{Cluster as _, Query, Subscribe, Subscription};
use biplane_engine::composite::{CompositionIndex, Writing};
use biplane_model::{Gvk, composition};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{World, revision};

struct Fed {
    index: Arc<CompositionIndex>,
    compositions: Subscription,
    revisions: Subscription,
}

impl Fed {
    async fn on(server: &ApiServer) -> Self {
        let subscribe = async |kind: &str| {
            let gvk = Gvk::new(composition::API_VERSION, kind);
            let by = Instant::now() + Duration::from_hours(1);
            server.subscribe(&gvk, &Query::default(), &Subscribe::default(), by).await.unwrap()
        };
        Self {
            index: Arc::default(),
            compositions: subscribe("Composition").await,
            revisions: subscribe("CompositionRevision").await,
        }
    }

    /// Takes what the subscriptions have to say.
    fn catch_up(&mut self) {
        while let Some(change) = self.compositions.try_next() {
            self.index.composition_changed(&change);
        }
        while let Some(change) = self.revisions.try_next() {
            self.index.revision_changed(&change);
        }
    }
}

fn spec(kind: &str) -> Value {
    json!({"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": kind},
        "pipeline": [{"step": "s", "functionRef": {"name": format!("function-{kind}")}}]})
}

fn selected(world: &World) -> (String, String) {
    let xr = world.xr();
    let at = |field| xr.str_at(&["spec", "crossplane", field, "name"]).to_owned();
    (at("compositionRef"), at("compositionRevisionRef"))
}

fn world() -> (Arc<ApiServer>, World) {
    let server = Arc::new(ApiServer::default());
    let mut world = World::on(server.clone(), 0);
    world.reconciler.behaviour.writing = Writing::LIVE;
    (server, world)
}

#[tokio::test]
async fn an_indexed_selection_is_the_same_and_reads_nothing() {
    for (policy, selector, want) in [
        ("Automatic", Value::Null, "comp-3"),
        ("Automatic", json!({"matchLabels": {"channel": "dev"}}), "comp-2"),
        ("Manual", Value::Null, "comp-1"),
    ] {
        let mut calls = Vec::new();
        for indexed in [false, true] {
            let (server, mut world) = world();
            for (name, number, channel) in [("comp-2", 2, "dev"), ("comp-3", 3, "prod")] {
                let mut revision = revision(name, "comp-uid", number, &spec("Thing"));
                revision.set_at_or_ignore(&["metadata", "labels", "channel"], channel);
                world.seed(revision);
            }
            world.seed(revision("comp-9", "someone-else", 9, &spec("Thing")));
            world.seed(crate::world::composition("other", "o", &spec("Other")));
            world.change_xr(|xr| {
                xr.set_at_or_ignore(&["spec", "crossplane", "compositionUpdatePolicy"], policy);
                if policy == "Manual" {
                    let path = ["spec", "crossplane", "compositionRevisionRef", "name"];
                    xr.set_at_or_ignore(&path, "comp-1");
                }
                if !selector.is_null() {
                    let path = ["spec", "crossplane", "compositionRevisionSelector"];
                    xr.set_at_or_ignore(&path, selector.clone());
                }
            });
            if indexed {
                let mut fed = Fed::on(&server).await;
                fed.catch_up();
                assert!(fed.index.is_synced());
                world.reconciler.compositions = Some(fed.index);
            }
            server.restart();
            world.reconcile().await.unwrap();
            calls.push(server.calls());
            assert_eq!(selected(&world), ("comp".into(), want.into()), "indexed: {indexed}");
        }
        // Lists Compositions, then reads one revision or a Composition and its revisions.
        let fewer = if policy == "Manual" { 2 } else { 3 };
        assert_eq!(calls[0] - calls[1], fewer, "{policy}");
    }
}

#[tokio::test]
async fn the_index_follows_what_changes() {
    let (server, mut world) = world();
    let mut fed = Fed::on(&server).await;
    world.reconciler.compositions = Some(fed.index.clone());
    // Before it is in sync, the cluster is asked.
    assert!(!fed.index.is_synced());
    world.reconcile().await.unwrap();
    assert_eq!(selected(&world).1, "comp-1");

    fed.catch_up();
    assert_eq!(fed.index.calling("function-Thing"), Vec::<String>::new());
    world.seed(revision("comp-2", "comp-uid", 2, &spec("Thing")));
    world.reconcile().await.unwrap();
    assert_eq!(selected(&world).1, "comp-1", "the index has not heard of it");
    fed.catch_up();
    assert_eq!(fed.index.calling("function-Thing"), ["comp-2"]);
    world.reconcile().await.unwrap();
    assert_eq!(selected(&world).1, "comp-2");

    // A revision whose pipeline is not valid any more.
    let mut invalid = revision("comp-2", "comp-uid", 2, &spec("Thing"));
    invalid.remove_at(&["status"]);
    world.seed(invalid);
    fed.catch_up();
    assert_eq!(
        world.reconcile().await.unwrap_err().text,
        "selected CompositionRevision comp-2 does not have a valid function pipeline: pipeline status unknown"
    );

    // What is gone is not selected, and is reported as without the index.
    for kind in ["CompositionRevision", "Composition"] {
        for object in server.objects().into_iter().filter(|o| o.kind() == kind) {
            let by = Instant::now() + Duration::from_hours(1);
            server.delete(&object.id(), &biplane_cluster::Delete::default(), by).await.unwrap();
        }
        fed.catch_up();
        let text = world.reconcile().await.unwrap_err().text;
        let want = match kind {
            "CompositionRevision" => "no compatible CompositionRevisions found",
            _ => "cannot get Composition: ",
        };
        assert!(text.contains(want), "{text}");
    }
    assert_eq!(fed.index.calling("function-Thing"), Vec::<String>::new());
}

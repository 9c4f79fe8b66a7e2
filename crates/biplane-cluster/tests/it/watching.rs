//! Tests of watches: the existing objects first, then every change.

use biplane_cluster::{Cluster, Delete, ListQuery, MemoryCluster, WatchEvent, WritePolicy};
use biplane_model::{Gvk, Object};
use serde_json::json;

fn map(namespace: &str, name: &str, value: u8) -> Object {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name}, "data": {"value": value}});
    Object::from_value(object).unwrap()
}

#[tokio::test]
async fn a_watch_tells_what_is_there_and_then_what_comes() {
    let cluster = MemoryCluster::new(WritePolicy::Upstream);
    cluster.seed([map("here", "old", 1), map("there", "old", 1)]);
    let query = ListQuery { namespace: "here".to_owned(), ..ListQuery::default() };
    let mut watch = cluster.watch(&Gvk::new("v1", "ConfigMap"), &query).await.unwrap();
    cluster.create(map("here", "new", 1)).await.unwrap();
    cluster.create(map("there", "new", 1)).await.unwrap();
    cluster.update(&map("here", "old", 2)).await.unwrap();
    cluster.delete(&map("here", "old", 2).id(), &Delete::default()).await.unwrap();
    let mut seen = Vec::new();
    while let Ok(event) = watch.try_recv() {
        let (what, object) = match event {
            WatchEvent::Added(object) => ("added", object),
            WatchEvent::Modified(object) => ("modified", object),
            WatchEvent::Deleted(object) => ("deleted", object),
        };
        assert_eq!(object.namespace(), "here");
        seen.push(format!("{what} {}", object.name()));
    }
    assert_eq!(seen, ["added old", "added new", "modified old", "deleted old"]);
}

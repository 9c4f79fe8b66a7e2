//! Tests of watches: the existing objects first, then every change.

use std::sync::Barrier;

use biplane_cluster::{Cluster, Delete, ListQuery, MemoryCluster, WatchEvent, WritePolicy};
use biplane_model::{Gvk, Object};
use serde_json::json;
use tokio::runtime::Builder;

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

/// Runs a future on a runtime of the current thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A watch begins while other threads create objects. Each object must be either in the initial
/// list or in the later events: a write between the two would be lost or reported twice.
#[test]
fn a_watch_that_begins_during_writes_reports_every_object_once() {
    const ROUNDS: usize = 100;
    const WRITERS: usize = 2;
    const OBJECTS: usize = 50;
    let name = |writer: usize, n: usize| format!("{writer}-{n:02}");
    let want: Vec<_> =
        (0..WRITERS).flat_map(|writer| (0..OBJECTS).map(move |n| name(writer, n))).collect();
    for _ in 0..ROUNDS {
        let cluster = MemoryCluster::new(WritePolicy::Upstream);
        let start = Barrier::new(WRITERS + 1);
        let mut watch = std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (cluster, start) = (&cluster, &start);
                scope.spawn(move || {
                    block_on(async {
                        start.wait();
                        for n in 0..OBJECTS {
                            cluster.create(map("here", &name(writer, n), 1)).await.unwrap();
                        }
                    });
                });
            }
            block_on(async {
                start.wait();
                cluster.watch(&Gvk::new("v1", "ConfigMap"), &ListQuery::default()).await.unwrap()
            })
        });
        let mut seen = Vec::new();
        while let Ok(event) = watch.try_recv() {
            match event {
                WatchEvent::Added(object) => seen.push(object.name().to_owned()),
                other => panic!("{other:?}"),
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, want);
    }
}

//! Tests of subscriptions: the existing objects first, then every change, and nothing lost or told
//! twice.

use std::sync::Barrier;

use biplane_cluster::memory::{ApiServer, RenderClient};
use biplane_cluster::{Change, Cluster, Delete, Form, Part, Query, Subscribe, Subscription, Write};
use biplane_model::{Gvk, Object};
use serde_json::json;
use tokio::runtime::Builder;

use crate::soon;

fn map(namespace: &str, name: &str, value: u8) -> Object {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name}, "data": {"value": value.to_string()}});
    Object::from_value(object).unwrap()
}

fn kind() -> Gvk {
    Gvk::new("v1", "ConfigMap")
}

fn test() -> Write {
    Write::by("test")
}

/// Everything that is there to read, in words.
fn read(subscription: &mut Subscription) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(change) = subscription.try_next() {
        seen.push(match change {
            Change::Changed { object, before: None } => format!("new {}", object.name()),
            Change::Changed { object, before: Some(before) } => {
                assert_eq!(object.id(), before.id());
                let value = |o: &Object| o.str_at(&["data", "value"]).to_owned();
                format!("{} {} to {}", object.name(), value(&before), value(&object))
            }
            Change::Gone { last } => format!("gone {}", last.name()),
            Change::Synced => "synced".into(),
            Change::Missed => "missed".into(),
        });
    }
    seen
}

#[tokio::test]
async fn a_subscription_tells_what_is_there_and_then_what_comes() {
    let cluster = ApiServer::default();
    cluster.seed([map("here", "old", 1), map("there", "old", 1)]);
    let query = Query { namespace: "here".to_owned(), ..Query::default() };
    let mut all = cluster.subscribe(&kind(), &query, &Subscribe::default(), soon()).await.unwrap();
    assert_eq!(read(&mut all), ["new old", "synced"]);
    cluster.create(map("here", "new", 1), &test(), soon()).await.unwrap();
    cluster.create(map("there", "new", 1), &test(), soon()).await.unwrap();
    assert_eq!(read(&mut all), ["new new"]);
    let apply = biplane_cluster::Apply::forced("test");
    cluster.apply(&map("here", "old", 2), Part::Main, None, &apply, soon()).await.unwrap();
    assert_eq!(read(&mut all), ["old 1 to 2"]);
    cluster.delete(&map("here", "old", 2).id(), &Delete::default(), soon()).await.unwrap();
    assert_eq!(read(&mut all), ["gone old"]);
}

#[tokio::test]
async fn what_stops_matching_is_gone_and_what_begins_to_is_new() {
    let cluster = ApiServer::default();
    let labelled = |label: Option<&str>| {
        let mut object = map("here", "a", 1);
        if let Some(label) = label {
            object.set_at(&["metadata", "labels"], json!({"team": label})).unwrap();
        }
        object
    };
    let by_value = Query::labels([("team".to_owned(), "red".to_owned())].into());
    let by_name = Query { name: "a".into(), ..Query::default() };
    let by_presence = Query { labelled: ["team".to_owned()].into(), ..Query::default() };
    let mut subscriptions = Vec::new();
    for query in [&by_value, &by_name, &by_presence] {
        let how = Subscribe::default();
        subscriptions.push(cluster.subscribe(&kind(), query, &how, soon()).await.unwrap());
    }
    let mut seen = vec![Vec::new(); 3];
    for label in [Some("red"), Some("blue"), None] {
        cluster.seed([]);
        let apply = biplane_cluster::Apply::forced("test");
        let object = labelled(label);
        cluster.apply(&object, Part::Main, None, &apply, soon()).await.unwrap();
        for (seen, subscription) in seen.iter_mut().zip(&mut subscriptions) {
            seen.extend(read(subscription));
        }
    }
    assert_eq!(seen[0], ["synced", "new a", "gone a"]);
    assert_eq!(seen[1], ["synced", "new a", "a 1 to 1", "a 1 to 1"]);
    assert_eq!(seen[2], ["synced", "new a", "a 1 to 1", "gone a"]);
}

#[tokio::test]
async fn a_slow_reader_gets_the_newest_state_once() {
    let cluster = RenderClient::new();
    let mut all =
        cluster.subscribe(&kind(), &Query::default(), &Subscribe::default(), soon()).await.unwrap();
    for value in 1..=100 {
        cluster.update(&map("here", "a", value), Part::Main, &test(), soon()).await.unwrap();
    }
    let changes: Vec<_> = std::iter::from_fn(|| all.try_next()).collect();
    let newest = Change::Changed { object: map("here", "a", 100), before: None };
    assert_eq!(changes, [Change::Synced, newest]);
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_told_so_and_catches_up() {
    let cluster = RenderClient::new();
    cluster.seed([map("here", "going", 1), map("here", "changing", 1), map("here", "same", 1)]);
    let how = Subscribe { capacity: 2, ..Subscribe::default() };
    let mut all = cluster.subscribe(&kind(), &Query::default(), &how, soon()).await.unwrap();
    assert_eq!(read(&mut all), ["new changing", "new going", "new same", "synced"]);
    cluster.delete(&map("here", "going", 1).id(), &Delete::default(), soon()).await.unwrap();
    for (name, value) in [("changing", 2), ("new", 1), ("newer", 1)] {
        cluster.update(&map("here", name, value), Part::Main, &test(), soon()).await.unwrap();
    }
    assert_eq!(
        read(&mut all),
        ["missed", "gone going", "changing 1 to 2", "new new", "new newer", "synced"]
    );
    cluster.update(&map("here", "new", 2), Part::Main, &test(), soon()).await.unwrap();
    assert_eq!(read(&mut all), ["new 1 to 2"]);
}

#[tokio::test]
async fn an_object_that_was_made_anew_is_another_one() {
    let cluster = ApiServer::default();
    cluster.create(map("here", "a", 1), &test(), soon()).await.unwrap();
    let mut all =
        cluster.subscribe(&kind(), &Query::default(), &Subscribe::default(), soon()).await.unwrap();
    assert_eq!(read(&mut all), ["new a", "synced"]);
    cluster.delete(&map("here", "a", 1).id(), &Delete::default(), soon()).await.unwrap();
    cluster.create(map("here", "a", 1), &test(), soon()).await.unwrap();
    assert_eq!(read(&mut all), ["gone a", "new a"]);
}

#[tokio::test]
async fn a_reader_waits_for_a_change_and_for_the_end() {
    let cluster = ApiServer::default();
    let form = Subscribe { form: Form::Metadata, ..Subscribe::default() };
    let mut all = cluster.subscribe(&kind(), &Query::default(), &form, soon()).await.unwrap();
    assert_eq!(all.next().await, Some(Change::Synced));
    let reader = tokio::spawn(async move {
        let first = all.next().await;
        (first, all.next().await)
    });
    tokio::task::yield_now().await;
    cluster.create(map("here", "a", 1), &test(), soon()).await.unwrap();
    tokio::task::yield_now().await;
    drop(cluster);
    let (first, end) = reader.await.unwrap();
    let Some(Change::Changed { object, before: None }) = first else { panic!("{first:?}") };
    assert_eq!((object.name(), object.get("data")), ("a", None), "metadata only");
    assert_eq!(end, None);
}

/// Runs a future on a runtime of the current thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A subscription begins while other threads create objects. Each object must be either in the
/// initial list or in the later changes: a write between the two would be lost or reported twice.
#[test]
fn a_subscription_that_begins_during_writes_reports_every_object_once() {
    const ROUNDS: usize = 100;
    const WRITERS: usize = 2;
    const OBJECTS: usize = 50;
    let name = |writer: usize, n: usize| format!("{writer}-{n:02}");
    let mut want: Vec<_> = (0..WRITERS)
        .flat_map(|writer| (0..OBJECTS).map(move |n| format!("new {}", name(writer, n))))
        .collect();
    want.push("synced".into());
    for _ in 0..ROUNDS {
        let cluster = RenderClient::new();
        let start = Barrier::new(WRITERS + 1);
        let mut all = std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (cluster, start) = (&cluster, &start);
                scope.spawn(move || {
                    block_on(async {
                        start.wait();
                        for n in 0..OBJECTS {
                            let object = map("here", &name(writer, n), 1);
                            cluster.create(object, &test(), soon()).await.unwrap();
                        }
                    });
                });
            }
            block_on(async {
                start.wait();
                let how = Subscribe::default();
                cluster.subscribe(&kind(), &Query::default(), &how, soon()).await.unwrap()
            })
        });
        let mut seen = read(&mut all);
        seen.sort_unstable();
        assert_eq!(seen, want);
    }
}

//! What the cluster does when the server is busy, broken, old or forgetful.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use biplane_cluster::{
    Cluster, Effect, Part, Patch, Precondition, Query, ReadError, Source, Subscribe, Write,
    WriteError,
};
use biplane_kube::{Options, metrics};
use biplane_model::{Gvk, Object, ObjectId};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::fake::{Reply, cluster, status, thing};
use crate::soon;
use crate::world::{read_until, words};

fn kind() -> Gvk {
    Gvk::new("example.org/v1", "Thing")
}

fn id(name: &str) -> ObjectId {
    ObjectId::new(kind(), "ns", name)
}

fn unavailable() -> Reply {
    Reply::Json(503, status(503, "ServiceUnavailable", "not now"))
}

#[tokio::test]
async fn reads_and_fenced_writes_are_repeated_twice() {
    let failures = Arc::new(Mutex::new(0));
    let left = Arc::clone(&failures);
    let options = Options::default();
    let counters = options.counters.clone();
    let (cluster, log) = cluster(&options, move |_| {
        let mut left = left.lock().unwrap();
        if *left == 0 {
            return Reply::Json(200, thing("a", 5));
        }
        *left -= 1;
        if *left % 2 == 0 { unavailable() } else { Reply::Cut }
    })
    .await;
    let attempts = || std::mem::take(&mut *log.lock().unwrap()).len();
    let fail = |times| *failures.lock().unwrap() = times;
    fail(2);
    assert_eq!(cluster.get(&id("a"), Source::Live, soon()).await.unwrap().name(), "a");
    assert_eq!(attempts(), 3);
    fail(3);
    let read = cluster.get(&id("a"), Source::Live, soon()).await;
    assert_eq!(read, Err(ReadError::Unavailable("not now".into())));
    assert_eq!(attempts(), 3);

    let patch = Patch::Merge(json!({}));
    let unchanged = Precondition { resource_version: "4".into(), ..Precondition::default() };
    let fenced = Write::by("t").only_if(unchanged);
    fail(1);
    assert!(cluster.patch(&id("a"), Part::Main, &patch, &fenced, soon()).await.is_ok());
    assert_eq!(attempts(), 2);
    fail(1);
    let patched = cluster.patch(&id("a"), Part::Main, &patch, &Write::by("t"), soon()).await;
    assert_eq!(patched, Err(WriteError::Unavailable("not now".into())));
    assert_eq!(attempts(), 1);
    fail(1);
    let object = Object::from_value(thing("a", 0)).unwrap();
    let created = cluster.create(object, &Write::by("t"), soon()).await;
    assert_eq!(created, Err(WriteError::Unavailable("not now".into())));
    assert_eq!(attempts(), 1);

    let count = |verb, code: &str| {
        let resource = "things.example.org".to_owned();
        let labels = metrics::Request { verb, resource, code: code.to_owned() };
        counters.requests.get_or_create(&labels).get()
    };
    let reads = (count("get", "200"), count("get", "503"), count("get", "error"));
    assert_eq!(reads, (1, 3, 2));
    assert_eq!((count("patch", "200"), count("patch", "503")), (1, 2));
    assert_eq!(count("create", "503"), 1);
    let mut registry = Registry::default();
    counters.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let line = "rest_client_requests_total{verb=\"create\",resource=\"things.example.org\",code=\"503\"} 1\n";
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn a_server_that_asks_for_patience_gets_it() {
    let replies = Mutex::new(VecDeque::from([1, 3600]));
    let (cluster, log) =
        cluster(&Options::default(), move |_| match replies.lock().unwrap().pop_front() {
            Some(after) => Reply::Later(429, after, status(429, "TooManyRequests", "slow down")),
            None => Reply::Json(200, thing("a", 5)),
        })
        .await;
    let begun = Instant::now();
    let read = cluster.get(&id("a"), Source::Live, soon()).await;
    let throttled = |seconds| ReadError::Throttled {
        message: "slow down".into(),
        after: Duration::from_secs(seconds),
    };
    assert_eq!(read, Err(throttled(3600)), "nobody waits for an hour in a call");
    assert!(begun.elapsed() >= Duration::from_secs(1), "the first was waited for");
    assert_eq!(log.lock().unwrap().len(), 2);
    assert!(cluster.get(&id("a"), Source::Live, soon()).await.is_ok());
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for() {
    let mut open = Vec::new();
    let (cluster, _) = cluster(&Options::default(), move |_| {
        let (sender, lines) = mpsc::unbounded_channel();
        open.push(sender);
        Reply::Lines(lines)
    })
    .await;
    let by = Instant::now() + Duration::from_millis(200);
    let read = cluster.get(&id("a"), Source::Live, by).await;
    assert_eq!(read, Err(ReadError::TimedOut("context deadline exceeded".into())));
}

/// The ends of the watches that a server has begun, and what it lists.
#[derive(Default)]
struct Watches {
    begun: VecDeque<mpsc::UnboundedSender<Value>>,
    /// Told of each that is begun.
    news: Arc<Notify>,
    listed: Vec<Value>,
    version: u64,
    streams_lists: bool,
    gone: bool,
}

fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

impl Watches {
    fn reply(&mut self, request: &str) -> Reply {
        if self.gone {
            return Reply::Json(404, json!("404 page not found"));
        }
        if !request.contains("watch=true") {
            let list = json!({"metadata": {"resourceVersion": self.version.to_string()}, "items": self.listed});
            return Reply::Json(200, list);
        }
        let initial = request.contains("sendInitialEvents=true");
        if initial && !self.streams_lists {
            return Reply::Json(422, status(422, "Invalid", "sendInitialEvents is forbidden"));
        }
        let (sender, lines) = mpsc::unbounded_channel();
        if initial {
            for object in &self.listed {
                sender.send(event("ADDED", object)).unwrap();
            }
            let end = json!({"metadata": {"resourceVersion": self.version.to_string(),
                "annotations": {"k8s.io/initial-events-end": "true"}}});
            sender.send(event("BOOKMARK", &end)).unwrap();
        }
        self.begun.push_back(sender);
        self.news.notify_one();
        Reply::Lines(lines)
    }
}

/// Waits for the next watch that the server is asked for.
async fn next(watches: &Arc<Mutex<Watches>>) -> mpsc::UnboundedSender<Value> {
    let (deadline, news) = (soon(), Arc::clone(&watches.lock().unwrap().news));
    loop {
        if let Some(begun) = watches.lock().unwrap().begun.pop_front() {
            return begun;
        }
        timeout_at(deadline, news.notified()).await.expect("a watch is begun");
    }
}

#[tokio::test]
async fn watches_survive_cuts_and_forgotten_versions() {
    for streams_lists in [true, false] {
        let listed = vec![thing("a", 3), thing("b", 4)];
        let watches = Watches { listed, version: 5, streams_lists, ..Watches::default() };
        let watches = Arc::new(Mutex::new(watches));
        let state = Arc::clone(&watches);
        let (cluster, log) =
            cluster(&Options::default(), move |request| state.lock().unwrap().reply(request)).await;
        let how = Subscribe::default();
        let mut all = cluster.subscribe(&kind(), &Query::default(), &how, soon()).await.unwrap();
        assert_eq!(read_until(&mut all, "synced").await, ["new a", "new b", "synced"]);
        let first = next(&watches).await;
        first.send(event("MODIFIED", &thing("a", 7))).unwrap();
        first.send(event("BOOKMARK", &thing("", 9))).unwrap();
        assert_eq!(read_until(&mut all, "a was a").await, ["a was a"]);

        // Resumed where it was, and nobody is told.
        drop(first);
        let second = next(&watches).await;
        let resumed = log.lock().unwrap().last().unwrap().clone();
        assert!(resumed.contains("resourceVersion=9"), "{resumed}");
        second.send(event("ADDED", &thing("c", 10))).unwrap();
        assert_eq!(read_until(&mut all, "new c").await, ["new c"]);

        // The server has forgotten: what differs is told.
        {
            let mut watches = watches.lock().unwrap();
            watches.listed = vec![thing("a", 7), thing("c", 12), thing("d", 13)];
            watches.version = 20;
        }
        second.send(event("ERROR", &status(410, "Expired", "too old"))).unwrap();
        assert_eq!(
            read_until(&mut all, "synced").await,
            ["missed", "gone b", "c was c", "new d", "synced"]
        );
        let third = next(&watches).await;
        third.send(event("DELETED", &thing("a", 21))).unwrap();
        assert_eq!(read_until(&mut all, "gone a").await, ["gone a"]);
        let cached = cluster.get(&id("b"), Source::Cache, soon()).await;
        let text = "things.example.org \"b\" not found".to_owned();
        assert_eq!(cached, Err(ReadError::NotFound(text)));

        // The kind is gone.
        watches.lock().unwrap().gone = true;
        drop(third);
        let last = tokio::time::timeout_at(soon(), all.next()).await.unwrap();
        assert_eq!(words(last), "ended");
        assert_eq!(cluster.watches(), 0);
    }
}

#[tokio::test]
async fn a_server_that_forgets_again_and_again_is_asked_less_and_less() {
    for streams_lists in [true, false] {
        let watches = Watches { version: 5, streams_lists, ..Watches::default() };
        let watches = Arc::new(Mutex::new(watches));
        let state = Arc::clone(&watches);
        let (cluster, _) =
            cluster(&Options::default(), move |request| state.lock().unwrap().reply(request)).await;
        let begun = Instant::now();
        let how = Subscribe::default();
        let all = cluster.subscribe(&kind(), &Query::default(), &how, soon()).await.unwrap();
        for _ in 0..4 {
            let forgets = event("ERROR", &status(410, "Expired", "too old"));
            next(&watches).await.send(forgets).unwrap();
        }
        next(&watches).await;
        // At once, and then after a quarter, a half and a whole second.
        assert!(begun.elapsed() >= Duration::from_millis(1750));
        drop(all);
    }
}

#[tokio::test]
async fn a_schema_that_is_published_late_is_found() {
    let published = Arc::new(Mutex::new(json!({"components": {"schemas": {}}})));
    let state = Arc::clone(&published);
    let (cluster, log) =
        cluster(&Options::default(), move |_| Reply::Json(200, state.lock().unwrap().clone()))
            .await;
    assert_eq!(cluster.schema(&kind(), soon()).await.unwrap(), None);
    *published.lock().unwrap() = json!({"components": {"schemas": {"thing": {"type": "object",
        "x-kubernetes-group-version-kind": [
            {"group": "example.org", "version": "v1", "kind": "Thing"}]}}}});
    assert!(cluster.schema(&kind(), soon()).await.unwrap().is_some());
    assert!(cluster.schema(&kind(), soon()).await.unwrap().is_some());
    assert_eq!(log.lock().unwrap().len(), 2, "one that is there is kept");
}

#[tokio::test]
async fn one_watch_serves_all_who_want_the_same_and_ends_after_them() {
    let watches = Arc::new(Mutex::new(Watches {
        listed: vec![thing("a", 3)],
        version: 5,
        streams_lists: true,
        ..Watches::default()
    }));
    let state = Arc::clone(&watches);
    let options = Options { linger: Duration::from_millis(10), ..Options::default() };
    let (cluster, log) =
        cluster(&options, move |request| state.lock().unwrap().reply(request)).await;
    let how = Subscribe::default();
    let narrow = Query { namespace: "ns".into(), name: "a".into(), ..Query::default() };
    let wide = cluster.subscribe(&kind(), &Query::default(), &how, soon()).await.unwrap();
    let one = cluster.subscribe(&kind(), &narrow, &how, soon()).await.unwrap();
    let cached = cluster.get(&id("a"), Source::Cache, soon()).await.unwrap();
    assert_eq!(cached.resource_version(), "3");
    assert_eq!((cluster.watches(), log.lock().unwrap().len()), (1, 1));
    let of_things = next(&watches).await;
    // The server notices that the client has left.
    let ended = async |watch: mpsc::UnboundedSender<Value>| {
        timeout_at(soon(), watch.closed()).await.expect("the watch ends");
    };
    // A watch that is no longer used shows when the one before it would have ended.
    let kind = Gvk::new("example.org/v1", "Other");
    let other = cluster.subscribe(&kind, &Query::default(), &how, soon()).await.unwrap();
    assert_eq!((cluster.watches(), log.lock().unwrap().len()), (2, 2));
    let of_others = next(&watches).await;
    drop(wide);
    drop(other);
    ended(of_others).await;
    assert!(cluster.get(&id("a"), Source::Cache, soon()).await.is_ok());
    let asked = (cluster.watches(), log.lock().unwrap().len());
    assert_eq!(asked, (1, 2), "one still uses it, so that nothing is asked");
    drop(one);
    ended(of_things).await;
    assert_eq!(cluster.watches(), 0);
}

#[tokio::test]
async fn a_subscription_that_is_not_permitted_fails_at_once() {
    let (cluster, log) =
        cluster(&Options::default(), |_| Reply::Json(403, status(403, "Forbidden", "you may not")))
            .await;
    let how = Subscribe::default();
    let followed = cluster.subscribe(&kind(), &Query::default(), &how, soon()).await;
    assert_eq!(followed.unwrap_err(), ReadError::Forbidden("you may not".into()));
    assert_eq!((cluster.watches(), log.lock().unwrap().len()), (0, 1));
}

#[tokio::test]
async fn a_delayed_watch_does_not_make_own_writes_old() {
    let watches = Arc::new(Mutex::new(Watches {
        listed: vec![thing("a", 3)],
        version: 5,
        streams_lists: true,
        ..Watches::default()
    }));
    let state = Arc::clone(&watches);
    let (cluster, log) =
        cluster(&Options::default(), move |request| match request.split(' ').next() {
            Some("PATCH") => Reply::Json(200, thing("a", 8)),
            Some("DELETE") => Reply::Json(
                200,
                json!({"kind": "Status", "status": "Success", "details": {"uid": "uid-a"}}),
            ),
            _ => state.lock().unwrap().reply(request),
        })
        .await;
    let how = Subscribe::default();
    let mut all = cluster.subscribe(&kind(), &Query::default(), &how, soon()).await.unwrap();
    read_until(&mut all, "synced").await;
    let watch = next(&watches).await;
    let intent = Object::from_value(json!({"apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {"namespace": "ns", "name": "a"}}))
    .unwrap();
    let how = biplane_cluster::Apply::forced("t");
    let applied = cluster.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
    assert_eq!(applied.effect, Effect::Changed);
    let again = cluster.apply(&intent, Part::Main, None, &how, soon()).await.unwrap();
    assert_eq!(again.effect, Effect::Unchanged, "the same version as before");
    // Events from before the write arrive after it.
    watch.send(event("MODIFIED", &thing("a", 6))).unwrap();
    watch.send(event("ADDED", &thing("b", 7))).unwrap();
    assert_eq!(read_until(&mut all, "new b").await, ["a was a", "new b"]);
    let asked = log.lock().unwrap().len();
    let read = cluster.get(&id("a"), Source::Cache, soon()).await.unwrap();
    assert_eq!(read.resource_version(), "8");
    cluster.delete(&id("a"), &biplane_cluster::Delete::default(), soon()).await.unwrap();
    watch.send(event("MODIFIED", &thing("a", 9))).unwrap();
    watch.send(event("ADDED", &thing("c", 10))).unwrap();
    assert_eq!(read_until(&mut all, "new c").await, ["gone a", "new c"]);
    let read = cluster.get(&id("a"), Source::Cache, soon()).await;
    assert!(read.unwrap_err().is_not_found());
    assert_eq!(log.lock().unwrap().len(), asked + 1, "only the delete was sent");
}

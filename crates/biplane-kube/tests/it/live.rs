//! What only a real API server shows: schemas, access, events, kubeconfigs, kinds that come and go.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use biplane_cluster::{
    Cluster, Delete, Event, EventType, Events, List, Query, ReadError, Recorder, Regarding, Source,
    Subscribe,
};
use biplane_kube::{Endpoint, EventSink, KubeCluster, Options};
use biplane_model::{Gvk, ObjectId};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::soon;
use crate::world::{World, by, endpoint, read_until, server, words};

fn definitions() -> Gvk {
    Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition")
}

#[tokio::test]
async fn a_kubeconfig_is_enough() {
    let options = Options { kubeconfig: Some(server().kubeconfig.clone()), ..Options::default() };
    let cluster = KubeCluster::connect(&options).await.unwrap();
    let id = ObjectId::new(Gvk::new("v1", "Namespace"), "", "default");
    assert_eq!(cluster.get(&id, Source::Live, soon()).await.unwrap().name(), "default");
    let context = Some("other".to_owned());
    let error = KubeCluster::connect(&Options { context, ..options }).await.unwrap_err();
    let path = server().kubeconfig.display().to_string();
    assert!(error.to_string().contains(&path), "{error}");
    let kubeconfig = Some(std::path::PathBuf::from("missing.yaml"));
    let missing = KubeCluster::connect(&Options { kubeconfig, ..Options::default() }).await;
    assert!(missing.unwrap_err().to_string().contains("missing.yaml"));
}

#[tokio::test]
async fn wrong_credentials_and_addresses_are_told_apart() {
    let mut wrong = endpoint();
    wrong.token = "wrong".into();
    let cluster = KubeCluster::at(&wrong, &Options::default()).unwrap();
    let id = ObjectId::new(Gvk::new("v1", "Namespace"), "", "default");
    let read = cluster.get(&id, Source::Live, soon()).await;
    assert_eq!(read, Err(ReadError::Unauthorized("Unauthorized".into())));
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    wrong.url = format!("https://127.0.0.1:{port}");
    let cluster = KubeCluster::at(&wrong, &Options::default()).unwrap();
    let read = cluster.get(&id, Source::Live, soon()).await;
    assert!(matches!(read, Err(ReadError::Unavailable(_))), "{read:?}");
}

/// Passes bytes on to the real server.
#[derive(Clone, Default)]
struct Relay {
    accepted: Arc<AtomicUsize>,
    open: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Relay {
    /// Begins to listen, and returns the port.
    async fn start(&self) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let relay = self.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                relay.accepted.fetch_add(1, Ordering::Relaxed);
                let pass = async move {
                    let address = server().url.strip_prefix("https://").unwrap();
                    let mut far = TcpStream::connect(address).await.unwrap();
                    // The test cuts connections.
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                };
                relay.open.lock().unwrap().push(tokio::spawn(pass).abort_handle());
            }
        });
        port
    }

    fn cut(&self) {
        self.open.lock().unwrap().drain(..).for_each(|connection| connection.abort());
    }
}

#[tokio::test]
async fn requests_share_a_connection_and_survive_its_end() {
    let world = World::live("requests-share-a-connection").await;
    let relay = Relay::default();
    let url = format!("https://127.0.0.1:{}", relay.start().await);
    let relayed = Endpoint { url, ..endpoint() };
    let cluster = Arc::new(KubeCluster::at(&relayed, &Options::default()).unwrap());
    let (namespaces, maps) = (Gvk::new("v1", "Namespace"), Gvk::new("v1", "ConfigMap"));
    let id = ObjectId::new(namespaces.clone(), "", "default");
    cluster.get(&id, Source::Live, soon()).await.unwrap();
    let how = Subscribe::default();
    let mut followed = cluster.subscribe(&maps, &world.here(), &how, soon()).await.unwrap();
    let mut others = Vec::new();
    for kind in [namespaces, definitions(), Gvk::new("v1", "Secret")] {
        let query = Query::default();
        others.push(cluster.subscribe(&kind, &query, &how, soon()).await.unwrap());
    }
    let reads: Vec<_> = (0..100)
        .map(|_| {
            let (cluster, id) = (Arc::clone(&cluster), id.clone());
            tokio::spawn(async move { cluster.get(&id, Source::Live, soon()).await })
        })
        .collect();
    for read in reads {
        read.await.unwrap().unwrap();
    }
    assert_eq!(relay.accepted.load(Ordering::Relaxed), 2, "one for requests, one for watches");

    read_until(&mut followed, "synced").await;
    relay.cut();
    cluster.get(&id, Source::Live, soon()).await.unwrap();
    // Written by another client, so that the watch alone can bring it.
    world.cluster.create(world.map("a", "", "1"), &by(), soon()).await.unwrap();
    let said = read_until(&mut followed, "new a=1").await;
    assert_eq!(said, ["new a=1"], "nothing was missed");
}

#[tokio::test]
async fn access_and_schemas_are_the_servers() {
    let world = World::live("access-and-schemas").await;
    world.define_thing().await;
    let cluster = &world.cluster;
    let kind = world.thing_kind("v1");
    let access = cluster.access(&kind, &world.namespace, "create", soon()).await.unwrap();
    assert!(access.allowed);
    assert_eq!(access.resource, format!("things.{}/v1", world.group()));
    let maps = Gvk::new("v1", "ConfigMap");
    let access = cluster.access(&maps, "", "*", soon()).await.unwrap();
    assert_eq!(access.resource, "configmaps/v1");
    let schema = cluster.schema(&maps, soon()).await.unwrap().unwrap();
    assert!(schema.at(&["properties", "metadata", "properties", "labels"]).is_some(), "inlined");
    // The server publishes the schema of a new kind after the kind.
    let deadline = soon();
    let schema = loop {
        if let Some(schema) = cluster.schema(&kind, deadline).await.unwrap() {
            break schema;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let x = ["properties", "spec", "properties", "x", "type"];
    assert_eq!(schema.str_at(&x), "integer");
    assert_eq!(cluster.schema(&kind, soon()).await.unwrap(), Some(schema), "remembered");
    let odd = Gvk::new("odd.example.org/v1", "Odd");
    assert_eq!(cluster.schema(&odd, soon()).await, Ok(None));
}

#[tokio::test]
async fn events_are_written_about_an_object() {
    let world = World::live("events-are-written").await;
    let map = world.cluster.create(world.map("a", "", "1"), &by(), soon()).await.unwrap();
    let now = Arc::new(|| jiff::Timestamp::from_second(1_800_000_000).unwrap());
    let counters = biplane_kube::metrics::Counters::default();
    let sink = EventSink::new(Arc::clone(&world.cluster), counters, "crossplane", now);
    let event = |message: &str, count| Event {
        regarding: Regarding::from(&map),
        r#type: EventType::Warning,
        reason: "ComposeResources".into(),
        message: message.into(),
        component: "defined/compositeresourcedefinition.apiextensions.crossplane.io".into(),
        annotations: BTreeMap::from([("controller".into(), "composite/x".into())]),
        count,
    };
    sink.record(event("again", 1));
    sink.record(event("once", 1));
    sink.record(event("again", 3));
    let sink = Arc::new(sink);
    let recorder = Recorder::new(Arc::clone(&sink));
    recorder.record(event("news", 1));
    recorder.record(event("news", 1));
    assert!(sink.flush(soon()).await);
    let kind = Gvk::new("v1", "Event");
    let page = world.cluster.list(&kind, &world.here(), &List::live(), soon()).await.unwrap();
    let mut written: Vec<_> = page
        .objects
        .iter()
        .map(|event| {
            assert_eq!(event.str_at(&["involvedObject", "uid"]), map.uid());
            (event.str_at(&["message"]), event.at(&["count"]).unwrap().as_i64().unwrap())
        })
        .collect();
    written.sort_unstable();
    assert_eq!(written, [("again", 3), ("news", 1), ("once", 1)]);
}

#[tokio::test]
async fn a_kind_comes_and_goes_and_comes_back() {
    let world = World::live("a-kind-comes-and-goes").await;
    let cluster = &world.cluster;
    let how = Subscribe::default();
    let crds = cluster.subscribe(&definitions(), &Query::default(), &how, soon()).await;
    let _definitions = crds.unwrap();
    let kind = world.thing_kind("v1");
    let unknown = cluster.is_namespaced(&kind, soon()).await;
    assert!(matches!(unknown, Err(ReadError::UnknownKind(_))), "{unknown:?}");
    world.define_thing().await;
    assert_eq!(cluster.is_namespaced(&kind, soon()).await, Ok(true));
    let mut things = cluster.subscribe(&kind, &Query::default(), &how, soon()).await.unwrap();
    let thing = world.thing("a", &serde_json::json!({"x": 1}));
    cluster.create(thing, &by(), soon()).await.unwrap();
    read_until(&mut things, "new a").await;

    let name = format!("things.{}", world.group());
    let id = ObjectId::new(definitions(), "", &name);
    cluster.delete(&id, &Delete::default(), soon()).await.unwrap();
    let said = loop {
        let next = tokio::time::timeout_at(soon(), things.next()).await.unwrap();
        match words(next).as_str() {
            "ended" => break "ended",
            "gone a" | "a was a" => {}
            said => panic!("{said}"),
        }
    };
    assert_eq!(said, "ended");
    let deadline = soon();
    while cluster.is_namespaced(&kind, deadline).await.is_ok() {
        assert!(Instant::now() < deadline, "the kind is still served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let read = cluster.get(&world.thing_id("v1", "a"), Source::Cache, soon()).await;
    assert!(matches!(read, Err(ReadError::UnknownKind(_))), "{read:?}");
    world.define_thing().await;
    let things = cluster.list(&kind, &Query::default(), &List::cached(), soon()).await.unwrap();
    assert!(things.objects.is_empty());
}

//! The clusters of the suite, and what its cases need of them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use biplane_cluster::memory::ApiServer;
use biplane_cluster::watch::Change;
use biplane_cluster::{Cluster, List, Query, Subscription, Write};
use biplane_devenv::ApiServer as RealServer;
use biplane_kube::{Endpoint, KubeCluster, Options};
use biplane_model::{Gvk, Object, ObjectId, Value};
use serde_json::json;

use crate::soon;

/// The real API server. All tests of this process share it. It ends with the process.
pub(crate) fn server() -> &'static RealServer {
    static SERVER: OnceLock<RealServer> = OnceLock::new();
    SERVER.get_or_init(|| RealServer::start().unwrap())
}

pub(crate) fn endpoint() -> Endpoint {
    let server = server();
    Endpoint { url: server.url.clone(), ca_pem: server.ca_pem.clone(), token: server.token.clone() }
}

/// A cluster, and the name of the case. Every case has its own namespace and its own group of kinds.
pub(crate) struct World {
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) is_memory: bool,
    pub(crate) namespace: String,
    group: String,
}

impl World {
    pub(crate) async fn memory(case: &str) -> Self {
        Self::new(Arc::new(ApiServer::default()), true, case).await
    }

    pub(crate) async fn live(case: &str) -> Self {
        let cluster = KubeCluster::at(&endpoint(), &Options::default()).unwrap();
        Self::new(Arc::new(cluster), false, case).await
    }

    async fn new(cluster: Arc<dyn Cluster>, is_memory: bool, case: &str) -> Self {
        let namespace = case.replace('_', "-").chars().take(60).collect::<String>();
        let namespace = namespace.trim_end_matches('-').to_owned();
        let group = format!("{namespace}.example.org");
        let world = Self { cluster, is_memory, namespace, group };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": world.namespace}});
        let namespace = Object::from_value(namespace).unwrap();
        world.cluster.create(namespace, &by(), soon()).await.unwrap();
        world
    }

    /// Serves the kind Thing in two versions, v1 with the integers x and y, and v2 with x alone.
    pub(crate) async fn define_thing(&self) {
        let version = |name: &str, fields: &[&str]| {
            let fields: serde_json::Map<_, _> =
                fields.iter().map(|f| ((*f).to_owned(), json!({"type": "integer"}))).collect();
            json!({"name": name, "served": true, "storage": name == "v1",
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields},
                "status": {"type": "object", "properties": {"z": {"type": "integer"}}},
            }}}})
        };
        let group = &self.group;
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("things.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
                "versions": [version("v1", &["x", "y"]), version("v2", &["x"])],
            },
        });
        let definition = Object::from_value(definition).unwrap();
        self.cluster.create(definition, &by(), soon()).await.unwrap();
        // A server takes a while to serve a new kind, and does not report when it does.
        let deadline = soon();
        for version in ["v1", "v2"] {
            let kind = self.thing_kind(version);
            let serves = async || {
                self.cluster.list(&kind, &Query::default(), &List::live(), deadline).await.is_ok()
            };
            while !serves().await {
                assert!(tokio::time::Instant::now() < deadline, "{kind} is not served");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    pub(crate) fn thing_kind(&self, version: &str) -> Gvk {
        Gvk::new(&format!("{}/{version}", self.group), "Thing")
    }

    pub(crate) fn thing(&self, name: &str, spec: &Value) -> Object {
        let object = json!({"apiVersion": format!("{}/v1", self.group), "kind": "Thing",
            "metadata": {"namespace": self.namespace, "name": name}, "spec": spec});
        Object::from_value(object).unwrap()
    }

    pub(crate) fn thing_id(&self, version: &str, name: &str) -> ObjectId {
        ObjectId::new(self.thing_kind(version), &self.namespace, name)
    }

    /// A ConfigMap with a label `l`, unless it is empty.
    pub(crate) fn map(&self, name: &str, label: &str, data: &str) -> Object {
        let mut object = Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": self.namespace, "name": name}, "data": {"d": data}}))
        .unwrap();
        if !label.is_empty() {
            object.set_at(&["metadata", "labels", "l"], label).unwrap();
        }
        object
    }

    pub(crate) fn map_id(&self, name: &str) -> ObjectId {
        ObjectId::new(map_kind(), &self.namespace, name)
    }

    /// All objects in the namespace of the case.
    pub(crate) fn here(&self) -> Query {
        Query { namespace: self.namespace.clone(), ..Query::default() }
    }
}

pub(crate) fn map_kind() -> Gvk {
    Gvk::new("v1", "ConfigMap")
}

/// Writes as the manager of the tests.
pub(crate) fn by() -> Write {
    Write::by("test")
}

/// Reads a subscription until it has said `last`.
pub(crate) async fn read_until(subscription: &mut Subscription, last: &str) -> Vec<String> {
    let mut said = Vec::new();
    while said.last().is_none_or(|said| said != last) {
        let next = tokio::time::timeout_at(soon(), subscription.next()).await;
        said.push(words(next.unwrap_or_else(|_| panic!("{last} was not said after {said:?}"))));
    }
    said
}

pub(crate) fn words(change: Option<Change>) -> String {
    let label = |object: &Object| match object.at(&["data", "d"]).and_then(Value::as_str) {
        Some(data) => format!("{}={data}", object.name()),
        None => object.name().to_owned(),
    };
    match change {
        Some(Change::Changed { object, before: None }) => format!("new {}", label(&object)),
        Some(Change::Changed { object, before: Some(before) }) => {
            format!("{} was {}", label(&object), label(&before))
        }
        Some(Change::Gone { last }) => format!("gone {}", label(&last)),
        Some(Change::Synced) => "synced".into(),
        Some(Change::Missed) => "missed".into(),
        None => "ended".into(),
    }
}

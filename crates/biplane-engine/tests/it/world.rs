//! A test fixture: a composite resource, its Composition and a pipeline of scripted functions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::cluster::{Cluster, Event};
use biplane_cluster::memory::{Counted, Entry, Verb};
use biplane_cluster::{MemoryCluster, WritePolicy};
use biplane_engine::FixedClock;
use biplane_engine::composite::breaker::AlwaysClosed;
use biplane_engine::composite::publish::SecretPublisher;
use biplane_engine::composite::select::{
    CompositionSelector, DefaultRevisionSelector, Live, NewestRevision,
};
use biplane_engine::composite::tracker::DependencyTracker;
use biplane_engine::composite::upgrade::ManagerUpgrade;
use biplane_engine::composite::{Deps, Layout, RealFinalizer, ReconcileError, Requeue, reconcile};
use biplane_engine::pipeline::Ports;
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::sources::CountingIds;
use biplane_model::condition::{Condition, conditions};
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, Fetching, FunctionRunner, RunError};
use serde_json::json;

pub(crate) const XR_VERSION: &str = "example.org/v1";

/// Answers the n-th call with the n-th response, and later calls with the last one.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) responses: Mutex<Vec<Result<RunFunctionResponse, String>>>,
    pub(crate) requests: Mutex<Vec<RunFunctionRequest>>,
}

#[async_trait]
impl FunctionRunner for Script {
    async fn run(
        &self,
        _call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let mut requests = self.requests.lock().unwrap();
        let responses = self.responses.lock().unwrap();
        let answer = responses.get(requests.len()).or(responses.last()).cloned();
        requests.push(request);
        answer.unwrap_or_else(|| Ok(RunFunctionResponse::default())).map_err(RunError::Other)
    }
}

/// Everything that a reconcile uses.
pub(crate) struct World {
    pub(crate) cluster: Arc<MemoryCluster>,
    pub(crate) script: Arc<Script>,
    pub(crate) deps: Deps,
}

pub(crate) fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// Decodes a response from JSON.
pub(crate) fn response(value: Value) -> RunFunctionResponse {
    serde_json::from_value(value).unwrap()
}

/// A response that desires ConfigMaps of these names, all ready.
pub(crate) fn wants(names: &[&str]) -> RunFunctionResponse {
    let resources: BTreeMap<_, _> = names
        .iter()
        .map(|name| {
            let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}});
            (*name, json!({"resource": resource, "ready": "READY_TRUE"}))
        })
        .collect();
    response(json!({"desired": {"resources": resources}, "context": {}}))
}

impl World {
    /// A namespaced modern composite resource with a Composition of `steps` steps.
    pub(crate) fn new(steps: usize) -> Self {
        Self::with_layout(Layout::Modern, "ns", steps)
    }

    /// The same on a given cluster.
    pub(crate) fn on(cluster: Arc<MemoryCluster>, steps: usize) -> Self {
        Self::build(cluster, Layout::Modern, "ns", steps)
    }

    /// The same on a cluster that behaves like an API server.
    pub(crate) fn live(layout: Layout, namespace: &str, steps: usize) -> Self {
        let cluster = Arc::new(MemoryCluster::api_server("biplane", Counted::default()));
        Self::build(cluster, layout, namespace, steps)
    }

    pub(crate) fn with_layout(layout: Layout, namespace: &str, steps: usize) -> Self {
        let cluster = Arc::new(MemoryCluster::new(WritePolicy::Upstream));
        Self::build(cluster, layout, namespace, steps)
    }

    fn build(cluster: Arc<MemoryCluster>, layout: Layout, namespace: &str, steps: usize) -> Self {
        let script = Arc::new(Script::default());
        let gvk = Gvk::new(XR_VERSION, "Thing");
        let dynamic: Arc<dyn Cluster> = cluster.clone();
        let requirements = Arc::new(ClusterRequirements(dynamic.clone()));
        let live = Live {
            cluster: dynamic.clone(),
            layout,
            xrd: "things.example.org".into(),
            ids: Arc::new(CountingIds::default()),
        };
        let deps = Deps {
            ports: Ports {
                cluster: dynamic.clone(),
                runner: Arc::new(Fetching::new(script.clone(), requirements.clone())),
                requirements,
            },
            clock: Arc::new(FixedClock("2024-01-01T00:00:00Z".parse().unwrap())),
            ids: Arc::new(CountingIds::default()),
            gvk: gvk.clone(),
            layout,
            controller: "composite/things.example.org".into(),
            finalizer: Arc::new(RealFinalizer(dynamic.clone())),
            compositions: Arc::new(CompositionSelector(live.clone())),
            revision_selector: Arc::new(DefaultRevisionSelector(live.clone())),
            revisions: Arc::new(NewestRevision(live)),
            publisher: Arc::new(SecretPublisher {
                cluster: dynamic.clone(),
                layout,
                keys: std::collections::BTreeSet::new(),
            }),
            upgrade: Arc::new(ManagerUpgrade(dynamic)),
            tracker: Arc::new(DependencyTracker::default()),
            breaker: Arc::new(AlwaysClosed),
            watches: None,
            authorizer: None,
            notes_requests: true,
            realtime: false,
            poll_interval: Duration::from_mins(10),
            min_poll_interval: Duration::from_secs(1),
            timeout: Deps::TIMEOUT,
        };
        let world = Self { cluster, script, deps };
        let mut xr = object(json!({
            "apiVersion": XR_VERSION, "kind": "Thing",
            "metadata": {"name": "xr", "uid": "xr-uid", "generation": 1},
            "spec": {"size": 3},
        }));
        xr.set_meta("namespace", namespace);
        let pipeline: Vec<_> = (0..steps)
            .map(|i| json!({"step": format!("step-{i}"), "functionRef": {"name": "fn"}}))
            .collect();
        let spec = json!({
            "compositeTypeRef": {"apiVersion": XR_VERSION, "kind": "Thing"},
            "mode": "Pipeline", "pipeline": pipeline,
        });
        world.seed(xr);
        world.seed(definition(&json!({})));
        world.seed(composition("comp", "comp-uid", &spec));
        world.seed(revision("comp-1", "comp-uid", 1, &spec));
        world
    }

    pub(crate) fn seed(&self, object: Object) {
        self.cluster.seed([object]);
    }

    /// Changes the stored composite resource.
    pub(crate) fn change_xr(&self, change: impl FnOnce(&mut Object)) {
        let mut xr = self.xr();
        change(&mut xr);
        self.seed(xr);
    }

    pub(crate) fn id(&self) -> ObjectId {
        let namespace = self
            .cluster
            .objects()
            .iter()
            .find(|o| o.kind() == "Thing")
            .map(|o| o.namespace().to_owned());
        ObjectId::new(self.deps.gvk.clone(), &namespace.unwrap_or_default(), "xr")
    }

    pub(crate) fn xr(&self) -> Object {
        self.cluster.objects().into_iter().find(|o| o.kind() == "Thing").unwrap()
    }

    pub(crate) fn respond(&self, responses: impl IntoIterator<Item = RunFunctionResponse>) {
        *self.script.responses.lock().unwrap() = responses.into_iter().map(Ok).collect();
    }

    pub(crate) fn requests(&self) -> Vec<RunFunctionRequest> {
        self.script.requests.lock().unwrap().clone()
    }

    pub(crate) async fn reconcile(&self) -> Result<Requeue, ReconcileError> {
        let id = self.id();
        reconcile(&self.deps, &id.namespace, &id.name).await
    }

    /// `Type Reason: message` of each event.
    pub(crate) fn events(&self) -> Vec<String> {
        let show = |e: Event| format!("{} {}: {}", e.r#type.as_str(), e.reason, e.message);
        self.cluster
            .journal()
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Event(event) => Some(show(event)),
                Entry::Write { .. } => None,
            })
            .collect()
    }

    /// Verb and name of each write.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.cluster
            .journal()
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Write { verb, object } => {
                    Some(format!("{verb:?} {} {}", object.kind(), object.name()))
                }
                Entry::Event(_) => None,
            })
            .collect()
    }

    /// The applied objects besides the composite resource.
    pub(crate) fn applied(&self) -> Vec<Object> {
        self.cluster
            .journal()
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Write { verb: Verb::Apply, object } if object.kind() != "Thing" => {
                    Some(object)
                }
                _ => None,
            })
            .collect()
    }

    /// `Type=Status/Reason message` of each condition of the composite resource.
    pub(crate) fn conditions(&self) -> Vec<String> {
        let show = |c: Condition| {
            format!("{}={}/{} {}", c.r#type, c.status, c.reason, c.message).trim_end().to_owned()
        };
        conditions(&self.xr()).into_iter().map(show).collect()
    }
}

pub(crate) fn definition(spec: &Value) -> Object {
    object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "things.example.org"}, "spec": spec,
    }))
}

pub(crate) fn composition(name: &str, uid: &str, spec: &Value) -> Object {
    object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": name, "uid": uid}, "spec": spec,
    }))
}

pub(crate) fn revision(name: &str, owner: &str, number: i64, spec: &Value) -> Object {
    let mut revision = object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionRevision",
        "metadata": {
            "name": name,
            "labels": {"crossplane.io/composition-name": "comp"},
            "ownerReferences": [
                {"apiVersion": "x", "kind": "Composition", "name": "comp", "uid": owner, "controller": true},
            ],
        },
        "spec": spec,
        "status": {"conditions": [
            {"type": "ValidPipeline", "status": "True", "reason": "ValidPipeline", "lastTransitionTime": "2024-01-01T00:00:00Z"},
        ]},
    }));
    revision.set_at(&["spec", "revision"], number);
    revision
}

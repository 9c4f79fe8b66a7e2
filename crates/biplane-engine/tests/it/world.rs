//! A test fixture: a composite resource, its Composition and a pipeline of scripted functions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::memory::{ApiServer, Entry, Fault, RenderClient, Verb};
use biplane_cluster::{Cluster, Event, Events};
use biplane_engine::composite::dependencies::DependencyIndex;
use biplane_engine::composite::{Behaviour, Layout, Reconciler, Writing};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::sources::CountingIds;
use biplane_engine::{Context, FixedClock, ReconcileError, Requeue};
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

/// One of the in-memory clusters.
#[derive(Clone)]
pub(crate) enum Backend {
    Server(Arc<ApiServer>),
    Client(Arc<RenderClient>),
}

macro_rules! both {
    ($self:ident, $cluster:ident => $answer:expr) => {
        match $self {
            Backend::Server($cluster) => $answer,
            Backend::Client($cluster) => $answer,
        }
    };
}

impl Backend {
    pub(crate) fn cluster(&self) -> Arc<dyn Cluster> {
        both!(self, cluster => cluster.clone())
    }

    pub(crate) fn events(&self) -> Arc<dyn Events> {
        both!(self, cluster => cluster.clone())
    }

    pub(crate) fn seed(&self, objects: impl IntoIterator<Item = Object>) {
        both!(self, cluster => cluster.seed(objects));
    }

    pub(crate) fn objects(&self) -> Vec<Object> {
        both!(self, cluster => cluster.objects())
    }

    pub(crate) fn journal(&self) -> Vec<Entry> {
        both!(self, cluster => cluster.journal())
    }

    pub(crate) fn inject(&self, fault: Fault) {
        both!(self, cluster => cluster.inject(fault));
    }

    pub(crate) fn restart(&self) {
        both!(self, cluster => cluster.restart());
    }

    pub(crate) fn calls(&self) -> usize {
        both!(self, cluster => cluster.calls())
    }
}

/// Everything that a reconcile uses.
pub(crate) struct World {
    pub(crate) cluster: Backend,
    pub(crate) script: Arc<Script>,
    pub(crate) reconciler: Reconciler,
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

    /// The same on a cluster that behaves like an API server.
    pub(crate) fn on(cluster: Arc<ApiServer>, steps: usize) -> Self {
        Self::build(Backend::Server(cluster), Layout::Modern, "ns", steps)
    }

    /// Any layout on a cluster that behaves like an API server.
    pub(crate) fn live(layout: Layout, namespace: &str, steps: usize) -> Self {
        Self::build(Backend::Server(Arc::default()), layout, namespace, steps)
    }

    pub(crate) fn with_layout(layout: Layout, namespace: &str, steps: usize) -> Self {
        Self::build(Backend::Client(Arc::default()), layout, namespace, steps)
    }

    fn build(cluster: Backend, layout: Layout, namespace: &str, steps: usize) -> Self {
        let script = Arc::new(Script::default());
        let requirements = Arc::new(ClusterRequirements(cluster.cluster()));
        let context = Context {
            cluster: cluster.cluster(),
            events: cluster.events(),
            runner: Arc::new(Fetching::new(script.clone(), requirements.clone())),
            requirements,
            clock: Arc::new(FixedClock("2024-01-01T00:00:00Z".parse().unwrap())),
            ids: Arc::new(CountingIds::default()),
        };
        let behaviour = Behaviour {
            writing: Writing::Stepwise,
            realtime: false,
            poll_interval: Duration::from_mins(10),
            ..Behaviour::live(Gvk::new(XR_VERSION, "Thing"), layout, "things.example.org")
        };
        let mut reconciler = Reconciler::new(context, behaviour);
        reconciler.dependencies = Arc::new(DependencyIndex::default());
        let world = Self { cluster, script, reconciler };
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
        ObjectId::new(self.reconciler.behaviour.gvk.clone(), &namespace.unwrap_or_default(), "xr")
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
        self.reconciler.reconcile(&id.namespace, &id.name).await
    }

    /// `Type Reason: message` of each event.
    pub(crate) fn events(&self) -> Vec<String> {
        let show = |e: Box<Event>| format!("{} {}: {}", e.r#type.as_str(), e.reason, e.message);
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
    revision.set_at_or_ignore(&["spec", "revision"], number);
    revision
}

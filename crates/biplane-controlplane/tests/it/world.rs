//! A test fixture: an API server in memory with a kind of composite resources, and a control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::memory::{ApiServer, Entry, Verb};
use biplane_cluster::{Cluster, Delete, Part, Patch, ReadError, Skipping, Source, Write};
use biplane_controlplane::composite::Settings;
use biplane_controlplane::functions;
use biplane_controlplane::{CompositeSpec, ControlPlane, Options};
use biplane_engine::composite::{Behaviour, Layout};
use biplane_engine::sources::CountingIds;
use biplane_function::metrics::Metrics;
use biplane_functions::registry;
use biplane_model::condition::conditions;
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, FunctionRunner, InProcess, RunError};
use serde_json::json;
use tokio::time::Instant;

pub(crate) const API_VERSION: &str = "example.org/v1";

pub(crate) fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// A deadline that no test reaches.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_hours(100)
}

/// Runs functions and counts the runs of pipelines.
pub(crate) struct Counting {
    inner: Arc<dyn FunctionRunner>,
    pub(crate) runs: AtomicUsize,
}

#[async_trait]
impl FunctionRunner for Counting {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        if call.index == 0 && call.iteration == 0 {
            self.runs.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.run(call, request).await
    }
}

/// A function as a closure.
pub(crate) struct Answering<F>(pub(crate) F);

#[async_trait]
impl<F> FunctionRunner for Answering<F>
where
    F: Fn(RunFunctionRequest) -> Result<RunFunctionResponse, RunError> + Send + Sync,
{
    async fn run(
        &self,
        _: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        (self.0)(request)
    }
}

/// A response from JSON.
pub(crate) fn response(value: Value) -> RunFunctionResponse {
    serde_json::from_value(value).unwrap()
}

pub(crate) struct World {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) plane: ControlPlane,
    pub(crate) runner: Arc<Counting>,
    pub(crate) metrics: Metrics,
    journal: usize,
}

/// How a world differs from the usual one.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) runner: Option<Arc<dyn FunctionRunner>>,
    /// Runs functions as a control plane does, if it is set.
    pub(crate) functions: Option<functions::Options>,
    pub(crate) sync_interval: Option<Duration>,
}

impl World {
    /// A server with everything but composite resources, and a control plane.
    pub(crate) async fn new(setup: Setup) -> Self {
        let server = Arc::new(ApiServer::default());
        for (kind, plural) in [("Thing", "things"), ("Part", "parts")] {
            server.register(&definition(kind, plural)).unwrap();
        }
        let spec = pipeline();
        server.seed([xrd(), composition("comp", "comp-uid", &spec), revision(1, &spec)]);
        Self::on(server, setup).await
    }

    /// A control plane on a server, as after a restart.
    pub(crate) async fn on(server: Arc<ApiServer>, setup: Setup) -> Self {
        let inner = setup.runner.unwrap_or_else(|| Arc::new(InProcess::new(registry())));
        let runner = Arc::new(Counting { inner, runs: AtomicUsize::new(0) });
        let metrics = Metrics::default();
        let options = Options {
            composites: setup.settings,
            skipping: Skipping::Verify,
            sync_interval: setup.sync_interval,
            runner: setup.functions.is_none().then(|| runner.clone() as _),
            functions: setup.functions.unwrap_or_default(),
            metrics: metrics.clone(),
            ids: Arc::new(CountingIds::default()),
            ..Options::default()
        };
        let plane = ControlPlane::new(server.clone(), server.clone(), options).unwrap();
        let mut world = Self { server, plane, runner, metrics, journal: 0 };
        world.ensure("1").await;
        world.journal = world.server.journal_len();
        world
    }

    /// Runs the controller of things.
    pub(crate) async fn ensure(&self, specification: &str) {
        let gvk = Gvk::new(API_VERSION, "Thing");
        let behaviour = Behaviour::live(gvk, Layout::Modern, "things.example.org");
        let spec = CompositeSpec { behaviour, specification: specification.to_owned() };
        self.plane.composites().ensure(&spec).await.unwrap();
    }

    /// Lets time pass.
    pub(crate) async fn run(&mut self, time: Duration) {
        self.plane.run(tokio::time::sleep(time)).await;
        assert_eq!(self.plane.quiet().wrong(), 0, "an apply was skipped wrongly");
    }

    pub(crate) async fn run_seconds(&mut self, seconds: u64) {
        self.run(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn runs(&self) -> usize {
        self.runner.runs.swap(0, Ordering::SeqCst)
    }

    /// What the control plane and others wrote since the last call: verb, kind and name.
    pub(crate) fn writes(&mut self) -> Vec<String> {
        let journal = self.server.journal();
        let since = &journal[self.journal..];
        let writes = since.iter().filter_map(|entry| match entry {
            Entry::Write { verb, object } => {
                let name = match verb {
                    Verb::Apply | Verb::Delete | Verb::Create if object.kind() != "Thing" => {
                        String::new()
                    }
                    _ => format!(" {}", object.name()),
                };
                Some(format!("{verb:?} {}{name}", object.kind()))
            }
            Entry::Event(_) => None,
        });
        let writes = writes.collect();
        self.journal = journal.len();
        writes
    }

    pub(crate) fn events(&self) -> Vec<String> {
        let journal = self.server.journal();
        let events = journal.iter().filter_map(|entry| match entry {
            Entry::Event(event) => {
                Some(format!("{} {}: {}", event.r#type.as_str(), event.reason, event.message))
            }
            Entry::Write { .. } => None,
        });
        events.collect()
    }

    pub(crate) async fn create(&self, object: Object) -> Object {
        self.server.create(object, &Write::by("user"), soon()).await.unwrap()
    }

    pub(crate) async fn create_thing(&self, namespace: &str, name: &str) -> ObjectId {
        self.create(thing(namespace, name)).await.id()
    }

    pub(crate) async fn get(&self, id: &ObjectId) -> Result<Object, ReadError> {
        self.server.get(id, Source::Live, soon()).await
    }

    pub(crate) async fn patch(&self, id: &ObjectId, part: Part, patch: Value) {
        let how = Write::by("somebody");
        self.server.patch(id, part, &Patch::Merge(patch), &how, soon()).await.unwrap();
    }

    pub(crate) async fn delete(&self, id: &ObjectId) {
        self.server.delete(id, &Delete::default(), soon()).await.unwrap();
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Object> {
        self.server.objects().into_iter().filter(|o| o.kind() == kind).collect()
    }

    /// `Type=Status` of each condition, with the message if there is one.
    pub(crate) async fn conditions(&self, id: &ObjectId) -> Vec<String> {
        let object = self.get(id).await.unwrap();
        let show = |c: biplane_model::condition::Condition| {
            format!("{}={} {}", c.r#type, c.status, c.message).trim_end().to_owned()
        };
        conditions(&object).into_iter().map(show).collect()
    }

    pub(crate) async fn is_ready(&self, id: &ObjectId) -> bool {
        self.conditions(id).await.iter().any(|c| c == "Ready=True")
    }

    /// The value of a metric, by its name and labels.
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let text = self.metrics.text();
        let found = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '));
        found.map_or(0, |n| n.parse().unwrap())
    }
}

pub(crate) fn thing(namespace: &str, name: &str) -> Object {
    object(json!({
        "apiVersion": API_VERSION, "kind": "Thing",
        "metadata": {"name": name, "namespace": namespace}, "spec": {"size": 3},
    }))
}

/// A pipeline of patch-and-transform with five ConfigMaps, and auto-ready.
pub(crate) fn pipeline() -> Value {
    let resources: Vec<_> = (0..5)
        .map(|i| {
            json!({
                "name": format!("map-{i}"),
                "base": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"i": i.to_string()}},
                "patches": [{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size",
                    "toFieldPath": "data.size", "transforms": [{"type": "convert", "convert": {"toType": "string"}}]}],
            })
        })
        .collect();
    json!({
        "compositeTypeRef": {"apiVersion": API_VERSION, "kind": "Thing"}, "mode": "Pipeline",
        "pipeline": [
            {"step": "compose", "functionRef": {"name": "function-patch-and-transform"}, "input": {
                "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources}},
            {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
        ],
    })
}

pub(crate) fn definition(kind: &str, plural: &str) -> Object {
    definition_in("example.org", "Namespaced", kind, plural)
}

/// The definition of a kind with any spec and status.
pub(crate) fn definition_in(group: &str, scope: &str, kind: &str, plural: &str) -> Object {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"conditions": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                        "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": true,
                                  "properties": {"type": {"type": "string"}}},
                    }},
                }}}},
            }],
        },
    }))
}

fn xrd() -> Object {
    object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "things.example.org"}, "spec": {},
    }))
}

pub(crate) fn composition(name: &str, uid: &str, spec: &Value) -> Object {
    object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": name, "uid": uid}, "spec": spec,
    }))
}

pub(crate) fn revision(number: i64, spec: &Value) -> Object {
    let mut revision = object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionRevision",
        "metadata": {
            "name": format!("comp-{number}"),
            "labels": {"crossplane.io/composition-name": "comp"},
            "ownerReferences": [{"apiVersion": "x", "kind": "Composition", "name": "comp",
                "uid": "comp-uid", "controller": true}],
        },
        "spec": spec,
        "status": {"conditions": [
            {"type": "ValidPipeline", "status": "True", "reason": "ValidPipeline", "lastTransitionTime": "2024-01-01T00:00:00Z"},
        ]},
    }));
    revision.set_at_or_ignore(&["spec", "revision"], number);
    revision
}

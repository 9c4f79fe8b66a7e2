//! A test fixture: an API server that knows definitions (XRDs), the two reconcilers of definitions,
//! and a control plane that only remembers which controllers run.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::memory::{ApiServer, Entry};
use biplane_cluster::{Cluster as _, Delete, Part, Patch, Recorder, Source, Write};
use biplane_engine::controllers::{Controller, ControllerError, Controllers};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::sources::CountingIds;
use biplane_engine::{Context, FixedClock, ReconcileError, Requeue, definition, offered};
use biplane_model::condition::conditions;
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_schema::{own_kinds, xcrd};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{Script, object};

/// A deadline that no test reaches.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_hours(1)
}

/// Remembers which controllers run.
#[derive(Debug, Default)]
pub(crate) struct Running {
    controllers: Mutex<BTreeMap<String, Controller>>,
    /// `start` and `stop` with the name of the controller, in order.
    pub(crate) log: Mutex<Vec<String>>,
    /// What is answered instead.
    pub(crate) refuses: Mutex<Option<ControllerError>>,
}

impl Running {
    pub(crate) fn names(&self) -> Vec<String> {
        self.controllers.lock().unwrap().keys().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Controller {
        self.controllers.lock().unwrap().get(name).cloned().unwrap()
    }

    fn note(&self, what: &str, name: &str) {
        self.log.lock().unwrap().push(format!("{what} {name}"));
    }
}

#[async_trait]
impl Controllers for Running {
    async fn ensure(&self, wanted: Controller) -> Result<(), ControllerError> {
        if let Some(error) = self.refuses.lock().unwrap().clone() {
            return Err(error);
        }
        let name = wanted.name();
        let mut all = self.controllers.lock().unwrap();
        match all.get(&name) {
            Some(running) if running.does_the_same_as(&wanted) => return Ok(()),
            Some(_) => self.note("stop", &name),
            None => {}
        }
        self.note("start", &name);
        all.insert(name, wanted);
        Ok(())
    }

    async fn stop(&self, name: &str) -> Result<(), ControllerError> {
        if let Some(error) = self.refuses.lock().unwrap().clone() {
            return Err(error);
        }
        if self.controllers.lock().unwrap().remove(name).is_some() {
            self.note("stop", name);
        }
        Ok(())
    }
}

pub(crate) struct Plane {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) running: Arc<Running>,
    pub(crate) defined: definition::Reconciler,
    pub(crate) offered: offered::Reconciler,
}

/// An API server that knows definitions.
pub(crate) fn server() -> Arc<ApiServer> {
    static DEFINITIONS: LazyLock<Object> = LazyLock::new(|| {
        let mut all = own_kinds::definitions().into_iter();
        all.find(|crd| crd.name().starts_with("compositeresourcedefinitions")).unwrap()
    });
    let server = ApiServer::default();
    server.register(&DEFINITIONS).unwrap();
    Arc::new(server)
}

impl Plane {
    /// A control plane that has just been started.
    pub(crate) fn start(server: &Arc<ApiServer>) -> Self {
        let context = Context {
            cluster: server.clone(),
            events: Arc::new(Recorder::new(server.clone())),
            runner: Arc::new(Script::default()),
            requirements: Arc::new(ClusterRequirements(server.clone())),
            clock: Arc::new(FixedClock("2024-01-01T00:00:00Z".parse().unwrap())),
            ids: Arc::new(CountingIds::default()),
        };
        let running = Arc::new(Running::default());
        Self {
            server: server.clone(),
            defined: definition::Reconciler::new(context.clone(), running.clone()),
            offered: offered::Reconciler::new(context, running.clone()),
            running,
        }
    }

    pub(crate) fn new() -> Self {
        Self::start(&server())
    }

    pub(crate) async fn create(&self, object: Object) -> Object {
        self.server.create(object, &Write::by("user"), soon()).await.unwrap()
    }

    /// Patches an object as a user.
    #[allow(clippy::needless_pass_by_value)] // literals read better
    pub(crate) async fn patch(&self, id: &ObjectId, patch: Value) {
        let patch = Patch::Merge(patch);
        self.server.patch(id, Part::Main, &patch, &Write::by("user"), soon()).await.unwrap();
    }

    pub(crate) async fn delete(&self, id: &ObjectId) {
        self.server.delete(id, &Delete::default(), soon()).await.unwrap();
    }

    pub(crate) async fn get(&self, id: &ObjectId) -> Option<Object> {
        self.server.get(id, Source::Live, soon()).await.ok()
    }

    /// Reconciles a definition with both reconcilers, once.
    pub(crate) async fn once(&self, name: &str) -> [Result<Requeue, ReconcileError>; 2] {
        [self.defined.reconcile("", name).await, self.offered.reconcile("", name).await]
    }

    /// Reconciles a definition until both reconcilers are content and nothing changes.
    pub(crate) async fn settle(&self, name: &str) {
        for _ in 0..10 {
            let before = self.server.objects();
            let answers = self.once(name).await;
            let content = answers.iter().all(|answer| *answer.as_ref().unwrap() == Requeue::No);
            if content && self.server.objects() == before {
                return;
            }
        }
        panic!("still writing after ten reconciles: {:?}", self.server.journal());
    }

    /// `Type Reason: message` of each event.
    pub(crate) fn events(&self) -> Vec<String> {
        let journal = self.server.journal().into_iter();
        journal
            .filter_map(|entry| match entry {
                Entry::Event(e) => {
                    Some(format!("{} {}: {}", e.r#type.as_str(), e.reason, e.message))
                }
                Entry::Write { .. } => None,
            })
            .collect()
    }

    /// Verb, kind and name of each write.
    pub(crate) fn writes(&self) -> Vec<String> {
        let journal = self.server.journal().into_iter();
        journal
            .filter_map(|entry| match entry {
                Entry::Write { verb, object } => {
                    Some(format!("{verb:?} {} {}", object.kind(), object.name()))
                }
                Entry::Event(_) => None,
            })
            .collect()
    }
}

/// `Type=Status/Reason` of each condition.
pub(crate) fn shown_conditions(object: &Object) -> Vec<String> {
    let show = |c: biplane_model::condition::Condition| {
        format!("{}={}/{} {}", c.r#type, c.status, c.reason, c.observed_generation)
    };
    conditions(object).into_iter().map(show).collect()
}

pub(crate) fn xrd_id(name: &str) -> ObjectId {
    ObjectId::new(Gvk::new(xcrd::API_VERSION, xcrd::KIND), "", name)
}

pub(crate) fn crd_id(name: &str) -> ObjectId {
    ObjectId::new(Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "", name)
}

/// The name of the definition below.
pub(crate) const XRD: &str = "xboxes.example.org";
/// The name of the CRD of its claims.
pub(crate) const CLAIMS: &str = "boxes.example.org";

/// A definition of this scope. A legacy one offers claims.
pub(crate) fn xrd(scope: &str) -> Object {
    let mut xrd = object(json!({
        "apiVersion": xcrd::API_VERSION, "kind": xcrd::KIND,
        "metadata": {"name": XRD},
        "spec": {
            "group": "example.org", "scope": scope,
            "names": {"kind": "XBox", "plural": "xboxes"},
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }}},
            }],
        },
    }));
    if scope == "LegacyCluster" {
        let names = json!({"kind": "Box", "plural": "boxes"});
        xrd.set_at_or_ignore(&["spec", "claimNames"], names);
    }
    xrd
}

/// An object of a kind of that definition.
pub(crate) fn instance(kind: &str, namespace: &str, name: &str, finalizers: &[&str]) -> Object {
    let mut instance = object(json!({
        "apiVersion": "example.org/v1", "kind": kind,
        "metadata": {"name": name, "finalizers": finalizers},
        "spec": {"size": 1},
    }));
    instance.set_meta("namespace", namespace);
    instance
}

//! A test fixture: the reconcilers of Compositions, revisions, composite resources and claims on one
//! in-memory API server, with the definitions of a recorded scenario.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use biplane_cluster::memory::{ApiServer, Counted, Entry};
use biplane_cluster::{Cluster, Quiet, Recorder, Skipping, Write};
use biplane_engine::claim::{self, Syncing};
use biplane_engine::composite::{self, Layout};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::sources::{Clock, CountingIds};
use biplane_engine::{Context, ReconcileError, Requeue, pipeline_check, revision};
use biplane_functions::registry;
use biplane_model::condition::{Condition, conditions};
use biplane_model::{Gvk, Object, Value};
use biplane_runner::InProcess;
use biplane_schema::structural::Schema;
use biplane_testkit::Recording;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

/// A clock that a test moves.
pub(crate) struct TestClock(Mutex<Timestamp>);

impl TestClock {
    pub(crate) fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(by).unwrap();
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A deadline that no test reaches.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_hours(1)
}

pub(crate) fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// The objects in a file of a recording.
pub(crate) fn objects(recording: &Recording, file: &str) -> Vec<Object> {
    let Some(Value::Array(all)) = recording.json(file) else { return Vec::new() };
    all.into_iter().map(object).collect()
}

/// A context on a server, as a new process has it.
pub(crate) fn context(server: &Arc<ApiServer>, clock: &Arc<TestClock>) -> (Context, Arc<Quiet>) {
    let quiet = Arc::new(Quiet::new(server.clone(), Skipping::Verify));
    let context = Context {
        cluster: quiet.clone(),
        events: Arc::new(Recorder::new(server.clone())),
        runner: Arc::new(InProcess::new(registry())),
        requirements: Arc::new(ClusterRequirements(quiet.clone())),
        clock: clock.clone(),
        ids: Arc::new(CountingIds::default()),
    };
    (context, quiet)
}

pub(crate) fn clock() -> Arc<TestClock> {
    Arc::new(TestClock(Mutex::new("2024-01-01T00:00:00Z".parse().unwrap())))
}

pub(crate) struct Plane {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) quiet: Arc<Quiet>,
    pub(crate) claims: claim::Reconciler,
    pub(crate) xrs: composite::Reconciler,
    pub(crate) compositions: revision::Reconciler,
    pub(crate) checks: pipeline_check::Reconciler,
    pub(crate) namespace: String,
}

impl Plane {
    /// The control plane of a recorded scenario before its claim exists.
    pub(crate) async fn of(recording: &Recording) -> Self {
        let server = Arc::new(ApiServer::new(Counted::default()));
        let stage = "1-ready";
        let mut schema = None;
        for crd in objects(recording, &format!("{stage}/crd.json")) {
            server.register(&crd).unwrap();
            if crd.str_at(&["spec", "names", "kind"]) == "XWidget" {
                let versions = crd.at(&["spec", "versions"]).unwrap();
                let declared = Schema::parse(&versions[0]["schema"]["openAPIV3Schema"]);
                schema = Some(Arc::new(declared.unwrap()));
            }
        }
        server.seed(objects(recording, &format!("{stage}/xrd.json")));
        server.seed(objects(recording, &format!("{stage}/composition.json")));
        let group = format!("{}.golden.example.org", recording.name);
        let clock = clock();
        let mut plane = Self::start(server, clock, &group, &format!("g-{}", recording.name));
        plane.xrs.behaviour.schema = schema;
        plane.revise().await;
        plane
    }

    /// The control plane of the scenario with connection details.
    pub(crate) async fn legacy() -> Self {
        Self::of(&Recording::load("live-claims", "legacy-claim")).await
    }

    fn start(server: Arc<ApiServer>, clock: Arc<TestClock>, group: &str, namespace: &str) -> Self {
        let (context, quiet) = context(&server, &clock);
        let version = format!("{group}/v1");
        let (xr, claim) = (Gvk::new(&version, "XWidget"), Gvk::new(&version, "Widget"));
        let xrd = format!("xwidgets.{group}");
        let behaviour = composite::Behaviour {
            publish: Some(BTreeSet::from(["user".to_owned(), "token".to_owned()])),
            ..composite::Behaviour::live(xr.clone(), Layout::Legacy, &xrd)
        };
        Self {
            server,
            clock,
            quiet,
            claims: claim::Reconciler {
                context: context.clone(),
                behaviour: claim::Behaviour::live(claim, xr, &xrd),
            },
            xrs: composite::Reconciler::new(context.clone(), behaviour),
            compositions: revision::Reconciler::new(context.clone()),
            checks: pipeline_check::Reconciler::new(context),
            namespace: namespace.to_owned(),
        }
    }

    /// Starts the control plane anew: what it remembered is gone.
    pub(crate) fn restart(&mut self) {
        self.server.restart();
        let syncing = self.claims.behaviour.syncing;
        let schema = self.xrs.behaviour.schema.clone();
        let group = self.claims.behaviour.claim.group.clone();
        let (server, clock) = (self.server.clone(), self.clock.clone());
        *self = Self::start(server, clock, &group, &self.namespace.clone());
        self.claims.behaviour.syncing = syncing;
        self.xrs.behaviour.schema = schema;
    }

    pub(crate) fn client_side(mut self) -> Self {
        self.claims.behaviour.syncing = Syncing::ClientSide;
        self
    }

    /// Creates the claim `order` as a user does.
    pub(crate) async fn claim_it(&self, spec: Value) -> Object {
        self.create_claim("order", json!({}), spec).await
    }

    pub(crate) async fn create_claim(&self, name: &str, metadata: Value, spec: Value) -> Object {
        let gvk = &self.claims.behaviour.claim;
        let mut claim = object(json!({
            "apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": metadata, "spec": spec,
        }));
        claim.set_meta("name", name);
        claim.set_meta("namespace", &self.namespace);
        let how = Write::by("kubectl-client-side-apply");
        self.server.create(claim, &how, soon()).await.unwrap()
    }

    /// Changes an object as a user does.
    pub(crate) async fn patch(&self, object: &Object, changes: Value) -> Object {
        let (how, patch) = (Write::by("kubectl-patch"), biplane_cluster::Patch::Merge(changes));
        let (id, part) = (object.id(), biplane_cluster::Part::Main);
        self.server.patch(&id, part, &patch, &how, soon()).await.unwrap()
    }

    /// Changes the Composition so that composite resources never become ready.
    pub(crate) async fn never_ready(&self) {
        let composition = self.only("Composition");
        let mut pipeline = composition.at(&["spec", "pipeline"]).cloned().unwrap();
        pipeline[0]["input"]["response"]["desired"]["resources"]["settings"]["ready"] =
            json!("READY_FALSE");
        self.patch(&composition, json!({"spec": {"pipeline": pipeline}})).await;
        self.revise().await;
    }

    /// Makes revisions and checks them.
    async fn revise(&self) {
        for composition in self.all("Composition") {
            self.compositions.reconcile("", composition.name()).await.unwrap();
        }
        for revision in self.all("CompositionRevision") {
            self.checks.reconcile("", revision.name()).await.unwrap();
        }
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<Object> {
        self.server.objects().into_iter().filter(|object| object.kind() == kind).collect()
    }

    /// The only object of a kind.
    pub(crate) fn only(&self, kind: &str) -> Object {
        let mut all = self.all(kind);
        assert_eq!(all.len(), 1, "{kind}");
        all.remove(0)
    }

    pub(crate) fn claim(&self) -> Object {
        self.only("Widget")
    }

    pub(crate) fn xr(&self) -> Object {
        self.only("XWidget")
    }

    pub(crate) async fn reconcile_claim(&self) -> Result<Requeue, ReconcileError> {
        self.claims.reconcile(&self.namespace, "order").await
    }

    /// Reconciles composite resources until they are done.
    pub(crate) async fn reconcile_xrs(&self) {
        for xr in self.all("XWidget") {
            for _ in 0..5 {
                if self.xrs.reconcile("", xr.name()).await.unwrap() != Requeue::Again {
                    break;
                }
            }
        }
    }

    /// Reconciles claim and composite resource until the stored objects no longer change.
    pub(crate) async fn settle(&self) {
        for _ in 0..8 {
            let before = self.server.objects();
            let _ = self.reconcile_claim().await.unwrap();
            self.reconcile_xrs().await;
            if self.server.objects() == before {
                return;
            }
        }
        panic!("still writing after eight rounds");
    }

    /// The writes and events since `before`, which is updated.
    pub(crate) fn since(&self, before: &mut usize) -> (Vec<String>, Vec<String>) {
        let journal = self.server.journal();
        let (mut writes, mut events) = (Vec::new(), Vec::new());
        for entry in &journal[*before..] {
            match entry {
                Entry::Write { verb, object } => {
                    writes.push(format!("{verb:?} {}", object.kind()));
                }
                Entry::Event(event) => {
                    let r#type = event.r#type.as_str();
                    events.push(format!("{} {}: {}", r#type, event.reason, event.message));
                }
            }
        }
        *before = journal.len();
        (writes, events)
    }

    /// All events about claims.
    pub(crate) fn claim_events(&self) -> Vec<biplane_cluster::Event> {
        let of_claims = |entry| match entry {
            Entry::Event(event) if event.regarding.id.gvk.kind == "Widget" => Some(*event),
            _ => None,
        };
        self.server.journal().into_iter().filter_map(of_claims).collect()
    }

    /// Reconciles the claim again and checks that nothing was written or told.
    pub(crate) async fn is_quiet(&self, what: &str) {
        let mut before = self.server.journal_len();
        for _ in 0..3 {
            let _ = self.reconcile_claim().await;
        }
        let (writes, events) = self.since(&mut before);
        assert!(writes.is_empty(), "{what}: {writes:?}");
        assert!(events.is_empty(), "{what}: {events:?}");
        assert_eq!(self.quiet.wrong(), 0, "{what}: an apply was skipped wrongly");
    }
}

/// `Type=Status/Reason message` of each condition.
pub(crate) fn shown(object: &Object) -> Vec<String> {
    let show = |c: Condition| {
        format!("{}={}/{} {}", c.r#type, c.status, c.reason, c.message).trim_end().to_owned()
    };
    conditions(object).into_iter().map(show).collect()
}

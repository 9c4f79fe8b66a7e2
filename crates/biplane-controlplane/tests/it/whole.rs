//! Tests of a whole control plane: users make definitions, Compositions, composite resources and
//! claims, and everything else follows.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::Skipping;
use biplane_cluster::memory::{ApiServer, Entry};
use biplane_cluster::{Cluster, Delete, Part, Patch, Source, Write};
use biplane_controlplane::dispatcher::{Limit, Stability};
use biplane_controlplane::{ControlPlane, Options, definitions};
use biplane_engine::Clock;
use biplane_engine::sources::CountingIds;
use biplane_functions::registry;
use biplane_model::condition::conditions;
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_runner::InProcess;
use biplane_schema::own_kinds;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use crate::world::{object, pipeline, soon};

/// A clock that follows the runtime's, which may be paused.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        let begin: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        begin.checked_add(self.0.elapsed()).unwrap()
    }
}

struct Whole {
    server: Arc<ApiServer>,
    plane: ControlPlane,
}

impl Whole {
    fn new() -> Self {
        let server = Arc::new(ApiServer::default());
        for definition in own_kinds::definitions() {
            server.register(&definition).unwrap();
        }
        Self::on(server)
    }

    fn on(server: Arc<ApiServer>) -> Self {
        let options = Options {
            skipping: Skipping::Verify,
            runner: Some(Arc::new(InProcess::new(registry()))),
            clock: Arc::new(RuntimeClock(Instant::now())),
            ids: Arc::new(CountingIds::default()),
            ..Options::default()
        };
        let mut plane = ControlPlane::new(server.clone(), server.clone(), options).unwrap();
        plane.add_definitions(&definitions::Options::default());
        Self { server, plane }
    }

    async fn create(&self, value: Value) -> ObjectId {
        let created = self.server.create(object(value), &Write::by("user"), soon()).await;
        created.unwrap().id()
    }

    async fn get(&self, id: &ObjectId) -> Option<Object> {
        self.server.get(id, Source::Live, soon()).await.ok()
    }

    async fn patch(&self, id: &ObjectId, patch: Value) {
        let how = Write::by("user");
        self.server.patch(id, Part::Main, &Patch::Merge(patch), &how, soon()).await.unwrap();
    }

    async fn run(&mut self, seconds: u64) {
        self.plane.run(tokio::time::sleep(Duration::from_secs(seconds))).await;
        assert_eq!(self.plane.quiet().wrong(), 0, "an apply was skipped wrongly");
    }

    async fn is(&self, id: &ObjectId, condition: &str) -> bool {
        let object = self.get(id).await.unwrap();
        conditions(&object).iter().any(|c| format!("{}={}", c.r#type, c.status) == condition)
    }

    /// Writes and events since the journal had so many entries.
    fn since(&self, before: usize) -> Vec<String> {
        let journal = self.server.journal();
        let show = |entry: &Entry| match entry {
            Entry::Write { verb, object } => {
                format!("{verb:?} {} {}", object.kind(), object.name())
            }
            Entry::Event(event) => format!("{}: {}", event.reason, event.message),
        };
        journal[before..].iter().map(show).collect()
    }

    fn count(&self, kind: &str) -> usize {
        self.server.objects().iter().filter(|object| object.kind() == kind).count()
    }
}

fn xrd(scope: &str, kind: &str, claim: Option<&str>) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let mut xrd = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {
            "scope": scope, "group": "example.org", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
            }}}],
        },
    });
    if let Some(claim) = claim {
        let plural = format!("{}s", claim.to_lowercase());
        xrd["spec"]["claimNames"] = json!({"kind": claim, "plural": plural});
    }
    xrd
}

fn composition(kind: &str, namespace: Option<&str>) -> Value {
    let mut spec = pipeline();
    spec["compositeTypeRef"]["kind"] = json!(kind);
    for resource in spec["pipeline"][0]["input"]["resources"].as_array_mut().unwrap() {
        if let Some(namespace) = namespace {
            resource["base"]["metadata"] = json!({"namespace": namespace});
        }
    }
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "comp"}, "spec": spec,
    })
}

fn composite(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "ns"}, "spec": {"size": 3}})
}

#[tokio::test(start_paused = true)]
async fn a_definition_a_composition_and_a_composite_resource_are_all_it_takes() {
    let mut whole = Whole::new();
    let xrd = whole.create(xrd("Namespaced", "Thing", None)).await;
    let composition = whole.create(composition("Thing", None)).await;
    whole.run(10).await;
    assert!(whole.is(&xrd, "Established=True").await);
    let id = whole.create(composite("Thing", "xr")).await;
    let before = whole.server.journal_len();
    whole.run(10).await;
    assert!(whole.is(&id, "Ready=True").await, "{:?}", whole.get(&id).await);
    let written = whole.server.journal()[before..]
        .iter()
        .filter(|entry| matches!(entry, Entry::Write { .. }))
        .count();
    assert_eq!(written, 8);

    // A changed Composition is a new revision, which is followed.
    let mut spec = pipeline();
    spec["pipeline"][0]["input"]["resources"].as_array_mut().unwrap().truncate(2);
    whole.patch(&composition, json!({"spec": {"pipeline": spec["pipeline"]}})).await;
    whole.run(10).await;
    assert_eq!((whole.count("CompositionRevision"), whole.count("ConfigMap")), (2, 2));

    // A changed definition replaces the controller.
    let versions = json!([{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "color": {"type": "string"}}}},
    }}}]);
    whole.patch(&xrd, json!({"spec": {"versions": versions}})).await;
    whole.run(10).await;
    assert!(whole.plane.registry().is_running("composite/things.example.org"));
    whole.patch(&id, json!({"spec": {"color": "red", "size": 4}})).await;
    whole.run(10).await;
    let maps = whole.server.objects().into_iter().filter(|o| o.kind() == "ConfigMap");
    assert!(maps.into_iter().all(|map| map.str_at(&["data", "size"]) == "4"));

    // At rest, nothing happens, and nothing is left of what went wrong on the way.
    let told = conditions(&whole.get(&id).await.unwrap());
    assert!(told.iter().all(|c| c.status == "True" && c.message.is_empty()), "{told:?}");
    let before = whole.server.journal_len();
    whole.run(600).await;
    assert_eq!(whole.since(before), [""; 0]);

    // With the definition everything goes.
    whole.server.delete(&xrd, &Delete::default(), soon()).await.unwrap();
    whole.run(60).await;
    assert!(whole.get(&xrd).await.is_none());
    assert_eq!((whole.count("Thing"), whole.count("ConfigMap")), (0, 0));
    assert_eq!(whole.count("CustomResourceDefinition"), 0);
    assert!(!whole.plane.registry().is_running("composite/things.example.org"));
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_its_composite_resource() {
    let mut whole = Whole::new();
    whole.create(xrd("LegacyCluster", "XThing", Some("Thing"))).await;
    whole.create(composition("XThing", Some("ns"))).await;
    whole.run(10).await;
    let claim = whole.create(composite("Thing", "claim")).await;
    whole.run(10).await;
    assert!(whole.is(&claim, "Ready=True").await, "{:?}", whole.get(&claim).await);
    assert_eq!((whole.count("XThing"), whole.count("ConfigMap")), (1, 5));
    let before = whole.server.journal_len();
    whole.run(600).await;
    assert_eq!(whole.since(before), [""; 0]);
    whole.server.delete(&claim, &Delete::default(), soon()).await.unwrap();
    whole.run(10).await;
    assert!(whole.get(&claim).await.is_none());
    assert_eq!((whole.count("XThing"), whole.count("ConfigMap")), (0, 0));
}

#[tokio::test]
async fn in_virtual_time_the_same_happens_at_once() {
    for (scope, kind, claim) in
        [("Namespaced", "Thing", None), ("LegacyCluster", "XThing", Some("Thing"))]
    {
        let mut whole = Whole::new();
        whole.create(xrd(scope, kind, claim)).await;
        whole.create(composition(kind, claim.map(|_| "ns"))).await;
        // The kinds come with the definition.
        let limit = Limit { reconciles: 500, time: Duration::from_hours(1) };
        assert_eq!(whole.plane.run_until_stable(&limit).await.unwrap(), Stability::Stable);
        let id = whole.create(composite("Thing", "it")).await;
        assert_eq!(whole.plane.run_until_stable(&limit).await.unwrap(), Stability::Stable);
        assert!(whole.is(&id, "Ready=True").await, "{:?}", whole.get(&id).await);
        assert_eq!(whole.count("ConfigMap"), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_all_controllers_writes_nothing() {
    let mut whole = Whole::new();
    whole.create(xrd("LegacyCluster", "XThing", Some("Thing"))).await;
    whole.create(composition("XThing", Some("ns"))).await;
    whole.run(10).await;
    for i in 0..10 {
        whole.create(composite("Thing", &format!("claim-{i}"))).await;
    }
    whole.run(30).await;
    let server = Arc::clone(&whole.server);
    drop(whole);
    let before = server.journal_len();
    let mut whole = Whole::on(server);
    whole.run(30).await;
    assert_eq!(whole.since(before), [""; 0]);
    let kind = Gvk::new("example.org/v1", "Thing");
    for i in 0..10 {
        let id = ObjectId::new(kind.clone(), "ns", &format!("claim-{i}"));
        assert!(whole.is(&id, "Ready=True").await);
    }
}

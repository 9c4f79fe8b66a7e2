//! What a control plane costs when nothing has changed: one reconcile of each of 1,000 composite
//! resources with five composed resources, and finding the composite resources that depend on an
//! object among 10,000.
//!
//! The functions' own time is not in it: they answer with a prepared response.

use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use biplane_cluster::memory::ApiServer;
use biplane_cluster::{Quiet, Recorder, Skipping};
use biplane_engine::composite::dependencies::{Dependencies, DependencyIndex, Tracked};
use biplane_engine::composite::{Behaviour, Layout, Reconciler};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::{Context, SystemClock, SystemIds};
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, FunctionRunner, RunError};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prost::Message as _;
use serde_json::json;

/// The allocator of the `biplane` program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const COMPOSITES: usize = 1_000;

fn object(value: Value) -> Object {
    Object::from_value(value).expect("an object")
}

/// Always answers the same: five ConfigMaps, all of them ready. The answer is made before the
/// reconcile begins, and uniquely owned, as after decoding.
#[derive(Default)]
struct Prepared(Mutex<Option<RunFunctionResponse>>);

#[async_trait]
impl FunctionRunner for Prepared {
    async fn run(
        &self,
        _call: &Call,
        _request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        Ok(self.0.lock().expect("nobody panicked").take().unwrap_or_default())
    }
}

/// The answer, encoded.
fn answer() -> Vec<u8> {
    let resources: serde_json::Map<_, _> = (0..5)
        .map(|i| {
            let data =
                json!({"region": "eu-west-1", "index": i.to_string(), "text": "x".repeat(200)});
            let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
            (format!("map-{i}"), json!({"resource": resource, "ready": "READY_TRUE"}))
        })
        .collect();
    let status = json!({"resource": {"status": {"phase": "up"}}});
    let response = json!({"desired": {"composite": status, "resources": resources}});
    let response: RunFunctionResponse = serde_json::from_value(response).expect("a response");
    response.encode_to_vec()
}

fn definition() -> Object {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let conditions = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}},
            "x-kubernetes-preserve-unknown-fields": true},
    });
    let mut status = any.clone();
    status["properties"] = json!({"conditions": conditions});
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": status}}}}],
        },
    }))
}

fn server() -> Arc<ApiServer> {
    let server = Arc::new(ApiServer::default());
    server.register(&definition()).expect("a definition");
    let spec = json!({
        "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"}, "mode": "Pipeline",
        "pipeline": [{"step": "compose", "functionRef": {"name": "fn"}}], "revision": 1,
    });
    let version = "apiextensions.crossplane.io/v1";
    let owner = json!([{"apiVersion": version, "kind": "Composition", "name": "comp", "uid": "comp-uid", "controller": true}]);
    server.seed([
        object(json!({"apiVersion": version, "kind": "CompositeResourceDefinition",
            "metadata": {"name": "things.example.org"}, "spec": {}})),
        object(json!({"apiVersion": version, "kind": "Composition",
            "metadata": {"name": "comp", "uid": "comp-uid"}, "spec": spec})),
        object(json!({"apiVersion": version, "kind": "CompositionRevision",
            "metadata": {"name": "comp-1", "labels": {"crossplane.io/composition-name": "comp"}, "ownerReferences": owner},
            "spec": spec,
            "status": {"conditions": [{"type": "ValidPipeline", "status": "True", "reason": "ValidPipeline",
                "lastTransitionTime": "2024-01-01T00:00:00Z"}]}})),
    ]);
    server.seed((0..COMPOSITES).map(|i| {
        object(json!({"apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"name": format!("xr-{i:04}"), "namespace": "ns"}, "spec": {"size": i}}))
    }));
    server
}

fn reconciler(server: &Arc<ApiServer>, functions: Arc<Prepared>) -> Reconciler {
    let cluster = Arc::new(Quiet::new(server.clone(), Skipping::Skip));
    let context = Context {
        cluster: cluster.clone(),
        events: Arc::new(Recorder::new(server.clone())),
        runner: functions,
        requirements: Arc::new(ClusterRequirements(cluster)),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
    };
    let gvk = Gvk::new("example.org/v1", "Thing");
    let behaviour = Behaviour::live(gvk, Layout::Modern, "things.example.org");
    let mut reconciler = Reconciler::new(context, behaviour);
    reconciler.dependencies = Arc::new(DependencyIndex::default());
    reconciler
}

fn at_rest(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let server = server();
    let functions = Arc::new(Prepared::default());
    let reconciler = reconciler(&server, functions.clone());
    let encoded = answer();
    // Returns the time without that of the functions.
    let pass = || {
        let mut time = Duration::ZERO;
        for i in 0..COMPOSITES {
            let name = format!("xr-{i:04}");
            let answer = RunFunctionResponse::decode(encoded.as_slice()).expect("a response");
            *functions.0.lock().expect("nobody panicked") = Some(answer);
            let start = Instant::now();
            let answer = runtime.block_on(reconciler.reconcile("ns", &name));
            time += start.elapsed();
            assert!(answer.is_ok(), "{answer:?}");
        }
        time
    };
    pass();
    pass();
    let written = server.journal_len();
    let mut group = criterion.benchmark_group("at rest");
    group.sample_size(20).throughput(Throughput::Elements(COMPOSITES as u64));
    group.bench_function("1000 composite resources of 5", |bench| {
        bench.iter_custom(|passes| (0..passes).map(|_| pass()).sum());
    });
    group.finish();
    assert_eq!(server.journal_len(), written, "nothing is written at rest");
}

fn dependents(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let map = |name: &str| ObjectId::new(Gvk::new("v1", "ConfigMap"), "ns", name);
    let mut group = criterion.benchmark_group("dependents of an object");
    for composites in [100_usize, 10_000] {
        let index = DependencyIndex::default();
        runtime.block_on(async {
            for i in 0..composites {
                let xr =
                    ObjectId::new(Gvk::new("example.org/v1", "Thing"), "ns", &format!("xr-{i}"));
                let composed = (0..5).map(|n| map(&format!("map-{i}-{n}"))).collect();
                let tracked = Tracked { composed, ..Tracked::default() };
                index.track(&xr, tracked).await.expect("tracked");
            }
        });
        let changed = object(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "map-42-3", "namespace": "ns", "labels": {"crossplane.io/composite": "xr-42"}}}));
        assert_eq!(index.dependents(&changed).len(), 1);
        group.bench_function(format!("{composites} composite resources"), |bench| {
            bench.iter(|| index.dependents(black_box(&changed)));
        });
    }
    group.finish();
}

criterion_group!(benches, at_rest, dependents);
criterion_main!(benches);

//! Benchmarks of the engine itself: a whole render in this process, with a function that does no
//! work and with function-dummy. Requests and responses are uniquely owned, as after decoding.

use std::hint::black_box;
use std::sync::{Arc, Mutex};

use biplane_engine::render::{Settings, render};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::render::v1alpha1::RenderRequest;
use biplane_runner::{Call, FunctionRunner, InProcess, RunError};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use prost::Message;
use serde_json::{Map, Value, json};

/// The allocator of the `biplane` program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn resources(count: usize) -> Value {
    let resources: Map<_, _> = (0..count)
        .map(|i| {
            let resource = json!({
                "apiVersion": "example.org/v1", "kind": "Bucket",
                "metadata": {"labels": {"app": "bench", "index": i.to_string()}},
                "spec": {"forProvider": {"region": "eu-west-1", "size": i, "tags": ["a", "b", "c"]}},
            });
            (format!("bucket-{i:04}"), json!({"resource": resource, "ready": "READY_TRUE"}))
        })
        .collect();
    Value::Object(resources)
}

/// A pipeline of one step, whose input makes function-dummy return resources.
fn request(count: usize) -> RenderRequest {
    serde_json::from_value(json!({"composite": {
        "compositeResource": {
            "apiVersion": "example.org/v1", "kind": "XBench",
            "metadata": {"name": "bench"}, "spec": {"size": count},
        },
        "composition": {"metadata": {"name": "bench"}, "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XBench"},
            "pipeline": [{
                "step": "all", "functionRef": {"name": "function-dummy"},
                "input": {
                    "apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response",
                    "response": {"desired": {"resources": resources(count)}},
                },
            }],
        }},
    }}))
    .expect("a request")
}

/// Returns a prepared response.
struct Ready(Mutex<Option<RunFunctionResponse>>);

#[async_trait::async_trait]
impl FunctionRunner for Ready {
    async fn run(
        &self,
        _call: &Call,
        _request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        Ok(self.0.lock().expect("nobody panicked").take().unwrap_or_default())
    }
}

fn engine(c: &mut Criterion) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let settings = Settings::default();
    let mut group = c.benchmark_group("engine");
    for count in [10, 100, 1000] {
        group.throughput(Throughput::Elements(count as u64));
        let wire = request(count).encode_to_vec();
        let response = json!({"desired": {"resources": resources(count)}});
        let response: RunFunctionResponse = serde_json::from_value(response).expect("a response");
        let response = response.encode_to_vec();
        let small = request(0).encode_to_vec();
        let free = || -> Arc<dyn FunctionRunner> {
            let response = RunFunctionResponse::decode(response.as_slice()).expect("a response");
            Arc::new(Ready(Mutex::new(Some(response))))
        };
        let dummy: Arc<dyn FunctionRunner> =
            Arc::new(InProcess::new(biplane_functions::registry()));
        let dummy = || dummy.clone();
        let runners: [(_, _, &dyn Fn() -> Arc<dyn FunctionRunner>); 2] =
            [("function_for_free", &small, &free), ("function_dummy", &wire, &dummy)];
        for (name, request, runner) in runners {
            group.bench_function(BenchmarkId::new(name, count), |b| {
                b.iter_batched(
                    || (RenderRequest::decode(request.as_slice()).expect("a request"), runner()),
                    |(request, runner)| {
                        let rendered = render(request, runner, &settings);
                        black_box(runtime.block_on(rendered)).expect("a response")
                    },
                    BatchSize::PerIteration,
                );
            });
        }
        group.bench_with_input(BenchmarkId::new("request_decode", count), &wire, |b, wire| {
            b.iter(|| RenderRequest::decode(black_box(wire.as_slice())).expect("a request"));
        });
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);

//! Tests of the client of the Pipeline Inspector, over real sockets.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use biplane_function::metrics::Metrics;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::inspector::{design, shipped};
use biplane_proto::json::from_value;
use biplane_proto::redact::TagKey;
use biplane_runner::inspected::socket::{SocketInspector, TIMEOUT};
use biplane_runner::inspected::{InspectorMetrics, Options, Sources};
use biplane_runner::{Call, FunctionRunner, Inspection, RunError, Subject, stack};
use prost::Message;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use tonic::{Request, Response, Status, async_trait};

use crate::world::PATIENCE;

/// What a receiver received: dialect and method, metadata of the call and of gRPC, payload, error.
#[derive(Clone, Debug)]
struct Got {
    method: &'static str,
    meta: Value,
    headers: MetadataMap,
    payload: Vec<u8>,
    error: String,
}

#[derive(Clone, Default)]
struct Receiver {
    got: Arc<Mutex<Vec<Got>>>,
    hangs: bool,
}

impl Receiver {
    async fn take<T>(
        &self,
        method: &'static str,
        request: Request<T>,
        parts: impl FnOnce(T) -> (Value, Vec<u8>, String),
    ) -> Result<(), Status> {
        let headers = request.metadata().clone();
        let (meta, payload, error) = parts(request.into_inner());
        self.got.lock().unwrap().push(Got { method, meta, headers, payload, error });
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

macro_rules! receives {
    ($dialect:ident, $request:literal, $response:literal) => {
        #[async_trait]
        impl $dialect::pipeline_inspector_service_server::PipelineInspectorService for Receiver {
            async fn emit_request(
                &self,
                request: Request<$dialect::EmitRequestRequest>,
            ) -> Result<Response<$dialect::EmitRequestResponse>, Status> {
                let parts = |r: $dialect::EmitRequestRequest| {
                    (serde_json::to_value(r.meta).unwrap(), r.request, String::new())
                };
                self.take($request, request, parts).await?;
                Ok(Response::new($dialect::EmitRequestResponse {}))
            }

            async fn emit_response(
                &self,
                request: Request<$dialect::EmitResponseRequest>,
            ) -> Result<Response<$dialect::EmitResponseResponse>, Status> {
                let parts = |r: $dialect::EmitResponseRequest| {
                    (serde_json::to_value(r.meta).unwrap(), r.response, r.error)
                };
                self.take($response, request, parts).await?;
                Ok(Response::new($dialect::EmitResponseResponse {}))
            }
        }
    };
}
receives!(shipped, "shipped request", "shipped response");
receives!(design, "design request", "design response");

fn serve_shipped(receiver: &Receiver, socket: &Path) -> JoinHandle<()> {
    use shipped::pipeline_inspector_service_server::PipelineInspectorServiceServer;
    let incoming = UnixListenerStream::new(UnixListener::bind(socket).unwrap());
    let service = PipelineInspectorServiceServer::new(receiver.clone());
    let router = Server::builder().add_service(service);
    tokio::spawn(async move { router.serve_with_incoming(incoming).await.unwrap() })
}

fn serve_design(receiver: &Receiver, socket: &Path) -> JoinHandle<()> {
    use design::pipeline_inspector_service_server::PipelineInspectorServiceServer;
    let incoming = UnixListenerStream::new(UnixListener::bind(socket).unwrap());
    let service = PipelineInspectorServiceServer::new(receiver.clone());
    let router = Server::builder().add_service(service);
    tokio::spawn(async move { router.serve_with_incoming(incoming).await.unwrap() })
}

struct Echo;

#[async_trait]
impl FunctionRunner for Echo {
    async fn run(
        &self,
        _: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let desired = request.desired;
        Ok(RunFunctionResponse { desired, ..RunFunctionResponse::default() })
    }
}

struct World {
    runner: Arc<dyn FunctionRunner>,
    metrics: Metrics,
    folder: tempfile::TempDir,
}

impl World {
    /// No test depends on how fast the machine is.
    fn new() -> Self {
        Self::with_timeout(PATIENCE)
    }

    fn with_timeout(timeout: Duration) -> Self {
        let (folder, metrics) = (tempfile::tempdir().unwrap(), Metrics::default());
        let options = Options { socket: folder.path().join("s"), ..Options::default() };
        let sources = Sources {
            now: Arc::new(|| SystemTime::UNIX_EPOCH),
            uuid: Arc::new(|| "s".to_owned()),
            tag_key: TagKey::new([0; 32]),
        };
        let socket = SocketInspector::with_timeout(&options.socket, timeout);
        let counters = InspectorMetrics::new(&metrics);
        let inspection = Inspection::new(Arc::new(socket), &options, sources, Some(counters));
        let runner = stack::inspected(Arc::new(Echo), Some(&inspection));
        Self { runner, metrics, folder }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    async fn run(&self, request: Value) {
        let call = Call {
            function: "f".into(),
            step: "n".into(),
            index: 1,
            iteration: 2,
            trace: "t".into(),
            subject: Some(Subject::Composition { name: "c".into() }),
            ..Call::default()
        };
        let answer = self.runner.run(&call, from_value(request.clone()).unwrap()).await.unwrap();
        let desired = biplane_proto::json::to_value(&answer.desired).unwrap();
        assert_eq!(desired, request["desired"]);
    }

    fn errors(&self) -> u64 {
        let text = self.metrics.text();
        let name = "function_run_function_pipeline_inspector_errors_total{";
        let counts = text.lines().filter(|line| line.starts_with(name));
        counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }
}

fn methods(got: &[Got]) -> Vec<&'static str> {
    got.iter().map(|got| got.method).collect()
}

/// INS-P1, INS-P2, INS-T1
#[tokio::test]
async fn both_halves_arrive_in_the_dialect_of_control_planes() {
    let world = World::new();
    let receiver = Receiver::default();
    let server = serve_shipped(&receiver, &world.socket());
    world.run(json!({"desired": {}})).await;
    let got = receiver.got();
    assert_eq!(methods(&got), ["shipped request", "shipped response"]);
    assert_eq!(got[0].meta, got[1].meta);
    assert_eq!(got[0].meta["compositionMeta"]["compositionName"], "c");
    assert_eq!(got[0].payload, b"{\"desired\":{}}");
    assert_eq!(got[1].payload, b"{\"desired\":{}}");
    assert_eq!(got[1].error, "");
    assert!(got[0].headers.get("biplane-took-us").is_none());
    let took = got[1].headers.get("biplane-took-us").unwrap().to_str().unwrap();
    assert!(took.parse::<u64>().is_ok(), "{took}");
    assert_eq!(got[1].headers.get("biplane-cached").unwrap(), "false");
    assert_eq!(world.errors(), 0);
    server.abort();
}

/// INS-P6
#[tokio::test]
async fn a_receiver_that_knows_the_other_dialect_is_told_in_that() {
    let world = World::new();
    let receiver = Receiver::default();
    let server = serve_design(&receiver, &world.socket());
    world.run(json!({"desired": {}})).await;
    world.run(json!({"desired": {}})).await;
    let got = receiver.got();
    let both = ["design request", "design response"];
    assert_eq!(methods(&got), [both, both].concat());
    assert_eq!(
        got[0].meta,
        json!({
            "traceId": "t", "spanId": "s", "stepIndex": 1, "iteration": 2, "functionName": "f",
            "compositionName": "c", "timestamp": "1970-01-01T00:00:00Z",
        })
    );
    assert_eq!(world.errors(), 0);
    server.abort();
}

/// INS-T1, INS-T4: a receiver may come late, and may go and come again.
#[tokio::test]
async fn a_missing_receiver_fails_nothing_and_is_found_when_it_comes() {
    let world = World::new();
    world.run(json!({"desired": {}})).await;
    assert_eq!(world.errors(), 2);
    let receiver = Receiver::default();
    let server = serve_shipped(&receiver, &world.socket());
    world.run(json!({"desired": {}})).await;
    assert_eq!(world.errors(), 2);
    assert_eq!(receiver.got().len(), 2);
    server.abort();
    let _ = server.await;
    // Its connection is still open, and closes only when the task of the connection ends.
    std::fs::remove_file(world.socket()).unwrap();
    drop(receiver);
}

/// INS-T2, INS-T6
#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_delays_three_calls_and_then_one_a_second() {
    let world = World::with_timeout(TIMEOUT);
    // It accepts connections, and nothing else.
    let _listener = UnixListener::bind(world.socket()).unwrap();
    let start = tokio::time::Instant::now();
    for _ in 0..10 {
        world.run(json!({"desired": {}})).await;
    }
    assert_eq!(world.errors(), 20);
    assert_eq!(start.elapsed().as_millis() / 100, 3, "{:?}", start.elapsed());

    tokio::time::sleep(Duration::from_secs(1)).await;
    let again = tokio::time::Instant::now();
    for _ in 0..10 {
        world.run(json!({"desired": {}})).await;
    }
    assert_eq!(again.elapsed().as_millis() / 100, 1, "{:?}", again.elapsed());
}

/// INS-T2
#[tokio::test]
async fn a_receiver_that_does_not_answer_costs_its_time_only() {
    let world = World::with_timeout(TIMEOUT);
    let receiver = Receiver { hangs: true, ..Receiver::default() };
    let server = serve_shipped(&receiver, &world.socket());
    world.run(json!({"desired": {}})).await;
    assert_eq!(world.errors(), 2);
    server.abort();
}

/// INS-J10
#[tokio::test]
async fn a_message_that_is_too_large_is_counted() {
    let world = World::new();
    let receiver = Receiver::default();
    let server = serve_shipped(&receiver, &world.socket());
    let large = "x".repeat(5 * 1024 * 1024);
    world.run(json!({"input": {"text": large}, "desired": {}})).await;
    assert_eq!(world.errors(), 1);
    assert_eq!(methods(&receiver.got()), ["shipped response"]);
    server.abort();
}

/// The bytes of both dialects, INS-P3 and INS-P4.
#[test]
fn metadata_has_the_bytes_of_the_contracts() {
    let composition =
        shipped::CompositionMeta { composition_name: "c".into(), ..Default::default() };
    let meta = shipped::StepMeta {
        timestamp: None,
        trace_id: "t".into(),
        span_id: "s".into(),
        step_index: 1,
        step_name: "n".into(),
        iteration: 2,
        function_name: "f".into(),
        context: Some(shipped::step_meta::Context::CompositionMeta(composition)),
    };
    let bytes = b"\x12\x01t\x1a\x01s\x20\x01\x2a\x01n\x30\x02\x3a\x01f\x4a\x03\x0a\x01c";
    assert_eq!(meta.encode_to_vec(), bytes);
    let meta = design::StepMeta {
        trace_id: "t".into(),
        span_id: "s".into(),
        step_index: 1,
        iteration: 2,
        function_name: "f".into(),
        composition_name: "c".into(),
        ..Default::default()
    };
    assert_eq!(meta.encode_to_vec(), b"\x0a\x01t\x12\x01s\x18\x01\x20\x02\x2a\x01f\x32\x01c");
}

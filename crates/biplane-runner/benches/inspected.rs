//! Measures what inspection adds to a function call: with a receiver, without one, and with one
//! that hangs.
//!
//! A mean would hide what matters here, so this prints percentiles and has no harness.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a tool that prints

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::inspector::shipped::pipeline_inspector_service_server::{
    PipelineInspectorService, PipelineInspectorServiceServer,
};
use biplane_proto::inspector::shipped::{
    EmitRequestRequest, EmitRequestResponse, EmitResponseRequest, EmitResponseResponse,
};
use biplane_proto::json::from_value;
use biplane_proto::redact::TagKey;
use biplane_runner::inspected::{Options, Sources};
use biplane_runner::{Call, FunctionRunner, Inspection, RunError, Subject, stack};
use serde_json::json;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, async_trait};

struct Receiver;

#[async_trait]
impl PipelineInspectorService for Receiver {
    async fn emit_request(
        &self,
        _: Request<EmitRequestRequest>,
    ) -> Result<Response<EmitRequestResponse>, Status> {
        Ok(Response::new(EmitRequestResponse {}))
    }

    async fn emit_response(
        &self,
        _: Request<EmitResponseRequest>,
    ) -> Result<Response<EmitResponseResponse>, Status> {
        Ok(Response::new(EmitResponseResponse {}))
    }
}

/// A function that takes no time, so that everything measured is inspection.
struct Instantly;

#[async_trait]
impl FunctionRunner for Instantly {
    async fn run(
        &self,
        _: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        Ok(RunFunctionResponse { desired: request.desired, ..RunFunctionResponse::default() })
    }
}

/// A request of about 8 KB, half of it observed and half of it desired.
fn request() -> RunFunctionRequest {
    let resource = |n: usize| {
        let spec = json!({"forProvider": {"region": "eu-central-1", "text": "x".repeat(800)}});
        (
            format!("r{n}"),
            json!({"resource": {"apiVersion": "example.org/v1", "kind": "Bucket", "spec": spec}}),
        )
    };
    let resources: serde_json::Map<_, _> = (0..5).map(resource).collect();
    from_value(json!({
        "meta": {"tag": "t"}, "observed": {"resources": resources}, "desired": {"resources": resources},
    }))
    .unwrap()
}

async fn measure(what: &str, goal: &str, socket: &Path, calls: usize) {
    let options = Options { socket: socket.to_owned(), ..Options::default() };
    let sources = Sources {
        now: Arc::new(|| SystemTime::UNIX_EPOCH),
        uuid: Arc::new(|| "00000000-0000-4000-8000-000000000000".to_owned()),
        tag_key: TagKey::new([0; 32]),
    };
    let inspection = Inspection::over_socket(&options, sources, None);
    let runner = stack::inspected(Arc::new(Instantly), Some(&inspection));
    let mut took = Vec::with_capacity(calls);
    for _ in 0..calls {
        let call = Call {
            function: "fn".into(),
            trace: "t".into(),
            subject: Some(Subject::Composition { name: "c".into() }),
            ..Call::default()
        };
        let request = request();
        let start = Instant::now();
        runner.run(&call, request).await.unwrap();
        took.push(start.elapsed());
    }
    let total: Duration = took.iter().sum();
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)];
    println!(
        "{what}: {calls} calls, p50 {:?}, p99 {:?}, slowest {:?}, all {total:?}, {} emissions lost; goal {goal}",
        at(50),
        at(99),
        at(100),
        inspection.failures().count
    );
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("receiver");
    let incoming = UnixListenerStream::new(UnixListener::bind(&socket).unwrap());
    let service = PipelineInspectorServiceServer::new(Receiver);
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(incoming));
    measure("with a receiver", "p50 0.3 ms, p99 2 ms", &socket, 2000).await;
    measure("without a receiver", "p99 0.1 ms", &folder.path().join("nobody"), 2000).await;
    let hangs = folder.path().join("hangs");
    let _listener = UnixListener::bind(&hangs).unwrap();
    measure("with a receiver that hangs", "300 ms at first, then 100 ms a second", &hangs, 200)
        .await;
}

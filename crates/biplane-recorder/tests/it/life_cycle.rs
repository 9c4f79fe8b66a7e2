//! Sockets, limits, health, concurrent calls and the end of a sidecar.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use biplane_proto::changelogs::change_log_service_client::ChangeLogServiceClient;
use biplane_proto::changelogs::{ChangeLogEntry, SendChangeLogRequest};
use biplane_proto::inspector::{design, shipped};
use biplane_proto::json::from_value;
use biplane_proto::redact::Mode;
use biplane_recorder::Format;
use biplane_recorder::serve::ServeError;
use serde_json::{Value, json};
use shipped::pipeline_inspector_service_client::PipelineInspectorServiceClient;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::world::{Printed, Sidecar, bind_inspector, channel, options};

fn request(payload: impl Into<Vec<u8>>) -> shipped::EmitRequestRequest {
    shipped::EmitRequestRequest { request: payload.into(), meta: None }
}

/// INS-P5, INS-P6
#[tokio::test]
async fn both_dialects_are_told_apart_by_their_paths() {
    let sidecar = Sidecar::inspector(Format::Json, Mode::Deep).await;
    let composition = json!({
        "compositionName": "c", "compositeResourceUid": "u", "compositeResourceName": "n",
        "compositeResourceNamespace": "ns", "compositeResourceApiVersion": "example.org/v1",
        "compositeResourceKind": "Store",
    });
    let common = json!({
        "timestamp": "2026-01-15T10:30:00Z", "traceId": "t", "spanId": "s", "stepIndex": 1,
        "iteration": 2, "functionName": "f",
    });
    let mut nested = common.clone();
    nested["compositionMeta"] = composition.clone();
    let mut flat = common;
    flat.as_object_mut().unwrap().extend(composition.as_object().unwrap().clone());

    let mut shipped = PipelineInspectorServiceClient::new(sidecar.channel.clone());
    let emitted = json!({"meta": nested, "response": "e30=", "error": "broke"});
    shipped
        .emit_response(from_value::<shipped::EmitResponseRequest>(emitted).unwrap())
        .await
        .unwrap();
    let expected = sidecar.printed.take();
    assert!(expected.starts_with("{\"error\":\"broke\",\"meta\":{\"compositionMeta\":{"));

    let mut client = design::pipeline_inspector_service_client::PipelineInspectorServiceClient::new(
        sidecar.channel.clone(),
    );
    let emitted = json!({"meta": flat, "response": "e30=", "error": "broke"});
    client
        .emit_response(from_value::<design::EmitResponseRequest>(emitted).unwrap())
        .await
        .unwrap();
    assert_eq!(sidecar.printed.take(), expected);
}

/// INS-R2, CL-30
#[tokio::test]
async fn a_socket_that_is_there_is_replaced_and_another_file_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let printed = Printed::default();
    let bind = || bind_inspector(Format::Json, Mode::Deep, &printed, options(&socket));
    let first = bind().await.unwrap();
    // INS-C3, CL-31
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let second = bind().await.unwrap();
    drop(first);
    assert!(socket.exists(), "the first must not remove the socket of the second");
    drop(second);
    assert!(!socket.exists());

    std::fs::write(&socket, "precious").unwrap();
    let error = bind().await.unwrap_err();
    assert!(matches!(error, ServeError::Remove { .. }));
    assert!(error.to_string().starts_with("cannot remove existing socket: "), "{error}");
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "precious");

    let socket = folder.path().join("missing/socket");
    let error =
        bind_inspector(Format::Json, Mode::Deep, &printed, options(&socket)).await.unwrap_err();
    let text = format!(
        "cannot listen on socket: listen unix {}: bind: no such file or directory",
        socket.display()
    );
    assert_eq!(error.to_string(), text);
}

/// INS-R1, INS-J10
#[tokio::test]
async fn messages_have_a_limit_that_can_be_raised() {
    let large = vec![b' '; 5_000_000];
    let sidecar = Sidecar::inspector(Format::Json, Mode::Deep).await;
    let mut client = PipelineInspectorServiceClient::new(sidecar.channel.clone());
    let refused = client.emit_request(request(large.clone())).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().starts_with("grpc: received message larger than max ("), "{refused}");
    assert_eq!(sidecar.printed.take(), "");

    let folder = tempfile::tempdir().unwrap();
    let mut options = options(&folder.path().join("socket"));
    options.max_message = 8_388_608;
    let (socket, printed) = (options.socket.clone(), Printed::default());
    let bound = bind_inspector(Format::Json, Mode::Deep, &printed, options).await.unwrap();
    tokio::spawn(bound.run(std::future::pending(), std::future::pending()));
    let mut client = PipelineInspectorServiceClient::new(channel(&socket).await);
    client.emit_request(request(large)).await.unwrap();
    assert!(printed.take().ends_with("\"type\":\"REQUEST\"}\n"));
}

/// INS-R5: events never interleave.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_blocks_of_text_stay_whole() {
    let sidecar = Sidecar::inspector(Format::Text, Mode::Deep).await;
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let mut client = PipelineInspectorServiceClient::new(sidecar.channel.clone());
            let payload = json!({"a": "x".repeat(5000), "number": number}).to_string();
            tokio::spawn(async move { client.emit_request(request(payload)).await.unwrap() })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let printed = sidecar.printed.take();
    let blocks: Vec<_> = printed.split_inclusive("\n\n\n").collect();
    assert_eq!(blocks.len(), 50);
    let mut numbers = BTreeSet::new();
    for block in blocks {
        assert!(block.starts_with("=== REQUEST ===\n  Step:         (index 0, iteration 0)\n"));
        assert_eq!(block.matches("===").count(), 2);
        let line = block.lines().find(|line| line.starts_with("    number: ")).unwrap();
        numbers.insert(line.to_owned());
    }
    assert_eq!(numbers.len(), 50);
}

/// CL-33
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_entries_are_whole_lines() {
    let sidecar = Sidecar::change_logs(Mode::Deep).await;
    let calls: Vec<_> = (0..100)
        .map(|number| {
            let mut client = ChangeLogServiceClient::new(sidecar.channel.clone());
            let entry: ChangeLogEntry = from_value(json!({
                "name": number.to_string(), "snapshot": {"blob": "y".repeat(64 * 1024)},
            }))
            .unwrap();
            let request = SendChangeLogRequest { entry: Some(entry) };
            tokio::spawn(async move { client.send_change_log(request).await.unwrap() })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let printed = sidecar.printed.take();
    let names: BTreeSet<String> = printed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().into())
        .collect();
    assert_eq!((printed.lines().count(), names.len()), (100, 100));
}

#[tokio::test]
async fn health_is_served_beside_the_services() {
    let sidecar = Sidecar::inspector(Format::Json, Mode::Deep).await;
    let mut client = HealthClient::new(sidecar.channel.clone());
    for service in [
        "",
        "crossplane.pipeline.v1alpha1.PipelineInspectorService",
        "crossplane.pipelineinspector.v1alpha1.PipelineInspectorService",
    ] {
        let answer = client.check(HealthCheckRequest { service: service.into() }).await.unwrap();
        assert_eq!(answer.into_inner().status, 1, "{service}");
    }
    let sidecar = Sidecar::change_logs(Mode::Deep).await;
    let mut client = HealthClient::new(sidecar.channel.clone());
    let service = "changelogs.proto.v1alpha1.ChangeLogService".to_owned();
    let answer = client.check(HealthCheckRequest { service }).await.unwrap();
    assert_eq!(answer.into_inner().status, 1);
}

/// INS-R2
#[tokio::test]
async fn a_sidecar_that_is_told_to_stop_ends_and_removes_its_socket() {
    let sidecar = Sidecar::inspector(Format::Json, Mode::Deep).await;
    let mut client = PipelineInspectorServiceClient::new(sidecar.channel.clone());
    client.emit_request(request("{}")).await.unwrap();
    assert!(sidecar.socket.exists());
    sidecar.stop.send(()).unwrap();
    // The client keeps its connection open, which does not keep the sidecar.
    sidecar.running.await.unwrap().unwrap();
    assert!(!sidecar.socket.exists());
    assert_eq!(sidecar.printed.take().lines().count(), 1);
}

/// Standard output whose reader takes nothing until it is told to. It tells when it is written to.
struct Gate {
    closed: std::sync::mpsc::Receiver<()>,
    reached: tokio::sync::mpsc::UnboundedSender<()>,
}

impl std::io::Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.reached.send(());
        // It stays open once it was opened.
        let _ = self.closed.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// INS-R2: an open call may end, but not for ever.
#[tokio::test]
async fn open_calls_are_waited_for_within_the_shutdown_timeout() {
    use biplane_proto::redact::{Redactor, TagKey};
    use biplane_recorder::{EmissionPrinter, Output, serve};
    use std::future::pending;
    use std::sync::Arc;
    use std::time::Duration;

    for (shutdown, opens) in [(Duration::from_mins(10), true), (Duration::from_millis(20), false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(&folder.path().join("socket"));
        options.shutdown = shutdown;
        let socket = options.socket.clone();
        let (gate, closed) = std::sync::mpsc::channel::<()>();
        let redactor = Redactor::new(Mode::Deep, TagKey::new([0; 32]));
        let (reached, mut arrived) = tokio::sync::mpsc::unbounded_channel();
        let output = Output::new(Gate { closed, reached }).unwrap();
        let printer = EmissionPrinter::new(Format::Json, redactor, output);
        let bound = serve::inspector(Arc::new(printer), options).await.unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(bound.run(async { drop(stopped.await) }, pending()));

        let mut client = PipelineInspectorServiceClient::new(channel(&socket).await);
        let call = tokio::spawn(async move { client.emit_request(request("{}")).await });
        arrived.recv().await.unwrap();
        stop.send(()).unwrap();
        if opens {
            drop(gate);
            call.await.unwrap().unwrap();
            running.await.unwrap().unwrap();
        } else {
            running.await.unwrap().unwrap();
            assert!(call.await.unwrap().is_err());
            drop(gate);
        }
    }
}

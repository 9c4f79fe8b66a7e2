//! The same emissions as were sent to the reference sidecars get the same status and the same line.

use std::io::Read;
use std::path::Path;

use biplane_proto::changelogs::SendChangeLogRequest;
use biplane_proto::changelogs::change_log_service_client::ChangeLogServiceClient;
use biplane_proto::inspector::shipped;
use biplane_proto::json::from_value;
use biplane_proto::redact::Mode;
use biplane_recorder::Format;
use serde_json::Value;
use tonic::Code;

use crate::world::Sidecar;

pub(crate) fn recorded(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn code(recorded: &Value) -> Code {
    match recorded["code"].as_str().unwrap() {
        "OK" => Code::Ok,
        "INTERNAL" => Code::Internal,
        other => panic!("{other}"),
    }
}

/// The recorded lines, each with its line break.
pub(crate) fn lines(recorded: &Value) -> String {
    let lines = recorded["lines"].as_array().unwrap();
    lines.iter().flat_map(|line| [line.as_str().unwrap(), "\n"]).collect()
}

/// INS-R3, INS-R4
#[tokio::test]
async fn emissions_are_printed_like_the_reference_prints_them() {
    use shipped::pipeline_inspector_service_client::PipelineInspectorServiceClient;
    let cases = recorded("inspector.jsonl.gz");
    assert_eq!(cases.len(), 33);
    for mode in [Mode::Deep, Mode::None] {
        let sidecar = Sidecar::inspector(Format::Json, mode).await;
        let mut client = PipelineInspectorServiceClient::new(sidecar.channel.clone());
        for case in &cases {
            let request = case["request"].clone();
            let answer = if case["method"] == "EmitRequest" {
                let request: shipped::EmitRequestRequest = from_value(request).unwrap();
                client.emit_request(request).await.map(drop)
            } else {
                let request: shipped::EmitResponseRequest = from_value(request).unwrap();
                client.emit_response(request).await.map(drop)
            };
            let answer = answer.map_or_else(|status| status.code(), |()| Code::Ok);
            assert_eq!(answer, code(case), "{}", case["name"]);
            assert_eq!(sidecar.printed.take(), lines(case), "{}", case["name"]);
        }
    }
}

/// CL-32, CL-40
#[tokio::test]
async fn entries_are_printed_like_the_reference_prints_them() {
    let cases = recorded("changelogs.jsonl.gz");
    assert_eq!(cases.len(), 23);
    for mode in [Mode::Deep, Mode::None] {
        let sidecar = Sidecar::change_logs(mode).await;
        let mut client = ChangeLogServiceClient::new(sidecar.channel.clone());
        for case in &cases {
            let request: SendChangeLogRequest = from_value(case["request"].clone()).unwrap();
            let answer = client.send_change_log(request).await;
            if let Err(status) = &answer {
                let text = "Request and change logs entry must not be nil";
                assert_eq!(status.message(), text, "{}", case["name"]);
            }
            let answer = answer.map_or_else(|status| status.code(), |_| Code::Ok);
            assert_eq!(answer, code(case), "{}", case["name"]);
            assert_eq!(sidecar.printed.take(), lines(case), "{}", case["name"]);
        }
    }
}

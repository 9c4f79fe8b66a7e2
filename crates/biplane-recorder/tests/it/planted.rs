//! Secrets are planted everywhere and looked for in what is printed, as text, base64 and hex.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use biplane_proto::changelogs::SendChangeLogRequest;
use biplane_proto::changelogs::change_log_service_client::ChangeLogServiceClient;
use biplane_proto::inspector::shipped;
use biplane_proto::json::from_value;
use biplane_proto::redact::Mode;
use biplane_recorder::Format;
use serde_json::{Value, json};

use crate::world::Sidecar;

/// Where INS-Z1 passes values through, whatever they are.
pub(crate) const PASSED_THROUGH: [&str; 6] =
    ["context", "input", "result", "condition", "error", "composite body"];

/// Words that are recognised in any of the three forms, however they are cut.
fn plant(place: &str) -> String {
    format!("PLANTED in {place}.")
}

fn base64(place: &str) -> String {
    BASE64_STANDARD.encode(plant(place))
}

fn hex(place: &str) -> String {
    plant(place).bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn secret(place: &str) -> Value {
    let nested = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"k": plant(&format!("{place} last-applied"))}});
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": nested.to_string(),
        }},
        "data": {"k": base64(&format!("{place} data"))},
        "stringData": {"k": plant(&format!("{place} stringData")), "hex": hex(&format!("{place} hex"))},
    })
}

fn resource(place: &str) -> Value {
    json!({
        "resource": secret(place),
        "connectionDetails": {"k": base64(&format!("{place} details"))},
    })
}

/// An object of a provider that wraps a Secret, with all copies of it.
fn wrapping(place: &str) -> Value {
    let applied = json!({"spec": {"forProvider": {"manifest": secret(&format!("{place} copy"))}}});
    json!({
        "apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
        "metadata": {"annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": applied.to_string(),
        }},
        "spec": {"forProvider": {"manifest": secret(&format!("{place} spec"))}},
        "status": {"atProvider": {"manifest": secret(&format!("{place} status"))}},
    })
}

pub(crate) fn request() -> Value {
    json!({
        "meta": {"tag": plant("tag")},
        "observed": {
            "composite": {
                "resource": {"spec": {"open": plant("composite body"), "nested": secret("observed composite")}},
                "connectionDetails": {"k": base64("observed composite details")},
            },
            "resources": {"a": resource("observed"), "b": {"resource": wrapping("observed")}},
        },
        "desired": {
            "composite": {"connectionDetails": {"k": base64("desired composite details")}},
            "resources": {"a": resource("desired"), "b": {"resource": wrapping("desired")}},
        },
        "requiredResources": {"r": {"items": [resource("required"), {"resource": wrapping("required")}]}},
        "extraResources": {"r": {"items": [resource("extra")]}},
        "credentials": {"c": {"credentialData": {"data": {"k": base64("credentials")}}}},
        "input": {"open": plant("input"), "nested": secret("input")},
        "context": {"open": plant("context"), "nested": [secret("context")]},
    })
}

pub(crate) fn response() -> Value {
    json!({
        "meta": {"tag": plant("tag")},
        "desired": {
            "composite": {"connectionDetails": {"k": base64("response composite details")}},
            "resources": {"a": resource("response"), "b": {"resource": wrapping("response")}},
        },
        "context": {"open": plant("context"), "nested": secret("response context")},
        "output": {"nested": secret("output")},
        "results": [{"severity": "SEVERITY_NORMAL", "message": plant("result")}],
        "conditions": [{"type": "T", "status": "STATUS_CONDITION_TRUE", "message": plant("condition")}],
    })
}

/// An entry with a snapshot that wraps Secrets.
pub(crate) fn entry() -> biplane_proto::changelogs::ChangeLogEntry {
    from_value(json!({
        "kind": "Object", "snapshot": wrapping("snapshot"), "errorMessage": plant("error"),
    }))
    .unwrap()
}

/// The places of all secrets that are found in a text.
pub(crate) fn found(printed: &str) -> Vec<String> {
    // Base64 depends on where in a group of three bytes the words begin.
    let begins =
        [base64(""), BASE64_STANDARD.encode("xPLANTED in"), BASE64_STANDARD.encode("xxPLANTED in")];
    let begins = [&begins[0][..10], &begins[1][4..12], &begins[2][4..12]];
    for begin in begins {
        assert!(!printed.contains(begin), "base64 of a secret, {begin}, in {printed}");
    }
    assert!(!printed.contains(&hex("")[..14]), "hex of a secret in {printed}");
    let places = printed.split("PLANTED in ").skip(1);
    places.map(|rest| rest.split('.').next().unwrap().to_owned()).collect()
}

#[test]
fn the_search_finds_what_is_planted() {
    assert_eq!(found(&format!("x{}y{}", plant("a"), plant("b c"))), ["a", "b c"]);
    for hidden in [
        base64("a"),
        BASE64_STANDARD.encode(format!("1{}", plant("a"))),
        BASE64_STANDARD.encode(format!("12{}", plant("a"))),
        hex("a"),
    ] {
        assert!(std::panic::catch_unwind(|| found(&hidden)).is_err(), "{hidden}");
    }
}

/// INS-Z1, INS-Z6
#[tokio::test]
async fn no_secret_is_printed_of_an_emission() {
    use shipped::pipeline_inspector_service_client::PipelineInspectorServiceClient;
    for format in [Format::Json, Format::Text] {
        let sidecar = Sidecar::inspector(format, Mode::Deep).await;
        let mut client = PipelineInspectorServiceClient::new(sidecar.channel.clone());
        let meta = Some(shipped::StepMeta { span_id: "s".into(), ..Default::default() });
        let emitted = shipped::EmitRequestRequest {
            request: request().to_string().into(),
            meta: meta.clone(),
        };
        client.emit_request(emitted).await.unwrap();
        let emitted = shipped::EmitResponseRequest {
            response: response().to_string().into(),
            error: plant("error"),
            meta: meta.clone(),
        };
        client.emit_response(emitted).await.unwrap();
        // Only the request has secrets, and the response has its tag.
        let mut plain = request();
        plain.as_object_mut().unwrap().retain(|key, _| key == "meta" || key == "credentials");
        let emitted =
            shipped::EmitRequestRequest { request: plain.to_string().into(), meta: meta.clone() };
        client.emit_request(emitted).await.unwrap();
        let bare = json!({"meta": {"tag": plant("tag")}}).to_string().into();
        let emitted = shipped::EmitResponseRequest { response: bare, meta, ..Default::default() };
        client.emit_response(emitted).await.unwrap();

        let printed = sidecar.printed.take();
        let mut places = found(&printed);
        places.sort();
        places.dedup();
        let mut expected = PASSED_THROUGH.map(str::to_owned);
        expected.sort();
        assert_eq!(places, expected, "{printed}");
    }
}

/// CL-51, CL-52
#[tokio::test]
async fn no_secret_is_printed_of_a_snapshot() {
    let sidecar = Sidecar::change_logs(Mode::Deep).await;
    let mut client = ChangeLogServiceClient::new(sidecar.channel.clone());
    let request = SendChangeLogRequest { entry: Some(entry()) };
    client.send_change_log(request.clone()).await.unwrap();
    let printed = sidecar.printed.take();
    assert_eq!(found(&printed), ["error"], "{printed}");
    // Keys and everything else stay.
    assert_eq!(printed.matches("**REDACTED**").count(), 3 * 3, "{printed}");

    // Who asks for everything gets it.
    let sidecar = Sidecar::change_logs(Mode::None).await;
    let mut client = ChangeLogServiceClient::new(sidecar.channel.clone());
    client.send_change_log(request).await.unwrap();
    assert!(sidecar.printed.take().contains("PLANTED in snapshot spec stringData."));
}

//! Tests of the text form, which the recordings do not have.

use biplane_proto::inspector::shipped::{CompositionMeta, OperationMeta};
use biplane_proto::redact::{Mode, Redactor, TagKey};

use super::*;

fn meta(context: Context) -> StepMeta {
    StepMeta {
        timestamp: Some(Timestamp { seconds: 1_768_473_000, nanos: 999_999 }),
        trace_id: "trace".into(),
        span_id: "span".into(),
        step_index: 1,
        step_name: "compose".into(),
        iteration: 2,
        function_name: "fn".into(),
        context: Some(context),
    }
}

fn text(half: Half, meta: Option<&StepMeta>, payload: &[u8], error: &str) -> String {
    let redactor = Redactor::new(Mode::Deep, TagKey::new([0; 32]));
    let payload = redactor.line_payload(half, payload, false);
    emission(Format::Text, half, meta, payload, error).unwrap()
}

fn composition(namespace: &str) -> Context {
    Context::CompositionMeta(CompositionMeta {
        composition_name: "stores".into(),
        composite_resource_uid: "u-1".into(),
        composite_resource_name: "north".into(),
        composite_resource_namespace: namespace.into(),
        composite_resource_api_version: "example.org/v1".into(),
        composite_resource_kind: "Store".into(),
    })
}

/// INS-R5
#[test]
fn a_request_of_a_composite_resource() {
    let payload = br#"{"observed":{"list":[{"b":1,"a":"x"}],"text":"one\ntwo\n"},"meta":{}}"#;
    assert_eq!(
        text(Half::Request, Some(&meta(composition("ns"))), payload, ""),
        "\
=== REQUEST ===
  XR:          example.org/v1/Store (north)
  XR UID:      u-1
  XR NS:       ns
  Composition: stores
  Step:        compose (index 1, iteration 2)
  Function:    fn
  Trace ID:    trace
  Span ID:     span
  Timestamp:   2026-01-15T10:30:00.000Z
  Payload:
    meta: {}
    observed:
      list:
      - a: x
        b: 1
      text: |
        one
        two


"
    );
}

/// INS-R5
#[test]
fn an_error_without_a_payload_ends_with_one_empty_line() {
    assert_eq!(
        text(Half::Response, Some(&meta(composition(""))), b"", "it broke"),
        "\
=== RESPONSE ===
  XR:          example.org/v1/Store (north)
  XR UID:      u-1
  Composition: stores
  Step:        compose (index 1, iteration 2)
  Function:    fn
  Trace ID:    trace
  Span ID:     span
  Timestamp:   2026-01-15T10:30:00.000Z
  Error:       it broke

"
    );
}

/// INS-R5
#[test]
fn operations_and_calls_of_nothing() {
    let operation = OperationMeta { operation_name: "rotate".into(), operation_uid: "u-2".into() };
    let operation = text(Half::Request, Some(&meta(Context::OperationMeta(operation))), b"{}", "");
    assert!(operation.starts_with(
        "=== REQUEST ===\n  Operation:   rotate\n  Op UID:      u-2\n  Step:        compose"
    ));
    assert!(operation.ends_with("  Payload:\n    {}\n\n\n"));
    assert_eq!(
        text(Half::Request, None, b"null", ""),
        "\
=== REQUEST ===
  Step:         (index 0, iteration 0)
  Function:    \n  Trace ID:    \n  Span ID:     \n  Timestamp:   1970-01-01T00:00:00.000Z

"
    );
}

//! Tests of protobuf JSON against files that upstream's programs wrote.

use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::json;
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_proto::structs::normalize;
use serde_json::Value;

use crate::recorded::{Both, calls, cases};

/// Reads a message, writes it and compares the result, in JSON and on the wire.
fn check<M: Both>(mut json: Value) {
    let message: M = json::from_value(json.clone()).unwrap();
    // In a message, integers that a double cannot hold exactly are doubles.
    normalize(&mut json);
    assert_eq!(json::to_value(&message).unwrap(), json);
    let text = json::to_string(&message).unwrap();
    assert_eq!(json::from_str::<M>(&text).unwrap(), message, "{text}");
    assert_eq!(M::decode(&*message.encode_to_vec()).unwrap(), message);
}

#[test]
fn recorded_calls_are_read_and_written_unchanged() {
    let (mut requests, mut responses) = (0, 0);
    for call in calls() {
        if !call["request"].is_null() {
            check::<RunFunctionRequest>(call["request"].clone());
            requests += 1;
        }
        if !call["response"].is_null() {
            check::<RunFunctionResponse>(call["response"].clone());
            responses += 1;
        }
    }
    assert!(requests > 500 && responses > 500, "{requests} requests, {responses} responses");
}

#[test]
fn recorded_renders_are_read_and_written_unchanged() {
    let (mut requests, mut responses) = (0, 0);
    for case in cases() {
        if let Some(request) = case.json("request.json") {
            check::<RenderRequest>(request);
            requests += 1;
        }
        if let Some(response) = case.json("response.json") {
            check::<RenderResponse>(response);
            responses += 1;
        }
    }
    assert!(requests > 300 && responses > 300, "{requests} requests, {responses} responses");
}

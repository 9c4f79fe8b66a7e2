//! Tests of the helpers for requests and responses.

use biplane_function::resource::{Composite, DesiredComposed, desired_from};
use biplane_function::v1::{Capability, Ready, RunFunctionRequest, RunFunctionResponse};
use biplane_function::{request, response};
use biplane_model::Object;
use biplane_proto::json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn mk_request(value: Value) -> RunFunctionRequest {
    json::from_value(value).unwrap()
}

fn shown(response: &RunFunctionResponse) -> Value {
    json::to_value(response).unwrap()
}

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// FN-D10
#[test]
fn a_response_carries_tag_desired_state_and_context_over() {
    let request = mk_request(json!({
        "meta": {"tag": "x"},
        "observed": {"composite": {}},
        "desired": {"resources": {"a": {"ready": "READY_TRUE"}}},
        "context": {"k": 1},
        "input": {"i": 1},
    }));
    assert_eq!(
        shown(&response::to(&request, response::DEFAULT_TTL)),
        json!({
            "meta": {"tag": "x", "ttl": "60s"},
            "desired": {"resources": {"a": {"ready": "READY_TRUE"}}},
            "context": {"k": 1},
        })
    );
    let none = response::to(&RunFunctionRequest::default(), std::time::Duration::ZERO);
    assert_eq!(shown(&none), json!({"meta": {"ttl": "0s"}}), "a TTL is always there");
}

/// FN-D12, FN-D15
#[test]
fn the_example_of_the_go_sdk_reads_the_same() {
    let mut answer = response::to(&RunFunctionRequest::default(), response::DEFAULT_TTL);
    let desired = DesiredComposed {
        resource: object(json!({
            "apiVersion": "example.org/v1",
            "kind": "CoolResource",
            "metadata": {"labels": {"coolness": "high"}},
            "spec": {"widgets": 9001},
        })),
        ready: Ready::Unspecified,
    };
    response::set_desired_composed(&mut answer, [("new".to_owned(), desired)]);
    response::condition_true(&mut answer, "FunctionSuccess", "Success")
        .target_composite_and_claim();
    assert_eq!(
        json::to_string(&answer).unwrap(),
        r#"{"meta":{"ttl":"60s"},"desired":{"resources":{"new":{"resource":{"apiVersion":"example.org/v1","kind":"CoolResource","metadata":{"labels":{"coolness":"high"}},"spec":{"widgets":9001}}}}},"conditions":[{"type":"FunctionSuccess","status":"STATUS_CONDITION_TRUE","reason":"Success","target":"TARGET_COMPOSITE_AND_CLAIM"}]}"#
    );
}

/// FN-D11, FN-D12
#[test]
fn results_and_conditions_are_for_the_composite_unless_told_otherwise() {
    let mut answer = RunFunctionResponse::default();
    response::fatal(&mut answer, "f");
    response::warning(&mut answer, "w").with_reason("R").target_composite_and_claim();
    response::normal(&mut answer, "n").target_composite_and_claim().target_composite();
    response::condition_false(&mut answer, "A", "No").with_message("m");
    response::condition_unknown(&mut answer, "A", "Maybe").target_composite_and_claim();
    assert_eq!(
        shown(&answer),
        json!({
            "results": [
                {"severity": "SEVERITY_FATAL", "message": "f", "target": "TARGET_COMPOSITE"},
                {
                    "severity": "SEVERITY_WARNING",
                    "message": "w",
                    "reason": "R",
                    "target": "TARGET_COMPOSITE_AND_CLAIM",
                },
                {"severity": "SEVERITY_NORMAL", "message": "n", "target": "TARGET_COMPOSITE"},
            ],
            "conditions": [
                {
                    "type": "A",
                    "status": "STATUS_CONDITION_FALSE",
                    "reason": "No",
                    "message": "m",
                    "target": "TARGET_COMPOSITE",
                },
                {
                    "type": "A",
                    "status": "STATUS_CONDITION_UNKNOWN",
                    "reason": "Maybe",
                    "target": "TARGET_COMPOSITE_AND_CLAIM",
                },
            ],
        })
    );
}

/// FN-D13 to FN-D17
#[test]
fn what_is_set_joins_what_is_there() {
    let request = mk_request(json!({"desired": {"resources": {"old": {}, "new-a": {}}}}));
    let mut answer = response::to(&request, response::DEFAULT_TTL);
    let desired = |name: &str| (name.to_owned(), DesiredComposed::default());
    response::set_desired_composed(&mut answer, [desired("new-a"), desired("new-b")]);
    response::set_desired_resources(&mut answer, [("plain".to_owned(), object(json!({"a": 1.0})))]);
    let names: Vec<_> = response::desired_resources(&mut answer).keys().cloned().collect();
    assert_eq!(names, ["new-a", "new-b", "old", "plain"]);

    response::set_context(&mut answer, "k", json!(3.0));
    response::set_context(&mut answer, "l", json!(1));
    response::require_schema(&mut answer, "s", "v1", "Pod");
    response::require_resources(
        &mut answer,
        "r",
        biplane_function::v1::ResourceSelector::default(),
    );
    response::set_output(&mut answer, &json!({"done": true})).unwrap();
    let composite = Composite { ready: Ready::True, ..Composite::default() };
    response::set_desired_composite(&mut answer, composite);
    let shown = shown(&answer);
    assert_eq!(shown["context"], json!({"k": 3, "l": 1}));
    assert_eq!(
        shown["requirements"],
        json!({"resources": {"r": {}}, "schemas": {"s": {"apiVersion": "v1", "kind": "Pod"}}})
    );
    assert_eq!(shown["output"], json!({"done": true}));
    assert_eq!(shown["desired"]["composite"], json!({"resource": {}, "ready": "READY_TRUE"}));
    assert_eq!(
        response::set_output(&mut answer, &[1]).unwrap_err().to_string(),
        "cannot unmarshal JSON to protobuf struct: the output is no JSON object"
    );
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
struct Input {
    size: u32,
}

/// FN-D20
#[test]
fn input_is_typed_and_absent_input_is_the_default() {
    let read =
        |input: Value| request::input::<Input>(&mk_request(json!({"input": input})), "*v1.In");
    assert_eq!(read(json!({"size": 3})).unwrap(), Input { size: 3 });
    assert_eq!(read(Value::Null).unwrap(), Input::default());
    let text = read(json!({"sice": 3})).unwrap_err().to_string();
    let expected = "cannot get function input *v1.In from *v1.RunFunctionRequest: cannot unmarshal \
                    JSON from *structpb.Struct into *v1.In: unknown field `sice`";
    assert!(text.starts_with(expected), "{text}");
}

/// FN-D21 to FN-D24
#[test]
fn absent_parts_of_a_request_are_empty() {
    let empty = RunFunctionRequest::default();
    assert_eq!(request::context(&empty, "k"), None);
    assert_eq!(request::observed_composite(&empty), Composite::default());
    assert_eq!(request::desired_composite(&empty), Composite::default());
    assert!(request::observed_composed(&empty).is_empty());
    assert!(request::desired_composed(&empty).is_empty());

    let request = mk_request(json!({
        "observed": {"resources": {"a": {
            "resource": {"kind": "A"}, "connectionDetails": {"k": "dg=="},
        }}},
        "desired": {
            "composite": {"resource": {"kind": "X"}, "ready": "READY_FALSE"},
            "resources": {"a": {"resource": {"kind": "A"}, "ready": "READY_TRUE"}},
        },
        "context": {"k": [1]},
    }));
    assert_eq!(request::context(&request, "k"), Some(&json!([1])));
    assert_eq!(request::observed_composed(&request)["a"].connection_details["k"], b"v");
    assert_eq!(request::desired_composed(&request)["a"].ready, Ready::True);
    assert_eq!(request::desired_composite(&request).ready, Ready::False, "it must not get lost");
}

/// FN-D25, FN-D26
#[test]
fn what_was_not_found_is_told_from_what_was_not_looked_for() {
    let request = mk_request(json!({
        "requiredResources": {"none": {}, "one": {"items": [{"resource": {"kind": "A"}}]}},
        "extraResources": {"extra": {}},
        "requiredSchemas": {"none": {}, "some": {"openapiV3": {"type": "object"}}},
    }));
    assert_eq!(request::required_resource(&request, "absent"), None);
    assert_eq!(request::required_resource(&request, "none"), Some(Vec::new()));
    assert_eq!(request::required_resource(&request, "one").unwrap()[0].kind(), "A");
    assert_eq!(request::required_resource(&request, "extra"), None, "the two are never merged");
    assert_eq!(request::required_resources(&request).len(), 2);
    assert_eq!(request::extra_resources(&request).keys().collect::<Vec<_>>(), ["extra"]);
    assert_eq!(request::required_schema(&request, "absent"), None);
    assert_eq!(request::required_schema(&request, "none"), Some(None));
    assert!(request::required_schema(&request, "some").unwrap().is_some());
    assert_eq!(request::required_schemas(&request).len(), 2);
}

/// FN-D27
#[test]
fn capabilities_are_those_that_are_listed() {
    let old = RunFunctionRequest::default();
    assert!(!request::advertises_capabilities(&old));
    let new = mk_request(json!({"meta": {"capabilities": [
        "CAPABILITY_CAPABILITIES", "CAPABILITY_CONDITIONS",
    ]}}));
    assert!(request::advertises_capabilities(&new));
    assert!(request::has_capability(&new, Capability::Conditions));
    assert!(!request::has_capability(&new, Capability::Credentials));
}

/// FN-D28
#[test]
fn credentials_are_found_by_name() {
    let request = mk_request(json!({"credentials": {
        "good": {"credentialData": {"data": {"user": "bWU="}}},
        "odd": {},
    }}));
    assert_eq!(request::credentials(&request, "good").unwrap()["user"], b"me");
    let error = |name| request::credentials(&request, name).unwrap_err().to_string();
    assert_eq!(error("absent"), "absent: credential not found");
    assert_eq!(error("odd"), "odd: not a supported credential source");
}

#[derive(Serialize)]
struct Typed {
    metadata: Value,
    spec: Value,
    status: Option<Value>,
}

/// FN-D34
#[test]
fn typed_desired_state_claims_nothing_that_is_empty() {
    let typed = |metadata: Value| {
        let typed = Typed {
            metadata,
            spec: json!({"size": 0, "empty": {}, "none": null, "list": [], "deep": {"er": {}}}),
            status: None,
        };
        desired_from("example.org/v1", "Thing", &typed).unwrap().into_value()
    };
    assert_eq!(
        typed(json!({"creationTimestamp": null, "generation": 3})),
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "spec": {"size": 0, "list": []}})
    );
    assert_eq!(typed(json!({"name": "a"}))["metadata"], json!({"name": "a"}));
    assert!(desired_from("v1", "K", &3).is_err());
}

/// Connection details are secret.
#[test]
fn debug_output_shows_no_connection_details() {
    let composite = Composite {
        connection_details: [("password".to_owned(), b"hunter2".to_vec())].into(),
        ..Composite::default()
    };
    let text = format!("{composite:?}");
    assert!(text.contains("password") && !text.contains("104, 117"), "{text}");
}

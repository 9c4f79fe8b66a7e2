//! Tests of the whole function.

use super::AutoReady;
use biplane_function::PureFunction;
use biplane_function::v1::{Ready, RunFunctionRequest, RunFunctionResponse};
use serde_json::{Value, json};

fn run(function: &AutoReady, request: Value) -> RunFunctionResponse {
    let request: RunFunctionRequest = serde_json::from_value(request).unwrap();
    PureFunction::run(function, request).unwrap()
}

fn gated() -> AutoReady {
    AutoReady::default().with_feature_gates("CELHealthcheckCustomizations=true").unwrap()
}

/// Returns the readiness of one observed object, and the results.
fn verdict(
    function: &AutoReady,
    input: &Value,
    context: &Value,
    observed: &Value,
) -> (Ready, Vec<String>) {
    let response = run(
        function,
        json!({"input": input, "context": context, "desired": {"resources": {"r": {"resource": {}}}},
            "observed": {"resources": {"r": {"resource": observed}}}}),
    );
    let ready = response.desired.unwrap().resources["r"].ready;
    let results = response.results.into_iter().map(|result| result.message).collect();
    (Ready::try_from(ready).unwrap(), results)
}

fn rule(rule: &str) -> Value {
    json!({"celHealthCheckCustomization": {"_v1_ConfigMap": rule, "acme.example_v1_Thing": rule}})
}

/// AR-7 and AR-30.
#[test]
fn rules_count_only_behind_their_gate_and_outweigh_what_is_known_of_a_kind() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let ask = |function: &AutoReady| verdict(function, &rule("false"), &json!({}), &object).0;
    assert_eq!(ask(&AutoReady::default()), Ready::True);
    assert_eq!(ask(&gated()), Ready::False);
}

/// AR-23 and AR-24.
#[test]
fn rules_come_from_the_context_unless_the_input_has_its_own() {
    let context = json!({"apiextensions.crossplane.io/environment": {"rules": {"acme.example_v1_Thing": "true"}}});
    let object = json!({"apiVersion": "acme.example/v1", "kind": "Thing"});
    let mut input = json!({"celHealthCheckCustomizationFrom": "[apiextensions.crossplane.io/environment].rules"});
    assert_eq!(verdict(&gated(), &input, &context, &object).0, Ready::True);
    input["celHealthCheckCustomization"] = json!({"acme.example_v1_Thing": "false"});
    assert_eq!(verdict(&gated(), &input, &context, &object).0, Ready::False);
}

/// AR-12 and AR-28.
#[test]
fn a_rule_that_fails_is_a_warning_and_decides_nothing() {
    let mut object =
        json!({"apiVersion": "acme.example/v1", "kind": "Thing", "spec": {"enabled": true}});
    for (text, warning) in [
        ("object.status.foo == 1", "failed to eval the program: no such key: status"),
        ("object.spec.enabled", "celQuery does not return a bool type"),
    ] {
        let (ready, results) = verdict(&gated(), &rule(text), &json!({}), &object);
        assert_eq!((ready, results), (Ready::Unspecified, vec![warning.to_owned()]));
    }
    object["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let (ready, results) = verdict(&gated(), &rule("foo("), &json!({}), &object);
    assert_eq!((ready, results.len()), (Ready::True, 1));
    assert!(results[0].starts_with("failed to compile query: ERROR: <input>:1:5: Syntax error"));
}

/// AR-8, AR-9 and AR-13.
#[test]
fn what_was_said_before_stays_and_what_is_not_there_is_not_judged() {
    let thing = json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap"}});
    let response = run(
        &AutoReady::default(),
        json!({
            "desired": {"resources": {
                "no": {"resource": {}, "ready": "READY_FALSE", "connectionDetails": {"k": "dg=="}},
                "absent": {"resource": {"a": 1}},
            }},
            "observed": {"resources": {"no": thing, "other": thing}},
        }),
    );
    let resources = response.desired.unwrap().resources;
    assert_eq!(resources["no"].ready, i32::from(Ready::False));
    assert!(resources["no"].connection_details.is_empty());
    assert_eq!(resources["absent"].ready, i32::from(Ready::Unspecified));
    assert_eq!(resources.len(), 2);
    assert!(run(&AutoReady::default(), json!({})).desired.is_some());
}

/// AR-5 and AR-6.
#[test]
fn the_input_outweighs_the_flag_for_how_long_answers_keep() {
    let function = AutoReady::default().with_ttl("10m".parse().unwrap());
    let ttl =
        |input: Value| run(&function, json!({"input": input})).meta.unwrap().ttl.unwrap().seconds;
    assert_eq!(ttl(json!({})), 600);
    assert_eq!(ttl(json!({"ttl": ""})), 600);
    assert_eq!(ttl(json!({"ttl": "-90s"})), -90);
}

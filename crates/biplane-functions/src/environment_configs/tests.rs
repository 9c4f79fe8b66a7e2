//! Tests of behaviour that no single recording covers.

use super::EnvironmentConfigs;
use biplane_function::PureFunction;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use serde_json::{Value, json};

fn run(request: Value) -> RunFunctionResponse {
    let request: RunFunctionRequest = serde_json::from_value(request).unwrap();
    PureFunction::run(&EnvironmentConfigs, request).unwrap()
}

fn config(name: &str, data: &Value) -> Value {
    json!({"resource": {"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
        "metadata": {"name": name}, "data": data}})
}

fn message(response: &RunFunctionResponse) -> &str {
    response.results.first().map_or("", |result| &result.message)
}

fn environment(response: &RunFunctionResponse) -> Value {
    response.context.as_ref().unwrap()[super::ENVIRONMENT].clone()
}

/// FEC-6 and FEC-11.
#[test]
fn defaults_alone_make_no_environment() {
    for spec in [json!({"defaultData": {"a": 1}}), json!({"environmentConfigs": null}), json!(null)]
    {
        let response = run(json!({"input": {"spec": spec}}));
        assert_eq!((&response.requirements, &response.context), (&None, &None));
    }
    let spec = json!({"defaultData": {"a": 1}, "environmentConfigs": [{"type": "Selector", "selector": {
        "matchLabels": [{"key": "k", "valueFromFieldPath": "spec.nope", "fromFieldPathPolicy": "Optional"}]}}]});
    let response = run(json!({"input": {"spec": spec}}));
    assert!(response.requirements.unwrap().resources.is_empty());
    assert_eq!(response.context, None);
}

/// FEC-20.
#[test]
fn configs_outrank_the_context_and_the_context_outranks_defaults() {
    let response = run(json!({
        "input": {"spec": {"defaultData": {"b": "def", "e": "def", "f": "def"},
            "environmentConfigs": [{"ref": {"name": "1"}}, {"ref": {"name": "2"}}]}},
        "context": {super::ENVIRONMENT: {"a": "in", "e": "in", "f": "in", "g": "in"}, "other": 1},
        "requiredResources": {
            "environment-config-0": {"items": [config("1", &json!({"c": 1, "f": "one", "h": "one"}))]},
            "environment-config-1": {"items": [config("2", &json!({"d": 1, "g": "two", "h": "two"}))]}},
    }));
    assert_eq!(
        environment(&response),
        json!({"a": "in", "b": "def", "c": 1, "d": 1, "e": "in", "f": "one", "g": "two", "h": "two",
            "apiVersion": "internal.crossplane.io/v1alpha1", "kind": "Environment"})
    );
    assert_eq!(response.context.unwrap()["other"], 1);
}

/// A scalar between two objects hides the lower object only from the data that it was merged with
/// first.
#[test]
fn configs_are_merged_with_each_other_before_they_meet_the_context() {
    let response = run(json!({
        "input": {"spec": {"environmentConfigs": [{"ref": {"name": "1"}}, {"ref": {"name": "2"}}]}},
        "context": {super::ENVIRONMENT: {"x": {"p": 1}, "kind": "K"}},
        "requiredResources": {
            "environment-config-0": {"items": [config("1", &json!({"x": 5}))]},
            "environment-config-1": {"items": [config("2", &json!({"x": {"q": 2}}))]}},
    }));
    assert_eq!(environment(&response), json!({"x": {"p": 1, "q": 2}, "kind": "K"}));
}

/// FEC-21, as implemented upstream.
#[test]
fn data_that_says_what_it_is_keeps_its_word() {
    for (data, marked) in [
        (json!({"kind": "x"}), false),
        (json!({"apiVersion": "x"}), false),
        (json!({"apiVersion": "/"}), true),
        (json!({"apiVersion": "a/b/c", "kind": "x"}), true),
        (json!({"apiVersion": 5, "kind": []}), true),
    ] {
        let response = run(json!({
            "input": {"spec": {"environmentConfigs": [{"ref": {"name": "1"}}]}},
            "requiredResources": {"environment-config-0": {"items": [config("1", &data)]}},
        }));
        let environment = environment(&response);
        assert_eq!(environment["kind"] == "Environment", marked, "{data}");
        if !marked {
            assert_eq!(environment, data);
        }
    }
}

/// FEC-29.
#[test]
fn incomplete_sources_are_told_apart_instead_of_ending_the_process() {
    for (source, text) in [
        (json!({"type": "Reference"}), "ref is required by type Reference"),
        (json!({"type": "Selector"}), "selector is required by type Selector"),
        (
            json!({"type": "Selector", "selector": {"matchLabels": [{"key": "k", "type": "Value"}]}}),
            "value is required by type Value",
        ),
        (
            json!({"type": "Selector", "selector": {"matchLabels": [{"key": "k"}]}}),
            "valueFromFieldPath is required by type FromCompositeFieldPath",
        ),
    ] {
        let response =
            run(json!({"input": {"spec": {"environmentConfigs": [{"type": "Other"}, source]}}}));
        assert_eq!(
            message(&response),
            format!("cannot build requirements: environmentConfigs[1]: {text}")
        );
    }
}

/// FEC-17.
#[test]
fn values_that_are_missing_sort_as_zero() {
    let items = |values: &[Value]| -> Value {
        values
            .iter()
            .enumerate()
            .map(|(i, p)| config(&i.to_string(), &json!({"p": p, "last": i})))
            .collect()
    };
    let last = |values: &[Value], path: &str| {
        run(json!({
            "input": {"spec": {"environmentConfigs": [{"type": "Selector", "selector": {"mode": "Multiple",
                "sortByFieldPath": path, "matchLabels": [{"key": "k", "type": "Value", "value": "v"}]}}]}},
            "requiredResources": {"environment-config-0": {"items": items(values)}},
        }))
    };
    for (values, winner) in [
        (vec![json!(3), json!(1.5), json!(2)], 0),
        (vec![json!("b"), json!("c"), json!("a")], 1),
        (vec![json!(-1), json!(null), json!(-2)], 1),
        (vec![json!(null), json!(null)], 1),
        (vec![json!(["x"])], 0),
    ] {
        assert_eq!(environment(&last(&values, "data.p"))["last"], winner, "{values:?}");
    }
    let prefix = "cannot get selected environment configs: cannot process environment config \
                  \"environment-config-0\" by selector: ";
    for (values, error) in [
        (
            vec![json!(1), json!("a")],
            "cannot sort values of different types \"float64\" and \"string\"",
        ),
        (
            vec![json!({}), json!([])],
            "cannot sort values of different types \"map[string]interface {}\" and \"[]interface {}\"",
        ),
        (vec![json!([]), json!(null)], "unsupported type \"slice\" for sorting"),
        (vec![json!(true), json!(false)], "unsupported type \"bool\" for sorting"),
    ] {
        assert_eq!(message(&last(&values, "data.p")), format!("{prefix}{error}"));
    }
    assert_eq!(message(&last(&[json!(1)], "data[0]")), format!("{prefix}data: not an array"));
    assert_eq!(message(&last(&[], "data[")), "");
}

#[test]
fn a_path_too_deep_for_any_document_is_refused() {
    let path = vec!["a"; 100_000].join(".");
    let response = run(json!({
        "input": {"spec": {"environmentConfigs": [{"ref": {"name": "1"}, "toFieldPath": path}]}},
        "requiredResources": {"environment-config-0": {"items": [config("1", &json!({}))]}},
    }));
    assert!(message(&response).starts_with(
        "cannot merge environment data: cannot get data from environment config 1 into path"
    ));
}

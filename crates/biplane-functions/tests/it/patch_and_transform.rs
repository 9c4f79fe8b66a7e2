//! Compares with the real function-patch-and-transform: generated calls, and calls of recorded
//! pipelines.

use std::sync::Arc;

use biplane_function::PureFunction;
use biplane_function::v1::RunFunctionResponse;
use biplane_functions::patch_and_transform::PatchAndTransform;
use serde_json::{Value, json};

use crate::recorded::{
    Recording, assert_answers_equal, assert_served_answers_equal, assert_survives_damage, unpack,
};
use crate::rows::{self, Row, merge};

fn recordings() -> Vec<Recording> {
    unpack(include_bytes!("../data/pt.jsonl.gz"))
}

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = recordings();
    assert!(recordings.len() > 2500, "{} recordings", recordings.len());
    assert_answers_equal(&PatchAndTransform::default(), recordings);
}

#[tokio::test]
async fn answers_the_same_over_the_wire() {
    assert_served_answers_equal(Arc::new(PatchAndTransform::default()), recordings()).await;
}

#[test]
fn answers_whatever_it_is_asked() {
    let function = PatchAndTransform::default();
    assert_survives_damage("function-patch-and-transform", &function, &recordings());
}

/// Keys of a row: `xr` is the composite resource; `base`, `patches` and `template` describe one
/// template `r`, or `input` is the whole input; `secret` is the destination of connection details;
/// `seen` is the observed resource; `env` is the environment; `combined` is a transform of a
/// combined string.
fn ask(row: &mut Row) -> RunFunctionResponse {
    if let Some(transform) = row.take("combined") {
        let variables = json!([{"fromFieldPath": "metadata.name"}]);
        let patch = json!({
            "type": "CombineFromComposite", "toFieldPath": "out", "transforms": [transform],
            "combine": {"strategy": "string", "string": {"fmt": "%s"}, "variables": variables},
        });
        row.put("patches", json!([patch]));
    }
    let mut xr =
        json!({"apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "xr"}});
    merge(&mut xr, row.take("xr").unwrap_or(json!({})));
    let mut request = json!({"observed": {"composite": {"resource": xr}}});
    if let Some(seen) = row.take("seen") {
        let mut object = json!({"apiVersion": "example.org/v1", "kind": "Thing"});
        merge(&mut object, seen);
        request["observed"]["resources"] = json!({"r": {"resource": object}});
    }
    if let Some(environment) = row.take("env") {
        request["context"] = json!({"apiextensions.crossplane.io/environment": environment});
    }
    let mut template = json!({
        "name": "r",
        "base": {"apiVersion": "example.org/v1", "kind": "Thing"},
        "patches": row.take("patches").unwrap_or(json!([])),
    });
    merge(&mut template["base"], row.take("base").unwrap_or(json!({})));
    merge(&mut template, row.take("template").unwrap_or(json!({})));
    let mut input = json!({"resources": [template]});
    if let Some(secret) = row.take("secret") {
        input["writeConnectionSecretToRef"] = secret;
    }
    match row.take("input").unwrap_or(input) {
        Value::Null => {}
        input => request["input"] = input,
    }
    PatchAndTransform::default().run(row.request(request)).unwrap()
}

/// Keys of a row: `in` is the value, as an integer if `integer` is set; `transform` is the
/// transform; `out` is the result, or `error` the error.
fn ask_to_transform(row: &mut Row) -> RunFunctionResponse {
    let transform = row.take("transform").unwrap();
    let mut transforms = vec![transform.clone()];
    if row.take("integer").is_some() {
        // Every received number is a double.
        transforms.insert(0, json!({"type": "convert", "convert": {"toType": "int64"}}));
    }
    let input = row.take("in").unwrap();
    row.put("xr", json!({"spec": {"in": input}}));
    let index = transforms.len() - 1;
    let patch = json!({"fromFieldPath": "spec.in", "toFieldPath": "out", "transforms": transforms});
    row.put("patches", json!([patch]));
    if let Some(out) = row.take("out") {
        row.put("resource", json!({"out": out}));
    }
    if let Some(error) = row.take("error") {
        let text = format!(
            "cannot render composed resource \"r\" \"FromCompositeFieldPath\" patch at index 0: \
             transform at index {index} returned error: {} transform could not resolve: {}",
            transform["type"].as_str().unwrap(),
            error.as_str().unwrap()
        );
        row.put("fails", text.into());
    }
    ask(row)
}

#[test]
fn transforms_as_the_tables_say() {
    rows::check(include_str!("../rows/transforms.yaml"), ask_to_transform);
}

#[test]
fn patches_as_the_tables_say() {
    rows::check(include_str!("../rows/patches.yaml"), ask);
}

#[test]
fn judges_readiness_and_collects_details_as_the_tables_say() {
    rows::check(include_str!("../rows/readiness.yaml"), ask);
}

#[test]
fn refuses_what_the_table_of_rules_refuses() {
    rows::check(include_str!("../rows/validation.yaml"), ask);
}

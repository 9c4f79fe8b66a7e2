//! How long the functions that judge readiness and gather environments take.

#![allow(missing_docs, clippy::unwrap_used)] // what criterion's macros make has no docs

use std::hint::black_box;

use biplane_function::PureFunction;
use biplane_function::v1::RunFunctionRequest;
use biplane_functions::auto_ready::AutoReady;
use biplane_functions::environment_configs::EnvironmentConfigs;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

fn request(value: Value) -> RunFunctionRequest {
    serde_json::from_value(value).unwrap()
}

/// A hundred resources of several kinds, all observed.
fn resources(input: &Value) -> RunFunctionRequest {
    let conditions =
        json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2031-05-01T10:00:00Z"}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"restartPolicy": "Always",
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}}}]},
        "status": {"phase": "Running", "conditions": conditions}});
    let claim = json!({"apiVersion": "acme.example/v1", "kind": "Bucket", "status": {"conditions": conditions}});
    let observed: serde_json::Map<_, _> = (0..100)
        .map(|i| (format!("r{i}"), json!({"resource": if i % 2 == 0 { &pod } else { &claim }})))
        .collect();
    let desired: serde_json::Map<_, _> =
        observed.keys().map(|name| (name.clone(), json!({"resource": {"spec": {}}}))).collect();
    request(
        json!({"input": input, "observed": {"resources": observed}, "desired": {"resources": desired}}),
    )
}

/// Ten configs of a hundred keys each.
fn configs() -> RunFunctionRequest {
    let data: serde_json::Map<_, _> =
        (0..100).map(|i| (format!("key{i}"), json!({"a": i, "b": ["x", "y"]}))).collect();
    let items: Vec<Value> = (0..10)
        .map(|i| json!({"resource": {"metadata": {"name": format!("c{i}")}, "data": data}}))
        .collect();
    request(json!({
        "input": {"spec": {"environmentConfigs": [{"type": "Selector", "selector": {"mode": "Multiple",
            "matchLabels": [{"key": "k", "type": "Value", "value": "v"}]}}]}},
        "requiredResources": {"environment-config-0": {"items": items}},
    }))
}

fn functions(c: &mut Criterion) {
    let plain = resources(&json!({}));
    let function = AutoReady::default();
    c.bench_function("auto-ready, 100 resources", |b| {
        b.iter(|| black_box(function.run(black_box(plain.clone()))));
    });

    let rule = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')";
    let ruled =
        resources(&json!({"celHealthCheckCustomization": {"acme.example_v1_Bucket": rule}}));
    let function = AutoReady::default().with_feature_gates("AllAlpha=true").unwrap();
    c.bench_function("auto-ready, 50 of 100 resources by rule", |b| {
        b.iter(|| black_box(function.run(black_box(ruled.clone()))));
    });

    let configs = configs();
    c.bench_function("environment-configs, 10 configs of 100 keys", |b| {
        b.iter(|| black_box(EnvironmentConfigs.run(black_box(configs.clone()))));
    });
}

criterion_group!(benches, functions);
criterion_main!(benches);

//! Measures the cost of sending a request to a function and reading its response.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use biplane_proto::function::v1::{Resource, RunFunctionRequest, State};
use biplane_proto::{Struct, deterministic, json};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prost::Message as _;
use serde_json::{Value, json};

/// An object of the size of a Deployment that several controllers have written: 3.6 KB of JSON.
fn resource(index: usize) -> Struct {
    let container = |n: usize| {
        json!({
            "name": format!("container-{n}"),
            "image": "registry.example.org/team/service:v1.2.3",
            "ports": [{"containerPort": 8080 + n, "name": "http", "protocol": "TCP"}],
            "env": (0..6).map(|e| json!({"name": format!("VARIABLE_{e}"), "value": "some value"}))
                .collect::<Vec<_>>(),
            "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": 0.25}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
            "securityContext": {"runAsNonRoot": true, "readOnlyRootFilesystem": true},
        })
    };
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "Available",
            "message": "Deployment has minimum availability.",
            "lastTransitionTime": "2026-01-15T10:30:05Z", "observedGeneration": 3,
        })
    };
    let conditions = ["Available", "Progressing", "Synced"].map(condition);
    let Value::Object(map) = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": format!("service-{index}"),
            "namespace": "default",
            "uid": "0b5c1f0e-6f0e-4f0f-9c8e-0d6f7a1b2c3d",
            "resourceVersion": "4711",
            "generation": 3,
            "labels": {"app": "service", "team": "platform", "crossplane.io/composite": "demo"},
            "annotations": {"crossplane.io/composition-resource-name": format!("service-{index}")},
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "service"}},
            "template": {"spec": {"containers": (0..4).map(container).collect::<Vec<_>>()}},
        },
        "status": {
            "conditions": conditions,
            "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "ratio": 0.75,
        },
    }) else {
        unreachable!("an object was written")
    };
    map.into()
}

fn request() -> RunFunctionRequest {
    let named = |index| Resource { resource: Some(resource(index)), ..Resource::default() };
    let resources = (0..50).map(|index| (format!("resource-{index}"), named(index))).collect();
    RunFunctionRequest {
        observed: Some(State { composite: Some(named(1000)), resources }),
        ..RunFunctionRequest::default()
    }
}

fn one_resource(c: &mut Criterion) {
    let message = resource(0);
    let wire = message.encode_to_vec();
    let mut group = c.benchmark_group("resource");
    group.throughput(Throughput::Bytes(wire.len() as u64));
    group.bench_function("decode", |b| b.iter(|| Struct::decode(black_box(&*wire)).unwrap()));
    group.bench_function("encode", |b| b.iter(|| black_box(&message).encode_to_vec()));
    group.finish();
}

fn whole_request(c: &mut Criterion) {
    let message = request();
    let wire = message.encode_to_vec();
    let text = json::to_string(&message).unwrap();
    let mut group = c.benchmark_group("request");
    group.throughput(Throughput::Bytes(wire.len() as u64));
    group.bench_function("decode", |b| {
        b.iter(|| RunFunctionRequest::decode(black_box(&*wire)).unwrap());
    });
    group.bench_function("encode", |b| b.iter(|| black_box(&message).encode_to_vec()));
    group.bench_function("encode deterministic", |b| {
        b.iter(|| deterministic::encode(black_box(&message)));
    });
    group.bench_function("tag", |b| b.iter(|| deterministic::tag(black_box(&message))));
    group.bench_function("to JSON", |b| b.iter(|| json::to_string(black_box(&message)).unwrap()));
    group.bench_function("from JSON", |b| {
        b.iter(|| json::from_str::<RunFunctionRequest>(black_box(&text)).unwrap());
    });
    group.finish();
}

criterion_group!(benches, one_resource, whole_request);
criterion_main!(benches);

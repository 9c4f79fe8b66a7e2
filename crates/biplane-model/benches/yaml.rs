//! Measures how long a very large custom resource definition takes to read and to print.

use std::hint::black_box;

use biplane_model::yaml::{parse_one, to_string};
use biplane_model::{Map, Value};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

/// A schema of nested objects, with descriptions of typical length.
fn schema(depth: usize, breadth: usize) -> Value {
    if depth == 0 {
        return json!({
            "description": "The name of the thing that this field refers to. Must be unique \
                            within the namespace. More info: https://example.org/docs/names",
            "type": "string",
            "maxLength": 253,
            "x-kubernetes-preserve-unknown-fields": true,
        });
    }
    let properties: Map<String, Value> =
        (0..breadth).map(|n| (format!("field{n}"), schema(depth - 1, breadth))).collect();
    json!({
        "description": "One of several blocks.\n\nIt is optional: leave it out to get the default.",
        "type": "object",
        "required": ["field0", "field1"],
        "properties": properties,
    })
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema(4, 7)}}],
        },
    })
}

fn yaml(criterion: &mut Criterion) {
    let value = definition();
    let text = to_string(&value);
    let mut group = criterion.benchmark_group(format!("yaml of {} KB", text.len() / 1000));
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("read", |b| b.iter(|| parse_one("crd.yaml", black_box(&text))));
    group.bench_function("print", |b| b.iter(|| to_string(black_box(&value))));
    group.finish();
}

criterion_group!(benches, yaml);
criterion_main!(benches);

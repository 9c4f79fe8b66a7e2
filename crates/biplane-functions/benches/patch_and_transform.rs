//! How long function-patch-and-transform takes for ten resources with five patches each.

use std::hint::black_box;

use biplane_function::PureFunction;
use biplane_function::v1::RunFunctionRequest;
use biplane_functions::patch_and_transform::PatchAndTransform;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

fn template(index: usize) -> Value {
    json!({
        "name": format!("bucket-{index}"),
        "base": {
            "apiVersion": "s3.example.org/v1beta1",
            "kind": "Bucket",
            "metadata": {"labels": {"tier": "gold"}},
            "spec": {"forProvider": {"region": "here", "size": 5, "tags": [{"key": "a"}]}},
        },
        "patches": [
            {"fromFieldPath": "spec.region", "toFieldPath": "spec.forProvider.region"},
            {
                "fromFieldPath": "spec.size", "toFieldPath": "spec.forProvider.size",
                "transforms": [{"type": "math", "math": {"type": "Multiply", "multiply": 3}}],
            },
            {
                "fromFieldPath": "metadata.name", "toFieldPath": "metadata.annotations[example.org/owner]",
                "transforms": [
                    {"type": "string", "string": {"type": "Format", "fmt": "owner-%s"}},
                    {"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}},
                ],
            },
            {
                "type": "CombineFromComposite", "toFieldPath": "spec.forProvider.name",
                "combine": {
                    "strategy": "string", "string": {"fmt": "%s-%s"},
                    "variables": [{"fromFieldPath": "metadata.name"}, {"fromFieldPath": "spec.region"}],
                },
            },
            {"type": "ToCompositeFieldPath", "fromFieldPath": "status.id", "toFieldPath": format!("status.ids.b{index}")},
        ],
        "readinessChecks": [{"type": "MatchString", "fieldPath": "status.state", "matchString": "on"}],
    })
}

fn request() -> RunFunctionRequest {
    let observed: serde_json::Map<String, Value> = (0..10)
        .map(|index| {
            let resource = json!({
                "apiVersion": "s3.example.org/v1beta1", "kind": "Bucket",
                "metadata": {"name": format!("seen-{index}")},
                "status": {"id": format!("id-{index}"), "state": "on"},
            });
            (format!("bucket-{index}"), json!({"resource": resource}))
        })
        .collect();
    let request = json!({
        "meta": {"tag": "bench"},
        "observed": {
            "composite": {"resource": {
                "apiVersion": "example.org/v1", "kind": "XApp", "metadata": {"name": "app"},
                "spec": {"region": "there", "size": 14},
            }},
            "resources": observed,
        },
        "input": {
            "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
            "resources": (0..10).map(template).collect::<Vec<_>>(),
        },
    });
    serde_json::from_value(request).expect("the request is one")
}

fn ten_resources_with_five_patches(c: &mut Criterion) {
    let function = PatchAndTransform::default();
    let request = request();
    c.bench_function("ten resources with five patches, in process", |b| {
        b.iter_batched(
            || request.clone(),
            |request| black_box(function.run(request)),
            BatchSize::SmallInput,
        );
    });
    // Over the wire the input is equal but not the same.
    c.bench_function("ten resources with five patches, from elsewhere", |b| {
        b.iter_batched(
            self::request,
            |request| black_box(function.run(request)),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, ten_resources_with_five_patches);
criterion_main!(benches);

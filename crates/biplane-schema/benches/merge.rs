//! Measures how long an apply takes, on an object of the size of a Deployment.

use biplane_model::{Gvk, Object, Value};
use biplane_schema::merge::{FieldManager, FieldSet, OneVersion, TypeRef};
use biplane_schema::structural::Schema;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;

fn schema() -> Value {
    let env = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "value": {"type": "string", "maxLength": 64}},
        },
    });
    let containers = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "image": {"type": "string", "pattern": "^[a-z./:0-9-]+$"},
                "args": {"type": "array", "items": {"type": "string"}},
                "env": env,
            },
        },
    });
    let spec = json!({
        "type": "object",
        "properties": {
            "replicas": {"type": "integer", "minimum": 0, "default": 1},
            "containers": containers,
        },
    });
    json!({"type": "object", "properties": {"spec": spec}})
}

fn object(containers: usize, replicas: usize) -> Object {
    let containers: Vec<Value> = (0..containers)
        .map(|c| {
            let env: Vec<Value> = (0..20)
                .map(|e| json!({"name": format!("NAME_{e}"), "value": format!("value-{e}")}))
                .collect();
            json!({
                "name": format!("container-{c}"),
                "image": "example.org/image:1",
                "args": ["--one", "--two"],
                "env": env,
            })
        })
        .collect();
    let value = json!({
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": {"replicas": replicas, "containers": containers},
    });
    Object::from_value(value).unwrap_or_default()
}

fn merges(c: &mut Criterion) {
    let gvk = Gvk::new("example.org/v1", "Widget");
    let versions =
        OneVersion { api_version: gvk.api_version(), type_ref: TypeRef::of_resource(&schema()) };
    let ignored = FieldSet::default();
    let manager = FieldManager {
        versions: &versions,
        gvk: &gvk,
        subresource: "",
        ignored: &ignored,
        now: "2024-01-01T00:00:00Z",
    };
    let Ok(applied) = manager.apply(None, &object(5, 1), "a", false) else { return };
    let live = applied.object;
    let (same, other) = (object(5, 1), object(5, 2));
    c.bench_function("apply what is there", |b| {
        b.iter(|| manager.apply(Some(&live), &same, "a", false));
    });
    c.bench_function("apply a change", |b| {
        b.iter(|| manager.apply(Some(&live), &other, "a", false));
    });
    c.bench_function("track an update", |b| {
        b.iter(|| manager.update(Some(&live), &other, "u"));
    });
    let Ok(compiled) = Schema::parse(&schema()) else { return };
    c.bench_function("prune, default and validate", |b| {
        b.iter(|| {
            let mut object = other.clone();
            compiled.prune(&mut object);
            compiled.default(&mut object);
            compiled.validate(&object, None)
        });
    });
}

criterion_group!(benches, merges);
criterion_main!(benches);

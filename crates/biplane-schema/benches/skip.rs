//! Measures how long it takes to tell that an apply would change nothing.

use biplane_model::{Gvk, Object, Value};
use biplane_schema::merge::{
    Applying, FieldManager, FieldSet, Ledger, OneVersion, TypeRef, Verdict, verdict,
};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;

const HOW: Applying<'_> = Applying { manager: "composed", subresource: None };

/// A composed resource: labels, annotations and an owner besides its content.
fn composed(content: &Value) -> Object {
    let mut object = json!({
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {
            "name": "photos-30580e142c4e",
            "namespace": "shop",
            "generateName": "photos-",
            "annotations": {"crossplane.io/composition-resource-name": "bucket"},
            "labels": {"crossplane.io/composite": "photos", "app": "shop", "team": "storage"},
            "ownerReferences": [{
                "apiVersion": "platform.example.org/v1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "Storage",
                "name": "photos",
                "uid": "dac8ca0d-cdde-5a0d-ae79-1a5c05d20387",
            }],
        },
    });
    if let (Some(object), Some(content)) = (object.as_object_mut(), content.as_object()) {
        object.extend(content.clone());
    }
    Object::from_value(object).unwrap_or_default()
}

/// The object as a server stores it.
fn stored(intent: &Object) -> Object {
    let list = |key: &str, properties: Value| {
        json!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [key],
            "items": {"type": "object", "properties": properties},
        })
    };
    let env = list("name", json!({"name": {"type": "string"}, "value": {"type": "string"}}));
    let containers = list(
        "name",
        json!({
            "name": {"type": "string"},
            "image": {"type": "string"},
            "args": {"type": "array", "items": {"type": "string"}},
            "env": env,
        }),
    );
    let spec = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"},
        "containers": containers,
    }});
    let data = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "data": data}});
    let gvk = Gvk::new("example.org/v1", "Widget");
    let versions =
        OneVersion { api_version: gvk.api_version(), type_ref: TypeRef::of_resource(&schema) };
    let ignored = FieldSet::default();
    let manager = FieldManager {
        versions: &versions,
        gvk: &gvk,
        subresource: "",
        ignored: &ignored,
        now: "2024-01-01T00:00:00Z",
    };
    let applied = manager.apply(None, intent, HOW.manager, true);
    let mut object = applied.map(|applied| applied.object).unwrap_or_default();
    object.set_meta("uid", "4d2f0a3e-6c1b-5f7e-9a40-0d5c6b7a8e9f");
    object.set_meta("resourceVersion", "4711");
    object
}

fn skips(c: &mut Criterion) {
    let data: Value = (0..20).map(|i| (format!("key-{i:02}"), json!("v".repeat(50)))).collect();
    let config_map = composed(&json!({"data": data}));
    let containers: Vec<Value> = (0..3)
        .map(|c| {
            let env: Vec<Value> = (0..15)
                .map(|e| json!({"name": format!("NAME_{e}"), "value": format!("value-{e}")}))
                .collect();
            let (name, args) = (format!("container-{c}"), json!(["--one", "--two"]));
            json!({"name": name, "image": "example.org/image:1", "args": args, "env": env})
        })
        .collect();
    let workload = composed(&json!({"spec": {"replicas": 2, "containers": containers}}));
    for (name, intent) in [("flat", &config_map), ("lists", &workload)] {
        let live = stored(intent);
        let size = live.to_value().to_string().len();
        assert_eq!(verdict(intent, &live, &HOW), Verdict::Same);
        c.bench_function(&format!("verdict, {name}, {size} bytes"), |b| {
            b.iter(|| verdict(intent, &live, &HOW));
        });
        // A server that stores something else.
        let mut rewritten = live.clone();
        rewritten.set_at_or_ignore(&["metadata", "labels", "team"], "other");
        let mut ledger = Ledger::new();
        ledger.remember(intent, &rewritten, &HOW);
        assert!(ledger.can_skip(intent, &rewritten, &HOW));
        c.bench_function(&format!("verdict and ledger, {name}, {size} bytes"), |b| {
            b.iter(|| ledger.can_skip(intent, &rewritten, &HOW));
        });
    }
}

criterion_group!(benches, skips);
criterion_main!(benches);

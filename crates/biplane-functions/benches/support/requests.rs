//! The requests of the benchmarks.

use biplane_function::v1::RunFunctionRequest;
use serde_json::{Value, json};

fn request(value: Value) -> RunFunctionRequest {
    serde_json::from_value(value).expect("the request is one")
}

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

/// Ten resources with five patches each, all observed.
pub(crate) fn patches() -> RunFunctionRequest {
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
    request(json!({
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
    }))
}

/// A hundred resources of several kinds, all observed.
pub(crate) fn resources(input: &Value) -> RunFunctionRequest {
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
pub(crate) fn configs() -> RunFunctionRequest {
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

/// A template of twenty resources with a loop, conditions, a helper template and a status.
pub(crate) fn templates() -> RunFunctionRequest {
    const TEMPLATE: &str = r#"
{{- define "labels" -}}
app.kubernetes.io/name: {{ .metadata.name | quote }}
app.kubernetes.io/managed-by: crossplane
{{- end -}}
{{- $xr := .observed.composite.resource -}}
{{- range $i := until 20 }}
---
apiVersion: s3.example.org/v1beta1
kind: Bucket
metadata:
  annotations:
    {{ setResourceNameAnnotation (printf "bucket-%d" $i) }}
  labels:
    {{- include "labels" $xr | nindent 4 }}
    tier: {{ if lt $i 10 }}gold{{ else }}silver{{ end }}
spec:
  forProvider:
    region: {{ $xr.spec.region | default "here" }}
    size: {{ mul $xr.spec.size (add1 $i) }}
    tags: {{ dict "index" $i "owner" ($xr.metadata.name | upper) | toJson }}
{{- end }}
---
apiVersion: example.org/v1
kind: XApp
status:
  ready: {{ (getResourceCondition "Ready" (getComposedResource . "bucket-0")).Status | quote }}
  names: {{ range $name, $_ := .observed.resources }}{{ $name }} {{ end }}
"#;
    let observed: serde_json::Map<String, Value> = (0..20)
        .map(|index| {
            let resource = json!({
                "apiVersion": "s3.example.org/v1beta1", "kind": "Bucket",
                "metadata": {"name": format!("seen-{index}")},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            });
            (format!("bucket-{index}"), json!({"resource": resource}))
        })
        .collect();
    request(json!({
        "meta": {"tag": "bench"},
        "observed": {
            "composite": {"resource": {
                "apiVersion": "example.org/v1", "kind": "XApp", "metadata": {"name": "app"},
                "spec": {"region": "there", "size": 14},
            }},
            "resources": observed,
        },
        "input": {
            "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate",
            "source": "Inline", "inline": {"template": TEMPLATE},
        },
    }))
}

//! How long a template of twenty resources takes: to parse it, and to run it.

#![allow(clippy::unwrap_used)] // a failed unwrap fails the benchmark

use std::hint::black_box;

use biplane_template::budget::Limits;
use biplane_template::func::Host;
use biplane_template::value::Value;
use biplane_template::{Delimiters, Functions, MissingKey, Template, sprig};
use criterion::{Criterion, criterion_group, criterion_main};

struct Nowhere;

impl Host for Nowhere {
    fn now(&self) -> (i64, u32) {
        (0, 0)
    }

    fn random(&self, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}

const TEMPLATE: &str = r#"
{{- $xr := .observed.composite.resource }}
{{- define "labels" }}
    app: {{ .metadata.name | quote }}
    region: {{ .spec.region | default "eu" | upper }}
{{- end }}
{{- range $i, $bucket := $xr.spec.buckets }}
---
apiVersion: example.org/v1
kind: Bucket
metadata:
  name: {{ printf "%s-%d" $xr.metadata.name $i }}
  annotations:
    gotemplating.fn.crossplane.io/composition-resource-name: bucket-{{ $i }}
  labels:
{{- template "labels" $xr }}
spec:
  forProvider:
    name: {{ $bucket.name | trimSuffix "-" | trunc 63 }}
    {{- if eq $bucket.kind "public" }}
    acl: public-read
    {{- else }}
    acl: private
    {{- end }}
    tags:
    {{- range $key, $value := $bucket.tags }}
      {{ $key }}: {{ $value | toJson }}
    {{- end }}
    size: {{ add $bucket.size 1 | mul 2 }}
{{- end }}
"#;

fn data() -> serde_json::Value {
    let bucket = |index: usize| {
        serde_json::json!({
            "name": format!("bucket-{index}-"),
            "kind": if index.is_multiple_of(2) { "public" } else { "private" },
            "size": index,
            "tags": {"team": "a", "cost": "b", "env": "prod"},
        })
    };
    serde_json::json!({"observed": {"composite": {"resource": {
        "metadata": {"name": "cool"},
        "spec": {"region": "us", "buckets": (0..20).map(bucket).collect::<Vec<_>>()},
    }}}})
}

fn template(c: &mut Criterion) {
    let functions = Functions::new(sprig::functions());
    let delimiters = Delimiters::default();
    let parse = || Template::parse("manifests", TEMPLATE, &functions, &delimiters).unwrap();
    c.bench_function("parse a template of twenty resources", |b| b.iter(|| black_box(parse())));
    let parsed = parse();
    let json = data();
    c.bench_function("run a template of twenty resources", |b| {
        b.iter(|| {
            let data = Value::from_json(&json);
            black_box(parsed.run(&data, MissingKey::Default, &Nowhere, Limits::default()).unwrap())
        });
    });
}

criterion_group!(benches, template);
criterion_main!(benches);

//! How long it takes to validate 1,000 objects against 200 CRDs, with rules, from the texts on.

#![allow(clippy::format_collect, clippy::format_push_string)] // input, made once

use std::hint::black_box;
use std::path::Path;

use biplane_validate::{Extensions, Resource, sources, validate};
use criterion::{Criterion, criterion_group, criterion_main};

const KINDS: usize = 200;
const OBJECTS: usize = 1_000;

fn crds() -> String {
    let mut text = String::new();
    for kind in 0..KINDS {
        let fields: String = (0..20)
            .map(|field| {
                format!("                  f{field}: {{type: string, maxLength: 60, pattern: '^[a-z0-9-]*$', default: x}}\n")
            })
            .collect();
        text.push_str(&format!(
            "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: kind{kind}s.example.org}}
spec:
  group: example.org
  scope: Namespaced
  names: {{kind: Kind{kind}, plural: kind{kind}s}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {{rule: self.size >= self.least, message: too small}}
            - {{rule: 'self.tags.all(t, t.startsWith(self.f0))'}}
            properties:
              size: {{type: integer, minimum: 0}}
              least: {{type: integer, default: 1}}
              tags: {{type: array, items: {{type: string}}}}
              inner:
                type: object
                properties:
{fields}"
        ));
        text.push_str("              f0: {type: string, default: x}\n");
    }
    text
}

fn objects() -> String {
    (0..OBJECTS)
        .map(|n| {
            format!(
                "---
apiVersion: example.org/v1
kind: Kind{}
metadata: {{name: o{n}}}
spec: {{size: {n}, tags: [x1, x2, x3], inner: {{f1: a, f2: b, f3: c}}}}
",
                n % KINDS
            )
        })
        .collect()
}

fn read(text: &str) -> Vec<Resource> {
    let mut resources = Vec::new();
    let parsed =
        sources::parse(Path::new("bench.yaml"), text.as_bytes().to_vec(), "file", &mut resources);
    assert!(parsed.is_ok());
    resources
}

fn bench(c: &mut Criterion) {
    let (crds, objects) = (crds(), objects());
    c.bench_function("validate 1000 objects against 200 CRDs", |b| {
        b.iter(|| {
            let mut extensions = Extensions::default();
            assert!(extensions.add(&read(&crds)).is_ok());
            let report = validate(black_box(&read(&objects)), &extensions);
            assert!(report.is_ok_and(|report| report.valid() > OBJECTS / 2));
        });
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);

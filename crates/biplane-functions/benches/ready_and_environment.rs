//! Benchmarks of function-auto-ready, function-environment-configs and function-go-templating.

#![allow(missing_docs, clippy::unwrap_used)] // criterion's macros generate items without docs

use std::hint::black_box;

use biplane_function::PureFunction;
use biplane_functions::auto_ready::AutoReady;
use biplane_functions::environment_configs::EnvironmentConfigs;
use biplane_functions::go_templating::GoTemplating;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;

#[path = "support/requests.rs"]
#[allow(dead_code)] // each benchmark uses only some requests
mod requests;

fn functions(c: &mut Criterion) {
    let plain = requests::resources(&json!({}));
    let function = AutoReady::default();
    c.bench_function("auto-ready, 100 resources", |b| {
        b.iter(|| black_box(function.run(black_box(plain.clone()))));
    });

    let rule = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')";
    let ruled = requests::resources(
        &json!({"celHealthCheckCustomization": {"acme.example_v1_Bucket": rule}}),
    );
    let function = AutoReady::default().with_feature_gates("AllAlpha=true").unwrap();
    c.bench_function("auto-ready, 50 of 100 resources by rule", |b| {
        b.iter(|| black_box(function.run(black_box(ruled.clone()))));
    });

    let configs = requests::configs();
    c.bench_function("environment-configs, 10 configs of 100 keys", |b| {
        b.iter(|| black_box(EnvironmentConfigs.run(black_box(configs.clone()))));
    });

    let templates = requests::templates();
    let function = GoTemplating::default();
    c.bench_function("go-templating, 20 resources", |b| {
        b.iter(|| black_box(function.run(black_box(templates.clone()))));
    });
}

criterion_group!(benches, functions);
criterion_main!(benches);

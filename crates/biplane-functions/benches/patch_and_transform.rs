//! Benchmarks of function-patch-and-transform with ten resources of five patches each.

use std::hint::black_box;

use biplane_function::PureFunction;
use biplane_functions::patch_and_transform::PatchAndTransform;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

#[path = "support/requests.rs"]
#[allow(dead_code)] // each benchmark uses only some requests
mod requests;

fn ten_resources_with_five_patches(c: &mut Criterion) {
    let function = PatchAndTransform::default();
    let request = requests::patches();
    c.bench_function("ten resources with five patches, in process", |b| {
        b.iter_batched(
            || request.clone(),
            |request| black_box(function.run(request)),
            BatchSize::SmallInput,
        );
    });
    // Over the wire the input is equal, but not the same allocation.
    c.bench_function("ten resources with five patches, from elsewhere", |b| {
        b.iter_batched(
            requests::patches,
            |request| black_box(function.run(request)),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, ten_resources_with_five_patches);
criterion_main!(benches);

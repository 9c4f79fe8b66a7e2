//! Crash tests: the reconciler stops before or after any single call, and the next reconcile
//! reaches the same state as an undisturbed one.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_cluster::memory::{Answer, ApiServer, Fault, When};
use biplane_cluster::{Quiet, Skipping};
use biplane_engine::composite::Writing;
use biplane_model::{Object, Value};
use biplane_proto::function::v1::{Ready, Resource, RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, FunctionRunner, RunError};
use serde_json::json;

use crate::world::{World, object};

/// The number of resources that a generation can desire.
const RESOURCES: usize = 4;

/// Desires a subset of the resources, each from its own step.
struct Subset {
    wanted: usize,
    steps: usize,
}

#[async_trait]
impl FunctionRunner for Subset {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let mut desired = request.desired.unwrap_or_default();
        for i in
            (0..RESOURCES).filter(|i| i % self.steps == call.index && self.wanted & (1 << i) != 0)
        {
            let content = json!({"apiVersion": "example.org/v1", "kind": "Part", "spec": {"i": i, "of": self.wanted}});
            let resource = Some(object(content).into());
            let ready = Ready::True.into();
            desired
                .resources
                .insert(format!("r{i}"), Resource { resource, ready, ..Resource::default() });
        }
        Ok(RunFunctionResponse {
            desired: Some(desired),
            context: request.context,
            ..RunFunctionResponse::default()
        })
    }
}

pub(crate) fn definition(kind: &str, plural: &str) -> Object {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"conditions": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                        "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": true,
                                  "properties": {"type": {"type": "string"}}},
                    }},
                }}}},
            }],
        },
    }))
}

fn world(steps: usize, writing: Writing) -> World {
    let cluster = ApiServer::default();
    for (kind, plural) in [("Thing", "things"), ("Part", "parts")] {
        cluster.register(&definition(kind, plural)).expect("a definition");
    }
    let mut world = World::on(Arc::new(cluster), steps);
    start(&mut world, writing);
    world
}

/// Starts the control plane anew: what it remembered is gone.
fn start(world: &mut World, writing: Writing) {
    world.reconciler.behaviour.writing = writing;
    if writing != Writing::Stepwise {
        let quiet = Quiet::new(world.cluster.cluster(), Skipping::Skip);
        world.reconciler.context.cluster = Arc::new(quiet);
    }
}

/// Reconciles until the stored objects no longer change.
async fn settle(world: &World) {
    for _ in 0..6 {
        let before = world.cluster.objects();
        world.reconcile().await.expect("an undisturbed reconcile");
        if world.cluster.objects() == before {
            return;
        }
    }
    panic!("still writing after six reconciles: {:?}", world.writes());
}

/// All stored objects, without fields that count writes or objects.
fn state(world: &World) -> Vec<Value> {
    let mut objects: Vec<_> = world.cluster.objects();
    for object in &mut objects {
        for counted in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
            object.remove_at(&["metadata", counted]);
        }
    }
    objects.into_iter().map(Object::into_value).collect()
}

fn wants(world: &mut World, wanted: usize, steps: usize) {
    world.reconciler.context.runner = Arc::new(Subset { wanted, steps });
}

/// The stable state of one generation, without a crash.
async fn settled(steps: usize, writing: Writing, wanted: usize) -> Vec<Object> {
    let mut world = world(steps, writing);
    wants(&mut world, wanted, steps);
    settle(&world).await;
    world.cluster.objects()
}

/// Goes from one generation to another, with a crash at `fault`. Also returns the number of calls
/// of the first reconcile.
async fn run(
    (steps, writing): (usize, Writing),
    first: Option<&[Object]>,
    second: usize,
    fault: Option<Fault>,
) -> (Vec<Value>, usize) {
    let mut world = world(steps, writing);
    if let Some(first) = first {
        world.cluster.seed(first.iter().cloned());
    }
    wants(&mut world, second, steps);
    world.cluster.restart();
    if let Some(fault) = fault {
        world.cluster.inject(fault);
    }
    let reconciled = world.reconcile().await;
    assert_eq!(reconciled.is_err(), fault.is_some(), "{fault:?} was not noticed");
    let calls = world.cluster.calls();
    world.cluster.restart();
    start(&mut world, writing);
    settle(&world).await;
    (state(&world), calls)
}

/// Checks every crash point on the way to one generation.
async fn check(how: (usize, Writing), first: Option<&[Object]>, second: usize) {
    let (want, calls) = run(how, first, second, None).await;
    for call in 0..calls {
        for when in [When::Before, When::After] {
            let fault = Fault { call, when, crash: true, answer: Answer::Unavailable };
            let (got, _) = run(how, first, second, Some(fault)).await;
            assert!(
                got == want,
                "{how:?}, to {second:b}, {fault:?}:\n{}\n{}",
                json!(got),
                json!(want)
            );
        }
    }
}

/// Runs the checks of one pipeline length on every processor.
fn check_all(steps: usize, writing: Writing) {
    let subsets = 1 << RESOURCES;
    let cases: Vec<_> = std::iter::once(None).chain((0..subsets).map(Some)).collect();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for chunk in cases.chunks(cases.len().div_ceil(threads)) {
            scope.spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(async {
                    for first in chunk {
                        let first = match first {
                            Some(first) => Some(settled(steps, writing, *first).await),
                            None => None,
                        };
                        for second in 0..subsets {
                            check((steps, writing), first.as_deref(), second).await;
                        }
                    }
                });
            });
        }
    });
}

#[test]
fn a_crash_at_any_call_changes_nothing_with_one_step() {
    check_all(1, Writing::Stepwise);
}

#[test]
fn a_crash_at_any_call_changes_nothing_with_two_steps() {
    check_all(2, Writing::Stepwise);
}

#[test]
fn a_crash_at_any_call_changes_nothing_with_three_steps() {
    check_all(3, Writing::Stepwise);
}

#[test]
fn a_crash_at_any_call_changes_nothing_with_one_step_at_once() {
    check_all(1, Writing::LIVE);
}

#[test]
fn a_crash_at_any_call_changes_nothing_with_two_steps_at_once() {
    check_all(2, Writing::LIVE);
}

#[test]
fn a_crash_at_any_call_changes_nothing_with_three_steps_at_once() {
    check_all(3, Writing::LIVE);
}

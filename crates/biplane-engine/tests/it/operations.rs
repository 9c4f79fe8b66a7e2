//! Tests of the Operation reconciler.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_engine::Failure;
use biplane_engine::operation::{Capabilities, Reconciler, Unchecked};
use biplane_model::condition::conditions;
use biplane_model::{Object, Value};
use serde_json::json;

use crate::world::{World, object, response, wants};

fn operation(world: &World) -> Object {
    world.cluster.objects().into_iter().find(|o| o.kind() == "Operation").unwrap()
}

fn seed(world: &World, spec: &Value, status: &Value) {
    world.seed(object(json!({
        "apiVersion": "ops.crossplane.io/v1alpha1", "kind": "Operation",
        "metadata": {"name": "op", "uid": "op-uid"}, "spec": spec, "status": status,
    })));
}

async fn run(world: &World, capabilities: impl Capabilities + 'static) -> Result<(), String> {
    let reconciler = Reconciler {
        context: world.reconciler.context.clone(),
        capabilities: Arc::new(capabilities),
        timeout: world.reconciler.behaviour.timeout,
    };
    reconciler.reconcile("", "op").await.map_err(|e| e.text)
}

fn shown(object: &Object) -> Vec<String> {
    let show = |c: biplane_model::condition::Condition| {
        format!("{}={}/{} {}", c.r#type, c.status, c.reason, c.message).trim_end().to_owned()
    };
    conditions(object).into_iter().map(show).collect()
}

fn steps(names: &[&str]) -> Value {
    let steps: Vec<_> =
        names.iter().map(|n| json!({"step": n, "functionRef": {"name": "fn"}})).collect();
    json!({"mode": "Pipeline", "pipeline": steps})
}

#[tokio::test]
async fn an_operation_runs_once_and_remembers_what_it_applied() {
    // OP-6, OP-7, OP-8, T-94, T-102
    let world = World::new(0);
    seed(&world, &steps(&["s"]), &json!({}));
    let resource = |name: &str| json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}});
    world.respond([response(json!({"desired": {"resources": {"1": resource("z"), "2": resource("a"), "3": resource("z")}}}))]);
    run(&world, Unchecked).await.unwrap();
    let done = operation(&world);
    assert_eq!(
        shown(&done),
        [
            "Succeeded=True/PipelineSuccess",
            "ValidPipeline=True/ValidPipeline",
            "Synced=True/ReconcileSuccess"
        ]
    );
    let references = done.at(&["status", "appliedResourceRefs"]).unwrap();
    let names: Vec<_> = references.as_array().unwrap().iter().map(|r| r["name"].clone()).collect();
    assert_eq!(names, [json!("a"), json!("z")]);
    run(&world, Unchecked).await.unwrap();
    assert_eq!(world.requests().len(), 1, "it is over");
}

#[tokio::test]
async fn failures_are_counted_up_to_the_limit() {
    // OP-2, T-99
    for (spec, failures, limit) in [(json!({}), 5, 5), (json!({"retryLimit": 0}), 0, 0)] {
        let world = World::new(0);
        seed(&world, &spec, &json!({"failures": failures}));
        run(&world, Unchecked).await.unwrap();
        assert_eq!(
            shown(&operation(&world)),
            [
                "Synced=True/ReconcileSuccess".to_owned(),
                format!("Succeeded=False/PipelineError failure limit of {limit} reached")
            ]
        );
    }
}

#[tokio::test]
async fn an_input_that_is_not_an_object_cannot_get_better() {
    // OP-5, T-100
    let world = World::new(0);
    seed(
        &world,
        &json!({"pipeline": [{"step": "s", "functionRef": {"name": "fn"}, "input": 5}]}),
        &json!({}),
    );
    let text = run(&world, Unchecked).await.unwrap_err();
    assert!(
        text.starts_with("cannot unmarshal input for operation pipeline step \"s\": "),
        "{text}"
    );
    let done = operation(&world);
    assert_eq!(done.at(&["status", "failures"]), None);
    assert!(shown(&done).contains(
        &"Succeeded=False/PipelineError cannot unmarshal input for operation pipeline step \"s\"".to_owned()
    ));
}

struct Incapable;

#[async_trait]
impl Capabilities for Incapable {
    async fn check(&self, _functions: &[&str]) -> Result<(), Failure> {
        Err(Failure::new("no"))
    }
}

#[tokio::test]
async fn functions_must_be_able_to_run_operations() {
    // OP-4, T-101
    let world = World::new(0);
    seed(&world, &steps(&["s"]), &json!({}));
    assert_eq!(run(&world, Incapable).await, Err("function capability check failed: no".into()));
    let tried = operation(&world);
    assert_eq!(tried.at(&["status", "failures"]), Some(&json!(1)));
    assert_eq!(
        shown(&tried),
        [
            "Succeeded=Unknown/PipelineRunning",
            "Synced=False/ReconcileError function capability check failed: no",
            "ValidPipeline=False/MissingCapabilities function capability check failed: no",
        ]
    );
    assert_eq!(world.events(), ["Warning InvalidPipeline: function capability check failed: no"]);
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn a_fatal_result_is_retried_later() {
    // OP-5, T-95
    let world = World::new(0);
    seed(&world, &steps(&["s"]), &json!({}));
    world
        .respond([response(json!({"results": [{"severity": "SEVERITY_FATAL", "message": "no"}]}))]);
    let text = "pipeline step \"s\" returned a fatal result: no";
    assert_eq!(run(&world, Unchecked).await, Err(text.into()));
    let tried = operation(&world);
    assert_eq!(tried.at(&["status", "failures"]), Some(&json!(1)));
    assert!(shown(&tried).contains(&"Succeeded=Unknown/PipelineRunning".to_owned()));
    assert_eq!(world.events(), [format!("Warning FunctionInvocation: {text}")]);
}

#[tokio::test]
async fn output_of_one_step_replaces_its_earlier_output() {
    // OP-5, T-103
    let world = World::new(0);
    seed(&world, &steps(&["s", "t", "s"]), &json!({}));
    world.respond([
        response(json!({"output": {"n": 1}})),
        response(json!({"output": {"n": 2}})),
        response(json!({"output": {"n": 3}})),
    ]);
    run(&world, Unchecked).await.unwrap();
    assert_eq!(
        operation(&world).at(&["status", "pipeline"]),
        Some(&json!([{"step": "s", "output": {"n": 3}}, {"step": "t", "output": {"n": 2}}]))
    );
}

#[tokio::test]
async fn what_a_pipeline_wants_is_applied_only_after_its_last_step() {
    // OP-6
    let world = World::new(0);
    seed(&world, &steps(&["s", "t"]), &json!({}));
    *world.script.responses.lock().unwrap() = vec![Ok(wants(&["a"])), Err("boom".into())];
    assert_eq!(
        run(&world, Unchecked).await,
        Err("failed to invoke pipeline step \"t\": boom".into())
    );
    assert!(world.applied().is_empty());
}

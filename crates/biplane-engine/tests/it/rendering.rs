//! Tests of the render engine.

use std::sync::Arc;

use biplane_engine::render::{Settings, render};
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_runner::InProcess;
use serde_json::{Value, json};

async fn run(request: Value) -> Value {
    let request: RenderRequest = serde_json::from_value(request).unwrap();
    let runner = Arc::new(InProcess::new(biplane_functions::registry()));
    let clock = biplane_engine::FixedClock("2024-01-01T00:00:00Z".parse().unwrap());
    let settings = Settings { clock: Arc::new(clock), ..Settings::default() };
    let response: RenderResponse = render(request, runner, &settings).await.unwrap();
    serde_json::to_value(response).unwrap()
}

#[tokio::test]
async fn what_is_given_besides_the_composite_resource_does_not_take_its_place() {
    // RE-12, RE-16
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let input = json!({
        "apiVersion": "dummy.fn.crossplane.io/v1beta1",
        "kind": "Response",
        "response": {"desired": {"resources": {"settings": {"resource": resource}}}},
    });
    let xr = json!({"apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "x"}});
    let request = |more: &Value| {
        let mut input = json!({
            "compositeResource": xr,
            "composition": {"metadata": {"name": "c"}, "spec": {
                "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
                "mode": "Pipeline",
                "pipeline": [
                    {"step": "s", "functionRef": {"name": "function-dummy"}, "input": input},
                ],
            }},
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"composite": input})
    };
    let alone = run(request(&json!({}))).await;
    let name = &alone["composite"]["composedResources"][0]["metadata"]["name"];
    assert!(name.as_str().is_some_and(|name| name.starts_with("x-")), "{alone}");
    // An earlier state of the composite resource, with another UID and other references.
    let mut earlier = xr.clone();
    earlier["metadata"]["uid"] = "other".into();
    earlier["spec"] = json!({"crossplane": {"resourceRefs": [{"kind": "Gone"}]}});
    for more in [
        json!({"observedResources": [xr]}),
        json!({"requiredResources": [xr]}),
        json!({"observedResources": [earlier], "requiredResources": [earlier]}),
    ] {
        assert_eq!(run(request(&more)).await, alone, "{more}");
    }
}

/// Each condition read and wrote all the others, which took minutes.
#[tokio::test]
async fn many_conditions_of_a_function_are_set_at_once() {
    let condition = |n: usize| {
        json!({"type": format!("T{n}"), "status": "STATUS_CONDITION_TRUE", "reason": "R",
            "target": "TARGET_COMPOSITE_AND_CLAIM"})
    };
    let conditions: Vec<Value> = (0..10_000).map(condition).collect();
    let input = json!({
        "apiVersion": "dummy.fn.crossplane.io/v1beta1",
        "kind": "Response",
        "response": {"conditions": conditions},
    });
    let rendered = run(json!({"composite": {
        "compositeResource": {
            "apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "x"},
        },
        "composition": {"metadata": {"name": "c"}, "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
            "mode": "Pipeline",
            "pipeline": [{"step": "s", "functionRef": {"name": "function-dummy"}, "input": input}],
        }},
    }}))
    .await;
    let all = &rendered["composite"]["compositeResource"]["status"]["conditions"];
    assert!(all.as_array().is_some_and(|all| all.len() > 10_000), "{all:.200}");
}

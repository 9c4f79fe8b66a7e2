//! Invalid requests: each fails with a clear message and without a partial response.

use std::sync::Arc;

use biplane_engine::render::{RenderError, Settings, connect, render};
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_runner::{Connections, InProcess, Named};
use serde_json::{Value, json};

async fn run(request: Value) -> Result<RenderResponse, String> {
    let request: RenderRequest = serde_json::from_value(request).unwrap();
    let runner = Arc::new(InProcess::new(biplane_functions::registry()));
    match render(request, runner, &Settings::default()).await {
        Err(RenderError::Failed(text)) => Err(text),
        Err(RenderError::Fatal { text, .. }) => panic!("fatal: {text}"),
        Ok(response) => Ok(response),
    }
}

fn composite(change: impl FnOnce(&mut Value)) -> Value {
    let mut input = json!({
        "compositeResource": {"apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "x"}},
        "composition": {"metadata": {"name": "c"}, "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"}, "pipeline": [],
        }},
    });
    change(&mut input);
    json!({"composite": input})
}

#[tokio::test]
async fn a_request_without_input_is_refused() {
    // RE-4, T-81
    let want = "render request must set exactly one of: composite, operation, cron_operation, watch_operation";
    assert_eq!(run(json!({})).await, Err(want.into()));
}

#[tokio::test]
async fn a_composite_resource_without_kind_is_refused() {
    // T-80
    let text = run(composite(|input| input["compositeResource"] = json!({}))).await.unwrap_err();
    assert_eq!(
        text,
        "cannot render composite resource: reconcile failed: cannot get composite resource: Object 'Kind' is missing in '{\"metadata\":{\"resourceVersion\":\"999\",\"uid\":\"a6bd0543-ba57-529f-805f-6dbe3eed1874\"}}'"
    );
}

#[tokio::test]
async fn types_are_checked_before_anything_runs() {
    let text =
        run(composite(|input| input["composition"]["metadata"]["labels"] = json!({"a": 1}))).await;
    assert!(text.unwrap_err().starts_with(
        "cannot render composite resource: cannot convert composition from protobuf: cannot unmarshal JSON to object: json: cannot unmarshal number "
    ));
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "metadata": {"name": "d"},
        "spec": {"names": "text"},
    });
    let text = run(composite(|input| input["compositeResourceDefinition"] = definition)).await;
    assert_eq!(
        text.unwrap_err(),
        "cannot render composite resource: cannot select composite resource schema: cannot decode v1 CompositeResourceDefinition \"d\": cannot restore struct from: string"
    );
}

#[tokio::test]
async fn an_input_that_is_no_object_names_its_first_token() {
    for (input, token) in [(json!(["x"]), "["), (json!("<x"), "\"<x\""), (json!(5), "5")] {
        let text = run(composite(|composite| {
            composite["composition"]["spec"]["pipeline"] = json!([
                {"step": "s", "functionRef": {"name": "function-dummy"}, "input": input},
            ]);
        }))
        .await
        .unwrap_err();
        let want = format!("proto: syntax error (line 1:1): unexpected token {token}");
        assert!(text.ends_with(&want), "{text}");
    }
}

#[tokio::test]
async fn an_unlisted_function_is_named() {
    // T-82
    let request = composite(|input| {
        input["composition"]["spec"]["pipeline"] =
            json!([{"step": "s", "functionRef": {"name": "f"}}]);
    });
    let request: RenderRequest = serde_json::from_value(request).unwrap();
    let error =
        render(request, Arc::new(Named::default()), &Settings::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot render composite resource: reconcile failed: cannot compose resources: cannot run Composition pipeline step \"s\": unknown function \"f\" - is it listed in the render input?"
    );
}

#[tokio::test]
async fn observed_resources_of_others_are_all_named() {
    // RE-14, T-83
    let request = composite(|input| {
        input["compositeResource"]["metadata"]["namespace"] = "ns".into();
        input["observedResources"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "o", "namespace": "other", "ownerReferences": [
                {"apiVersion": "a", "kind": "K", "name": "n", "uid": "u", "controller": true},
            ]},
        }]);
    });
    assert_eq!(
        run(request).await,
        Err("cannot render composite resource: invalid observed resources: [observed resource o has a controller ref but is not controlled by the XR, observed resource o is not in the same namespace as the XR]".into())
    );
}

#[tokio::test]
async fn a_missing_secret_is_named() {
    // T-84
    let request = composite(|input| {
        input["composition"]["spec"]["pipeline"] = json!([{
            "step": "s", "functionRef": {"name": "function-dummy"},
            "credentials": [{"name": "c", "source": "Secret", "secretRef": {"namespace": "ns", "name": "gone"}}],
        }]);
    });
    assert_eq!(
        run(request).await,
        Err("cannot render composite resource: reconcile failed: cannot compose resources: cannot get Composition pipeline step \"s\" credential \"c\" from Secret: Secret \"gone\" not found".into())
    );
}

#[tokio::test]
async fn a_secret_that_is_not_base64_is_refused_without_being_shown() {
    let request = composite(|input| {
        input["composition"]["spec"]["pipeline"] = json!([{
            "step": "s", "functionRef": {"name": "function-dummy"},
            "credentials": [{"name": "c", "source": "Secret", "secretRef": {"namespace": "ns", "name": "s"}}],
        }]);
        input["credentials"] = json!([{"metadata": {"name": "s", "namespace": "ns"}, "data": {"password": "hunter2!"}}]);
    });
    let text = run(request).await.unwrap_err();
    assert!(
        text.ends_with("error decoding from json: illegal base64 data at input byte 7"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_composition_of_the_wrong_shape_is_refused() {
    // RE-16
    let text = run(composite(|input| input["composition"]["spec"]["pipeline"] = json!("x"))).await;
    assert!(text.unwrap_err().starts_with(
        "cannot render composite resource: cannot convert composition from protobuf: "
    ));
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_before_anything_runs() {
    // RE-18
    let request =
        composite(|input| input["functions"] = json!([{"name": "f", "address": "dns:///"}]));
    let request: RenderRequest = serde_json::from_value(request).unwrap();
    let text = connect(&request, &Connections::default()).unwrap_err().to_string();
    assert!(text.starts_with(r#"cannot connect to function "f" at "dns:///": "#), "{text}");
}

#[tokio::test]
async fn a_function_without_an_address_matters_once_it_is_called() {
    // RE-18, RT-5
    for (called, error) in [
        (
            "f",
            Some(
                "cannot render composite resource: reconcile failed: cannot compose resources: cannot run \
                 Composition pipeline step \"s\": rpc error: code = DeadlineExceeded desc = latest balancer \
                 error: delegating_resolver: invalid target address \"\": missing address",
            ),
        ),
        ("", None),
    ] {
        let request = composite(|input| {
            let step = json!({"step": "s", "functionRef": {"name": called}});
            let steps = if called.is_empty() { vec![] } else { vec![step] };
            input["composition"]["spec"]["pipeline"] = json!(steps);
            input["functions"] = json!([{"name": "f", "address": ""}]);
        });
        let request: RenderRequest = serde_json::from_value(request).unwrap();
        let functions = Arc::new(connect(&request, &Connections::default()).unwrap());
        let answer = render(request, functions, &Settings::default()).await;
        assert_eq!(answer.map_err(|e| e.to_string()).err().as_deref(), error);
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_that_cannot_be_reached_runs_into_the_deadline() {
    // RE-18, FN-P5
    let request = composite(|input| {
        input["composition"]["spec"]["pipeline"] =
            json!([{"step": "s", "functionRef": {"name": "f"}}]);
        input["functions"] = json!([{"name": "f", "address": "unix:///nonexistent/socket"}]);
    });
    let request: RenderRequest = serde_json::from_value(request).unwrap();
    let functions = Arc::new(connect(&request, &Connections::default()).unwrap());
    let text = render(request, functions, &Settings::default()).await.unwrap_err().to_string();
    assert!(text.contains("rpc error: code = DeadlineExceeded desc = "), "{text}");
}

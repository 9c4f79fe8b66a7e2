//! In process, a function sees and gives what it would over the wire.

use serde_json::json;
use tonic::Status;

use super::*;
use biplane_function::function::PureFunction;

struct Unruly;

impl PureFunction for Unruly {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut context = request.context.unwrap_or_default();
        context.make_mut().insert("n".into(), json!(3.0));
        Ok(RunFunctionResponse { context: Some(context), ..RunFunctionResponse::default() })
    }
}

struct Failing;

impl PureFunction for Failing {
    fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        Err(Status::invalid_argument("no"))
    }
}

async fn run(function: &str) -> Result<RunFunctionResponse, RunError> {
    let runner =
        InProcess::new(Registry::default().with("unruly", Unruly).with("failing", Failing));
    let call = Call { function: function.into(), ..Call::default() };
    runner.run(&call, RunFunctionRequest::default()).await
}

#[tokio::test]
async fn numbers_are_what_the_wire_would_make_of_them() {
    let context = run("unruly").await.unwrap().context.unwrap();
    assert_eq!(serde_json::to_string(&context).unwrap(), r#"{"n":3}"#);
}

#[tokio::test]
async fn errors_read_as_those_of_a_call() {
    let error = run("failing").await.unwrap_err();
    assert_eq!(error.to_string(), "rpc error: code = InvalidArgument desc = no");
}

#[tokio::test]
async fn an_unlisted_function_is_named() {
    let error = run("other").await.unwrap_err();
    let text = r#"unknown function "other" - is it listed in the render input?"#;
    assert_eq!(error.to_string(), text);
}

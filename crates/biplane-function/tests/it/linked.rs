//! Tests of functions that another SDK exposes as a service, called in process.

use async_trait::async_trait;
use biplane_function::v1::function_runner_service_server::{
    FunctionRunnerService, FunctionRunnerServiceServer,
};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Function, Linked, Registry, request, response};
use biplane_proto::json;
use serde_json::json;
use tonic::{Code, Request, Response, Status};

/// Implements the generated trait, like functions of other SDKs.
struct Theirs;

#[async_trait]
impl FunctionRunnerService for Theirs {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        let request = request.into_inner();
        if request.input.is_none() {
            return Err(Status::invalid_argument("no input: 100 % missing\nreally"));
        }
        let mut answer = response::to(&request, response::DEFAULT_TTL);
        let name = request::observed_composite(&request).resource.name().to_owned();
        response::normal(&mut answer, format!("saw {name}"));
        Ok(Response::new(answer))
    }
}

async fn call(function: impl Function + 'static, request: serde_json::Value) -> Answer {
    let functions = Registry::default().with("theirs", function);
    functions.get("theirs").unwrap().run(json::from_value(request).unwrap()).await
}

type Answer = Result<RunFunctionResponse, Status>;

fn theirs() -> FunctionRunnerServiceServer<Theirs> {
    FunctionRunnerServiceServer::new(Theirs)
}

#[tokio::test]
async fn a_service_of_another_sdk_answers_in_process() {
    let request = json!({
        "meta": {"tag": "t"},
        "input": {"kind": "Input"},
        "observed": {"composite": {"resource": {"metadata": {"name": "ada"}}}},
        "desired": {"resources": {"a": {"resource": {"n": 1, "x": 0.5}, "ready": "READY_TRUE"}}},
        "context": {"k": [1, null, "v"]},
    });
    let answer = call(Linked::new(theirs()), request.clone()).await.unwrap();
    let answer = json::to_value(&answer).unwrap();
    for same in ["desired", "context"] {
        assert_eq!(answer[same], request[same]);
    }
    assert_eq!(answer["meta"], json!({"tag": "t", "ttl": "60s"}));
    assert_eq!(answer["results"][0]["message"], "saw ada");
}

#[tokio::test]
async fn its_errors_arrive_as_they_were() {
    let error = call(Linked::new(theirs()), json!({})).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(error.message(), "no input: 100 % missing\nreally");
}

#[tokio::test]
async fn only_the_service_limits_the_size_of_messages() {
    let request = || json!({"input": {}, "context": {"big": "x".repeat(5 << 20)}});
    let error = call(Linked::new(theirs()), request()).await.unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
    let roomy = theirs().max_decoding_message_size(usize::MAX);
    assert!(call(Linked::new(roomy), request()).await.is_ok());
}

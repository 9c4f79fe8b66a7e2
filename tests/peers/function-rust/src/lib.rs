//! A function written with the official Rust SDK, for tests with other SDKs.

use function_sdk_rust::proto::v1::function_runner_service_server::FunctionRunnerService;
use function_sdk_rust::proto::v1::{Ready, RunFunctionRequest, RunFunctionResponse, Target};
use function_sdk_rust::response::ResourceMatch;
use function_sdk_rust::{Error, request, resource, response};
use serde::Deserialize;
use serde_json::json;
use tonic::{Code, Request, Response, Status};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    /// Return this error.
    fail: Option<String>,
    /// Return a fatal result with this message.
    fatal: Option<String>,
    /// Require the ConfigMap with this name.
    require: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Xr {
    spec: Spec,
}

#[derive(Debug, Deserialize)]
struct Spec {
    replicas: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct Peer;

#[tonic::async_trait]
impl FunctionRunnerService for Peer {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        let req = request.into_inner();
        // Yields once, which shows that the caller supports functions that wait.
        tokio::task::yield_now().await;
        let input: Input = match request::get_input(&req) {
            Ok(input) => input,
            Err(Error::MissingInput) => Input::default(),
            Err(error) => return Err(Status::invalid_argument(error.to_string())),
        };
        if let Some(message) = input.fail {
            return Err(Status::new(Code::FailedPrecondition, message));
        }
        let mut rsp = response::to(&req, response::DEFAULT_TTL);
        if let Some(message) = input.fatal {
            response::fatal(&mut rsp, message);
            return Ok(Response::new(rsp));
        }
        compose(&req, &mut rsp).map_err(|error| Status::internal(error.to_string()))?;
        if let Some(name) = input.require {
            let found = request::get_required_resources(&req, "wanted");
            let found = found.map_or("nothing yet".to_owned(), |found| found.len().to_string());
            response::normal(&mut rsp, format!("found {found}"));
            let wanted = Some(ResourceMatch::Name(name));
            let namespace = Some("default".to_owned());
            response::require_resources(&mut rsp, "wanted", "v1", "ConfigMap", wanted, namespace);
        }
        Ok(Response::new(rsp))
    }
}

fn compose(req: &RunFunctionRequest, rsp: &mut RunFunctionResponse) -> Result<(), Error> {
    let xr: Xr = resource::get(request::observed_composite(req))?;

    let thing = response::desired_composed(rsp, "from-rust");
    let desired = json!({
        "apiVersion": "example.org/v1",
        "kind": "Thing",
        "spec": {"replicas": xr.spec.replicas + 1, "share": 0.5, "unset": null},
    });
    resource::update(thing, &desired)?;
    resource::set_ready(thing, Ready::True);
    resource::update_status(response::desired_composite(rsp), &json!({"seen": true}))?;

    response::set_context_key(rsp, "peer", "rust")?;
    let result = response::warning(rsp, "mind the gap");
    result.reason = Some("Gap".to_owned());
    result.target = Some(Target::CompositeAndClaim as i32);
    let condition = response::condition_true(rsp, "Peered", "Spoken");
    condition.message = Some("hello".to_owned());
    Ok(())
}

//! The render engine: runs one reconcile on an in-memory cluster and turns a request into a
//! response.
//!
//! It runs the production reconcilers. Only [`composite`] and [`operation`] replace parts of a live
//! control plane.

mod composite;
mod environment;
mod operation;
mod output;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::render::v1alpha1::{
    CronOperationOutput, FunctionInput, RenderRequest, RenderResponse, ResponseMeta,
    WatchOperationOutput, render_request::Input, render_response::Output,
};
use biplane_runner::grpc::{GrpcRunner, Security, TargetError};
use biplane_runner::named::Named;
use biplane_runner::{Call, FunctionRunner, RunError, Status};

use crate::composite::outcome::Fatal;
use crate::sources::{Clock, Ids, SystemClock, SystemIds};
use biplane_go::fmt::quote;

pub use composite::composite_uid;

/// The settings of a render besides its request.
#[derive(Clone)]
pub struct Settings {
    /// The timestamp of conditions and Operations.
    pub clock: Arc<dyn Clock>,
    /// The source of trace ids.
    pub ids: Arc<dyn Ids>,
    /// The time limit.
    pub timeout: Duration,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Uses the current time and the time limit of a reconcile.
impl Default for Settings {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            timeout: crate::pipeline::RECONCILE_TIMEOUT,
        }
    }
}

/// Why there is no complete response.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A function returned a fatal result. The partial response contains everything before it.
    #[error("{text}")]
    Fatal {
        /// The error message with all causes.
        text: String,
        /// The step and the message of its function.
        fatal: Fatal,
        /// The response up to the fatal result.
        partial: Box<RenderResponse>,
    },
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// The result of one kind of render.
type Rendered<T> = Result<T, Partial<T>>;

/// A failure and the partial response.
#[derive(Debug)]
enum Partial<T> {
    Fatal(Fatal, String, T),
    Failed(String),
}

impl<T> From<String> for Partial<T> {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// Renders a request. Functions are called through `runner`. The addresses in the request are not
/// used.
pub async fn render(
    request: RenderRequest,
    runner: Arc<dyn FunctionRunner>,
    settings: &Settings,
) -> Result<RenderResponse, RenderError> {
    match request.input {
        Some(Input::Composite(input)) => finish(
            composite::render(input, runner, settings).await,
            "cannot render composite resource",
            Output::Composite,
        ),
        Some(Input::Operation(input)) => finish(
            operation::render(input, runner, settings).await,
            "cannot render operation",
            Output::Operation,
        ),
        Some(Input::CronOperation(input)) => finish(
            operation::from_cron(input, settings)
                .map(|operation| CronOperationOutput { operation: Some(operation) }),
            "cannot render cron operation",
            Output::CronOperation,
        ),
        Some(Input::WatchOperation(input)) => finish(
            operation::from_watch(input)
                .map(|operation| WatchOperationOutput { operation: Some(operation) }),
            "cannot render watch operation",
            Output::WatchOperation,
        ),
        None => Err(RenderError::Failed(
            "render request must set exactly one of: composite, operation, cron_operation, watch_operation".into(),
        )),
    }
}

fn finish<T>(
    rendered: Result<T, impl Into<Partial<T>>>,
    attempted: &str,
    variant: fn(T) -> Output,
) -> Result<RenderResponse, RenderError> {
    let response =
        |output| RenderResponse { meta: Some(ResponseMeta {}), output: Some(variant(output)) };
    match rendered.map_err(Into::into) {
        Ok(output) => Ok(response(output)),
        Err(Partial::Fatal(fatal, text, output)) => Err(RenderError::Fatal {
            text: format!("{attempted}: {text}"),
            fatal,
            partial: Box::new(response(output)),
        }),
        Err(Partial::Failed(text)) => Err(RenderError::Failed(format!("{attempted}: {text}"))),
    }
}

/// Returns the functions that a request lists.
pub fn functions(request: &RenderRequest) -> &[FunctionInput] {
    match &request.input {
        Some(Input::Composite(input)) => &input.functions,
        Some(Input::Operation(input)) => &input.functions,
        _ => &[],
    }
}

/// Connects to functions at the addresses of the request, without TLS. The first entry of a name
/// wins.
pub fn dial(request: &RenderRequest) -> Result<Named, RenderError> {
    let mut all = Named::default();
    for function in functions(request) {
        if all.contains(&function.name) {
            continue;
        }
        let runner = runner(&function.address).map_err(|e| {
            let attempted = match &request.input {
                Some(Input::Operation(_)) => "cannot render operation",
                _ => "cannot render composite resource",
            };
            RenderError::Failed(format!(
                "{attempted}: cannot connect to functions: cannot connect to function {} at {}: {e}",
                quote(&function.name),
                quote(&function.address)
            ))
        })?;
        all.insert(&function.name, runner);
    }
    Ok(all)
}

/// Connects to the function at an address, without TLS.
pub fn runner(address: &str) -> Result<Arc<dyn FunctionRunner>, TargetError> {
    if address.is_empty() {
        return Ok(Arc::new(Nowhere));
    }
    Ok(Arc::new(GrpcRunner::new(address, Security::Plaintext)?))
}

/// A function without an address. It is an error only when the function is called.
struct Nowhere;

#[async_trait]
impl FunctionRunner for Nowhere {
    async fn run(
        &self,
        _call: &Call,
        _request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        // Other clients report this after they have waited for an address.
        Err(RunError::Status(Status::deadline_exceeded(
            "latest balancer error: delegating_resolver: invalid target address \"\": missing address",
        )))
    }
}

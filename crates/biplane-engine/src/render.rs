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

use biplane_proto::render::v1alpha1::{
    CronOperationOutput, FunctionInput, RenderRequest, RenderResponse, ResponseMeta,
    WatchOperationOutput, render_request::Input, render_response::Output,
};
use biplane_runner::{ConnectError, Connections, FunctionRunner, Inspection, Named};

use crate::composite::Release;
use crate::failure::Fatal;
use crate::sources::{Clock, Ids, SystemClock, SystemIds};

pub use composite::{check_observed, composite_uid, layout, revision, uid};

/// The settings of a render besides its request.
#[derive(Clone)]
pub struct Settings {
    /// The timestamp of conditions and Operations.
    pub clock: Arc<dyn Clock>,
    /// The source of trace ids.
    pub ids: Arc<dyn Ids>,
    /// The time limit.
    pub timeout: Duration,
    /// Emits what functions are given and what they answer, if that is wanted.
    pub inspection: Option<Inspection>,
    /// Which release of Crossplane a composite resource is rendered like.
    pub release: Release,
    /// Whether Compositions of mode Resources are rendered. Otherwise they compose nothing.
    pub resources_mode: bool,
    /// Whether Compositions have environments.
    pub environments: bool,
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
            timeout: crate::reconcile::TIMEOUT,
            inspection: None,
            release: Release::V2,
            resources_mode: false,
            environments: false,
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
    let attempted = attempted(&request);
    match request.input {
        Some(Input::Composite(input)) => finish(
            composite::render(input, runner, settings).await,
            attempted,
            Output::Composite,
        ),
        Some(Input::Operation(input)) => finish(
            operation::render(input, runner, settings).await,
            attempted,
            Output::Operation,
        ),
        Some(Input::CronOperation(input)) => finish(
            operation::from_cron(input, settings)
                .map(|operation| CronOperationOutput { operation: Some(operation) }),
            attempted,
            Output::CronOperation,
        ),
        Some(Input::WatchOperation(input)) => finish(
            operation::from_watch(input)
                .map(|operation| WatchOperationOutput { operation: Some(operation) }),
            attempted,
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

/// Connects to the functions of a request at the addresses that it lists.
pub fn connect(request: &RenderRequest, connections: &Connections) -> Result<Named, ConnectError> {
    let functions: &[FunctionInput] = match &request.input {
        Some(Input::Composite(input)) => &input.functions,
        Some(Input::Operation(input)) => &input.functions,
        _ => &[],
    };
    connections.named(functions.iter().map(|f| (f.name.as_str(), f.address.as_str())))
}

/// What a request attempts, in the words of an error.
pub fn attempted(request: &RenderRequest) -> &'static str {
    match &request.input {
        Some(Input::Operation(_)) => "cannot render operation",
        Some(Input::CronOperation(_)) => "cannot render cron operation",
        Some(Input::WatchOperation(_)) => "cannot render watch operation",
        Some(Input::Composite(_)) | None => "cannot render composite resource",
    }
}

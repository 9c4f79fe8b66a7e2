//! The port through which a pipeline calls functions, and the port through which a runner gets what
//! functions require.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use biplane_proto::function::v1::{
    ResourceSelector, Resources, RunFunctionRequest, RunFunctionResponse, Schema, SchemaSelector,
};

/// Which call of which pipeline this is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The function's name, as the pipeline names it.
    pub function: String,
    /// The step's name.
    pub step: String,
    /// The step's place in the pipeline, from zero.
    pub index: usize,
    /// Shared by all calls of one run.
    pub trace: String,
    /// How often the step's requirements have been resolved before this call.
    pub iteration: usize,
    /// How much time is left for the call. Whoever runs a pipeline also cancels it by dropping it.
    pub timeout: Option<Duration>,
}

/// Calls functions.
#[async_trait]
pub trait FunctionRunner: Send + Sync {
    /// Calls the function that `call` names.
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError>;
}

/// Gets what functions require.
#[async_trait]
pub trait Requirements: Send + Sync {
    /// The selected resources; `None` when the one resource that the selector names does not exist.
    async fn resources(&self, selector: &ResourceSelector)
    -> Result<Option<Resources>, FetchError>;
    /// The schema of a kind; an empty one when there is none.
    async fn schema(&self, selector: &SchemaSelector) -> Result<Schema, FetchError>;
}

/// Why something that a function requires could not be had. The text is for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

/// Why a function could not be run. The texts are those that users of the field search for.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nobody knows a function of that name.
    #[error("{0}")]
    Unknown(String),
    /// The call failed; the text names code and reason as gRPC does in Go.
    #[error("{0}")]
    Failed(String),
    /// What the function requires could not be had.
    #[error("{0}")]
    Fetch(String),
    /// The function kept asking for other things.
    #[error("requirements didn't stabilize after the maximum number of iterations ({0})")]
    Unstable(usize),
}

impl RunError {
    /// For a function that nobody lists.
    pub fn unlisted(function: &str) -> Self {
        Self::Unknown(format!("unknown function {function:?} - is it listed in the render input?"))
    }
}

#[async_trait]
impl<R: FunctionRunner + ?Sized> FunctionRunner for Arc<R> {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        (**self).run(call, request).await
    }
}

#[async_trait]
impl<Q: Requirements + ?Sized> Requirements for Arc<Q> {
    async fn resources(
        &self,
        selector: &ResourceSelector,
    ) -> Result<Option<Resources>, FetchError> {
        (**self).resources(selector).await
    }

    async fn schema(&self, selector: &SchemaSelector) -> Result<Schema, FetchError> {
        (**self).schema(selector).await
    }
}

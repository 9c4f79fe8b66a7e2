//! The port through which a pipeline calls functions, and the port through which a runner gets what
//! functions require.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use biplane_function::Status;
use biplane_go::fmt::quote;
use tokio::time::Instant;

use crate::status;
use crate::v1::{
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
    /// When the call must be over. All calls of a step share one deadline. The caller can also end a
    /// call early, by dropping it.
    pub deadline: Option<Instant>,
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

/// The error that the implementation of a port failed with.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a requirement of a function could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The cluster did not give the resource that a selector names.
    #[error("cannot get required resource by name: {0}")]
    Get(#[source] Cause),
    /// The cluster did not list the resources that a selector matches.
    #[error("cannot list required resources: {0}")]
    List(#[source] Cause),
    /// The API version of a schema is no `group/version`.
    #[error("cannot parse apiVersion {}: unexpected GroupVersion string: {text}", quote(.0), text = .0)]
    ApiVersion(String),
    /// The cluster did not give the document that the schema is in.
    #[error("cannot get OpenAPI paths: {0}")]
    OpenApi(#[source] Cause),
    /// The schema refers to other schemas in a way that cannot be resolved.
    #[error("cannot flatten schema references: {0}")]
    References(#[source] Cause),
}

/// What a function may require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    /// Resources that a selector matches.
    Resources,
    /// The schema of a kind.
    Schema,
}

impl fmt::Display for Required {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resources => "resources",
            Self::Schema => "schema",
        })
    }
}

/// Why a function could not be run. The texts are those that users of the field search for.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No runner knows a function of that name.
    #[error("unknown function {0:?}")]
    Unlisted(String),
    /// There is no way to call an installed function.
    #[error("cannot get gRPC client connection for Function {function:?}: {source}")]
    NoClient {
        /// The function's name.
        function: String,
        /// What is in the way.
        source: Cause,
    },
    /// The call ended with a status; the text names code and reason as gRPC does in Go.
    #[error("{}", status::text(.0))]
    Status(Status),
    /// The call of an installed function ended with a status.
    #[error("cannot run Function {function:?}: {}", status::text(.status))]
    Installed {
        /// The function's name.
        function: String,
        /// What the call ended with.
        status: Status,
    },
    /// A requirement of the function could not be fetched.
    #[error("fetching {what} for {name}: {source}")]
    Fetch {
        /// What was required.
        what: Required,
        /// The name that the function gave it.
        name: String,
        /// What is in the way.
        source: FetchError,
    },
    /// The function kept asking for other things.
    #[error("requirements didn't stabilize after the maximum number of iterations ({0})")]
    Unstable(usize),
    /// Anything else. The text is for people.
    #[error("{0}")]
    Other(String),
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

//! The traits through which a pipeline calls functions and a runner fetches their requirements.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use biplane_function::Status;
use biplane_go::fmt::quote;
use tokio::time::Instant;

use crate::notes::{Notes, RunMemory};
use crate::status;
use crate::v1::{
    ResourceSelector, Resources, RunFunctionRequest, RunFunctionResponse, Schema, SchemaSelector,
};

/// Identifies a call of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The function's name, as the pipeline names it.
    pub function: String,
    /// The step's name.
    pub step: String,
    /// The index of the step in the pipeline, from zero.
    pub index: usize,
    /// The trace id that all calls of one run share.
    pub trace: String,
    /// The number of times that the step's requirements were resolved before this call.
    pub iteration: usize,
    /// The deadline. All calls of a step share it. The caller can also cancel a call by dropping
    /// it.
    pub deadline: Option<Instant>,
    /// What the pipeline belongs to, if the caller says so.
    pub subject: Option<Subject>,
    /// What wrappers remember from one call of the run to the next.
    pub memory: RunMemory,
    /// What runners tell the wrappers around them about this call.
    pub notes: Notes,
}

/// What a pipeline belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A composite resource, which every request contains.
    Composition {
        /// The name of its Composition. Empty if it is not known.
        name: String,
    },
    /// An Operation.
    Operation {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
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

/// Fetches the requirements of functions.
#[async_trait]
pub trait Requirements: Send + Sync {
    /// Returns the selected resources, or `None` if the resource that the selector names does not
    /// exist.
    async fn resources(&self, selector: &ResourceSelector)
    -> Result<Option<Resources>, FetchError>;
    /// Returns the schema of a kind, or an empty schema if there is none.
    async fn schema(&self, selector: &SchemaSelector) -> Result<Schema, FetchError>;
}

/// The error of an implementation of one of the traits.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a requirement of a function could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The resource that a selector names could not be read.
    #[error("cannot get required resource by name: {0}")]
    Get(#[source] Cause),
    /// The resources that a selector matches could not be listed.
    #[error("cannot list required resources: {0}")]
    List(#[source] Cause),
    /// The API version of a schema selector is not a `group/version`.
    #[error("cannot parse apiVersion {}: unexpected GroupVersion string: {text}", quote(.0), text = .0)]
    ApiVersion(String),
    /// The document of the schema could not be read.
    #[error("cannot get OpenAPI paths: {0}")]
    OpenApi(#[source] Cause),
    /// The references of the schema could not be resolved.
    #[error("cannot flatten schema references: {0}")]
    References(#[source] Cause),
}

impl FetchError {
    /// The error of the implementation.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Get(cause)
            | Self::List(cause)
            | Self::OpenApi(cause)
            | Self::References(cause) => Some(cause),
            Self::ApiVersion(_) => None,
        }
    }
}

/// The kinds of requirements.
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

/// Why a function could not be run. The messages are Crossplane's, because users search for them.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No runner has a function with that name.
    #[error("unknown function {0:?} - is it listed in the render input?")]
    Unlisted(String),
    /// There is no client for an installed function.
    #[error("cannot get gRPC client connection for Function {function:?}: {source}")]
    NoClient {
        /// The function's name.
        function: String,
        /// The reason.
        source: Cause,
    },
    /// The call failed with a status. The message has Go's format of code and reason.
    #[error("{}", status::text(.0))]
    Status(Status),
    /// The call of an installed function failed with a status.
    #[error("cannot run Function {function:?}: {}", status::text(.status))]
    Installed {
        /// The function's name.
        function: String,
        /// The status of the call.
        status: Status,
    },
    /// A requirement of the function could not be fetched.
    #[error("fetching {what} for {name}: {source}")]
    Fetch {
        /// The kind of the requirement.
        what: Required,
        /// The name that the function gave it.
        name: String,
        /// The reason.
        source: FetchError,
    },
    /// The requirements of the function did not become stable.
    #[error("requirements didn't stabilize after the maximum number of iterations ({0})")]
    Unstable(usize),
    /// Any other error, with a human-readable message.
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

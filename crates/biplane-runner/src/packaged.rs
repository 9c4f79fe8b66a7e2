//! Runs functions that are installed as packages: one client per function, connected to the
//! endpoint of the package's active revision.

mod metrics;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{PoisonError, RwLock};

use async_trait::async_trait;

use crate::grpc::{Client, Security, TargetError};
use crate::runner::{Call, Cause, FunctionRunner, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

pub use metrics::CallMetrics;

/// The endpoint of an installed function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// The gRPC target: `status.endpoint` of the active revision.
    pub target: String,
    /// The active revision's name.
    pub revision: String,
    /// The package of the revision.
    pub package: String,
}

/// Finds installed functions and their endpoints.
#[async_trait]
pub trait Endpoints: Send + Sync {
    /// Returns the endpoint of the function's active revision, or `None` if no revision is active.
    async fn active(&self, function: &str) -> Result<Option<Endpoint>, Cause>;
    /// Returns the names of all installed functions.
    async fn installed(&self) -> Result<BTreeSet<String>, Cause>;
}

/// Why there is no client for an installed function.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    /// The revisions could not be listed.
    #[error("cannot list FunctionRevisions: {0}")]
    List(#[source] Cause),
    /// The function is not installed, or not active.
    #[error(
        "cannot find an active FunctionRevision (a FunctionRevision with spec.desiredState: Active)"
    )]
    NoneActive,
    /// The active revision, which has this name, has no endpoint.
    #[error(
        "cannot determine gRPC target: active FunctionRevision {0:?} has an empty status.endpoint"
    )]
    EmptyEndpoint(String),
    /// The endpoint of the active revision is not a valid target.
    #[error(
        "cannot gRPC dial target {target:?} from status.endpoint of active FunctionRevision \
         {revision:?}: {source}"
    )]
    Dial {
        /// The endpoint of the revision.
        target: String,
        /// The revision's name.
        revision: String,
        /// The error in the target.
        source: TargetError,
    },
}

/// Why clients could not be garbage collected.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot List Functions to determine which gRPC client connections to garbage collect.: {0}"
)]
pub struct GarbageError(#[source] Cause);

/// Runs installed functions.
pub struct Packaged<E> {
    endpoints: E,
    security: RwLock<Security>,
    clients: RwLock<BTreeMap<String, Client>>,
    metrics: CallMetrics,
}

impl<E: Endpoints> Packaged<E> {
    /// Finds functions through `endpoints` and calls them all with the same credentials.
    pub fn new(endpoints: E, security: Security, metrics: CallMetrics) -> Self {
        Self { endpoints, security: RwLock::new(security), clients: RwLock::default(), metrics }
    }

    /// Uses other credentials from now on. Calls that are under way end on their connections.
    pub fn set_security(&self, security: Security) {
        *self.security.write().unwrap_or_else(PoisonError::into_inner) = security;
        self.clients.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn client(&self, function: &str) -> Result<(Client, Endpoint), NoClient> {
        let active = self.endpoints.active(function).await.map_err(NoClient::List)?;
        let endpoint = active.ok_or(NoClient::NoneActive)?;
        if endpoint.target.is_empty() {
            return Err(NoClient::EmptyEndpoint(endpoint.revision));
        }
        let is_current = |client: &&Client| client.target() == endpoint.target;
        {
            let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(client) = clients.get(function).filter(is_current) {
                return Ok((client.clone(), endpoint));
            }
        }
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        // Another call may have created the client first.
        if let Some(client) = clients.get(function).filter(is_current) {
            return Ok((client.clone(), endpoint));
        }
        let security = self.security.read().unwrap_or_else(PoisonError::into_inner).clone();
        let client = Client::new(&endpoint.target, security).map_err(|source| {
            let Endpoint { target, revision, .. } = endpoint.clone();
            NoClient::Dial { target, revision, source }
        })?;
        tracing::debug!(function, target = endpoint.target, "new gRPC client");
        clients.insert(function.to_owned(), client.clone());
        Ok((client, endpoint))
    }

    /// Drops the clients of functions that are no longer installed, and returns their number.
    pub async fn collect_garbage(&self) -> Result<usize, GarbageError> {
        if self.clients.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return Ok(0);
        }
        let installed = self.endpoints.installed().await.map_err(GarbageError)?;
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        let before = clients.len();
        clients.retain(|function, _| installed.contains(function));
        Ok(before - clients.len())
    }
}

#[async_trait]
impl<E: Endpoints> FunctionRunner for Packaged<E> {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let function = call.function.as_str();
        let (client, endpoint) = self
            .client(function)
            .await
            .map_err(|e| RunError::NoClient { function: function.to_owned(), source: e.into() })?;
        call.notes.revision(&endpoint.revision);
        let timer = self.metrics.start_call(function, &endpoint);
        let answer = client.call_by(request, call.deadline, &timer).await;
        answer.map_err(|status| RunError::Installed { function: function.to_owned(), status })
    }
}

impl<E> fmt::Debug for Packaged<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packaged").field("clients", &self.clients).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

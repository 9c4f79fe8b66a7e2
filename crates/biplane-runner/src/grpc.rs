//! Runs functions that are gRPC servers. The client tries the v1 service first and falls back to
//! v1beta1.

mod balance;
mod dial;
mod failure;
mod target;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use biplane_proto::function::{v1, v1beta1};
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::runner::{Call, FunctionRunner, RunError};
use crate::status;
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

use balance::{Balance, Member};
use dial::Ready;
pub(crate) use dial::dial_text;
use failure::{Failure, classify};

pub use dial::Security;
pub use target::{Target, TargetError};

/// The size limit of responses.
pub const MAX_RESPONSE_SIZE: usize = 4 * 1024 * 1024;

/// The connections to one function. The first call opens them.
#[derive(Clone, Debug)]
pub struct Client(Arc<Balance>);

/// The two services that a function may implement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    V1,
    V1Beta1,
}

impl Dialect {
    /// Returns the path of the method.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::V1 => "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
            Self::V1Beta1 => "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction",
        }
    }
}

/// Observes every call over the wire, with either service.
pub(crate) trait Watch: Send + Sync {
    fn sent(&self, dialect: Dialect);
    fn answered(
        &self,
        dialect: Dialect,
        answer: Result<&RunFunctionResponse, &Status>,
        since: std::time::Instant,
    );
}

/// Observes nothing.
impl Watch for () {
    fn sent(&self, _: Dialect) {}

    fn answered(
        &self,
        _: Dialect,
        _: Result<&RunFunctionResponse, &Status>,
        _: std::time::Instant,
    ) {
    }
}

impl Client {
    /// Creates a client of the function at a target.
    pub fn new(target: &str, security: Security) -> Result<Self, TargetError> {
        let parsed = Target::parse(target)?;
        let balance = Balance::new(parsed, security).map_err(|e| TargetError::NoAddress {
            target: target.to_owned(),
            reason: e.to_string(),
        })?;
        Ok(Self(Arc::new(balance)))
    }

    /// Returns the target as it was written.
    pub fn target(&self) -> &str {
        self.0.target().as_str()
    }

    /// Calls the function through the current service, or else through the older one. `timeout`
    /// limits the call.
    pub async fn call(
        &self,
        request: RunFunctionRequest,
        timeout: Option<Duration>,
    ) -> Result<RunFunctionResponse, Status> {
        self.call_by(request, timeout.map(|timeout| Instant::now() + timeout), &()).await
    }

    /// Calls the function like [`Client::call`], with a deadline.
    pub(crate) async fn call_by(
        &self,
        request: RunFunctionRequest,
        deadline: Option<Instant>,
        watch: &dyn Watch,
    ) -> Result<RunFunctionResponse, Status> {
        let call = async |dialect| {
            let since = std::time::Instant::now();
            watch.sent(dialect);
            let answer = self.call_as(dialect, &request, deadline).await;
            watch.answered(dialect, answer.as_ref(), since);
            answer
        };
        match call(Dialect::V1).await {
            Err(status) if status.code() == Code::Unimplemented => call(Dialect::V1Beta1).await,
            answer => answer,
        }
    }

    async fn call_as(
        &self,
        dialect: Dialect,
        request: &RunFunctionRequest,
        deadline: Option<Instant>,
    ) -> Result<RunFunctionResponse, Status> {
        let progress = Mutex::default();
        let attempt = self.attempt(dialect, request, deadline, &progress);
        let Some(deadline) = deadline else { return attempt.await };
        let answer = tokio::time::timeout_at(deadline, attempt).await;
        answer.unwrap_or_else(|_| Err(self.expired(&lock(&progress))))
    }

    /// Returns the status of an expired call. It says why there was no connection, if known.
    fn expired(&self, progress: &Progress) -> Status {
        if progress.sent_on.as_ref().is_some_and(Ready::get) {
            return status::deadline_exceeded();
        }
        Status::deadline_exceeded(match progress.error.clone().or_else(|| self.0.last_error()) {
            Some(error) => format!("latest balancer error: {error}"),
            None => {
                "context deadline exceeded while waiting for connections to become ready".to_owned()
            }
        })
    }

    /// Retries until the function has received the request.
    async fn attempt(
        &self,
        dialect: Dialect,
        request: &RunFunctionRequest,
        deadline: Option<Instant>,
        progress: &Mutex<Progress>,
    ) -> Result<RunFunctionResponse, Status> {
        // A connection that was closed in the meantime is retried immediately, but only once.
        let mut pause = Duration::ZERO;
        loop {
            let member = self.0.pick().await;
            lock(progress).sent_on = Some(member.ready.clone());
            match send(dialect, &member, request, deadline).await {
                Ok(response) => return Ok(response),
                Err(status) => match classify(status, &member.ready) {
                    Failure::NotReady(error) => {
                        *lock(progress) = Progress { sent_on: None, error: Some(error.clone()) };
                        self.0.discard(&member, Some(error));
                        tokio::time::sleep(pause).await;
                        pause = balance::longer(pause);
                    }
                    Failure::Broken(status) => {
                        self.0.discard(&member, None);
                        return Err(status);
                    }
                    Failure::Answer(status) => return Err(status),
                    // The caller that set the deadline reports it.
                    Failure::Expired => std::future::pending().await,
                },
            }
        }
    }
}

/// The progress of a call.
#[derive(Debug, Default)]
struct Progress {
    /// The connection on which the request was last sent.
    sent_on: Option<Ready>,
    /// Why the last attempt did not reach the function.
    error: Option<String>,
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn send(
    dialect: Dialect,
    member: &Member,
    request: &RunFunctionRequest,
    deadline: Option<Instant>,
) -> Result<RunFunctionResponse, Status> {
    let mut message = tonic::Request::new(request.clone());
    if let Some(deadline) = deadline {
        message.set_timeout(deadline.saturating_duration_since(Instant::now()));
    }
    let channel = member.channel.clone();
    let answer = match dialect {
        Dialect::V1 => {
            v1::function_runner_service_client::FunctionRunnerServiceClient::new(channel)
                .max_decoding_message_size(MAX_RESPONSE_SIZE)
                .run_function(message)
                .await
        }
        Dialect::V1Beta1 => {
            v1beta1::function_runner_service_client::FunctionRunnerServiceClient::new(channel)
                .max_decoding_message_size(MAX_RESPONSE_SIZE)
                .run_function(message)
                .await
        }
    };
    answer.map(tonic::Response::into_inner)
}

/// Runs the function that listens at a target, whatever function the call names.
#[derive(Clone, Debug)]
pub struct GrpcRunner(Client);

impl GrpcRunner {
    /// Creates a runner of the function at a target.
    pub fn new(target: &str, security: Security) -> Result<Self, TargetError> {
        Client::new(target, security).map(Self)
    }
}

#[async_trait]
impl FunctionRunner for GrpcRunner {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        self.0.call_by(request, call.deadline, &()).await.map_err(RunError::Status)
    }
}

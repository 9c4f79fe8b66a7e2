//! Calls a function in a local process or container that may exit unexpectedly.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tonic::Code;

use crate::grpc::{GrpcRunner, Security, TargetError};
use crate::runner::{Call, FunctionRunner, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

/// How long to wait for the exit report after a lost connection. The report says more than the
/// connection error.
pub const EXIT_GRACE: Duration = Duration::from_millis(300);

/// Receives an exit report once the function has exited.
pub type Ended = watch::Receiver<Option<String>>;

/// Formats how a function exited, with the end of its log.
pub fn exit_report(what: &str, status: &str, log: &[&str]) -> String {
    let log = if log.is_empty() { "it wrote nothing".into() } else { log.join("\n") };
    format!("{what} has ended ({status}):\n{log}")
}

/// Waits until the function has exited and returns its exit report.
pub async fn end_of(mut ended: Ended) -> String {
    if let Ok(text) = ended.wait_for(Option::is_some).await {
        return text.clone().unwrap_or_default();
    }
    std::future::pending().await
}

/// Calls a function at a gRPC target until it exits.
#[derive(Debug)]
pub struct Supervised {
    grpc: GrpcRunner,
    ended: Ended,
}

impl Supervised {
    /// Creates a runner of the function at a target. `ended` reports its exit.
    pub fn new(target: &str, ended: Ended) -> Result<Self, TargetError> {
        Ok(Self { grpc: GrpcRunner::new(target, Security::Plaintext)?, ended })
    }
}

#[async_trait]
impl FunctionRunner for Supervised {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let end = end_of(self.ended.clone());
        tokio::pin!(end);
        let answer = tokio::select! {
            answer = self.grpc.run(call, request) => answer,
            end = &mut end => return Err(RunError::Other(end)),
        };
        match answer {
            Err(RunError::Status(lost)) if lost.code() == Code::Unavailable => {
                let end = tokio::time::timeout(EXIT_GRACE, end).await;
                Err(end.map_or(RunError::Status(lost), RunError::Other))
            }
            answer => answer,
        }
    }
}

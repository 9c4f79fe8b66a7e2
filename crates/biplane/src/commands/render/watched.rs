//! Functions that may end while they are needed: programs and containers.

use std::time::Duration;

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::grpc::Security;
use biplane_runner::{Call, Code, FunctionRunner, GrpcRunner, RunError};
use tokio::sync::watch;

/// How much of its log is shown when a function ends.
pub(super) const LOG_LINES: usize = 20;
/// How long a lost connection may turn out to be the function's end, which says more.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(300);

/// What there is to say about a function's end, once it has ended.
pub(super) type Ended = watch::Receiver<Option<String>>;

/// Says that a function has ended, with the end of its log.
pub(super) fn obituary(what: &str, status: &str, log: &[&str]) -> String {
    let log = if log.is_empty() { "it wrote nothing".into() } else { log.join("\n") };
    format!("{what} has ended ({status}):\n{log}")
}

/// Returns once a function has ended.
pub(super) async fn end_of(mut ended: Ended) -> String {
    if let Ok(text) = ended.wait_for(Option::is_some).await {
        return text.clone().unwrap_or_default();
    }
    std::future::pending().await
}

/// A function that is called for as long as it lives.
#[derive(Debug)]
pub(super) struct Watched {
    grpc: GrpcRunner,
    ended: Ended,
}

impl Watched {
    pub(super) fn new(target: &str, ended: Ended) -> Result<Self> {
        let grpc = GrpcRunner::new(target, Security::Plaintext).map_err(|e| anyhow!("{e}"))?;
        Ok(Self { grpc, ended })
    }

    pub(super) fn ended(&self) -> Ended {
        self.ended.clone()
    }
}

#[async_trait]
impl FunctionRunner for Watched {
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
            Err(RunError::Status(status)) if status.code() == Code::Unavailable => {
                let end = tokio::time::timeout(LAST_WORDS, end).await;
                Err(end.map_or(RunError::Status(status), RunError::Other))
            }
            answer => answer,
        }
    }
}

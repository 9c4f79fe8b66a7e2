//! A time limit for each step, whose error names the step, the function and the limit.

use std::time::Duration;

use async_trait::async_trait;
use biplane_function::{Code, status};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use tokio::time::Instant;

use crate::runner::{Call, FunctionRunner, RunError};

/// How much longer an answer is waited for. A call that ends in time says why it was late.
const GRACE: Duration = Duration::from_millis(100);

/// Wraps a runner and limits the time of each step.
#[derive(Clone, Debug)]
pub struct StepLimit<R> {
    inner: R,
    limit: Duration,
}

impl<R> StepLimit<R> {
    /// Limits the steps that go through `inner`.
    pub fn new(inner: R, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

#[async_trait]
impl<R: FunctionRunner> FunctionRunner for StepLimit<R> {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let end = Instant::now() + self.limit;
        if call.deadline.is_some_and(|deadline| deadline <= end) {
            return self.inner.run(call, request).await;
        }
        let limited = Call { deadline: Some(end), ..call.clone() };
        match tokio::time::timeout_at(end + GRACE, self.inner.run(&limited, request)).await {
            Ok(Err(error)) if Instant::now() >= end => match late_because(&error) {
                Some(reason) => Err(self.late(call, reason)),
                None => Err(error),
            },
            Ok(answer) => answer,
            Err(_) => Err(self.late(call, "")),
        }
    }
}

impl<R> StepLimit<R> {
    fn late(&self, call: &Call, reason: &str) -> RunError {
        let because = if reason.is_empty() { "" } else { ": " };
        RunError::Other(format!(
            "step {:?} did not end in time: Function {:?} did not answer within {} seconds (--function-timeout){because}{reason}",
            call.step,
            call.function,
            self.limit.as_secs_f64()
        ))
    }
}

/// Why a call was late. Empty if it says nothing more, `None` if it was not late.
fn late_because(error: &RunError) -> Option<&str> {
    let (RunError::Status(status) | RunError::Installed { status, .. }) = error else {
        return None;
    };
    if status.code() != Code::DeadlineExceeded {
        return None;
    }
    let usual = status::deadline_exceeded();
    Some(if status.message() == usual.message() { "" } else { status.message() })
}

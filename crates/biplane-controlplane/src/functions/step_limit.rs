//! A time limit for each step, whose error names the step, the function and the limit.

use std::time::Duration;

use async_trait::async_trait;
use biplane_function::Code;
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, FunctionRunner, RunError};
use tokio::time::Instant;

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
        match tokio::time::timeout_at(end, self.inner.run(&limited, request)).await {
            Ok(Err(error)) if is_late(&error) && Instant::now() >= end => Err(self.late(call)),
            Ok(answer) => answer,
            Err(_) => Err(self.late(call)),
        }
    }
}

impl<R> StepLimit<R> {
    fn late(&self, call: &Call) -> RunError {
        RunError::Other(format!(
            "step {:?} did not end in time: Function {:?} did not answer within {} seconds (--function-timeout)",
            call.step,
            call.function,
            self.limit.as_secs_f64()
        ))
    }
}

fn is_late(error: &RunError) -> bool {
    match error {
        RunError::Status(status) | RunError::Installed { status, .. } => {
            status.code() == Code::DeadlineExceeded
        }
        _ => false,
    }
}

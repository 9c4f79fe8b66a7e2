//! Computes functions of this process on threads where they block nothing else, a few at a time.

use std::sync::Arc;

use biplane_function::{Budget, Function, Status, status};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::in_process::normalize;
use biplane_runner::{Call, RunError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A bounded number of threads.
#[derive(Debug)]
pub(super) struct Pool(Arc<Semaphore>);

impl Pool {
    pub(super) fn new(threads: usize) -> Self {
        Self(Arc::new(Semaphore::new(threads.max(1))))
    }

    /// Runs a function. A call that nobody waits for any more ends at the function's next look at
    /// its budget.
    pub(super) async fn run(
        &self,
        function: Arc<dyn Function>,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let budget = Arc::new(Budget::until(call.deadline.map(Instant::into_std)));
        let _caller = budget.caller();
        let answer = async {
            if !function.is_pure() {
                return function.run_within(request, &budget).await;
            }
            self.compute(Arc::clone(&function), request, Arc::clone(&budget)).await
        };
        let answer = match call.deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, answer)
                .await
                .unwrap_or_else(|_| Err(status::deadline_exceeded())),
            None => answer.await,
        };
        let failed = |status| RunError::Installed { function: call.function.clone(), status };
        let mut response = answer.map_err(failed)?;
        normalize(&mut response);
        Ok(response)
    }

    async fn compute(
        &self,
        function: Arc<dyn Function>,
        request: RunFunctionRequest,
        budget: Arc<Budget>,
    ) -> Result<RunFunctionResponse, Status> {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        let permit = permit.map_err(|error| Status::internal(error.to_string()))?;
        let runtime = Handle::current();
        let computing = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            runtime.block_on(function.run_within(request, &budget))
        });
        computing.await.unwrap_or_else(|_| Err(Status::internal("the function panicked")))
    }
}

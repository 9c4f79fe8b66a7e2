//! Runs functions in this process: without serialization, but with the same responses as over the
//! wire.

use std::fmt;
use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use biplane_function::{Budget, Function, Status, Struct};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::runner::{Call, FunctionRunner, RunError};
use crate::status;
use crate::v1::{Resource, RunFunctionRequest, RunFunctionResponse};
use biplane_function::function::Registry;

/// Runs the functions of a registry.
#[derive(Clone, Debug, Default)]
pub struct InProcess(Registry);

impl InProcess {
    /// Creates a runner of these functions.
    pub fn new(functions: Registry) -> Self {
        Self(functions)
    }
}

#[async_trait]
impl FunctionRunner for InProcess {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let function =
            self.0.get(&call.function).ok_or_else(|| RunError::Unlisted(call.function.clone()))?;
        run(Arc::clone(function), call, request).await
    }
}

/// Runs one function under any name.
#[derive(Clone)]
pub struct Direct(Arc<dyn Function>);

impl Direct {
    /// Creates a runner of this function.
    pub fn new(function: Arc<dyn Function>) -> Self {
        Self(function)
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Direct").finish_non_exhaustive()
    }
}

#[async_trait]
impl FunctionRunner for Direct {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        run(Arc::clone(&self.0), call, request).await
    }
}

async fn run(
    function: Arc<dyn Function>,
    call: &Call,
    request: RunFunctionRequest,
) -> Result<RunFunctionResponse, RunError> {
    let budget = Budget::until(call.deadline.map(Instant::into_std));
    // Starting a thread costs more than a usual call, so a function that ends in time by itself
    // runs here.
    let mut response = if function.is_pure() && !function.checks_budget() {
        timed(call.deadline, on_thread(function, request, budget)).await
    } else {
        timed(call.deadline, function.run_within(request, &budget)).await
    }
    .map_err(RunError::Status)?;
    normalize(&mut response);
    Ok(response)
}

async fn timed(
    deadline: Option<Instant>,
    answer: impl Future<Output = Result<RunFunctionResponse, Status>>,
) -> Result<RunFunctionResponse, Status> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, answer)
            .await
            .unwrap_or_else(|_| Err(status::deadline_exceeded())),
        None => answer.await,
    }
}

/// Computes on a thread where it blocks nothing else. If nobody waits for the answer any longer, the
/// thread goes on until the function ends.
async fn on_thread(
    function: Arc<dyn Function>,
    request: RunFunctionRequest,
    budget: Budget,
) -> Result<RunFunctionResponse, Status> {
    let _caller = budget.caller();
    let (send, answer) = oneshot::channel();
    let runtime = Handle::current();
    let log = tracing::dispatcher::get_default(Clone::clone);
    // Not a thread of the runtime, which would wait for it in the end.
    let thread = thread::Builder::new().name("function".to_owned()).spawn(move || {
        let run = || runtime.block_on(function.run_within(request, &budget));
        // Nobody may be waiting any longer.
        let _ = send.send(tracing::dispatcher::with_default(&log, run));
    });
    if let Err(error) = thread {
        return Err(Status::resource_exhausted(format!("cannot start a thread: {error}")));
    }
    answer.await.unwrap_or_else(|_| Err(Status::internal("the function panicked")))
}

/// Applies protobuf's number rules to the response, as sending it would do.
pub fn normalize(response: &mut RunFunctionResponse) {
    if let Some(desired) = &mut response.desired {
        desired.composite.iter_mut().for_each(normalize_resource);
        desired.resources.values_mut().for_each(normalize_resource);
    }
    response.context.iter_mut().chain(&mut response.output).for_each(normalize_struct);
}

fn normalize_resource(resource: &mut Resource) {
    resource.resource.iter_mut().for_each(normalize_struct);
}

fn normalize_struct(object: &mut Struct) {
    // This copies nothing if the object already follows the rules.
    *object = Struct::from(std::mem::take(object).into_object());
}

#[cfg(test)]
mod tests;

//! Runs functions in this process: without serialization, but with the same responses as over the
//! wire.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use biplane_function::{Function, Struct};

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
        run(&**function, call, request).await
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
        run(&*self.0, call, request).await
    }
}

async fn run(
    function: &dyn Function,
    call: &Call,
    request: RunFunctionRequest,
) -> Result<RunFunctionResponse, RunError> {
    let answer = function.run(request);
    let answer = match call.deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, answer)
            .await
            .unwrap_or_else(|_| Err(status::deadline_exceeded())),
        None => answer.await,
    };
    let mut response = answer.map_err(RunError::Status)?;
    normalize(&mut response);
    Ok(response)
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

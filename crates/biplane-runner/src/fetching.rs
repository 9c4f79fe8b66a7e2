//! Resolves the requirements of functions, and calls each function again until its requirements are
//! stable.

use async_trait::async_trait;

use crate::runner::{Call, FetchError, FunctionRunner, Required, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse, Severity};

/// The maximum number of rounds for one step. The function is called once more than that.
pub const MAX_ITERATIONS: usize = 5;

/// Wraps a runner and resolves the requirements of functions.
#[derive(Clone, Debug)]
pub struct Fetching<R, Q> {
    inner: R,
    requirements: Q,
}

impl<R, Q> Fetching<R, Q> {
    /// Calls functions through `inner` and fetches requirements from `requirements`.
    pub fn new(inner: R, requirements: Q) -> Self {
        Self { inner, requirements }
    }
}

#[async_trait]
impl<R, Q> FunctionRunner for Fetching<R, Q>
where
    R: FunctionRunner,
    Q: crate::runner::Requirements,
{
    async fn run(
        &self,
        call: &Call,
        mut request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        // Resources that the step requires up front stay in the request when requirements change.
        let given_resources = request.required_resources.clone();
        let given_schemas = request.required_schemas.clone();
        let mut previous = None;
        let mut call = call.clone();

        for iteration in 0..=MAX_ITERATIONS {
            call.iteration = iteration;
            let response = self.inner.run(&call, request.clone()).await?;
            let is_fatal = response.results.iter().any(|r| r.severity() == Severity::Fatal);
            if is_fatal || response.requirements == previous {
                return Ok(response);
            }

            let mut next = request.clone();
            next.required_resources.clone_from(&given_resources);
            next.required_schemas.clone_from(&given_schemas);
            next.extra_resources.clear();
            self.resolve(response.requirements.as_ref(), &mut next).await?;

            // If the function requires only what it already has, a second call would be the same.
            if iteration == 0 && requirements_are_equal(&next, &request) {
                return Ok(response);
            }
            next.context = response.context;
            request = next;
            previous = response.requirements;
        }
        Err(RunError::Unstable(MAX_ITERATIONS))
    }
}

fn requirements_are_equal(a: &RunFunctionRequest, b: &RunFunctionRequest) -> bool {
    a.required_resources == b.required_resources
        && a.extra_resources == b.extra_resources
        && a.required_schemas == b.required_schemas
}

impl<R, Q: crate::runner::Requirements> Fetching<R, Q> {
    async fn resolve(
        &self,
        requirements: Option<&crate::v1::Requirements>,
        request: &mut RunFunctionRequest,
    ) -> Result<(), RunError> {
        let Some(requirements) = requirements else { return Ok(()) };
        let failed = |what: Required, name: &str, source: FetchError| RunError::Fetch {
            what,
            name: name.to_owned(),
            source,
        };
        for (name, selector) in &requirements.extra_resources {
            let found = self.requirements.resources(selector).await;
            let found = found.map_err(|e| failed(Required::Resources, name, e))?;
            // The key without items shows that the resource was looked up.
            request.extra_resources.insert(name.clone(), found.unwrap_or_default());
        }
        for (name, selector) in &requirements.resources {
            let found = self.requirements.resources(selector).await;
            let found = found.map_err(|e| failed(Required::Resources, name, e))?;
            request.required_resources.insert(name.clone(), found.unwrap_or_default());
        }
        for (name, selector) in &requirements.schemas {
            let found = self.requirements.schema(selector).await;
            let found = found.map_err(|e| failed(Required::Schema, name, e))?;
            request.required_schemas.insert(name.clone(), found);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Lets a caller report each call while it lasts, for example on a progress line.

use async_trait::async_trait;

use crate::runner::{Call, FunctionRunner, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

/// Wraps a runner and holds what `report` returns for as long as a call lasts.
#[derive(Clone, Debug)]
pub struct Reported<R, F> {
    inner: R,
    report: F,
}

impl<R, F> Reported<R, F> {
    /// Reports the calls that go through `inner`.
    pub fn new(inner: R, report: F) -> Self {
        Self { inner, report }
    }
}

#[async_trait]
impl<R, F, G> FunctionRunner for Reported<R, F>
where
    R: FunctionRunner,
    F: Fn(&Call) -> G + Send + Sync,
    G: Send,
{
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let _reported = (self.report)(call);
        self.inner.run(call, request).await
    }
}

//! Functions that are waited for in public.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, FunctionRunner, RunError};

use super::runners::Runners;
use crate::progress::Progress;

/// Has every call of a function say that it is waited for.
pub(super) fn in_public(runners: &mut Runners, progress: &Progress) {
    if !progress.is_on() {
        return;
    }
    for running in runners.values_mut() {
        let (inner, progress) = (running.runner.clone(), progress.clone());
        running.runner = Arc::new(Awaited { inner, progress });
    }
}

struct Awaited {
    inner: Arc<dyn FunctionRunner>,
    progress: Progress,
}

#[async_trait]
impl FunctionRunner for Awaited {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let _waiting = self.progress.wait(|| format!("{} in step {}", call.function, call.step));
        self.inner.run(call, request).await
    }
}

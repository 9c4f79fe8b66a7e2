//! Calls each function through the runner that is registered for its name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::runner::{Call, FunctionRunner, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

/// Runners by function name.
#[derive(Clone, Default)]
pub struct Named(BTreeMap<String, Arc<dyn FunctionRunner>>);

impl Named {
    /// Adds a function. The first runner of a name wins.
    #[must_use]
    pub fn with(mut self, function: &str, runner: Arc<dyn FunctionRunner>) -> Self {
        self.insert(function, runner);
        self
    }

    /// Adds a function. The first runner of a name wins.
    pub fn insert(&mut self, function: &str, runner: Arc<dyn FunctionRunner>) {
        self.0.entry(function.to_owned()).or_insert(runner);
    }

    /// Whether a function is registered.
    pub fn contains(&self, function: &str) -> bool {
        self.0.contains_key(function)
    }
}

#[async_trait]
impl FunctionRunner for Named {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let runner =
            self.0.get(&call.function).ok_or_else(|| RunError::Unlisted(call.function.clone()))?;
        runner.run(call, request).await
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

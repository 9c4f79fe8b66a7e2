//! The function itself, and the set of functions that live in this process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use tonic::Status;

/// Something that turns a request into a response.
///
/// What a user should see is a result in the response; an error is for what the function cannot
/// put into words of its own, and ends the pipeline as a failed call.
#[async_trait]
pub trait Function: Send + Sync {
    /// Answers one request.
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status>;

    /// Whether it only computes. Servers then run it where it holds up nobody else.
    fn is_pure(&self) -> bool {
        false
    }
}

/// A function that only computes. Every pure function is a [`Function`].
pub trait PureFunction: Send + Sync {
    /// Answers one request.
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status>;
}

#[async_trait]
impl<F: PureFunction> Function for F {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        PureFunction::run(self, request)
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Functions by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<String, Arc<dyn Function>>);

impl Registry {
    /// Adds a function, or replaces the one of that name.
    #[must_use]
    pub fn with(mut self, name: &str, function: impl Function + 'static) -> Self {
        self.0.insert(name.to_owned(), Arc::new(function));
        self
    }

    /// Adds the functions of another registry, which replace those of the same names.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().map(|(name, function)| (name.clone(), Arc::clone(function))));
        self
    }

    /// The function of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Function>> {
        self.0.get(name)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

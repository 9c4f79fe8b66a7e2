//! The function traits, and the registry of the functions in this process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use tonic::Status;

use crate::budget::Budget;

/// A composition function: turns a request into a response.
///
/// Report errors for users as results in the response. Return an error only when the function
/// cannot build a response. It ends the pipeline as a failed call.
#[async_trait]
pub trait Function: Send + Sync {
    /// Handles one request.
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status>;

    /// Handles one request within a budget. Servers and runners call this method.
    async fn run_within(
        &self,
        request: RunFunctionRequest,
        _: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        self.run(request).await
    }

    /// Whether the function only computes. Servers then run it on a thread where it blocks nothing
    /// else.
    fn is_pure(&self) -> bool {
        false
    }

    /// Whether the function checks its budget, and therefore ends in time by itself.
    fn checks_budget(&self) -> bool {
        false
    }

    /// Says where in the input a fatal result of an earlier call comes from, by its message. Tools
    /// for people show it beside the message.
    fn explain(&self, _message: &str) -> Option<Explanation> {
        None
    }
}

/// A place in a text of a function's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The keys that lead to the text. Items of lists are named by their index.
    pub path: Vec<String>,
    /// The line within the text, counted from 1.
    pub line: usize,
    /// The number of characters before the place in that line.
    pub column: usize,
    /// Advice in addition to the message.
    pub advice: Option<String>,
}

/// A function that only computes, without I/O. Every pure function is a [`Function`].
pub trait PureFunction: Send + Sync {
    /// Handles one request.
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status>;

    /// Handles one request within a budget. Servers and runners call this method. Implement it, and
    /// [`PureFunction::checks_budget`], if the time or memory that the function needs depends on its
    /// input.
    fn run_within(
        &self,
        request: RunFunctionRequest,
        _: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        self.run(request)
    }

    /// Whether the function checks its budget wherever its input decides how long it takes. In
    /// process it is then called without a thread of its own, which would cost more than a usual
    /// call.
    fn checks_budget(&self) -> bool {
        false
    }

    /// Says where in the input a fatal result comes from: see [`Function::explain`].
    fn explain(&self, _message: &str) -> Option<Explanation> {
        None
    }
}

#[async_trait]
impl<F: PureFunction> Function for F {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        PureFunction::run(self, request)
    }

    async fn run_within(
        &self,
        request: RunFunctionRequest,
        budget: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        PureFunction::run_within(self, request, budget)
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn checks_budget(&self) -> bool {
        PureFunction::checks_budget(self)
    }

    fn explain(&self, message: &str) -> Option<Explanation> {
        PureFunction::explain(self, message)
    }
}

/// Functions by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<String, Arc<dyn Function>>);

impl Registry {
    /// Adds a function, or replaces the one with that name.
    #[must_use]
    pub fn with(mut self, name: &str, function: impl Function + 'static) -> Self {
        self.0.insert(name.to_owned(), Arc::new(function));
        self
    }

    /// Adds the functions of another registry, which replace functions with the same names.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().map(|(name, function)| (name.clone(), Arc::clone(function))));
        self
    }

    /// Returns the function with that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Function>> {
        self.0.get(name)
    }

    /// Returns the names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

//! The results of composing: the state of each composed resource, and the errors.

use biplane_model::{Gvk, Object};

use super::report::Report;
use crate::failure::Failure;
use biplane_go::fmt::quote;

/// The result for one composed resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composed {
    /// Its name in the pipeline.
    pub name: String,
    /// Whether the pipeline reports it as ready.
    pub ready: bool,
    /// Whether the API server accepted it.
    pub synced: bool,
}

/// Why composing failed.
#[derive(Debug)]
pub(super) struct ComposeError {
    pub(super) failure: Failure,
    /// The step and the message of a fatal result.
    pub(super) fatal: Option<Fatal>,
    /// Kind and namespace of the composed resource that caused the error.
    pub(super) resource: Option<(Gvk, String)>,
    /// Results and conditions that functions returned before a fatal result.
    pub(super) report: Report,
}

/// A fatal result, which ended the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatal {
    /// The step.
    pub step: String,
    /// The function's message.
    pub message: String,
}

impl std::fmt::Display for Fatal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pipeline step {} returned a fatal result: {}", quote(&self.step), self.message)
    }
}

impl From<Failure> for ComposeError {
    fn from(failure: Failure) -> Self {
        Self { failure, fatal: None, resource: None, report: Report::default() }
    }
}

impl ComposeError {
    /// An error caused by a composed resource.
    pub(super) fn resource(failure: Failure, object: &Object) -> Self {
        let resource = Some((object.gvk(), object.namespace().to_owned()));
        Self { failure, fatal: None, resource, report: Report::default() }
    }

    pub(super) fn fatal(step: &str, message: String, report: Report) -> Self {
        let fatal = Fatal { step: step.to_owned(), message };
        let failure = Failure::new(fatal.to_string());
        Self { failure, fatal: Some(fatal), resource: None, report }
    }
}

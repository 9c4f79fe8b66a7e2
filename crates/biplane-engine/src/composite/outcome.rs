//! The results of composing: the state of each composed resource, and the errors.

use biplane_model::{Gvk, Object};

use super::report::Report;
use crate::failure::{Failure, Fatal};

/// The result for one composed resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Composed {
    /// Its name in the pipeline.
    pub(super) name: String,
    /// Whether the pipeline reports it as ready.
    pub(super) ready: bool,
    /// Whether the API server accepted it.
    pub(super) synced: bool,
}

/// Why composing failed.
#[derive(Debug)]
pub(super) struct ComposeError {
    pub(super) failure: Failure,
    /// Kind and namespace of the composed resource that caused the error.
    pub(super) resource: Option<(Gvk, String)>,
    /// Results and conditions that functions returned before a fatal result.
    pub(super) report: Report,
}

impl From<Failure> for ComposeError {
    fn from(failure: Failure) -> Self {
        Self { failure, resource: None, report: Report::default() }
    }
}

impl ComposeError {
    /// An error caused by a composed resource.
    pub(super) fn resource(failure: Failure, object: &Object) -> Self {
        let resource = Some((object.gvk(), object.namespace().to_owned()));
        Self { failure, resource, report: Report::default() }
    }

    pub(super) fn fatal(step: &str, message: String, report: Report) -> Self {
        let failure = Fatal { step: step.to_owned(), message }.into();
        Self { failure, resource: None, report }
    }
}

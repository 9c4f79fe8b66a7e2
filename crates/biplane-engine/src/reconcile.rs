//! What all reconcilers answer: when to reconcile again, or why it failed.

use std::time::Duration;

use crate::failure::{Class, Failure, Fatal};

/// The time limit of one reconcile.
pub const TIMEOUT: Duration = Duration::from_mins(2);
/// How much longer the status may take, so that a reconcile that ran out of time can say so.
pub const GRACE: Duration = Duration::from_secs(20);

/// When to reconcile again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Only after a change.
    No,
    /// At once, because something was written whose effect has not been observed yet. A queue must
    /// back off after a few in a row: a function may desire something else every time.
    Again,
    /// As soon as the queue allows.
    Now,
    /// After this duration.
    After(Duration),
}

/// Why a reconcile failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ReconcileError {
    /// The error message with all causes.
    pub text: String,
    /// The class of the error.
    pub class: Class,
    /// The fatal result that caused the error.
    pub fatal: Option<Fatal>,
}

impl From<Failure> for ReconcileError {
    fn from(failure: Failure) -> Self {
        Self { text: failure.to_string(), class: failure.class(), fatal: failure.fatal().cloned() }
    }
}

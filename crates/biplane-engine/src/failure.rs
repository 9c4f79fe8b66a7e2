//! Errors of the reconcilers. The cause is typed and decides how a reconciler reacts. The message
//! has Crossplane's words, because users search for them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{ReadError, WriteError};
use biplane_go::fmt::quote;
use biplane_model::object::Occupied;
use biplane_runner::{FetchError, RunError};

/// How a reconciler and its queue react to a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Another write happened first. Retry immediately, without a report.
    Conflict,
    /// The API server refused the content. Its message may change from call to call.
    Invalid,
    /// The API server asks for fewer requests, and for this delay.
    Throttled(Duration),
    /// The API server cannot be reached or did not answer in time. All reconciles are affected.
    Unavailable,
    /// Anything else.
    Other,
}

/// A fatal result, which ended the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatal {
    /// The step.
    pub step: String,
    /// The function's message.
    pub message: String,
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pipeline step {} returned a fatal result: {}", quote(&self.step), self.message)
    }
}

/// The innermost cause of a failure.
#[derive(Clone, Debug)]
pub enum Cause {
    /// A read failed.
    Read(ReadError),
    /// A write failed.
    Write(WriteError),
    /// A function could not be run.
    Run(Arc<RunError>),
    /// A requirement of a step could not be fetched.
    Fetch(Arc<FetchError>),
    /// A function returned a fatal result.
    Fatal(Fatal),
    /// A rule of the reconciler.
    Rule(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Fetch(error) => error.fmt(f),
            Self::Fatal(fatal) => fatal.fmt(f),
            Self::Rule(text) => f.write_str(text),
        }
    }
}

/// A failure: its cause, and what was attempted.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Failure {
    /// What was attempted, innermost first.
    attempted: Vec<String>,
    cause: Cause,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for attempted in self.attempted.iter().rev() {
            write!(f, "{attempted}: ")?;
        }
        self.cause.fmt(f)
    }
}

impl Failure {
    /// A rule of the reconciler is broken.
    pub fn new(text: impl Into<String>) -> Self {
        Cause::Rule(text.into()).into()
    }

    /// Prefixes the message with the operation that failed.
    #[must_use]
    pub fn wrap(mut self, attempted: impl fmt::Display) -> Self {
        self.attempted.push(attempted.to_string());
        self
    }

    /// The innermost cause.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// The fatal result that caused the failure.
    pub fn fatal(&self) -> Option<&Fatal> {
        match &self.cause {
            Cause::Fatal(fatal) => Some(fatal),
            _ => None,
        }
    }

    /// Whether the API server understood a write and refused its content.
    pub fn is_refusal(&self) -> bool {
        use WriteError::{BadRequest, Invalid, Malformed, TooLarge};
        let Cause::Write(error) = &self.cause else { return false };
        matches!(error, Invalid(_) | Malformed(_) | BadRequest(_) | TooLarge(_))
    }

    /// How to react.
    pub fn class(&self) -> Class {
        if let Cause::Fetch(error) = &self.cause
            && let Some(error) = error.cause().and_then(|cause| cause.downcast_ref::<ReadError>())
        {
            return Self::from(error.clone()).class();
        }
        match &self.cause {
            Cause::Write(WriteError::Conflict(_)) => Class::Conflict,
            Cause::Write(WriteError::Invalid(_)) => Class::Invalid,
            Cause::Write(WriteError::Throttled { after, .. })
            | Cause::Read(ReadError::Throttled { after, .. }) => Class::Throttled(*after),
            Cause::Write(WriteError::Unavailable(_) | WriteError::TimedOut(_))
            | Cause::Read(ReadError::Unavailable(_) | ReadError::TimedOut(_)) => Class::Unavailable,
            _ => Class::Other,
        }
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self { attempted: Vec::new(), cause }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Cause::Read(error).into()
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Cause::Write(error).into()
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Cause::Run(Arc::new(error)).into()
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Cause::Fetch(Arc::new(error)).into()
    }
}

impl From<Occupied> for Failure {
    fn from(error: Occupied) -> Self {
        Self::new(error.to_string())
    }
}

impl From<Fatal> for Failure {
    fn from(fatal: Fatal) -> Self {
        Cause::Fatal(fatal).into()
    }
}

/// Prefixes a failure with the operation that failed.
pub trait Attempted<T> {
    /// See [`Failure::wrap`].
    fn attempted(self, what: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> Attempted<T> for Result<T, E> {
    fn attempted(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| error.into().wrap(what))
    }
}

/// Joins messages: `[a, b]`, or the message itself if there is only one.
pub fn join(texts: &[String]) -> String {
    let mut unique: Vec<&str> = Vec::new();
    for text in texts {
        if !unique.contains(&text.as_str()) {
            unique.push(text);
        }
    }
    match unique.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

//! Errors of the reconcilers, with Crossplane's messages, and their classes, which decide how the
//! reconciler reacts.

use std::fmt;

use biplane_cluster::{ReadError, WriteError};

/// The class of a failure. Wrapping a failure keeps its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Another write happened first. Retry immediately, without a report.
    Conflict,
    /// The API server refused the content. Its message may change from call to call.
    Invalid,
    /// Anything else.
    Other,
}

/// A failure with the messages of all its causes, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The message.
    pub text: String,
    /// The class.
    pub class: Class,
}

impl Failure {
    /// Creates a failure without a cause.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: Class::Other }
    }

    /// Prefixes the message with the operation that failed.
    #[must_use]
    pub fn wrap(self, attempted: impl fmt::Display) -> Self {
        Self { text: format!("{attempted}: {}", self.text), class: self.class }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let class = match error {
            WriteError::Conflict(_) => Class::Conflict,
            WriteError::Invalid(_) => Class::Invalid,
            _ => Class::Other,
        };
        Self { text: error.to_string(), class }
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

//! What went wrong, in the words that users search for, and what the reconciler does about it.

use std::fmt;

use biplane_cluster::{ReadError, WriteError};

/// What a failure means for the reconciler, wherever in a chain of causes it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Someone else changed the object; try again at once and say nothing.
    Conflict,
    /// The API server refused the content; its text may change from call to call.
    Invalid,
    /// Anything else.
    Other,
}

/// A failure with the text of its whole chain, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The text.
    pub text: String,
    /// What it means.
    pub class: Class,
}

impl Failure {
    /// A failure of its own.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: Class::Other }
    }

    /// The same, with what was attempted in front.
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

/// Puts what was attempted in front of a failure.
pub trait Attempted<T> {
    /// See [`Failure::wrap`].
    fn attempted(self, what: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> Attempted<T> for Result<T, E> {
    fn attempted(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| error.into().wrap(what))
    }
}

/// Several texts as one: `[a, b]`, or the text itself when there is only one.
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

/// A text in double quotes, escaped as Go does.
pub fn quoted(text: &str) -> String {
    biplane_go::fmt::quote(text)
}

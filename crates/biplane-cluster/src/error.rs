//! Why calls to a cluster fail. The variant is the decision that a caller can make; the message is
//! what the API server said.

use std::time::Duration;

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The cluster does not know the kind.
    #[error("{0}")]
    UnknownKind(String),
    /// Reading is not permitted.
    #[error("{0}")]
    Forbidden(String),
    /// The credentials are missing, wrong or expired.
    #[error("{0}")]
    Unauthorized(String),
    /// The continuation of a list, or the version to watch from, is too old. Start again.
    #[error("{0}")]
    Expired(String),
    /// The server asks for fewer requests.
    #[error("{message}")]
    Throttled {
        /// What the server said.
        message: String,
        /// How long it asks to wait. Zero if it does not say.
        after: Duration,
    },
    /// The answer makes no sense, for example a schema whose references lead nowhere.
    #[error("{0}")]
    Malformed(String),
    /// The server failed on this request. A retry may succeed, and other requests may too.
    #[error("{0}")]
    Internal(String),
    /// The deadline of the call passed.
    #[error("{0}")]
    TimedOut(String),
    /// The cluster could not be reached. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The object changed since it was read, is another one, or another manager owns a field.
    #[error("{0}")]
    Conflict(String),
    /// An object of that name already exists.
    #[error("{0}")]
    AlreadyExists(String),
    /// The object violates its schema or an API rule. A retry cannot succeed.
    #[error("{0}")]
    Invalid(String),
    /// The object does not have the types of its schema. A server reports an internal error here,
    /// but only another object can help.
    #[error("{0}")]
    Malformed(String),
    /// The object is larger than the server accepts.
    #[error("{0}")]
    TooLarge(String),
    /// The API server does not understand the request.
    #[error("{0}")]
    BadRequest(String),
    /// The cluster does not know the kind.
    #[error("{0}")]
    UnknownKind(String),
    /// Writing is not permitted.
    #[error("{0}")]
    Forbidden(String),
    /// The credentials are missing, wrong or expired.
    #[error("{0}")]
    Unauthorized(String),
    /// The server asks for fewer requests.
    #[error("{message}")]
    Throttled {
        /// What the server said.
        message: String,
        /// How long it asks to wait. Zero if it does not say.
        after: Duration,
    },
    /// The server failed on this request, for example because a webhook did. A retry may succeed,
    /// and other requests may too.
    #[error("{0}")]
    Internal(String),
    /// The deadline of the call passed. The write may have happened.
    #[error("{0}")]
    TimedOut(String),
    /// The cluster could not be reached. The write may have happened. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
}

impl ReadError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

impl WriteError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

/// Turns a not-found error into `Ok(None)`.
pub trait Optional<T, E> {
    /// Returns `Ok(None)` when the object does not exist.
    fn optional(self) -> Result<Option<T>, E>;
}

impl<T> Optional<T, ReadError> for Result<T, ReadError> {
    fn optional(self) -> Result<Option<T>, ReadError> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(ReadError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<T> Optional<T, WriteError> for Result<T, WriteError> {
    fn optional(self) -> Result<Option<T>, WriteError> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(WriteError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

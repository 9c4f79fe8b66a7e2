//! One half of a call on its way to a receiver, and why it may not arrive.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use biplane_proto::inspector::shipped::StepMeta;
use biplane_proto::redact::{Half, Redacted};
use tonic::Status;

use crate::status;

/// One half of a call.
#[derive(Clone, Debug)]
pub struct Emission {
    /// Which half.
    pub half: Half,
    /// Which call. Both halves have the same.
    pub meta: StepMeta,
    /// The message as JSON. Empty if the call failed.
    pub payload: Redacted<Vec<u8>>,
    /// Why the call failed. Empty if it did not.
    pub error: String,
    /// What the messages of the protocol have no field for.
    pub details: Details,
}

/// What is known about a call besides its messages. It travels as gRPC metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// How long the call took.
    pub took: Option<Duration>,
    /// Whether a cache answered.
    pub cached: Option<bool>,
    /// The revision of the function that answered.
    pub revision: Option<String>,
}

/// Takes emissions.
#[async_trait]
pub trait Inspector: Send + Sync {
    /// Takes one emission, or fails soon.
    async fn emit(&self, emission: Emission) -> Result<(), EmitError>;
}

/// Why an emission did not arrive. The messages are Crossplane's.
#[derive(Debug)]
pub struct EmitError {
    half: Half,
    function: String,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Marshal(biplane_proto::json::Error),
    Status(Status),
    TooLarge { bytes: usize, status: Status },
    Paused,
}

impl EmitError {
    pub(super) fn marshal(half: Half, function: &str, error: biplane_proto::json::Error) -> Self {
        Self { half, function: function.to_owned(), reason: Reason::Marshal(error) }
    }

    /// The receiver, or the way there, failed with a status.
    pub fn status(half: Half, function: &str, status: Status) -> Self {
        Self { half, function: function.to_owned(), reason: Reason::Status(status) }
    }

    pub(super) fn too_large(half: Half, function: &str, bytes: usize, status: Status) -> Self {
        Self { half, function: function.to_owned(), reason: Reason::TooLarge { bytes, status } }
    }

    pub(super) fn paused(half: Half, function: &str) -> Self {
        Self { half, function: function.to_owned(), reason: Reason::Paused }
    }

    /// Which half of the call it was.
    pub fn half(&self) -> Half {
        self.half
    }

    /// The function of the call.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// The size of a payload that was too large for the receiver.
    pub fn bytes(&self) -> Option<usize> {
        match self.reason {
            Reason::TooLarge { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Whether nothing was sent because the receiver had not answered before.
    pub fn is_pause(&self) -> bool {
        matches!(self.reason, Reason::Paused)
    }
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = match self.half {
            Half::Request => "request",
            Half::Response => "response",
        };
        let verb = match self.reason {
            Reason::Marshal(_) => "marshal",
            _ => "emit",
        };
        write!(f, "failed to {verb} pipeline {half} for function {}: ", self.function)?;
        match &self.reason {
            Reason::Marshal(error) => error.fmt(f),
            Reason::Status(status) => f.write_str(&status::text(status)),
            Reason::TooLarge { bytes, status } => {
                write!(f, "{bytes} bytes are too many for the receiver: {}", status::text(status))
            }
            Reason::Paused => f.write_str("the receiver did not answer in time; trying again soon"),
        }
    }
}

impl std::error::Error for EmitError {}

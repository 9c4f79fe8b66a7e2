//! Why a client gets no answer, or no more of one.

/// Why a client gets no answer. It is told by closing its stream.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unanswered(String);

impl Unanswered {
    pub(super) fn new(reason: impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

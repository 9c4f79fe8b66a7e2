//! Exit codes that other programs rely on.

/// The exit code of a usage error.
pub const USAGE_ERROR: u8 = 80;

/// The exit code of a comparison that found differences.
pub const DIFFERENCES: u8 = 3;

/// A failure that other programs recognise by its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Exit {
    /// The exit code.
    pub code: u8,
    /// Human-readable message; empty if there is none.
    pub text: String,
}

//! Exit codes that other programs rely on.

/// Exit code of a mistake on the command line.
pub const USAGE_ERROR: u8 = 80;

/// A failure that other programs tell by its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Exit {
    /// The exit code.
    pub code: u8,
    /// For people; empty if there is nothing to say.
    pub text: String,
}

//! The release lines of the control plane whose behaviour can be asked for.

/// A release line. It decides how files are read and checked, what renders them, and which documents
/// are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Line {
    /// The v1 line, whose command line ran the pipeline by itself.
    V1,
    /// The current line, which renders with the reconciler.
    #[default]
    V2,
}

//! The major versions of Crossplane whose behaviour a render can follow.

/// A major version of Crossplane. It decides how files are read and validated, what renders them,
/// and which documents are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Line {
    /// Crossplane v1, whose command line ran the pipeline itself.
    V1,
    /// Crossplane v2, which renders with the reconciler.
    #[default]
    V2,
}

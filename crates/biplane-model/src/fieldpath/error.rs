//! Errors of field paths.

use biplane_go::fmt::quote;

/// The reason why a string is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse path {}: {what} at position {at}", quote(path))]
pub struct ParseError {
    /// The whole string.
    pub path: String,
    /// The problem.
    pub what: &'static str,
    /// The byte offset of the error.
    pub at: usize,
}

/// The reason why a path could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The string is not a path.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The field does not exist, but it could.
    #[error("{0}")]
    NotFound(String),
    /// The parent exists but cannot have such a child.
    #[error("{0}")]
    Mismatch(String),
    /// The value has another type than requested.
    #[error("{path}: {wanted}")]
    Type {
        /// The path as given.
        path: String,
        /// The requested type.
        wanted: &'static str,
    },
    /// Writing there would need a very long array.
    #[error("index {index} is greater than max allowed index {max}")]
    Index {
        /// The requested index.
        index: u32,
        /// The largest allowed index.
        max: u32,
    },
    /// Writing there would nest the document too deeply.
    #[error("{path}: nested too deeply")]
    Depth {
        /// The path as given.
        path: String,
    },
    /// Two values cannot be merged.
    #[error("failed to merge values: {0}")]
    Merge(String),
    /// A wildcard could not be expanded.
    #[error("{context}: {source}")]
    Expand {
        /// The path that was being expanded.
        context: String,
        /// The cause.
        source: Box<PathError>,
    },
}

impl PathError {
    /// Whether the error only means that the field does not exist yet.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound(_) => true,
            Self::Expand { source, .. } => source.is_not_found(),
            _ => false,
        }
    }
}

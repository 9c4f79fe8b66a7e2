//! What can go wrong with a path.

use biplane_go::fmt::quote;

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse path {}: {what} at position {at}", quote(path))]
pub struct ParseError {
    /// The whole text.
    pub path: String,
    /// What is wrong.
    pub what: &'static str,
    /// Where, as a byte offset.
    pub at: usize,
}

/// Why nothing could be read from or written to a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is not a path.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// Nothing is there, but something could be.
    #[error("{0}")]
    NotFound(String),
    /// Something is there that has no such children.
    #[error("{0}")]
    Mismatch(String),
    /// The value is not what was asked for.
    #[error("{path}: {wanted}")]
    Type {
        /// The path, as it was given.
        path: String,
        /// What the value is not.
        wanted: &'static str,
    },
    /// Writing there would need a very long array.
    #[error("index {index} is greater than max allowed index {max}")]
    Index {
        /// The index asked for.
        index: u32,
        /// The largest allowed one.
        max: u32,
    },
    /// Writing there would nest the document too deeply.
    #[error("{path}: nested too deeply")]
    Depth {
        /// The path, as it was given.
        path: String,
    },
    /// Two values do not go together.
    #[error("failed to merge values: {0}")]
    Merge(String),
    /// A wildcard could not be expanded.
    #[error("{context}: {source}")]
    Expand {
        /// Which path was being expanded.
        context: String,
        /// What was in the way.
        source: Box<PathError>,
    },
}

impl PathError {
    /// Whether the failure only means that nothing is there yet.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound(_) => true,
            Self::Expand { source, .. } => source.is_not_found(),
            _ => false,
        }
    }
}

//! Why a patch failed.

use biplane_function::Exceeded;
use biplane_model::fieldpath::PathError;

/// Why a patch failed.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// A field does not exist at the source or, for wildcards, at the destination.
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Failed(String),
}

impl From<PathError> for PatchError {
    fn from(error: PathError) -> Self {
        if error.is_not_found() {
            Self::NotFound(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

impl From<Exceeded> for PatchError {
    fn from(exceeded: Exceeded) -> Self {
        Self::Failed(exceeded.to_string())
    }
}

impl From<String> for PatchError {
    fn from(error: String) -> Self {
        Self::Failed(error)
    }
}

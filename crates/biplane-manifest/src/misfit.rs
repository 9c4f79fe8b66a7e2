//! An error about two manifests that do not fit each other, with the locations in both.

use crate::loader::Origin;

/// Describes the mismatch and which parts of the manifests to look at.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Misfit {
    pub text: String,
    /// The path in the composite resource, if the cause may be there.
    pub composite: Option<Vec<String>>,
    /// The path in the other manifest, if the cause may be there.
    pub other: Option<Vec<String>>,
}

impl Misfit {
    pub fn new(text: String, composite: Option<&[&str]>, other: Option<&[&str]>) -> Self {
        let owned = |path: &[&str]| path.iter().map(|&step| step.to_owned()).collect();
        Self { text, composite: composite.map(owned), other: other.map(owned) }
    }

    /// The error with both locations.
    pub fn shown(&self, composite: &Origin, other: &Origin) -> anyhow::Error {
        let mut error = anyhow::anyhow!("{}", self.text);
        for (path, origin) in [(&self.composite, composite), (&self.other, other)] {
            if let Some(path) = path {
                let path: Vec<_> = path.iter().map(String::as_str).collect();
                error = origin.complain(&path, error);
            }
        }
        error
    }
}

//! Two manifests that do not fit each other, and where to look.

use crate::loader::Origin;

/// What does not fit, and which part of either to look at.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Misfit {
    pub text: String,
    /// Of the composite resource, if it may be that.
    pub composite: Option<Vec<String>>,
    /// Of what it does not fit, if it may be that.
    pub other: Option<Vec<String>>,
}

impl Misfit {
    pub fn new(text: String, composite: Option<&[&str]>, other: Option<&[&str]>) -> Self {
        let owned = |path: &[&str]| path.iter().map(|&step| step.to_owned()).collect();
        Self { text, composite: composite.map(owned), other: other.map(owned) }
    }

    /// What does not fit, with the places.
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

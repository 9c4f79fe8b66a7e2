//! How much of an object a reader wants.

use biplane_model::Object;

/// How much of an object to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// All of it.
    #[default]
    Whole,
    /// Its `apiVersion`, `kind` and `metadata`.
    Metadata,
}

impl Form {
    /// Returns the part of an object that this form has.
    pub fn of(self, object: Object) -> Object {
        match self {
            Self::Whole => object,
            Self::Metadata => {
                let mut map = object.into_map();
                map.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
                map.into()
            }
        }
    }
}

//! The versions of one kind, as needed for merging.

use std::borrow::Cow;

use serde_json::Value;

use super::types::TypeRef;

/// An object in a version.
#[derive(Debug)]
pub struct At<'a> {
    /// The object.
    pub object: Cow<'a, Value>,
    /// Its type.
    pub type_ref: TypeRef,
}

/// Converts objects of a kind between its versions.
pub trait Versions {
    /// The object in a version, or `None` if the kind has no such version.
    ///
    /// Only `apiVersion` tells which version the given object has.
    fn at<'a>(&self, object: &'a Value, api_version: &str) -> Option<At<'a>>;
}

/// A kind that has one version.
#[derive(Clone, Debug)]
pub struct OneVersion {
    /// Group and version.
    pub api_version: String,
    /// Its type.
    pub type_ref: TypeRef,
}

impl Versions for OneVersion {
    fn at<'a>(&self, object: &'a Value, api_version: &str) -> Option<At<'a>> {
        (api_version == self.api_version)
            .then(|| At { object: Cow::Borrowed(object), type_ref: self.type_ref.clone() })
    }
}

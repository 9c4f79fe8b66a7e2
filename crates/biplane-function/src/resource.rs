//! Resources in requests and responses: the object, its connection details and its readiness.

use std::collections::BTreeMap;

use biplane_model::{Map, Object, Value};
use serde::Serialize;

use crate::v1::{Ready, Resource};

/// The context key of the environment that functions share.
pub const ENVIRONMENT_CONTEXT_KEY: &str = "apiextensions.crossplane.io/environment";

/// Connection details: secret bytes by key.
pub type ConnectionDetails = BTreeMap<String, Vec<u8>>;

/// A composite resource.
#[derive(Clone, Default, PartialEq)]
pub struct Composite {
    /// The object.
    pub resource: Object,
    /// Its connection details.
    pub connection_details: ConnectionDetails,
    /// The readiness that a function set, if any.
    pub ready: Ready,
}

/// A composed resource that exists.
#[derive(Clone, Default, PartialEq)]
pub struct ObservedComposed {
    /// The object.
    pub resource: Object,
    /// Its connection details.
    pub connection_details: ConnectionDetails,
}

/// A composed resource that should exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesiredComposed {
    /// The object.
    pub resource: Object,
    /// The readiness that a function set, if any.
    pub ready: Ready,
}

// Connection details are secret: only their keys may be printed.
impl std::fmt::Debug for Composite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Composite")
            .field("resource", &self.resource)
            .field("connection_details", &self.connection_details.keys())
            .field("ready", &self.ready)
            .finish()
    }
}

impl std::fmt::Debug for ObservedComposed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObservedComposed")
            .field("resource", &self.resource)
            .field("connection_details", &self.connection_details.keys())
            .finish()
    }
}

impl From<DesiredComposed> for Resource {
    fn from(desired: DesiredComposed) -> Self {
        Self {
            resource: Some(desired.resource.into()),
            connection_details: BTreeMap::new(),
            ready: desired.ready.into(),
        }
    }
}

impl From<Composite> for Resource {
    fn from(composite: Composite) -> Self {
        Self {
            resource: Some(composite.resource.into()),
            connection_details: composite.connection_details,
            ready: composite.ready.into(),
        }
    }
}

/// Returns the object of a resource, or an empty object if there is none.
pub fn object(resource: &Resource) -> Object {
    resource.resource.as_ref().map(|s| s.object().clone()).unwrap_or_default()
}

/// Converts a typed value to desired state.
///
/// Desired state is applied, so every field in it is owned by the composite resource. Nulls, empty
/// objects and `metadata.generation` are therefore left out, and also `metadata` if it is empty.
pub fn desired_from<T: Serialize>(
    api_version: &str,
    kind: &str,
    value: &T,
) -> Result<Object, ConvertError> {
    let Value::Object(mut map) = serde_json::to_value(value).map_err(ConvertError::Json)? else {
        return Err(ConvertError::NotAnObject);
    };
    map.values_mut().for_each(prune);
    map.retain(|_, value| !is_nothing(value));
    let mut object = Object::from(map);
    object.remove_at(&["metadata", "generation"]);
    if object.get("metadata").is_some_and(is_nothing) {
        object.make_mut().remove("metadata");
    }
    object.set_at_or_ignore(&["apiVersion"], api_version);
    object.set_at_or_ignore(&["kind"], kind);
    Ok(object)
}

/// Why a value cannot be converted to desired state.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The value cannot be encoded as JSON.
    #[error("cannot marshal object to JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The value is a scalar or a list in JSON.
    #[error("cannot unmarshal object from JSON: it is no JSON object")]
    NotAnObject,
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune);
            map.retain(|_, value| !is_nothing(value));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

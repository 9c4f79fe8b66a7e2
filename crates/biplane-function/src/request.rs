//! Helpers for functions to read their request.

use std::collections::BTreeMap;

use biplane_model::{Object, Value};
use biplane_proto::Struct;
use serde::de::DeserializeOwned;

use crate::resource::{Composite, DesiredComposed, ObservedComposed, object};
use crate::v1::{Capability, RequestMeta, Resources, RunFunctionRequest, credentials::Source};

/// Why the input of a function could not be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot get function input {type_name} from *v1.RunFunctionRequest: cannot unmarshal JSON from \
     *structpb.Struct into {type_name}: {source}"
)]
pub struct InputError {
    /// The type name in Go's error message.
    pub type_name: String,
    /// The decoding error.
    pub source: serde_json::Error,
}

/// Why a credential could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The step has no credential with that name.
    #[error("{0}: credential not found")]
    NotFound(String),
    /// The credential source is unknown to this version.
    #[error("{0}: not a supported credential source")]
    UnsupportedSource(String),
}

/// Decodes the input into a type. An absent input is decoded as an empty object.
///
/// `type_name` is the name of the type in error messages. The type decides whether unknown fields
/// are refused: other functions refuse them, with `#[serde(deny_unknown_fields)]`.
pub fn input<T: DeserializeOwned>(
    request: &RunFunctionRequest,
    type_name: &str,
) -> Result<T, InputError> {
    let value = request.input.as_ref().map_or_else(|| Object::new().into_value(), |s| s.to_value());
    serde_json::from_value(value)
        .map_err(|source| InputError { type_name: type_name.to_owned(), source })
}

/// Returns a value of the pipeline's context.
pub fn context<'a>(request: &'a RunFunctionRequest, key: &str) -> Option<&'a Value> {
    request.context.as_ref()?.get(key)
}

/// Returns the observed composite resource.
pub fn observed_composite(request: &RunFunctionRequest) -> Composite {
    request.observed.as_ref().and_then(|s| s.composite.as_ref()).map(composite).unwrap_or_default()
}

/// Returns the desired composite resource of earlier steps, with its readiness.
pub fn desired_composite(request: &RunFunctionRequest) -> Composite {
    request.desired.as_ref().and_then(|s| s.composite.as_ref()).map(composite).unwrap_or_default()
}

fn composite(resource: &crate::v1::Resource) -> Composite {
    Composite {
        resource: object(resource),
        connection_details: resource.connection_details.clone(),
        ready: resource.ready(),
    }
}

/// Returns the observed composed resources, by their names in the pipeline.
pub fn observed_composed(request: &RunFunctionRequest) -> BTreeMap<String, ObservedComposed> {
    let resources = request.observed.iter().flat_map(|s| &s.resources);
    let observed = |(name, resource): (&String, &crate::v1::Resource)| {
        let connection_details = resource.connection_details.clone();
        (name.clone(), ObservedComposed { resource: object(resource), connection_details })
    };
    resources.map(observed).collect()
}

/// Returns the desired composed resources of earlier steps, by their names in the pipeline.
pub fn desired_composed(request: &RunFunctionRequest) -> BTreeMap<String, DesiredComposed> {
    let resources = request.desired.iter().flat_map(|s| &s.resources);
    resources
        .map(|(name, resource)| {
            let ready = resource.ready();
            (name.clone(), DesiredComposed { resource: object(resource), ready })
        })
        .collect()
}

/// Returns all required resources. A requirement without matches has an empty list.
pub fn required_resources(request: &RunFunctionRequest) -> BTreeMap<String, Vec<Object>> {
    request.required_resources.iter().map(|(name, found)| (name.clone(), objects(found))).collect()
}

/// Returns the resources of one requirement, or `None` while it is not resolved.
pub fn required_resource(request: &RunFunctionRequest, name: &str) -> Option<Vec<Object>> {
    request.required_resources.get(name).map(objects)
}

/// Returns all resources that were requested through the deprecated field.
pub fn extra_resources(request: &RunFunctionRequest) -> BTreeMap<String, Vec<Object>> {
    request.extra_resources.iter().map(|(name, found)| (name.clone(), objects(found))).collect()
}

fn objects(resources: &Resources) -> Vec<Object> {
    resources.items.iter().map(object).collect()
}

/// Returns all required schemas. A schema that was not found is `None`.
pub fn required_schemas(request: &RunFunctionRequest) -> BTreeMap<String, Option<Struct>> {
    let schemas = request.required_schemas.iter();
    schemas.map(|(name, schema)| (name.clone(), schema.openapi_v3.clone())).collect()
}

/// Returns one required schema: `None` while it is not resolved, `Some(None)` if it was not found.
#[allow(clippy::option_option)]
pub fn required_schema(request: &RunFunctionRequest, name: &str) -> Option<Option<Struct>> {
    request.required_schemas.get(name).map(|schema| schema.openapi_v3.clone())
}

/// Whether the control plane advertises its capabilities. Older ones do not.
pub fn advertises_capabilities(request: &RunFunctionRequest) -> bool {
    has_capability(request, Capability::Capabilities)
}

/// Whether the control plane advertises this capability.
pub fn has_capability(request: &RunFunctionRequest, capability: Capability) -> bool {
    let listed = |meta: &RequestMeta| meta.capabilities.contains(&capability.into());
    request.meta.as_ref().is_some_and(listed)
}

/// Returns the data of a credential.
pub fn credentials<'a>(
    request: &'a RunFunctionRequest,
    name: &str,
) -> Result<&'a BTreeMap<String, Vec<u8>>, CredentialError> {
    let credential =
        request.credentials.get(name).ok_or_else(|| CredentialError::NotFound(name.to_owned()))?;
    match &credential.source {
        Some(Source::CredentialData(data)) => Ok(&data.data),
        None => Err(CredentialError::UnsupportedSource(name.to_owned())),
    }
}

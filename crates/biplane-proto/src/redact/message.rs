//! Redacts messages. Objects are shared with the original until they have to be changed.

use std::collections::BTreeMap;

use super::path::{At, Found};
use super::{MARKER, Mode, object};
use crate::Struct;
use crate::function::v1::{
    Credentials, Resource, Resources, RunFunctionRequest, RunFunctionResponse, State,
    credentials::Source,
};

pub(super) fn request(request: &mut RunFunctionRequest, mode: Mode, found: &mut Found) {
    if mode == Mode::None {
        return;
    }
    state(request.observed.as_mut(), mode, &At::root("observed"), found);
    without_observed(request, mode, found);
}

#[allow(deprecated)] // extra_resources: older functions use it
pub(super) fn without_observed(request: &mut RunFunctionRequest, mode: Mode, found: &mut Found) {
    if mode == Mode::None {
        return;
    }
    credentials(&mut request.credentials, mode, found);
    state(request.desired.as_mut(), mode, &At::root("desired"), found);
    resources(&mut request.required_resources, mode, &At::root("requiredResources"), found);
    resources(&mut request.extra_resources, mode, &At::root("extraResources"), found);
    if mode == Mode::Deep {
        structure(request.input.as_mut(), mode, &At::root("input"), found);
        structure(request.context.as_mut(), mode, &At::root("context"), found);
        let at = At::root("requiredSchemas");
        for (name, schema) in &mut request.required_schemas {
            let at = at.field(name);
            structure(schema.openapi_v3.as_mut(), mode, &at.field("openapiV3"), found);
        }
    }
}

pub(super) fn response(response: &mut RunFunctionResponse, mode: Mode, found: &mut Found) {
    if mode == Mode::None {
        return;
    }
    state(response.desired.as_mut(), mode, &At::root("desired"), found);
    if mode == Mode::Deep {
        structure(response.context.as_mut(), mode, &At::root("context"), found);
        structure(response.output.as_mut(), mode, &At::root("output"), found);
    }
}

/// Redacts a Struct.
pub(super) fn structure(
    structure: Option<&mut Struct>,
    mode: Mode,
    at: &At<'_>,
    found: &mut Found,
) {
    if let Some(structure) = structure
        && object::may_change(structure, mode)
    {
        object::redact(structure.make_mut(), mode, at, found);
    }
}

pub(super) fn state(state: Option<&mut State>, mode: Mode, at: &At<'_>, found: &mut Found) {
    let Some(state) = state else { return };
    if let Some(composite) = &mut state.composite {
        resource(composite, mode, &at.field("composite"), found);
    }
    let at = at.field("resources");
    for (name, composed) in &mut state.resources {
        resource(composed, mode, &at.field(name), found);
    }
}

fn resources(all: &mut BTreeMap<String, Resources>, mode: Mode, at: &At<'_>, found: &mut Found) {
    for (name, resources) in all {
        let at = at.field(name);
        let at = at.field("items");
        for (index, item) in resources.items.iter_mut().enumerate() {
            resource(item, mode, &at.index(index), found);
        }
    }
}

fn resource(resource: &mut Resource, mode: Mode, at: &At<'_>, found: &mut Found) {
    details(&mut resource.connection_details, mode, &at.field("connectionDetails"), found);
    structure(resource.resource.as_mut(), mode, &at.field("resource"), found);
}

fn details(details: &mut BTreeMap<String, Vec<u8>>, mode: Mode, at: &At<'_>, found: &mut Found) {
    if mode == Mode::Clear {
        if !details.is_empty() {
            details.clear();
            found.add(at);
        }
        return;
    }
    for (key, value) in details {
        *value = MARKER.into();
        found.add(&at.field(key));
    }
}

fn credentials(all: &mut BTreeMap<String, Credentials>, mode: Mode, found: &mut Found) {
    let at = At::root("credentials");
    if mode == Mode::Clear {
        if !all.is_empty() {
            all.clear();
            found.add(&at);
        }
        return;
    }
    for (name, credentials) in all {
        let Some(Source::CredentialData(credential)) = &mut credentials.source else { continue };
        let at = at.field(name);
        let at = at.field("credentialData");
        details(&mut credential.data, mode, &at.field("data"), found);
    }
}

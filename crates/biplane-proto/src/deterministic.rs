//! Go's deterministic encoding of a function request, and the tag that is derived from it.
//!
//! Fields are in the order of their numbers and map entries in the byte order of their keys, as in
//! prost. Unlike in prost, key and value of a map entry are written even if they are empty. Control
//! planes compare tags, so the bytes must equal Go's.

use std::collections::BTreeMap;

use prost::encoding::WireType;
use sha2::{Digest, Sha256};

use crate::Struct;
use crate::backwards::Backwards;
use crate::function::v1::{
    CredentialData, Credentials, RequestMeta, Resource, Resources, RunFunctionRequest, Schema,
    State, credentials::Source,
};

/// The tag of a request: a lowercase hash of everything except `meta`.
pub fn tag(request: &RunFunctionRequest) -> String {
    let mut out = Backwards::with_capacity(4096);
    write_body(&mut out, request);
    let digit = |number: u8| char::from_digit(u32::from(number), 16).unwrap_or_default();
    let digest = Sha256::digest(out.as_slice());
    digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// Encodes a request, including `meta`.
pub fn encode(request: &RunFunctionRequest) -> Vec<u8> {
    let mut out = Backwards::with_capacity(4096);
    write_body(&mut out, request);
    message(&mut out, 1, request.meta.as_ref(), write_meta);
    out.as_slice().to_vec()
}

type Write<T> = fn(&mut Backwards, &T);

// All functions below write backwards: last field first, last entry first, value before key.

#[allow(deprecated)] // extra_resources: older functions use it
fn write_body(out: &mut Backwards, request: &RunFunctionRequest) {
    map(out, 9, &request.required_schemas, write_schema);
    map(out, 8, &request.required_resources, write_resources);
    map(out, 7, &request.credentials, write_credentials);
    map(out, 6, &request.extra_resources, write_resources);
    message(out, 5, request.context.as_ref(), write_struct);
    message(out, 4, request.input.as_ref(), write_struct);
    message(out, 3, request.desired.as_ref(), write_state);
    message(out, 2, request.observed.as_ref(), write_state);
}

fn write_meta(out: &mut Backwards, meta: &RequestMeta) {
    if !meta.capabilities.is_empty() {
        let before = out.len();
        for capability in meta.capabilities.iter().rev() {
            out.varint(enumeration(*capability));
        }
        out.close(2, before);
    }
    if !meta.tag.is_empty() {
        out.delimited(1, meta.tag.as_bytes());
    }
}

fn write_state(out: &mut Backwards, state: &State) {
    map(out, 2, &state.resources, write_resource);
    message(out, 1, state.composite.as_ref(), write_resource);
}

fn write_resource(out: &mut Backwards, resource: &Resource) {
    if resource.ready != 0 {
        out.varint(enumeration(resource.ready));
        out.key(3, WireType::Varint);
    }
    map(out, 2, &resource.connection_details, write_bytes);
    message(out, 1, resource.resource.as_ref(), write_struct);
}

fn write_resources(out: &mut Backwards, resources: &Resources) {
    for item in resources.items.iter().rev() {
        message(out, 1, Some(item), write_resource);
    }
}

fn write_credentials(out: &mut Backwards, credentials: &Credentials) {
    if let Some(Source::CredentialData(CredentialData { data })) = &credentials.source {
        let before = out.len();
        map(out, 1, data, write_bytes);
        out.close(1, before);
    }
}

fn write_schema(out: &mut Backwards, schema: &Schema) {
    message(out, 1, schema.openapi_v3.as_ref(), write_struct);
}

fn write_struct(out: &mut Backwards, object: &Struct) {
    object.write_backwards(out);
}

// The value of a map entry is the bytes themselves. The entry writes their length.
#[allow(clippy::ptr_arg)] // the type of the map's values
fn write_bytes(out: &mut Backwards, bytes: &Vec<u8>) {
    out.bytes(bytes);
}

fn message<T>(out: &mut Backwards, field: u8, message: Option<&T>, write: Write<T>) {
    if let Some(message) = message {
        let before = out.len();
        write(out, message);
        out.close(field, before);
    }
}

fn map<T>(out: &mut Backwards, field: u8, map: &BTreeMap<String, T>, write: Write<T>) {
    for (key, value) in map.iter().rev() {
        let before = out.len();
        message(out, 2, Some(value), write);
        out.delimited(1, key.as_bytes());
        out.close(field, before);
    }
}

/// The number of an enum on the wire. Negative numbers are ten bytes long.
fn enumeration(number: i32) -> u64 {
    i64::from(number) as u64
}

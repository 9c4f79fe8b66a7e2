//! function-dummy: returns the response in its input.

use biplane_function::v1::{
    Requirements, Resource, ResponseMeta, RunFunctionRequest, RunFunctionResponse, State,
};
use biplane_function::{PureFunction, request, response};
use biplane_proto::{Struct, json};
use serde::Deserialize;
use serde_json::Value;
use tonic::Status;

/// The function.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dummy;

/// `dummy.fn.crossplane.io/v1beta1`, kind `Response`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)] // only decoded to detect unknown fields
struct Input {
    #[serde(default, rename = "apiVersion")]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    metadata: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    response: Option<Value>,
}

impl PureFunction for Dummy {
    /// Its input, which has a limit, decides how long it takes. A thread of its own would cost more.
    fn checks_budget(&self) -> bool {
        true
    }

    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut answer = response::to(&request, response::DEFAULT_TTL);
        let input: Input = match request::input(&request, "*v1beta1.Response") {
            Ok(input) => input,
            Err(error) => {
                let text =
                    format!("cannot get Function input from *v1.RunFunctionRequest: {error}");
                response::fatal(&mut answer, text);
                return Ok(answer);
            }
        };
        match overlay(input.response) {
            Ok(overlay) => merge(&mut answer, overlay),
            Err(error) => response::fatal(
                &mut answer,
                format!(
                    "cannot unmarshal RunFunctionResponse from *v1.RunFunctionRequest: {error}"
                ),
            ),
        }
        Ok(answer)
    }
}

fn overlay(response: Option<Value>) -> Result<RunFunctionResponse, String> {
    // An absent response is decoded like an empty string.
    let response = response.ok_or("proto: syntax error (line 1:1): unexpected token ")?;
    json::from_value(response).map_err(|error| match error {
        json::Error::Read(error) => format!("proto: {error}"),
        other => format!("proto: {other}"),
    })
}

/// Merges like protobuf: set fields win, messages merge, lists are appended, map entries are
/// replaced.
fn merge(into: &mut RunFunctionResponse, from: RunFunctionResponse) {
    option(&mut into.meta, from.meta, |into, from: ResponseMeta| {
        if !from.tag.is_empty() {
            into.tag = from.tag;
        }
        option(&mut into.ttl, from.ttl, |into, from| {
            if from.seconds != 0 {
                into.seconds = from.seconds;
            }
            if from.nanos != 0 {
                into.nanos = from.nanos;
            }
        });
    });
    option(&mut into.desired, from.desired, |into, from: State| {
        option(&mut into.composite, from.composite, |into, from: Resource| {
            option(&mut into.resource, from.resource, merge_struct);
            into.connection_details.extend(from.connection_details);
            if from.ready != 0 {
                into.ready = from.ready;
            }
        });
        into.resources.extend(from.resources);
    });
    into.results.extend(from.results);
    option(&mut into.context, from.context, merge_struct);
    option(&mut into.requirements, from.requirements, |into, from: Requirements| {
        into.extra_resources.extend(from.extra_resources);
        into.resources.extend(from.resources);
        into.schemas.extend(from.schemas);
    });
    into.conditions.extend(from.conditions);
    option(&mut into.output, from.output, merge_struct);
}

fn option<T>(into: &mut Option<T>, from: Option<T>, merge: impl FnOnce(&mut T, T)) {
    let Some(from) = from else { return };
    match into {
        Some(into) => merge(into, from),
        None => *into = Some(from),
    }
}

/// The fields of a Struct are a map: the value of a key is replaced, not merged.
fn merge_struct(into: &mut Struct, from: Struct) {
    into.make_mut().extend(from.into_object().into_map());
}

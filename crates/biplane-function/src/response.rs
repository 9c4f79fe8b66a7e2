//! Helpers for functions to build their response.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use biplane_model::{Object, Value};
use serde::Serialize;

use crate::resource::{Composite, DesiredComposed};
use crate::v1::{
    Condition, Requirements, Resource, ResourceSelector, ResponseMeta, Result as FunctionResult,
    RunFunctionRequest, RunFunctionResponse, SchemaSelector, Severity, State, Status, Target,
};

/// The default time for which a response may be reused.
pub const DEFAULT_TTL: Duration = Duration::from_mins(1);

/// Creates a response to a request, with its tag, desired state and context.
pub fn to(request: &RunFunctionRequest, ttl: Duration) -> RunFunctionResponse {
    RunFunctionResponse {
        meta: Some(ResponseMeta {
            tag: request.meta.as_ref().map(|meta| meta.tag.clone()).unwrap_or_default(),
            ttl: Some(ttl.into()),
        }),
        desired: request.desired.clone(),
        context: request.context.clone(),
        ..RunFunctionResponse::default()
    }
}

/// Adds a fatal result, which ends the pipeline. The function still returns its response.
pub fn fatal(response: &mut RunFunctionResponse, message: impl Display) {
    result(response, Severity::Fatal, &message);
}

/// Adds a warning result.
pub fn warning(response: &mut RunFunctionResponse, message: impl Display) -> ResultOptions<'_> {
    result(response, Severity::Warning, &message)
}

/// Adds a normal result.
pub fn normal(response: &mut RunFunctionResponse, message: impl Display) -> ResultOptions<'_> {
    result(response, Severity::Normal, &message)
}

fn result<'a>(
    response: &'a mut RunFunctionResponse,
    severity: Severity,
    message: &dyn Display,
) -> ResultOptions<'a> {
    ResultOptions(response.results.push_mut(FunctionResult {
        severity: severity.into(),
        message: message.to_string(),
        reason: None,
        target: Some(Target::Composite.into()),
    }))
}

/// Optional fields of a result.
#[derive(Debug)]
pub struct ResultOptions<'a>(&'a mut FunctionResult);

impl ResultOptions<'_> {
    /// Targets only the composite resource.
    pub fn target_composite(&mut self) -> &mut Self {
        self.0.set_target(Target::Composite);
        self
    }

    /// Targets the composite resource and its claim.
    pub fn target_composite_and_claim(&mut self) -> &mut Self {
        self.0.set_target(Target::CompositeAndClaim);
        self
    }

    /// Sets the reason of the event, in CamelCase.
    pub fn with_reason(&mut self, reason: impl Into<String>) -> &mut Self {
        self.0.reason = Some(reason.into());
        self
    }
}

/// Adds a condition with the status True.
pub fn condition_true<'a>(
    response: &'a mut RunFunctionResponse,
    kind: &str,
    reason: &str,
) -> ConditionOptions<'a> {
    condition(response, kind, Status::ConditionTrue, reason)
}

/// Adds a condition with the status False.
pub fn condition_false<'a>(
    response: &'a mut RunFunctionResponse,
    kind: &str,
    reason: &str,
) -> ConditionOptions<'a> {
    condition(response, kind, Status::ConditionFalse, reason)
}

/// Adds a condition with the status Unknown.
pub fn condition_unknown<'a>(
    response: &'a mut RunFunctionResponse,
    kind: &str,
    reason: &str,
) -> ConditionOptions<'a> {
    condition(response, kind, Status::ConditionUnknown, reason)
}

fn condition<'a>(
    response: &'a mut RunFunctionResponse,
    kind: &str,
    status: Status,
    reason: &str,
) -> ConditionOptions<'a> {
    ConditionOptions(response.conditions.push_mut(Condition {
        r#type: kind.to_owned(),
        status: status.into(),
        reason: reason.to_owned(),
        message: None,
        target: Some(Target::Composite.into()),
    }))
}

/// Optional fields of a condition.
#[derive(Debug)]
pub struct ConditionOptions<'a>(&'a mut Condition);

impl ConditionOptions<'_> {
    /// Targets only the composite resource.
    pub fn target_composite(&mut self) -> &mut Self {
        self.0.set_target(Target::Composite);
        self
    }

    /// Targets the composite resource and its claim.
    pub fn target_composite_and_claim(&mut self) -> &mut Self {
        self.0.set_target(Target::CompositeAndClaim);
        self
    }

    /// Sets a human-readable message.
    pub fn with_message(&mut self, message: impl Into<String>) -> &mut Self {
        self.0.message = Some(message.into());
        self
    }
}

/// Sets a value of the pipeline's context.
pub fn set_context(response: &mut RunFunctionResponse, key: &str, mut value: Value) {
    biplane_proto::structs::normalize(&mut value);
    let context = response.context.get_or_insert_default();
    context.make_mut().insert(key.to_owned(), value);
}

/// Replaces the desired composite resource.
pub fn set_desired_composite(response: &mut RunFunctionResponse, composite: Composite) {
    desired(response).composite = Some(composite.into());
}

/// Adds desired composed resources. Resources with other names are kept.
pub fn set_desired_composed(
    response: &mut RunFunctionResponse,
    composed: impl IntoIterator<Item = (String, DesiredComposed)>,
) {
    let composed = composed.into_iter().map(|(name, resource)| (name, resource.into()));
    desired(response).resources.extend(composed);
}

/// Adds desired resources without setting their readiness. Resources with other names are kept.
pub fn set_desired_resources(
    response: &mut RunFunctionResponse,
    resources: impl IntoIterator<Item = (String, Object)>,
) {
    let resources = resources
        .into_iter()
        .map(|(name, r)| (name, Resource { resource: Some(r.into()), ..Resource::default() }));
    desired(response).resources.extend(resources);
}

fn desired(response: &mut RunFunctionResponse) -> &mut State {
    response.desired.get_or_insert_default()
}

/// Requires the schema of a kind.
pub fn require_schema(
    response: &mut RunFunctionResponse,
    name: &str,
    api_version: &str,
    kind: &str,
) {
    let selector = SchemaSelector { api_version: api_version.into(), kind: kind.into() };
    requirements(response).schemas.insert(name.to_owned(), selector);
}

/// Requires resources.
pub fn require_resources(
    response: &mut RunFunctionResponse,
    name: &str,
    selector: ResourceSelector,
) {
    requirements(response).resources.insert(name.to_owned(), selector);
}

fn requirements(response: &mut RunFunctionResponse) -> &mut Requirements {
    response.requirements.get_or_insert_default()
}

/// Why a value cannot be the output of an operation.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The value cannot be encoded as JSON.
    #[error("cannot marshal output to JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The value is a scalar or a list in JSON.
    #[error("cannot unmarshal JSON to protobuf struct: the output is no JSON object")]
    NotAnObject,
}

/// Sets the output of an operation.
pub fn set_output(
    response: &mut RunFunctionResponse,
    output: &impl Serialize,
) -> Result<(), OutputError> {
    let value = serde_json::to_value(output).map_err(OutputError::Json)?;
    let object = Object::from_value(value).ok_or(OutputError::NotAnObject)?;
    response.output = Some(object.into());
    Ok(())
}

/// Returns the desired composed resources of a response by name, for example to remove some.
pub fn desired_resources(response: &mut RunFunctionResponse) -> &mut BTreeMap<String, Resource> {
    &mut desired(response).resources
}

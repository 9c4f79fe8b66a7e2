//! The metadata of a call, by which a receiver puts calls together.

use biplane_proto::Timestamp;
use biplane_proto::inspector::shipped::{
    CompositionMeta, OperationMeta, StepMeta, step_meta::Context,
};

use super::Sources;
use crate::runner::{Call, Subject};
use crate::v1::RunFunctionRequest;

/// The metadata of a call that is about to be made, or why there is none.
pub(super) fn of(
    call: &Call,
    request: &RunFunctionRequest,
    sources: &Sources,
) -> Result<StepMeta, &'static str> {
    if call.trace.is_empty() {
        return Err("could not extract trace ID from context");
    }
    let context = match &call.subject {
        Some(Subject::Composition { name }) => Context::CompositionMeta(composition(name, request)),
        Some(Subject::Operation { name, uid }) => Context::OperationMeta(OperationMeta {
            operation_name: name.clone(),
            operation_uid: uid.clone(),
        }),
        None => return Err("unable to determine if function is for XR or Ops from context"),
    };
    Ok(StepMeta {
        timestamp: Timestamp::try_from((sources.now)()).ok(),
        trace_id: call.trace.clone(),
        span_id: (sources.uuid)(),
        step_index: i32::try_from(call.index).unwrap_or(i32::MAX),
        step_name: call.step.clone(),
        iteration: i32::try_from(call.iteration).unwrap_or(i32::MAX),
        function_name: call.function.clone(),
        context: Some(context),
    })
}

/// The composite resource is in the request. What it lacks is left empty.
fn composition(name: &str, request: &RunFunctionRequest) -> CompositionMeta {
    let composite = request.observed.as_ref().and_then(|observed| observed.composite.as_ref());
    let composite = composite.and_then(|composite| composite.resource.as_ref());
    let text = |path: &[&str]| composite.map(|xr| xr.str_at(path).to_owned()).unwrap_or_default();
    CompositionMeta {
        composition_name: name.to_owned(),
        composite_resource_uid: text(&["metadata", "uid"]),
        composite_resource_name: text(&["metadata", "name"]),
        composite_resource_namespace: text(&["metadata", "namespace"]),
        composite_resource_api_version: text(&["apiVersion"]),
        composite_resource_kind: text(&["kind"]),
    }
}

//! Prints runs and changes as the lines that the sidecars print of them.

use biplane_proto::Timestamp;
use biplane_proto::changelogs::ChangeLogEntry;
use biplane_proto::inspector::shipped::{
    CompositionMeta, OperationMeta, StepMeta, step_meta::Context,
};
use biplane_proto::json;
use biplane_proto::redact::{Half, Mode, Redactor, TagKey};
use serde_json::Value;

use super::record::{ChangeRecord, Head, Run, Step};
use crate::line::{self, Format};

/// The emissions of a run, each with its line break.
pub fn emissions(run: &Run, format: Format) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &run.steps {
        let meta = meta(&run.head, step);
        let mut print = |half, payload: Option<&Value>, error: &str| {
            let payload = as_kept(half, payload.cloned().unwrap_or_default());
            lines.extend(line::emission(format, half, Some(&meta), payload, error));
        };
        if step.asked {
            print(Half::Request, step.request.as_ref(), "");
        }
        if step.answered {
            let error = step.error.as_deref().unwrap_or_default();
            print(Half::Response, step.response.as_ref(), error);
        }
    }
    lines
}

/// The entry of a change, with its line break.
pub fn entry(change: &ChangeRecord) -> Option<String> {
    let entry: ChangeLogEntry = json::from_value(change.entry.clone()).ok()?;
    line::entry(&passing().entry(entry)).ok()
}

/// What an archive has is redacted already. To redact it again would change tags.
fn as_kept(half: Half, payload: Value) -> biplane_proto::redact::Redacted<Value> {
    passing().json(half, payload, false)
}

fn passing() -> Redactor {
    Redactor::new(Mode::None, TagKey::new([0; 32]))
}

/// The metadata of a call.
pub fn meta(head: &Head, step: &Step) -> StepMeta {
    let owner = &head.owner;
    let is_known = !owner.kind.is_empty() || !owner.name.is_empty();
    let context = if owner.is_operation() {
        Some(Context::OperationMeta(OperationMeta {
            operation_name: owner.name.clone(),
            operation_uid: owner.uid.clone(),
        }))
    } else if is_known || !head.composition.is_empty() {
        Some(Context::CompositionMeta(CompositionMeta {
            composition_name: head.composition.clone(),
            composite_resource_uid: owner.uid.clone(),
            composite_resource_name: owner.name.clone(),
            composite_resource_namespace: owner.namespace.clone(),
            composite_resource_api_version: owner.api_version.clone(),
            composite_resource_kind: owner.kind.clone(),
        }))
    } else {
        None
    };
    let nanos = step.started.as_nanosecond();
    let second = 1_000_000_000;
    let timestamp = (nanos != 0).then(|| Timestamp {
        seconds: i64::try_from(nanos.div_euclid(second)).unwrap_or_default(),
        nanos: i32::try_from(nanos.rem_euclid(second)).unwrap_or_default(),
    });
    StepMeta {
        timestamp,
        trace_id: head.trace.clone(),
        span_id: step.span.clone(),
        step_index: step.index,
        step_name: step.name.clone(),
        iteration: step.iteration,
        function_name: step.function.clone(),
        context,
    }
}

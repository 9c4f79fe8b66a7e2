//! Renders an Operation with its reconciler, or the Operation that a CronOperation or
//! WatchOperation creates.

use std::sync::Arc;

use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    CronOperationInput, OperationInput, OperationOutput, WatchOperationInput,
};
use biplane_runner::FunctionRunner;
use jiff::Timestamp;

use super::environment::{RenderEnvironment, RenderFixtures};
use super::{Partial, Rendered, Settings};
use crate::operation::{API_VERSION, Reconciler, Unchecked, cron, watch_operation};
use crate::reconcile::ReconcileError;

pub(super) async fn render(
    request: OperationInput,
    runner: Arc<dyn FunctionRunner>,
    settings: &Settings,
) -> Rendered<OperationOutput> {
    let mut operation = request.operation.map(Struct::into_object).unwrap_or_default();
    operation.set_at_or_ignore(&["apiVersion"], API_VERSION);
    operation.set_at_or_ignore(&["kind"], "Operation");
    operation.set_meta("resourceVersion", "999");
    let id = operation.id();

    let fixtures = RenderFixtures {
        required: request.required_resources,
        credentials: request.credentials,
        documents: request.required_schemas,
    };
    let environment = RenderEnvironment::new(operation, [], fixtures, runner, settings);
    let reconciler = Reconciler {
        context: environment.context.clone(),
        capabilities: Arc::new(Unchecked),
        timeout: settings.timeout,
    };
    let reconciled = reconciler.reconcile(&id.namespace, &id.name).await;

    let (outcome, required_resources, required_schemas) = environment.outcome(&id);
    let output = OperationOutput {
        operation: outcome.main,
        applied_resources: outcome.applied,
        events: outcome.events,
        required_resources,
        required_schemas,
    };
    match reconciled {
        Ok(()) => Ok(output),
        Err(ReconcileError { text, fatal: Some(fatal), .. }) => {
            Err(Partial::Fatal(fatal, text, output))
        }
        Err(error) => Err(Partial::Failed(format!("reconcile failed: {error}"))),
    }
}

pub(super) fn from_cron(
    request: CronOperationInput,
    settings: &Settings,
) -> Result<Struct, String> {
    let scheduled = match request.scheduled_time {
        None => settings.clock.now(),
        Some(time) => Timestamp::new(time.seconds, time.nanos)
            .map_err(|e| format!("scheduled time is out of range: {e}"))?,
    };
    let cron = request.cron_operation.map(Struct::into_object).unwrap_or_default();
    let made = cron::operation(&cron, scheduled)
        .map_err(|e| format!("cannot convert CronOperation from protobuf: {e}"))?;
    Ok(made.into())
}

pub(super) fn from_watch(request: WatchOperationInput) -> Result<Struct, String> {
    let watch = request.watch_operation.map(Struct::into_object).unwrap_or_default();
    let watched = request.watched_resource.map(Struct::into_object).unwrap_or_default();
    let made = watch_operation::operation(&watch, &watched)
        .map_err(|e| format!("cannot convert WatchOperation from protobuf: {e}"))?;
    Ok(made.into())
}

//! The Operation reconciler: runs a pipeline once and applies its desired resources.

pub mod cron;
mod template;
pub mod watch_operation;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::{Apply, Event, EventType, Optional, Part, Source, Write};
use biplane_model::condition::{Condition, condition, set_conditions};
use biplane_model::object::integer;
use biplane_model::pipeline::{Step, operation_steps};
use biplane_model::typed::{self, tables};
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_proto::function::v1::{RunFunctionRequest, Severity, State};
use biplane_runner::Subject;
use biplane_runner::notes::RunMemory;
use serde_json::json;
use tokio::time::Instant;

use crate::context::Context;
use crate::failure::{Failure, Fatal};
use crate::pipeline::{self, Flow, Run};
use crate::reconcile::{GRACE, ReconcileError, TIMEOUT};
use biplane_go::fmt::quote;

/// The API version of Operation, CronOperation and WatchOperation.
pub const API_VERSION: &str = "ops.crossplane.io/v1alpha1";
const MANAGER: &str = "ops.crossplane.io/operation/";
/// The controller name on every event.
const CONTROLLER: &str = "operation/operation.ops.crossplane.io";
/// The default number of failures after which an Operation is not retried.
const RETRY_LIMIT: i64 = 5;

/// Checks whether functions support Operations.
#[async_trait]
pub trait Capabilities: Send + Sync {
    /// Fails if one of the functions does not support Operations.
    async fn check(&self, functions: &[&str]) -> Result<(), Failure>;
}

/// Treats every function as capable.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchecked;

#[async_trait]
impl Capabilities for Unchecked {
    async fn check(&self, _functions: &[&str]) -> Result<(), Failure> {
        Ok(())
    }
}

/// Reconciles Operations.
#[derive(Clone)]
#[allow(missing_debug_implementations)] // trait objects without Debug
pub struct Reconciler {
    /// What it works with.
    pub context: Context,
    /// Checks functions before they run.
    pub capabilities: Arc<dyn Capabilities>,
    /// The time limit of one reconcile.
    pub timeout: Duration,
}

/// One pass over one Operation.
struct Pass<'a> {
    reconciler: &'a Reconciler,
    context: &'a Context,
    by: Instant,
}

impl Reconciler {
    /// Runs an Operation that is not complete yet.
    pub async fn reconcile(&self, namespace: &str, name: &str) -> Result<(), ReconcileError> {
        let by = Instant::now() + self.timeout.min(TIMEOUT);
        let pass = Pass { reconciler: self, context: &self.context, by };
        reconcile(&pass, namespace, name).await
    }
}

/// Why a pipeline run failed.
struct Failed {
    failure: Failure,
    reason: &'static str,
}

impl Failed {
    fn new(reason: &'static str, failure: Failure) -> Self {
        Self { failure, reason }
    }
}

async fn reconcile(pass: &Pass<'_>, namespace: &str, name: &str) -> Result<(), ReconcileError> {
    let cluster = &pass.context.cluster;
    let id = ObjectId::new(Gvk::new(API_VERSION, "Operation"), namespace, name);
    let found = cluster.get(&id, Source::Cache, pass.by).await.optional();
    let found = found.map_err(|e| Failure::from(e).wrap("cannot get Operation"))?;
    let Some(found) = found else { return Ok(()) };
    typed::restored(&found, tables::OPERATION)
        .map_err(|why| Failure::new(why).wrap("cannot get Operation"))?;
    let mut operation = Object::from(typed::normal(&found, tables::OPERATION));
    let complete = condition(&operation, "Succeeded").status != "Unknown";
    if operation.is_being_deleted() || complete {
        return Ok(());
    }
    let limit = operation.at(&["spec", "retryLimit"]).and_then(integer).unwrap_or(RETRY_LIMIT);
    if failures(&operation) >= limit {
        let text = format!("failure limit of {limit} reached");
        mark(pass, &mut operation, [Condition::reconcile_success(), failed(text)]);
        return write_status(pass, &mut operation).await;
    }
    // This write also detects a stale read, before anything else has happened.
    mark(pass, &mut operation, [Condition::new("Succeeded", "Unknown", "PipelineRunning")]);
    write_status(pass, &mut operation).await?;

    match run(pass, &mut operation).await {
        Ok(()) => {
            let done = Condition::new("Succeeded", "True", "PipelineSuccess");
            mark(pass, &mut operation, [Condition::reconcile_success(), done]);
            write_status(pass, &mut operation).await
        }
        Err(Outcome::Hopeless(condition, failure)) => {
            mark(pass, &mut operation, [Condition::reconcile_success(), condition]);
            write_status_if_possible(pass, &mut operation).await;
            Err(failure.into())
        }
        Err(Outcome::Failed(Failed { failure, reason })) => {
            let text = failure.to_string();
            operation.set_at_or_ignore(&["status", "failures"], failures(&operation) + 1);
            record(pass, &operation, EventType::Warning, reason, &text);
            let mut conditions = vec![Condition::reconcile_error(&text)];
            if reason == INVALID_PIPELINE {
                let missing = Condition::new("ValidPipeline", "False", "MissingCapabilities");
                conditions.push(missing.with_message(&text));
            }
            mark(pass, &mut operation, conditions);
            write_status_if_possible(pass, &mut operation).await;
            Err(failure.into())
        }
    }
}

const INVALID_PIPELINE: &str = "InvalidPipeline";
const INVOCATION: &str = "FunctionInvocation";
const BOOTSTRAP: &str = "BootstrapRequirements";
const INVALID_RESOURCE: &str = "InvalidResource";

enum Outcome {
    /// A retry may succeed.
    Failed(Failed),
    /// A retry cannot succeed.
    Hopeless(Condition, Failure),
}

impl From<Failed> for Outcome {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

async fn run(pass: &Pass<'_>, operation: &mut Object) -> Result<(), Outcome> {
    let steps = operation_steps(operation).map_err(|e| {
        let failure = Failure::new(format!("cannot get Operation: {e}"));
        Outcome::Hopeless(failed(failure.to_string()), failure)
    })?;
    let functions: Vec<_> = steps.iter().map(|s| s.function_ref.name.as_str()).collect();
    pass.reconciler
        .capabilities
        .check(&functions)
        .await
        .map_err(|f| Failed::new(INVALID_PIPELINE, f.wrap("function capability check failed")))?;
    mark(pass, operation, [Condition::new("ValidPipeline", "True", "ValidPipeline")]);

    let mut flow = Flow::default();
    let pipeline_run = Run {
        trace: pass.context.ids.uuid(),
        deadline: pass.by,
        step_timeout: None,
        subject: Subject::Operation {
            name: operation.name().to_owned(),
            uid: operation.uid().to_owned(),
        },
        memory: RunMemory::default(),
    };
    for (index, step) in steps.iter().enumerate() {
        let request = request(pass, step, flow).await?;
        let response = pipeline::call(pass.context, &pipeline_run, index, step, request).await;
        let response = response.map_err(|f| {
            let text = format!("failed to invoke pipeline step {}", quote(&step.step));
            Failed::new(INVOCATION, f.wrap(text))
        })?;
        flow = Flow { desired: response.desired, context: response.context };
        for result in &response.results {
            tell(pass, operation, &step.step, result)?;
        }
        if let Some(output) = response.output {
            add_output(operation, &step.step, output.into_object());
        }
    }
    apply(pass, operation, flow.desired.as_ref()).await
}

async fn request(pass: &Pass<'_>, step: &Step, flow: Flow) -> Result<RunFunctionRequest, Outcome> {
    let context = pass.context;
    let input = pipeline::input(step).map_err(|f| {
        let text =
            format!("cannot unmarshal input for operation pipeline step {}", quote(&step.step));
        Outcome::Hopeless(failed(text.clone()), f.wrap(text))
    })?;
    let credentials = pipeline::credentials(context, step, "operation", pass.by).await;
    let credentials = credentials.map_err(|f| Failed::new(INVOCATION, f))?;
    let resources = pipeline::bootstrap_resources(context, step).await;
    let schemas = pipeline::bootstrap_schemas(context, step);
    Ok(RunFunctionRequest {
        desired: flow.desired,
        context: flow.context,
        input,
        credentials,
        required_resources: resources.map_err(|f| Failed::new(BOOTSTRAP, f))?,
        required_schemas: schemas.await.map_err(|f| Failed::new(BOOTSTRAP, f))?,
        ..RunFunctionRequest::default()
    })
}

fn tell(
    pass: &Pass<'_>,
    operation: &Object,
    step: &str,
    result: &biplane_proto::function::v1::Result,
) -> Result<(), Failed> {
    let message = &result.message;
    let said = format!("Pipeline step {}: {message}", quote(step));
    let (r#type, message) = match result.severity() {
        Severity::Fatal => {
            let fatal = Fatal { step: step.to_owned(), message: message.clone() };
            return Err(Failed::new(INVOCATION, fatal.into()));
        }
        Severity::Warning => (EventType::Warning, said),
        Severity::Normal => (EventType::Normal, said),
        Severity::Unspecified => (
            EventType::Warning,
            format!(
                "Pipeline step {} returned a result of unknown severity (assuming warning): {message}",
                quote(step)
            ),
        ),
    };
    record(pass, operation, r#type, "RunPipelineStep", &message);
    Ok(())
}

fn record(pass: &Pass<'_>, operation: &Object, r#type: EventType, reason: &str, message: &str) {
    pass.context.events.record(Event {
        regarding: operation.into(),
        r#type,
        reason: reason.into(),
        message: message.into(),
        component: CONTROLLER.into(),
        annotations: std::collections::BTreeMap::new(),
        count: 1,
    });
}

async fn apply(
    pass: &Pass<'_>,
    operation: &mut Object,
    desired: Option<&State>,
) -> Result<(), Outcome> {
    let how = Apply::forced(format!("{MANAGER}{}", operation.uid()));
    for resource in desired.iter().flat_map(|state| state.resources.values()) {
        let object = resource.resource.as_ref().map(|s| s.object().clone()).unwrap_or_default();
        let applied = pass.context.cluster.apply(&object, Part::Main, None, &how, pass.by).await;
        let applied = applied.map_err(|e| {
            Failed::new(INVALID_RESOURCE, Failure::from(e).wrap("cannot apply desired resource"))
        })?;
        add_reference(operation, &applied.object);
    }
    Ok(())
}

/// Adds a reference. The list stays sorted and without duplicates.
fn add_reference(operation: &mut Object, applied: &Object) {
    let mut reference = json!({
        "apiVersion": applied.api_version(), "kind": applied.kind(), "name": applied.name(),
    });
    if !applied.namespace().is_empty() {
        reference["namespace"] = applied.namespace().into();
    }
    let path = ["status", "appliedResourceRefs"];
    let mut all = operation.at(&path).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |reference: &Value, key: &str| {
        reference.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let keys = ["apiVersion", "kind", "namespace", "name"];
    if all.iter().any(|other| keys.iter().all(|key| text(other, key) == text(&reference, key))) {
        return;
    }
    all.push(reference);
    all.sort_by_cached_key(|reference| keys.map(|key| text(reference, key)).concat());
    operation.set_at_or_ignore(&path, all);
}

fn add_output(operation: &mut Object, step: &str, output: Object) {
    let path = ["status", "pipeline"];
    let mut all = operation.at(&path).and_then(Value::as_array).cloned().unwrap_or_default();
    let entry = json!({"step": step, "output": output.into_value()});
    match all.iter_mut().find(|entry| entry.get("step").and_then(Value::as_str) == Some(step)) {
        Some(same) => *same = entry,
        None => all.push(entry),
    }
    operation.set_at_or_ignore(&path, all);
}

fn failures(operation: &Object) -> i64 {
    operation.at(&["status", "failures"]).and_then(integer).unwrap_or_default()
}

fn failed(message: impl Into<String>) -> Condition {
    Condition::new("Succeeded", "False", "PipelineError").with_message(message)
}

fn mark(pass: &Pass<'_>, operation: &mut Object, new: impl IntoIterator<Item = Condition>) {
    let (now, generation) = (pass.context.clock.now(), operation.generation());
    let new: Vec<_> = new.into_iter().map(|c| c.at(now).observed(generation)).collect();
    set_conditions(operation, new);
}

async fn write_status(pass: &Pass<'_>, operation: &mut Object) -> Result<(), ReconcileError> {
    let how = Write::by("crossplane");
    let written = pass.context.cluster.update(operation, Part::Status, &how, pass.by + GRACE);
    match written.await {
        Ok(stored) => {
            *operation = stored;
            Ok(())
        }
        Err(error) => Err(Failure::from(error).wrap("cannot update Operation status").into()),
    }
}

/// Writes the status and ignores errors: the failure that is being reported matters more.
async fn write_status_if_possible(pass: &Pass<'_>, operation: &mut Object) {
    if let Err(error) = write_status(pass, operation).await {
        tracing::debug!(operation = operation.name(), %error, "cannot update Operation status");
    }
}

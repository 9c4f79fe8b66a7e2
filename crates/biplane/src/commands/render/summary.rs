//! What a person wants to know beside the documents: what would change, what waits for what, and
//! what took how long.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Call, FunctionRunner, RunError};
use biplane_model::{Object, ObjectId, Value};
use biplane_proto::render::v1alpha1::CompositeOutput;

use crate::streams::Streams;

/// Says what would be created, updated and deleted, and what is not ready and why.
pub(super) fn composite(output: &CompositeOutput, observed: &[Object], streams: &mut Streams<'_>) {
    let existing: Vec<ObjectId> = observed.iter().map(Object::id).collect();
    for composed in &output.composed_resources {
        // A namespace that only the server fills in makes no other object.
        let id = composed.id();
        let same = |other: &ObjectId| {
            other.gvk == id.gvk
                && other.name == id.name
                && (other.namespace == id.namespace || id.namespace.is_empty())
        };
        let verb = if existing.iter().any(same) { "update" } else { "create" };
        streams.say(&format!("{verb} {id}"));
    }
    for deleted in &output.deleted_resources {
        streams.say(&format!("delete {}", deleted.id()));
    }
    let Some(composite) = &output.composite_resource else { return };
    let conditions = composite.at(&["status", "conditions"]).and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("status") != "True" {
            let message = text("message");
            let because = if message.is_empty() { String::new() } else { format!(": {message}") };
            let line = format!("not {} ({}){because}", text("type"), text("reason"));
            streams.say(&line);
        }
    }
}

/// How long calls took, if anyone wants to know.
#[derive(Clone, Debug)]
pub(super) struct Timing(Option<Calls>);

type Calls = Arc<Mutex<Vec<(String, Duration)>>>;

impl Timing {
    pub(super) fn new(report: bool) -> Self {
        Self(report.then(Arc::default))
    }

    /// Measures the calls that go through a runner.
    pub(super) fn wrap(&self, inner: Arc<dyn FunctionRunner>) -> Arc<dyn FunctionRunner> {
        match &self.0 {
            Some(calls) => Arc::new(Timed { inner, calls: calls.clone() }),
            None => inner,
        }
    }

    /// Says how long each call took.
    pub(super) fn report(&self, streams: &mut Streams<'_>) {
        let Some(calls) = &self.0 else { return };
        for (call, took) in calls.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            streams.say(&format!("{call}: {:.3} ms", took.as_secs_f64() * 1e3));
        }
    }
}

struct Timed {
    inner: Arc<dyn FunctionRunner>,
    calls: Calls,
}

#[async_trait]
impl FunctionRunner for Timed {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let start = Instant::now();
        let answer = self.inner.run(call, request).await;
        let took = start.elapsed();
        let name =
            format!("step {}, function {}, call {}", call.step, call.function, call.iteration + 1);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push((name, took));
        answer
    }
}

/// Says what an Operation would apply.
pub(super) fn operation(
    output: &biplane_proto::render::v1alpha1::OperationOutput,
    streams: &mut Streams<'_>,
) {
    for applied in &output.applied_resources {
        streams.say(&format!("apply {}", applied.id()));
    }
}

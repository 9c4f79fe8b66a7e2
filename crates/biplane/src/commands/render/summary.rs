//! What a person wants to know beside the documents: what would change, what waits for what, and
//! what took how long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_model::{Object, Value};
use biplane_proto::render::v1alpha1::{CompositeOutput, OperationOutput};
use biplane_runner::{Call, FunctionRunner, RunError};

use super::print::RESOURCE_NAME;
use super::{apply, context};

/// What would be created, updated and deleted, and what is not ready and why.
pub(super) fn composite(output: &CompositeOutput, observed: &[Object]) -> Vec<String> {
    let mut lines = Vec::new();
    let composite = output.composite_resource.clone().unwrap_or_default();
    let mut existing = BTreeMap::<_, Vec<_>>::new();
    for object in observed {
        existing.entry((object.gvk(), object.name())).or_default().push(object);
    }
    for composed in &output.composed_resources {
        let id = composed.id();
        // A namespace that only the server fills in makes no other object.
        let is_same =
            |other: &&&Object| id.namespace.is_empty() || other.namespace() == id.namespace;
        let others = existing.get(&(id.gvk.clone(), id.name.as_str())).into_iter().flatten();
        let verb = match others.into_iter().find(is_same) {
            None => "create",
            Some(live) if apply::changes(&composite, live, composed) => "update",
            Some(_) => continue,
        };
        // What has no name yet is known by its beginning.
        let name = match (id.name.as_str(), composed.str_at(&["metadata", "generateName"])) {
            ("", prefix) if !prefix.is_empty() => format!("{prefix}…"),
            _ => String::new(),
        };
        lines.push(format!("{verb} {id}{name}"));
    }
    for deleted in &output.deleted_resources {
        lines.push(format!("delete {}", deleted.id()));
    }
    let named = observed.iter().map(|object| (object.annotation(RESOURCE_NAME), object));
    let named: BTreeMap<_, _> = named.collect();
    for condition in unmet(&composite) {
        lines.push(format!("not {condition}"));
        if condition.starts_with("Ready ") {
            let waiting = output.events.iter().filter_map(|event| unready(&event.message));
            lines.extend(
                waiting.map(|name| format!("  {name}: {}", why(named.get(name.as_str()).copied()))),
            );
        }
    }
    lines
}

/// What an object's conditions say that it is not, and why.
pub(super) fn shortcomings(object: &Object) -> Vec<String> {
    unmet(object).iter().map(|condition| format!("not {condition}")).collect()
}

/// The conditions of an object that are not met, each with its reason.
fn unmet(object: &Object) -> Vec<String> {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array);
    let conditions = conditions.into_iter().flatten().filter_map(|condition| {
        let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("status") == "True" {
            return None;
        }
        let message = text("message");
        let because = if message.is_empty() { String::new() } else { format!(": {message}") };
        Some(format!("{} ({}){because}", text("type"), text("reason")))
    });
    conditions.collect()
}

/// The resource that an event says is not ready, by its name in the Composition.
fn unready(message: &str) -> Option<String> {
    let name = message.strip_prefix("Composed resource ")?.strip_suffix(" is not yet ready")?;
    serde_json::from_str(name).ok()
}

/// What a resource that is not ready waits for, as far as it says so itself.
fn why(object: Option<&Object>) -> String {
    let Some(object) = object else { return "it does not exist yet".to_owned() };
    match unmet(object).as_slice() {
        [] => "it exists, but no function has called it ready".to_owned(),
        unmet => format!("not {}", unmet.join(", not ")),
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

    /// How long each call took.
    pub(super) fn report(&self) -> Vec<String> {
        let Some(calls) = &self.0 else { return Vec::new() };
        let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |(call, took): &(String, Duration)| {
            format!("{call}: {:.3} ms", took.as_secs_f64() * 1e3)
        };
        calls.iter().map(line).collect()
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
        // What puts context into a pipeline is no function of anyone's.
        let helper = call.function == context::FUNCTION;
        let _measured =
            (!helper).then(|| Measured { call, calls: &self.calls, start: Instant::now() });
        self.inner.run(call, request).await
    }
}

/// A call that lasts until this goes away, be it because nobody waits for its answer any more.
struct Measured<'a> {
    call: &'a Call,
    calls: &'a Calls,
    start: Instant,
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        let Call { step, function, iteration, .. } = self.call;
        let name = format!("step {step}, function {function}, call {}", iteration + 1);
        let took = self.start.elapsed();
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push((name, took));
    }
}

/// What an Operation would apply.
pub(super) fn operation(output: &OperationOutput) -> Vec<String> {
    output.applied_resources.iter().map(|applied| format!("apply {}", applied.id())).collect()
}

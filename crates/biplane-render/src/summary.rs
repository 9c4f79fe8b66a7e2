//! Human-readable summaries for stderr: what would change, what is not ready and why, and how long
//! each call took.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use biplane_engine::composite::report::{Missing, NotYet};
use biplane_model::labels::RESOURCE_NAME;
use biplane_model::{Object, Value};
use biplane_proto::render::v1alpha1::{CompositeOutput, OperationOutput};
use biplane_runner::{Call, FunctionRunner, Named, Timings, context, stack};

use crate::apply;

/// The composed resources that are not ready according to the events of an engine.
pub(crate) fn unready(output: &CompositeOutput) -> Vec<String> {
    let not_yet = output.events.iter().filter_map(|event| NotYet::read(&event.message));
    not_yet.filter(|n| n.missing == Missing::Ready).map(|n| n.resource).collect()
}

/// What would be created, updated and deleted, and which resources are not ready and why.
pub(crate) fn composite(
    output: &CompositeOutput,
    unready: &[String],
    observed: &[Object],
) -> Vec<String> {
    let mut lines = Vec::new();
    let composite = output.composite_resource.clone().unwrap_or_default();
    let mut existing = BTreeMap::<_, Vec<_>>::new();
    for object in observed {
        existing.entry((object.gvk(), object.name())).or_default().push(object);
    }
    for composed in &output.composed_resources {
        let id = composed.id();
        // A namespace that the server defaults does not make it a different object.
        let is_same =
            |other: &&&Object| id.namespace.is_empty() || other.namespace() == id.namespace;
        let others = existing.get(&(id.gvk.clone(), id.name.as_str())).into_iter().flatten();
        let verb = match others.into_iter().find(is_same) {
            None => "create",
            Some(live) if apply::changes(&composite, live, composed) => "update",
            Some(_) => continue,
        };
        // An object without a name is identified by its `generateName`.
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
            lines.extend(unready.iter().map(|name| {
                let why = why(named.get(name.as_str()).copied());
                format!("  {name}: {why}")
            }));
        }
    }
    lines
}

/// The unmet conditions of an object, with reasons.
pub(crate) fn shortcomings(object: &Object) -> Vec<String> {
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

/// Why a resource is not ready, according to its conditions.
fn why(object: Option<&Object>) -> String {
    let Some(object) = object else { return "it does not exist yet".to_owned() };
    match unmet(object).as_slice() {
        [] => "it exists, but no function has called it ready".to_owned(),
        unmet => format!("not {}", unmet.join(", not ")),
    }
}

/// The durations of calls, if requested.
#[derive(Clone, Debug)]
pub(crate) struct Timing(Option<Timings>);

impl Timing {
    pub(crate) fn new(report: bool) -> Self {
        Self(report.then(Timings::default))
    }

    /// Calls functions, and measures the calls if requested.
    pub(crate) fn runner(&self, functions: Named) -> Arc<dyn FunctionRunner> {
        stack::of_command(functions, self.0.as_ref())
    }

    /// One line per call, without the helper that seeds and captures context.
    pub(crate) fn report(&self) -> Vec<String> {
        let calls = self.0.as_ref().map(Timings::calls).unwrap_or_default();
        let of_user = calls.iter().filter(|(call, _)| call.function != context::FUNCTION);
        let line = |(call, took): &(Call, Duration)| {
            let Call { step, function, iteration, .. } = call;
            let took = took.as_secs_f64() * 1e3;
            format!("step {step}, function {function}, call {}: {took:.3} ms", iteration + 1)
        };
        of_user.map(line).collect()
    }
}

/// What an Operation would apply.
pub(crate) fn operation(output: &OperationOutput) -> Vec<String> {
    output.applied_resources.iter().map(|applied| format!("apply {}", applied.id())).collect()
}

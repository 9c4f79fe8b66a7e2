//! Runs and changes as records: what queries work on, wherever it was kept.

use std::collections::BTreeMap;

use biplane_proto::inspector::shipped::{StepMeta, step_meta::Context};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The group and version of Operations, which emissions do not name.
pub const OPERATIONS: &str = "ops.crossplane.io/v1alpha1";

/// An object by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// The group and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace. Empty if the object has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid. Empty if it is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl ObjectRef {
    /// The group, without the version.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether a version, kind, namespace and name say the same object. The uid decides if both
    /// have one.
    pub fn is_same(&self, other: &Self) -> bool {
        if !self.uid.is_empty() && !other.uid.is_empty() {
            return self.uid == other.uid;
        }
        self.kind == other.kind
            && self.name == other.name
            && self.namespace == other.namespace
            && (self.group() == other.group())
    }

    /// What the metadata of an object says.
    pub fn of_object(object: &Value) -> Self {
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let metadata = |field: &str| text(object.get("metadata").and_then(|m| m.get(field)));
        Self {
            api_version: text(object.get("apiVersion")),
            kind: text(object.get("kind")),
            namespace: metadata("namespace"),
            name: metadata("name"),
            uid: metadata("uid"),
        }
    }

    /// Whose pipeline a step belongs to, and by which Composition.
    pub fn of_meta(meta: &StepMeta) -> (Self, String) {
        match &meta.context {
            Some(Context::CompositionMeta(of)) => {
                let owner = Self {
                    api_version: of.composite_resource_api_version.clone(),
                    kind: of.composite_resource_kind.clone(),
                    namespace: of.composite_resource_namespace.clone(),
                    name: of.composite_resource_name.clone(),
                    uid: of.composite_resource_uid.clone(),
                };
                (owner, of.composition_name.clone())
            }
            Some(Context::OperationMeta(of)) => {
                let owner = Self {
                    api_version: OPERATIONS.to_owned(),
                    kind: "Operation".to_owned(),
                    namespace: String::new(),
                    name: of.operation_name.clone(),
                    uid: of.operation_uid.clone(),
                };
                (owner, String::new())
            }
            None => (Self::default(), String::new()),
        }
    }

    /// Whether it is an Operation.
    pub fn is_operation(&self) -> bool {
        self.kind == "Operation" && self.group() == "ops.crossplane.io"
    }
}

/// How a run or a step ended, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Every step answered.
    #[default]
    Ok,
    /// A function warned.
    Warning,
    /// A function returned a fatal result.
    Fatal,
    /// A function could not be called.
    Error,
    /// No answer was recorded, or steps are missing.
    Incomplete,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 5] =
        [Self::Ok, Self::Warning, Self::Fatal, Self::Error, Self::Incomplete];

    /// The name in flags and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fatal => "fatal",
            Self::Error => "error",
            Self::Incomplete => "incomplete",
        }
    }

    /// The outcome of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether the pipeline did not get to its end.
    pub fn is_failure(self) -> bool {
        self >= Self::Fatal
    }
}

/// One call of a function. Payloads are redacted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The position in the pipeline, from zero.
    pub index: i32,
    /// How often the step had been called before with fewer resources.
    pub iteration: i32,
    /// The name in the Composition. Empty if the emitter does not tell.
    pub name: String,
    /// The function.
    pub function: String,
    /// The id of the call.
    pub span: String,
    /// When it was called.
    pub started: Timestamp,
    /// How long it took, in microseconds.
    pub took: Option<i64>,
    /// Whether a cache answered.
    pub cached: Option<bool>,
    /// The revision of the function.
    pub revision: Option<String>,
    /// What it was given.
    pub request: Option<Value>,
    /// What it answered.
    pub response: Option<Value>,
    /// Whether the first half was received.
    pub asked: bool,
    /// Whether the second half was received, with an answer or an error.
    pub answered: bool,
    /// Why it could not be called.
    pub error: Option<String>,
}

impl Step {
    /// The results of the answer: severity and message.
    pub fn results(&self) -> Vec<StepResult> {
        let list = self.response.as_ref().and_then(|r| r.get("results")).and_then(Value::as_array);
        let text = |result: &Value, field: &str| {
            result.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let result = |result: &Value| StepResult {
            severity: match result.get("severity").and_then(Value::as_str) {
                Some("SEVERITY_FATAL") => "fatal",
                Some("SEVERITY_WARNING") => "warning",
                Some("SEVERITY_NORMAL") => "normal",
                _ => "unspecified",
            }
            .to_owned(),
            message: text(result, "message"),
            reason: text(result, "reason"),
        };
        list.into_iter().flatten().map(result).collect()
    }

    /// How the call ended.
    pub fn outcome(&self) -> Outcome {
        if self.error.is_some() {
            return Outcome::Error;
        }
        if !self.answered || self.response.is_none() {
            return Outcome::Incomplete;
        }
        let results = self.results();
        let has = |severity: &str| results.iter().any(|result| result.severity == severity);
        if has("fatal") {
            Outcome::Fatal
        } else if has("warning") {
            Outcome::Warning
        } else {
            Outcome::Ok
        }
    }

    /// The desired state before or after the step.
    pub fn desired(&self, half: Side) -> Option<&Value> {
        let message = match half {
            Side::Before => self.request.as_ref(),
            Side::After => self.response.as_ref(),
        };
        message?.get("desired")
    }
}

/// Before or after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What it was given.
    Before,
    /// What it answered.
    After,
}

/// A result of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepResult {
    /// `fatal`, `warning`, `normal` or `unspecified`.
    pub severity: String,
    /// The message.
    pub message: String,
    /// The reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// All steps of one trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The head of the run.
    pub head: Head,
    /// Its steps, by position and iteration.
    pub steps: Vec<Step>,
}

/// What is known of a run without its payloads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// The key in the archive.
    pub key: i64,
    /// The trace.
    pub trace: String,
    /// The composite resource or Operation.
    pub owner: ObjectRef,
    /// The Composition.
    pub composition: String,
    /// When its first step was called.
    pub started: Timestamp,
    /// How long it took, in microseconds.
    pub took: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether more steps may come.
    pub open: bool,
    /// Whether it did the same as the run before.
    pub same: bool,
    /// The steps that were reached: position, name and function.
    pub steps: Vec<(i32, String, String)>,
}

impl Run {
    /// The last call of each step, in the order of the pipeline.
    pub fn last_calls(&self) -> Vec<&Step> {
        let mut last: BTreeMap<i32, &Step> = BTreeMap::new();
        for step in &self.steps {
            last.insert(step.index, step);
        }
        last.into_values().collect()
    }

    /// The desired state after the last step that answered.
    pub fn desired(&self) -> Option<&Value> {
        self.last_calls().into_iter().rev().find_map(|step| step.desired(Side::After))
    }

    /// The observed state. All steps are given the same.
    pub fn observed(&self) -> Option<&Value> {
        self.steps.iter().find_map(|step| step.request.as_ref()?.get("observed"))
    }

    /// Makes a run from its calls, in whichever order they are.
    pub fn of_steps(
        trace: String,
        owner: ObjectRef,
        composition: String,
        steps: Vec<Step>,
    ) -> Self {
        let mut steps = steps;
        steps.sort_by_key(|step| (step.index, step.iteration, step.started));
        // Runs are known by the microsecond.
        let started = steps.iter().map(|step| step.started.as_microsecond()).min();
        let started = Timestamp::from_microsecond(started.unwrap_or_default()).unwrap_or_default();
        let end =
            |step: &Step| step.took.map(|took| step.started.as_microsecond().saturating_add(took));
        let ends: Option<Vec<i64>> = steps.iter().map(end).collect();
        let took = ends.and_then(|ends| ends.into_iter().max());
        let took = took.map(|end| end.saturating_sub(started.as_microsecond()));
        let mut run = Self { head: Head::default(), steps };
        let calls = run.last_calls();
        let reached = calls.iter().map(|s| (s.index, s.name.clone(), s.function.clone())).collect();
        let outcome = outcome(&calls);
        run.head = Head {
            key: 0,
            trace,
            owner,
            composition,
            started,
            took,
            outcome,
            open: false,
            same: false,
            steps: reached,
        };
        run
    }
}

/// How a run ended, from the last call of each step.
pub fn outcome(calls: &[&Step]) -> Outcome {
    let Some(last) = calls.last() else { return Outcome::Incomplete };
    let last = last.outcome();
    if matches!(last, Outcome::Fatal | Outcome::Error) {
        return last;
    }
    let has_gap = calls.iter().zip(0..).any(|(step, index)| step.index != index);
    let worst = calls.iter().map(|step| step.outcome()).max().unwrap_or_default();
    if has_gap || worst == Outcome::Incomplete { Outcome::Incomplete } else { worst }
}

/// An entry of a change log. The snapshot is redacted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeRecord {
    /// The key in the archive.
    pub key: i64,
    /// Who sent it.
    pub source: String,
    /// Its number among the entries of the source, from one.
    pub sequence: i64,
    /// What was changed.
    pub object: ObjectRef,
    /// When the provider did it.
    pub at: Timestamp,
    /// When it was received.
    pub received: Timestamp,
    /// `create`, `update`, `delete`, or a number.
    pub operation: String,
    /// Why, as far as is known: `spec-change`, `drift`, `retry` and so on.
    pub cause: Option<String>,
    /// The provider.
    pub provider: String,
    /// The name in the outside world.
    pub external_name: String,
    /// Why it failed.
    pub error: Option<String>,
    /// The trace of the run that it says it belongs to.
    pub trace: Option<String>,
    /// The whole entry.
    pub entry: Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(index: i32, response: Option<Value>, error: Option<&str>) -> Step {
        let answered = response.is_some() || error.is_some();
        Step { index, response, error: error.map(str::to_owned), answered, ..Step::default() }
    }

    fn severity(name: &str) -> Value {
        json!({"results": [{"severity": name, "message": "m"}]})
    }

    /// INS-N3
    #[test]
    fn the_last_step_and_gaps_decide_how_a_run_ended() {
        let ok = || Some(json!({}));
        for (steps, want) in [
            (vec![step(0, ok(), None), step(1, ok(), None)], Outcome::Ok),
            (
                vec![step(0, Some(severity("SEVERITY_WARNING")), None), step(1, ok(), None)],
                Outcome::Warning,
            ),
            (
                vec![step(0, ok(), None), step(1, Some(severity("SEVERITY_FATAL")), None)],
                Outcome::Fatal,
            ),
            (vec![step(0, ok(), None), step(1, None, Some("refused"))], Outcome::Error),
            (vec![step(0, ok(), None), step(1, None, None)], Outcome::Incomplete),
            (vec![step(0, None, None), step(1, ok(), None)], Outcome::Incomplete),
            (vec![step(0, ok(), None), step(2, ok(), None)], Outcome::Incomplete),
            (vec![step(1, Some(severity("SEVERITY_FATAL")), None)], Outcome::Fatal),
            (vec![], Outcome::Incomplete),
        ] {
            let run =
                Run::of_steps(String::new(), ObjectRef::default(), String::new(), steps.clone());
            assert_eq!(run.head.outcome, want, "{steps:?}");
        }
    }

    #[test]
    fn steps_are_ordered_and_only_the_last_iteration_counts() {
        let call = |index, iteration, response| Step { iteration, ..step(index, response, None) };
        let steps = vec![
            call(1, 0, Some(json!({"desired": {"n": 3}}))),
            call(0, 1, Some(json!({}))),
            call(0, 0, None),
        ];
        let run = Run::of_steps("t".into(), ObjectRef::default(), "c".into(), steps);
        let order: Vec<_> = run.steps.iter().map(|s| (s.index, s.iteration)).collect();
        assert_eq!(order, [(0, 0), (0, 1), (1, 0)]);
        assert_eq!(run.head.outcome, Outcome::Ok);
        assert_eq!(run.desired(), Some(&json!({"n": 3})));
    }
}

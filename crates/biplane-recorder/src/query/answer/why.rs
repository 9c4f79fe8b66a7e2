//! What `why` answers: the cause of something in words, with its evidence.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ChangeItem, FieldItem, StepRef};
use crate::query::record::ObjectRef;

/// What is asked about a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Why it is no longer there.
    Deleted,
    /// Why it is there.
    Created,
    /// Why it, or a field of it, is not as it was.
    #[default]
    Changed,
    /// Why it is not ready.
    NotReady,
    /// Why it failed.
    Failed,
    /// Why it took so long.
    Slow,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Deleted, Self::Created, Self::Changed, Self::NotReady, Self::Failed, Self::Slow];

    /// The word on the command line and in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Created => "created",
            Self::Changed => "changed",
            Self::NotReady => "not-ready",
            Self::Failed => "failed",
            Self::Slow => "slow",
        }
    }
}

impl FromStr for Verb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|verb| verb.name() == text);
        found.ok_or_else(|| format!("expected one of {} but got {text:?}", names()))
    }
}

/// The cause of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// What is asked about is not so: the resource is there, it is ready, nothing failed.
    NotSo,
    /// It is so from the first run that is kept.
    FirstRun,
    /// What a step was given differs.
    InputDiffers,
    /// The Composition differs: its name, its steps, their functions or their input.
    CompositionChanged,
    /// A function was replaced by another revision of it.
    FunctionReplaced,
    /// A step was given the same and answered something else.
    SameInput,
    /// The composite resource was deleted, and its composed resources with it.
    OwnerDeleted,
    /// It is still desired: somebody else did it.
    SomebodyElse,
    /// A step said that it is not ready.
    StepSaysNotReady,
    /// No step said whether it is ready.
    NobodySaysReady,
    /// A condition of the observed resource says so.
    Condition,
    /// It is desired and does not exist yet.
    NotCreated,
    /// Composed resources are not ready.
    ResourcesNotReady,
    /// A function returned a fatal result.
    FatalResult,
    /// A function could not be called.
    CallFailed,
    /// A function did not answer in time.
    Timeout,
    /// No answer was recorded.
    NoAnswer,
    /// The run did not get to its end, so it is not known.
    RunFailed,
    /// A provider failed.
    ProviderFailed,
    /// A step took longer than it usually does.
    SlowStep,
    /// A step takes that long each time.
    AlwaysSlow,
    /// The time went by between steps.
    BetweenSteps,
    /// It is not known.
    #[default]
    Unknown,
}

impl Reason {
    /// The word for it in answers.
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// Why something is so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Why {
    /// What was asked.
    pub verb: Verb,
    /// The resource: a composed resource, or the composite resource.
    pub object: ObjectRef,
    /// The composite resource or Operation.
    pub owner: ObjectRef,
    /// The name of the composed resource; absent for the composite resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The field, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The cause.
    pub reason: Reason,
    /// The cause in words.
    pub sentence: String,
    /// The run in which it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The run that it was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_before: Option<String>,
    /// The step that decided it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// What the sentence is made from, in the order of its words.
    pub evidence: Vec<Evidence>,
}

/// What a piece of evidence is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// A run.
    #[default]
    Run,
    /// A step of a run.
    Step,
    /// A difference in what a step was given.
    Input,
    /// A difference in what a step answered, or in what is desired.
    Output,
    /// A required resource that differs.
    Requirement,
    /// A difference of the pipeline.
    Pipeline,
    /// A revision of a function.
    Revision,
    /// What a step said about readiness.
    Readiness,
    /// A condition.
    Condition,
    /// A result of a function, or why it could not be called.
    Result,
    /// A composed resource.
    Resource,
    /// Who manages a field, as the observed resource tells.
    Manager,
    /// What a provider did.
    Change,
    /// How long something took.
    Duration,
}

impl EvidenceKind {
    /// The word for it in answers.
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// A piece of evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// What it is about.
    pub kind: EvidenceKind,
    /// It in words.
    pub text: String,
    /// The run that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The step that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// The part of what the step was given or answered: `observed`, `context` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The resource: empty is the composite resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The field that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<FieldItem>,
    /// Where the same value stands in what the step was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_value: Option<String>,
    /// What a provider did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeItem>,
    /// How long it took, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_micros: Option<i64>,
    /// How long it usually takes: the median, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_micros: Option<i64>,
}

impl Evidence {
    /// A piece of evidence in words.
    pub fn new(kind: EvidenceKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), ..Self::default() }
    }

    /// The address that shows it: a run, a step of one, a resource in one, or a change.
    pub fn address(&self) -> Option<String> {
        let short = |run: &str| run.chars().take(8).collect::<String>();
        if let Some(change) = &self.change {
            return Some(change.id.clone());
        }
        let run = short(self.run.as_deref()?);
        Some(match (&self.step, self.resource.as_deref()) {
            (Some(step), _) => format!("{run}/{}", step.number),
            (None, Some(resource)) if !resource.is_empty() => format!("{run}:{resource}"),
            _ => run,
        })
    }
}

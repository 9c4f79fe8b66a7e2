//! What queries answer, in the form of `/api/v1` and of `-o json`.

mod at;
mod replays;
mod warnings;
mod why;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::at::{At, AtItem};
pub use self::replays::{
    RedactedValue, ReplayGroup, Replays, Skipped, WhatIf, WhatIfNeed, WhatIfStep,
};
pub use self::warnings::{Fact, WarningDetail, WarningItem, WarningList};
pub use self::why::{Evidence, EvidenceKind, Reason, Verb, Why};
use super::difference::{Change, What};
use super::record::{ObjectRef, Outcome, StepResult};
use super::state::{SlotChange, SlotDifference};

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// A list of runs.
    Runs(RunList),
    /// One run.
    Run(Box<RunDetail>),
    /// Steps of a run.
    Steps(StepList),
    /// Differences.
    Diff(Diff),
    /// Who set what.
    Blame(Blame),
    /// Two runs side by side.
    Compare(Box<Compare>),
    /// A list of changes.
    Changes(ChangeList),
    /// One change.
    Change(Box<ChangeDetail>),
    /// Whether the chains are whole.
    Verify(Verify),
    /// What a function answers now.
    Replay(Replay),
    /// What a function answers now to the requests of a time.
    Replays(Box<Replays>),
    /// What a pipeline would do.
    WhatIf(Box<WhatIf>),
    /// What was read from files.
    Import(Import),
    /// Why something is so.
    Why(Box<Why>),
    /// What was the case at a time.
    At(Box<At>),
    /// A list of warnings.
    Warnings(WarningList),
    /// One warning.
    Warning(Box<WarningDetail>),
}

/// A step by its place in a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepRef {
    /// Its number, from one.
    pub number: i64,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The function.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub function: String,
}

impl StepRef {
    /// The number and the name, or the function of a step without a name.
    pub fn label(&self) -> String {
        let name = if self.name.is_empty() { &self.function } else { &self.name };
        format!("{} {name}", self.number)
    }
}

/// A run in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunItem {
    /// The trace.
    pub run: String,
    /// The composite resource or Operation.
    pub owner: ObjectRef,
    /// The Composition.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub composition: String,
    /// When it began.
    pub started: String,
    /// How long it took, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_micros: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether more steps may come.
    #[serde(skip_serializing_if = "is_false")]
    pub open: bool,
    /// Whether it did the same as the run before.
    #[serde(skip_serializing_if = "is_false")]
    pub same: bool,
    /// The steps of the pipeline as far as they are known.
    pub pipeline: Vec<StepRef>,
    /// How many of them were reached.
    pub reached: usize,
    /// What happened, in a few words.
    pub summary: String,
}

/// Runs, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunItem>,
    /// Emissions that were received and not kept in the time of the list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// Where the list goes on. Absent at its end.
    #[serde(skip_serializing_if = "Option::is_none", rename = "continue")]
    pub more: Option<String>,
}

/// Emissions that were lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Loss {
    /// When the first was lost.
    pub from: String,
    /// When the last was lost.
    pub until: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub emissions: i64,
}

/// All about a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunDetail {
    /// What a list says of it.
    #[serde(flatten)]
    pub item: RunItem,
    /// What happened.
    pub sentence: String,
    /// The trace of the owner's run before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_before: Option<String>,
    /// Its steps.
    pub steps: Vec<StepItem>,
    /// What it desired, compared with the last run that got to its end: what differs. Empty if it
    /// did not get to its end itself.
    pub resources: Vec<SlotItem>,
    /// How many resources are equal.
    pub unchanged: usize,
    /// The conditions that its functions set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The resources that its functions required.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// What providers did because of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeItem>,
}

/// A call of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepItem {
    /// The step.
    #[serde(flatten)]
    pub step: StepRef,
    /// The number of the call, from one.
    pub call: i64,
    /// The id of the call.
    pub span: String,
    /// When it was called.
    pub started: String,
    /// How long it took, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_micros: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether a cache answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
    /// The revision of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How many resources it added, changed and removed.
    pub added: usize,
    /// How many it changed.
    pub changed: usize,
    /// How many it removed.
    pub removed: usize,
    /// Its results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<StepResult>,
    /// Why it could not be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it was given, if one step was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// What it answered, if one step was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// The paths of redacted values, if one step was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
}

/// Steps of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepList {
    /// The run.
    pub run: String,
    /// What happened in the step, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// The calls, by position and number.
    pub steps: Vec<StepItem>,
}

/// How a resource differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It differs.
    #[default]
    Changed,
    /// It is in another place.
    Moved,
    /// It is equal as far as is known.
    Unchanged,
}

/// A difference of a field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldItem {
    /// Where.
    pub path: String,
    /// How.
    pub change: Sign,
    /// The value before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// The position before, from zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// The position after, from zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    /// Whether a server keeps it for itself.
    #[serde(skip_serializing_if = "is_false")]
    pub bookkeeping: bool,
}

impl From<&Change> for FieldItem {
    fn from(change: &Change) -> Self {
        let path = change.path.to_string();
        let bookkeeping = change.path.is_bookkeeping();
        let none = Self { path, bookkeeping, ..Self::default() };
        match change.what.clone() {
            What::Added { value, to } => {
                Self { change: Sign::Added, after: Some(value), to, ..none }
            }
            What::Removed { value, from } => {
                Self { change: Sign::Removed, before: Some(value), from, ..none }
            }
            What::Changed { before, after } => {
                Self { change: Sign::Changed, before: Some(before), after: Some(after), ..none }
            }
            What::Moved { from, to } => {
                Self { change: Sign::Moved, from: Some(from), to: Some(to), ..none }
            }
        }
    }
}

/// A resource in two states.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlotItem {
    /// The name of the composed resource; absent for the composite resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The object.
    pub object: ObjectRef,
    /// How it differs.
    pub change: Sign,
    /// The step that created or last changed it in the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// What differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldItem>,
    /// The readiness before and after, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<(String, String)>,
    /// Keys of connection details that are new or gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connection_details: Vec<FieldItem>,
    /// Redacted values: whether they differ is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// The resource was too large to be compared field by field.
    #[serde(skip_serializing_if = "is_false")]
    pub coarse: bool,
}

impl From<&SlotDifference> for SlotItem {
    fn from(slot: &SlotDifference) -> Self {
        let key = |(key, is_new): &(String, bool)| FieldItem {
            path: key.clone(),
            change: if *is_new { Sign::Added } else { Sign::Removed },
            ..FieldItem::default()
        };
        Self {
            resource: slot.slot.clone(),
            object: slot.object.clone(),
            change: match slot.change {
                SlotChange::Added => Sign::Added,
                SlotChange::Removed => Sign::Removed,
                SlotChange::Changed => Sign::Changed,
                SlotChange::Unchanged => Sign::Unchanged,
            },
            step: None,
            fields: slot.body.changes.iter().map(FieldItem::from).collect(),
            ready: slot.ready.clone(),
            connection_details: slot.connection.iter().map(key).collect(),
            unknown: slot.body.unknown.iter().map(ToString::to_string).collect(),
            coarse: slot.body.is_coarse,
        }
    }
}

impl SlotItem {
    /// The name that lines show.
    pub fn label(&self) -> &str {
        if self.resource.is_empty() { "composite" } else { &self.resource }
    }

    /// The fields that differ and that somebody asked for.
    pub fn own_fields(&self) -> impl Iterator<Item = &FieldItem> {
        self.fields.iter().filter(|field| !field.bookkeeping)
    }

    /// Whether it differs in more than bookkeeping.
    pub fn differs(&self) -> bool {
        match self.change {
            Sign::Unchanged => false,
            Sign::Changed => {
                self.ready.is_some()
                    || (self.coarse && self.fields.is_empty())
                    || !self.connection_details.is_empty()
                    || self.own_fields().next().is_some()
            }
            _ => true,
        }
    }
}

/// A condition that a function set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// The type.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The step that set it.
    pub step: StepRef,
}

/// A resource that a step was given because it required it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Need {
    /// The name of the requirement.
    pub name: String,
    /// The step.
    pub step: StepRef,
    /// The object.
    pub object: ObjectRef,
    /// The version of the object that the step saw.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// Differences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Diff {
    /// What was compared: the first.
    pub before: String,
    /// What was compared: the second.
    pub after: String,
    /// What the comparison comes to.
    pub sentence: String,
    /// Whether anything differs beside bookkeeping.
    pub differs: bool,
    /// The resources that differ, or that have redacted values.
    pub resources: Vec<SlotItem>,
    /// How many resources are equal.
    pub unchanged: usize,
    /// The differences of the context.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<FieldItem>,
}

/// Who set what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Blame {
    /// The run.
    pub run: String,
    /// Its owner.
    pub owner: ObjectRef,
    /// The resources.
    pub resources: Vec<BlameItem>,
}

/// Who set what in a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlameItem {
    /// The name of the composed resource; absent for the composite resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The object.
    pub object: ObjectRef,
    /// The step that created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<StepRef>,
    /// The step that removed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_by: Option<StepRef>,
    /// Since which run it is desired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
    /// Its fields.
    pub fields: Vec<BlameField>,
}

/// Since which run something is as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Since {
    /// The run.
    pub run: String,
    /// When it began.
    pub at: String,
    /// Whether the runs before are no longer kept, so that it may be older.
    #[serde(skip_serializing_if = "is_false")]
    pub or_earlier: bool,
}

/// Who set a field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlameField {
    /// Where.
    pub path: String,
    /// Its value.
    pub value: Value,
    /// The step that last set it. Absent if no step of the run did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// Since which run it has the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
}

/// Two runs side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compare {
    /// The first run.
    pub before: RunItem,
    /// The second run.
    pub after: RunItem,
    /// What the comparison comes to.
    pub sentence: String,
    /// Whether anything differs beside bookkeeping and times.
    pub differs: bool,
    /// The steps, aligned by name.
    pub steps: Vec<CompareStep>,
    /// The first difference in the order of cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Cause>,
}

/// A step in two runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompareStep {
    /// The step.
    #[serde(flatten)]
    pub step: StepRef,
    /// Whether it was given the same: `same`, `differs`, `absent before` or `absent after`.
    pub given: String,
    /// Whether it answered the same.
    pub answered: String,
    /// How long it took in the first run, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_before_micros: Option<i64>,
    /// How long it took in the second run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_after_micros: Option<i64>,
}

/// The first difference of two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cause {
    /// The step.
    pub step: StepRef,
    /// `given` or `answered`.
    pub half: String,
    /// The part of the message: `observed`, `desired`, `context`, `input` and so on.
    pub part: String,
    /// The resource, if the part has resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<FieldItem>,
}

/// A change in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeItem {
    /// The key.
    pub id: String,
    /// When the provider did it.
    pub at: String,
    /// `create`, `update` or `delete`.
    pub operation: String,
    /// What was changed.
    pub object: ObjectRef,
    /// The provider.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The name in the outside world.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub external_name: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// What a change belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Link {
    /// `certain`, `likely` or `enforces`.
    pub certainty: String,
    /// The run whose decision it carried out.
    pub run: String,
    /// The owner of the run.
    pub owner: ObjectRef,
    /// The name of the composed resource.
    pub resource: String,
}

/// Changes, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeList {
    /// The changes.
    pub changes: Vec<ChangeItem>,
    /// Where the list goes on. Absent at its end.
    #[serde(skip_serializing_if = "Option::is_none", rename = "continue")]
    pub more: Option<String>,
}

/// All about a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeDetail {
    /// What a list says of it.
    #[serde(flatten)]
    pub item: ChangeItem,
    /// Who received it.
    pub source: String,
    /// Its number in the chain of the source.
    pub sequence: i64,
    /// When it was received.
    pub received: String,
    /// The entry as the sidecar prints it.
    pub entry: Value,
}

/// Whether the chains are whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Verify {
    /// Whether all are.
    pub whole: bool,
    /// Each source.
    pub sources: Vec<VerifyItem>,
}

/// Whether the chain of a source is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VerifyItem {
    /// The source.
    pub source: String,
    /// How many entries were checked.
    pub entries: i64,
    /// How many entries retention removed.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed: i64,
    /// The hash of the last entry.
    pub head: String,
    /// What is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

/// What a function answers now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Replay {
    /// The run.
    pub run: String,
    /// The step.
    pub step: StepRef,
    /// Where the function ran.
    pub target: String,
    /// What the comparison comes to.
    pub sentence: String,
    /// Whether the answer differs beside bookkeeping.
    pub differs: bool,
    /// The paths of redacted values that the function was given as markers.
    pub redacted: Vec<String>,
    /// The paths of values that were supplied.
    pub supplied: Vec<String>,
    /// The resources that differ.
    pub resources: Vec<SlotItem>,
    /// What else differs in the answer.
    pub fields: Vec<FieldItem>,
    /// Why the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What was read from files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Import {
    /// How many emissions were taken.
    pub emissions: usize,
    /// How many runs they belong to.
    pub runs: usize,
    /// How many change log entries were taken.
    pub entries: usize,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde wants it so
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde wants it so
fn is_zero(value: &i64) -> bool {
    *value == 0
}

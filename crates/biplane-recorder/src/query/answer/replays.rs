//! What functions answer now: to all requests of a time, and as a whole pipeline.

use serde::{Deserialize, Serialize};

use super::{FieldItem, Replay, Sign, SlotItem, StepRef};
use crate::query::record::{Outcome, StepResult};

impl Sign {
    /// The character that stands for it.
    pub fn mark(self) -> char {
        match self {
            Self::Added => '+',
            Self::Removed => '-',
            Self::Changed => '~',
            Self::Moved => '>',
            Self::Unchanged => '=',
        }
    }
}

/// What a function answers now to the distinct requests of a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Replays {
    /// The function that was asked.
    pub function: String,
    /// Where it ran now.
    pub target: String,
    /// What the comparison comes to.
    pub sentence: String,
    /// Whether any answer differs beside bookkeeping.
    pub differs: bool,
    /// How many distinct requests were given to the function.
    pub requests: usize,
    /// How many recorded calls they stand for.
    pub calls: i64,
    /// How many were answered as before.
    pub same: usize,
    /// How many were answered differently.
    pub different: usize,
    /// What differs, grouped by its shape, the most frequent first.
    pub groups: Vec<ReplayGroup>,
    /// Requests that cannot be judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Redacted values that the function was given as markers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<RedactedValue>,
    /// The paths of values that were supplied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supplied: Vec<String>,
}

/// Answers that differ in the same fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplayGroup {
    /// How many distinct requests.
    pub requests: usize,
    /// How many recorded calls they stand for.
    pub calls: i64,
    /// What differs, without the names of resources and the positions in lists.
    pub shape: Vec<String>,
    /// Some of the steps.
    pub examples: Vec<String>,
    /// How the first of them differs.
    pub first: Replay,
}

/// Requests that cannot be judged, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Skipped {
    /// Why.
    pub reason: String,
    /// How many distinct requests.
    pub requests: usize,
    /// One of the steps.
    pub example: String,
}

/// A redacted value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RedactedValue {
    /// Where it is in the request.
    pub path: String,
    /// In how many requests.
    pub requests: usize,
}

/// What a pipeline would do, compared with what it did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WhatIf {
    /// The recorded run.
    pub run: String,
    /// What is supposed: `PATH=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// What the comparison comes to.
    pub sentence: String,
    /// Whether anything that the functions answer differs beside bookkeeping.
    pub differs: bool,
    /// How the pipeline would end.
    pub outcome: Outcome,
    /// The steps.
    pub steps: Vec<WhatIfStep>,
    /// The resources that would be desired differently.
    pub resources: Vec<SlotItem>,
    /// How many resources would be the same.
    pub unchanged: usize,
    /// What would differ in the context after the last step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<FieldItem>,
    /// Resources that steps would require and that were not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<WhatIfNeed>,
    /// The paths of redacted values that functions were given as markers, each with its step.
    pub redacted: Vec<String>,
    /// The paths of values that were supplied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supplied: Vec<String>,
}

/// A step of a pipeline that was run again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WhatIfStep {
    /// The step.
    #[serde(flatten)]
    pub step: StepRef,
    /// Where the function ran. Empty if the step was not reached.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// How it ended in the recorded run. Absent if it was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Outcome>,
    /// How it ends now. Absent if it is not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Outcome>,
    /// Whether it was given the same: `same`, `differs`, `absent before` or `absent after`.
    pub given: String,
    /// Whether it answers the same.
    pub answered: String,
    /// Its results now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<StepResult>,
    /// Why it could not be called now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The run that its input was taken from, if the recorded one did not reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<String>,
}

/// Resources that a step would require and that were not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WhatIfNeed {
    /// The step.
    pub step: StepRef,
    /// The name of the requirement.
    pub name: String,
}

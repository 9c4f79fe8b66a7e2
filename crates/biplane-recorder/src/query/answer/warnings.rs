//! What was found in the runs of an owner that somebody should look at.

use serde::{Deserialize, Serialize};

use super::StepRef;
use crate::query::record::ObjectRef;

/// A warning in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WarningItem {
    /// Its id.
    pub id: String,
    /// What was found: `flapping`, `same-input`, `unstable-requirements`, `slow-step` or `size`.
    pub kind: String,
    /// It in words.
    pub sentence: String,
    /// The composite resource or Operation.
    pub owner: ObjectRef,
    /// The name of the composed resource, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The field, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The step, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// Whether it goes on, as far as is known.
    pub open: bool,
    /// When it was first seen.
    pub first: String,
    /// When it was last seen.
    pub last: String,
    /// The run in which it was first seen.
    pub first_run: String,
    /// The run in which it was last seen.
    pub last_run: String,
    /// How often it was seen.
    pub count: i64,
}

/// All about a warning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WarningDetail {
    /// What a list says of it.
    #[serde(flatten)]
    pub item: WarningItem,
    /// What is known of it beside that: names and values, in order.
    pub facts: Vec<Fact>,
    /// What it leads to, and what can be done about it.
    pub advice: String,
}

/// Something that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fact {
    /// What: `desired`, `observed`, `managers`, `took`, `median`, `bytes`, `limit` and so on.
    pub name: String,
    /// The value as people read it.
    pub value: String,
}

/// Warnings, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WarningList {
    /// What they come to.
    pub sentence: String,
    /// The warnings.
    pub warnings: Vec<WarningItem>,
    /// Where the list goes on. Absent at its end.
    #[serde(skip_serializing_if = "Option::is_none", rename = "continue")]
    pub more: Option<String>,
}

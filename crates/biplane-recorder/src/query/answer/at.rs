//! What was the case at a time: an owner with its composed resources.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ChangeItem, FieldItem, RunItem, Since};
use crate::query::record::ObjectRef;

/// An owner and its composed resources at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct At {
    /// The time.
    pub at: String,
    /// The composite resource or Operation.
    pub owner: ObjectRef,
    /// What was the case, in words.
    pub sentence: String,
    /// The last run that had begun. What it observed is what was observed.
    pub run: RunItem,
    /// The last of those runs that got to its end. What it desired is what was desired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_run: Option<String>,
    /// The first run after the time. Until then, nothing else is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_after: Option<Since>,
    /// The composite resource first, then the composed resources by name.
    pub resources: Vec<AtItem>,
}

/// A resource at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AtItem {
    /// The name of the composed resource; absent for the composite resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The object.
    pub object: ObjectRef,
    /// Its readiness as the functions said it: `true`, `false` or `unspecified`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ready: String,
    /// What was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Value>,
    /// Since which run it was observed like that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_since: Option<Since>,
    /// What was desired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<Value>,
    /// Since which run that was desired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_since: Option<Since>,
    /// Where what was observed is not what was desired: `before` is observed, `after` desired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<FieldItem>,
    /// What a provider had last done to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_change: Option<ChangeItem>,
}

impl AtItem {
    /// The name that lines show.
    pub fn label(&self) -> &str {
        if self.resource.is_empty() { "composite" } else { &self.resource }
    }
}

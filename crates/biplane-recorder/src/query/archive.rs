//! Where records come from: a store, or lines that sidecars printed.

use jiff::Timestamp;

use super::answer::{Loss, VerifyItem};
use super::record::{ChangeRecord, Head, ObjectRef, Outcome, Run};
use crate::store::rows::FindingRow;

/// Why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing has the name.
    #[error("{0}")]
    NotFound(String),
    /// The question cannot be asked like this.
    #[error("{0}")]
    Usage(String),
    /// The archive failed.
    #[error("{0}")]
    Failed(String),
}

impl From<super::address::AddressError> for Error {
    fn from(error: super::address::AddressError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Which runs. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The kind of the owner, in any spelling of its letters, with or without its group.
    pub kind: Option<String>,
    /// The name of the owner.
    pub name: Option<String>,
    /// The namespace of the owner.
    pub namespace: Option<String>,
    /// The Composition.
    pub composition: Option<String>,
    /// A function of the pipeline.
    pub function: Option<String>,
    /// How runs ended. Empty: in any way.
    pub outcomes: Vec<Outcome>,
    /// Labels of the owner.
    pub labels: Vec<(String, String)>,
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// Only runs that did not do the same as the one before.
    pub changed: bool,
}

/// Which changes. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    /// The kind of the resource, in any spelling of its letters, with or without its group.
    pub kind: Option<String>,
    /// The name of the resource.
    pub name: Option<String>,
    /// The namespace of the resource.
    pub namespace: Option<String>,
    /// The provider, with or without its version.
    pub provider: Option<String>,
    /// `create`, `update` or `delete`.
    pub operation: Option<String>,
    /// Only failed ones.
    pub failed: bool,
    /// Why they were done.
    pub cause: Option<String>,
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// Only those received after the one with this key, the oldest first.
    pub newer_than: Option<i64>,
}

/// Which warnings. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarningFilter {
    /// What was found: `flapping`, `slow-step` and so on.
    pub found: Option<String>,
    /// The kind of the owner, in any spelling of its letters, with or without its group.
    pub kind: Option<String>,
    /// The name of the owner.
    pub name: Option<String>,
    /// The namespace of the owner.
    pub namespace: Option<String>,
    /// Only those that go on.
    pub open: bool,
}

/// How long a call took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The position of the step, from zero.
    pub index: i32,
    /// The name of the step.
    pub name: String,
    /// The function.
    pub function: String,
    /// How long it took, in microseconds.
    pub took: Option<i64>,
    /// Whether a cache answered.
    pub cached: Option<bool>,
}

/// Where a list goes on: after the record with this time and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// The time in microseconds.
    pub at: i64,
    /// The key.
    pub key: i64,
}

/// Records that can be read.
pub trait Archive {
    /// Runs, the newest first.
    fn runs(
        &self,
        filter: &RunFilter,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<Head>, Error>;

    /// Runs whose trace begins like this; three are enough.
    fn by_trace(&self, prefix: &str) -> Result<Vec<Head>, Error>;

    /// A run with its payloads.
    fn load(&self, head: &Head) -> Result<Run, Error>;

    /// The owner's run before another.
    fn run_before(&self, head: &Head) -> Result<Option<Head>, Error>;

    /// The owner's run after another.
    fn run_after(&self, head: &Head) -> Result<Option<Head>, Error>;

    /// How long the calls of a run took, without their payloads.
    fn timings(&self, head: &Head) -> Result<Vec<Timing>, Error>;

    /// The composed resources of a kind and name that were observed, the last seen first: the object,
    /// its owner and its name there.
    fn composed(
        &self,
        kind: &str,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<(ObjectRef, ObjectRef, String)>, Error>;

    /// What was found in runs, the last seen first.
    fn warnings(
        &self,
        filter: &WarningFilter,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<FindingRow>, Error>;

    /// One of those.
    fn warning(&self, key: i64) -> Result<Option<FindingRow>, Error>;

    /// Changes, the newest first.
    fn changes(
        &self,
        filter: &ChangeFilter,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<ChangeRecord>, Error>;

    /// One change.
    fn change(&self, key: i64) -> Result<Option<ChangeRecord>, Error>;

    /// The owners that have a resource among their composed resources, with its name there.
    fn owners_of(&self, object: &ObjectRef) -> Result<Vec<(ObjectRef, String)>, Error>;

    /// Emissions that were lost in a time.
    fn losses(
        &self,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<Loss>, Error>;

    /// Checks the chains of change log entries.
    fn verify(&self) -> Result<Vec<VerifyItem>, Error>;
}

/// Whether a kind that a user typed means the kind of an object.
pub fn is_kind(typed: &str, object: &ObjectRef) -> bool {
    let (kind, group) = split_kind(typed);
    kind.eq_ignore_ascii_case(&object.kind)
        && group.is_none_or(|group| group.eq_ignore_ascii_case(object.group()))
}

/// The kind and the group of a typed kind.
pub fn split_kind(typed: &str) -> (&str, Option<&str>) {
    match typed.split_once('.') {
        Some((kind, group)) => (kind, Some(group)),
        None => (typed, None),
    }
}

/// A kind as users type it, with its group.
pub fn kind_and_group(object: &ObjectRef) -> String {
    match object.group() {
        "" => object.kind.clone(),
        group => format!("{}.{group}", object.kind),
    }
}

/// How many changes of one resource in one second are looked at.
pub(super) const SAME_SECOND: usize = 100;

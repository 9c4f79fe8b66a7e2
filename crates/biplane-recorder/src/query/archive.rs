//! Where records come from: a store, or lines that sidecars printed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Loss, VerifyItem};
use super::record::{ChangeRecord, Head, ObjectRef, Outcome, Run, Step};
use super::state;
use crate::store::rows::{FindingRow, Side};

/// Why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing has the name.
    #[error("{0}")]
    NotFound(String),
    /// The question cannot be asked like this.
    #[error("{0}")]
    Usage(String),
    /// The answer takes too long or is too large.
    #[error("{0}")]
    TooMuch(String),
    /// There is no archive that can be read, but there may be one soon.
    #[error("{0}")]
    NotReady(String),
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

/// A distinct request to a function: the step that had it last.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The run.
    pub head: Head,
    /// The position of the step.
    pub index: i32,
    /// The iteration of the step.
    pub iteration: i32,
    /// How many recorded calls had it.
    pub calls: i64,
}

/// A call of a function as it was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The run.
    pub head: Head,
    /// The call.
    pub step: Step,
    /// Whether other calls of the same step were recorded.
    pub is_repeated: bool,
}

impl Recorded {
    /// The address of the call.
    pub fn address(&self) -> String {
        let trace: String = self.head.trace.chars().take(8).collect();
        let number = i64::from(self.step.index) + 1;
        if self.is_repeated {
            format!("{trace}/{number}.{}", i64::from(self.step.iteration) + 1)
        } else {
            format!("{trace}/{number}")
        }
    }

    /// Finds a call among those of its run.
    fn of(run: Run, asked: &Asked) -> Result<Self, Error> {
        let Run { head, steps } = run;
        let (index, iteration) = (asked.index, asked.iteration);
        let is_repeated = steps.iter().any(|s| s.index == index && s.iteration != iteration);
        let found = steps.into_iter().find(|s| s.index == index && s.iteration == iteration);
        let gone = || Error::NotFound(format!("a step of run {} is no longer kept", head.trace));
        let step = found.ok_or_else(gone)?;
        Ok(Self { head, step, is_repeated })
    }
}

/// How much of a run is read. What is beyond it may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All messages.
    Messages,
    /// What was observed, and what was desired in the end.
    States,
    /// What was desired in the end.
    Desired,
}

/// How many runs are read at a time.
const PAGE: usize = 100;

/// All runs of a filter, the newest first.
pub fn all_runs<A: Archive + ?Sized>(archive: &A, filter: &RunFilter) -> Result<Vec<Head>, Error> {
    let mut heads: Vec<Head> = Vec::new();
    loop {
        let last = heads.last();
        let after = last.map(|h| After { at: h.started.as_microsecond(), key: h.key });
        let page = archive.runs(filter, PAGE, after)?;
        let is_last = page.len() < PAGE;
        heads.extend(page);
        if is_last {
            return Ok(heads);
        }
    }
}

/// What tells two requests apart. The tag tells apart what redaction made equal.
fn identity(request: &Value) -> String {
    let mut request = request.clone();
    let is_redacted = has_marker(&request);
    if !is_redacted && let Some(meta) = request.get_mut("meta").and_then(Value::as_object_mut) {
        meta.remove("tag");
    }
    biplane_go::json::to_string(&request)
}

/// Whether anything in a message was redacted.
pub(super) fn has_marker(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(has_marker),
        Value::Array(items) => items.iter().any(has_marker),
        value => super::difference::is_redacted(value),
    }
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

    /// A run with as much of its payloads as is wanted. Bodies of what was observed and desired may
    /// be their keys instead: whole numbers, for which [`Archive::body`] has the documents. Equal
    /// keys mean equal bodies.
    fn outline(&self, head: &Head, _scope: Scope) -> Result<Run, Error> {
        self.load(head)
    }

    /// The same of all messages, with no resource in their states but one and the composite
    /// resource.
    fn outline_of(&self, head: &Head, _slot: &str) -> Result<Run, Error> {
        self.outline(head, Scope::Messages)
    }

    /// The document that a key in an outline stands for.
    fn body(&self, key: i64) -> Result<Value, Error> {
        Err(Error::NotFound(format!("there is no body {key}")))
    }

    /// How many bytes such a document has.
    fn body_bytes(&self, key: i64) -> Result<usize, Error> {
        self.body(key).map(|body| body.to_string().len())
    }

    /// Whether anything that a run was given or answered may have been redacted.
    fn is_redacted(&self, _head: &Head) -> Result<bool, Error> {
        Ok(true)
    }

    /// Whether anything in such a document was redacted.
    fn is_body_redacted(&self, key: i64) -> Result<bool, Error> {
        self.body(key).map(|body| has_marker(&body))
    }

    /// The bodies of some resources in what a run observed, or desired in the end, or their keys.
    fn bodies(&self, head: &Head, side: Side, slots: &[&str]) -> Result<Vec<Option<Value>>, Error> {
        let run = self.load(head)?;
        let state = match side {
            Side::Observed => run.observed(),
            Side::Desired => run.desired(),
        };
        let body = |name: &&str| state::slot(state, name).map(|slot| state::body(slot).clone());
        Ok(slots.iter().map(body).collect())
    }

    /// The owner's run before another.
    fn run_before(&self, head: &Head) -> Result<Option<Head>, Error>;

    /// The owner's run after another.
    fn run_after(&self, head: &Head) -> Result<Option<Head>, Error>;

    /// Whether older runs of the owner are no longer kept.
    fn has_forgotten(&self, _: &Head) -> Result<bool, Error> {
        Ok(false)
    }

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

    /// The distinct requests to a function in the runs of a filter, the oldest first.
    fn requests(&self, function: &str, filter: &RunFilter) -> Result<Vec<Asked>, Error> {
        let filter = RunFilter { function: Some(function.to_owned()), ..filter.clone() };
        let mut found: BTreeMap<String, Asked> = BTreeMap::new();
        for head in all_runs(self, &filter)? {
            for step in self.load(&head)?.steps {
                let Some(request) = step.request.filter(|_| step.function == function) else {
                    continue;
                };
                let (index, iteration) = (step.index, step.iteration);
                let new = || Asked { head: head.clone(), index, iteration, calls: 0 };
                found.entry(identity(&request)).or_insert_with(new).calls += 1;
            }
        }
        let mut found: Vec<Asked> = found.into_values().collect();
        found.sort_by_key(|asked| {
            (asked.head.started, asked.head.key, asked.index, asked.iteration)
        });
        Ok(found)
    }

    /// A request with its payloads.
    fn recorded(&self, asked: &Asked) -> Result<Recorded, Error> {
        Recorded::of(self.load(&asked.head)?, asked)
    }
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

//! What is read from a store: the rows, and the filters that choose them.

use serde_json::Value;

/// Which side of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i64)]
pub enum Side {
    /// What the first step of a run was told to exist.
    Observed = 0,
    /// What the last step of a run that succeeded desired.
    Desired = 1,
}

impl Side {
    pub(super) fn from_number(number: i64) -> Self {
        if number == 0 { Self::Observed } else { Self::Desired }
    }
}

/// How a run ended, or how it looks so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i64)]
pub enum Outcome {
    /// All steps answered.
    Ok = 1,
    /// All steps answered, and one warned.
    Warning = 2,
    /// A step returned a fatal result.
    Fatal = 3,
    /// A call failed.
    Error = 4,
    /// An answer or a whole step was not recorded.
    Incomplete = 5,
}

impl Outcome {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Ok, Self::Warning, Self::Fatal, Self::Error, Self::Incomplete];

    pub(super) fn from_number(number: i64) -> Self {
        Self::ALL.into_iter().find(|outcome| *outcome as i64 == number).unwrap_or(Self::Incomplete)
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fatal => "fatal",
            Self::Error => "error",
            Self::Incomplete => "incomplete",
        }
    }

    /// Whether the pipeline failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Fatal | Self::Error)
    }
}

/// An object that is known by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRow {
    /// Its key in the store.
    pub id: i64,
    /// The cluster, as the recorder was told.
    pub cluster: String,
    /// Its API group. Empty for the core group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace. Empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The last uid that was seen. Empty if none was.
    pub uid: String,
    /// The composite resource that it belongs to.
    pub parent: Option<i64>,
    /// The claim of a composite resource.
    pub claim: Option<i64>,
    /// When it was first seen.
    pub first_seen: i64,
    /// When it was last seen, within an hour.
    pub last_seen: i64,
}

/// A run of a pipeline: all steps of one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its key in the store. Later runs have larger ones.
    pub id: i64,
    /// The trace, as it was received.
    pub trace: String,
    /// Who sent it.
    pub source: i64,
    /// The composite resource or Operation.
    pub owner: ObjectRow,
    /// The version of the owner's API, without the group.
    pub version: String,
    /// The Composition. `None` for an Operation.
    pub composition: Option<String>,
    /// The shape of the run.
    pub pipeline: i64,
    /// How many steps the pipeline has, as far as is known. Not all need to have been reached.
    pub steps: i64,
    /// When the first step was called, in microseconds since 1970.
    pub started: i64,
    /// How long all of it took, in microseconds.
    pub took: i64,
    /// How it ended, or how it looks so far.
    pub outcome: Outcome,
    /// Whether more may come.
    pub open: bool,
    /// Whether it repeated the owner's run before: the same exchanges and the same outcome.
    pub same: bool,
    /// What is known to be missing of it.
    pub flags: RunFlags,
}

/// What is known to be missing of a run.
#[allow(clippy::struct_excessive_bools)] // each says something else
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunFlags {
    /// A step between others is missing.
    pub gap: bool,
    /// A step has a request and no response.
    pub no_answer: bool,
    /// A step has a response and no request.
    pub no_request: bool,
    /// The recorder ended before the run did.
    pub cut_off: bool,
}

impl RunFlags {
    pub(super) fn number(self) -> i64 {
        i64::from(self.gap)
            | i64::from(self.no_answer) << 1
            | i64::from(self.no_request) << 2
            | i64::from(self.cut_off) << 3
    }

    pub(super) fn from_number(number: i64) -> Self {
        let bit = |at: u32| number >> at & 1 == 1;
        Self { gap: bit(0), no_answer: bit(1), no_request: bit(2), cut_off: bit(3) }
    }
}

/// A step of the interned shape of a run, whether it was reached or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineStepRow {
    /// Its position, from 0.
    pub index: i64,
    /// Its name. Empty in the dialect of the design document.
    pub step: String,
    /// The function that it calls.
    pub function: String,
}

/// A step that was reached. With iterations, each is a row.
#[allow(clippy::struct_excessive_bools)] // each says something else
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// The run.
    pub run: i64,
    /// Its position, from 0.
    pub index: i64,
    /// The iteration, from 0.
    pub iteration: i64,
    /// Its name.
    pub step: String,
    /// The function that was called.
    pub function: String,
    /// What was asked and answered. Read it with `Store::exchange`.
    pub exchange: Option<i64>,
    /// The span, as it was received.
    pub span: String,
    /// When it was called, in microseconds since 1970.
    pub started: i64,
    /// The nanoseconds that `started` leaves out.
    pub nanos: i64,
    /// How long it took, in microseconds. `None` if there is no answer.
    pub took: Option<i64>,
    /// Whether `took` was measured by the caller, not by the times of arrival.
    pub exact: bool,
    /// Whether a cache answered, if the caller said so.
    pub cached: Option<bool>,
    /// The revision of the function, if the caller said so.
    pub revision: Option<String>,
    /// Whether the request is missing.
    pub no_request: bool,
    /// Whether there is no answer.
    pub no_answer: bool,
    /// Whether it came in the dialect of the design document.
    pub design_dialect: bool,
    /// The worst severity of its results (1 fatal, 2 warning, 3 normal, 0 none).
    pub severity: i64,
    /// The error of the call.
    pub error: Option<String>,
    /// The size of the request and of the response as they were received.
    pub bytes: (i64, i64),
}

/// A payload as it is stored: redacted.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// There was none: no bytes, or null.
    Empty,
    /// The message in protobuf's JSON, without secrets.
    Json(Value),
    /// It was no JSON object, so only its size and its SHA-256 are stored, in hex.
    Opaque {
        /// How many bytes it had.
        bytes: u64,
        /// The first 16 bytes of its hash.
        hash: String,
    },
}

impl Payload {
    /// The message, if there is one.
    pub fn json(&self) -> Option<&Value> {
        match self {
            Self::Json(value) => Some(value),
            Self::Empty | Self::Opaque { .. } => None,
        }
    }
}

/// A request with its response.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeRow {
    /// Its key in the store. Equal exchanges have the same one.
    pub id: i64,
    /// A hash of function and request: equal inputs have the same one.
    pub input: Vec<u8>,
    /// The function.
    pub function: String,
    /// The worst severity of the results (1 fatal, 2 warning, 3 normal, 0 none).
    pub severity: i64,
    /// What was asked. `None` if it was not recorded.
    pub request: Option<Payload>,
    /// What was answered. `None` if it was not recorded.
    pub response: Option<Payload>,
    /// The keys of the states and bodies of both, to compare without reading them.
    pub parts: Parts,
    /// Why the call failed.
    pub error: Option<String>,
    /// How long the answer may be cached, in milliseconds.
    pub ttl: Option<i64>,
    /// How many values were redacted.
    pub redactions: i64,
    /// The size of the request as it was received.
    pub request_bytes: i64,
    /// The size of the response as it was received.
    pub response_bytes: i64,
    /// The results.
    pub results: Vec<ResultRow>,
    /// The conditions.
    pub conditions: Vec<ConditionRow>,
}

/// A distinct request to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// The last exchange that had it.
    pub exchange: i64,
    /// The last run that had it.
    pub run: i64,
    /// How many steps that are kept had it.
    pub steps: i64,
}

/// The keys of the blobs of an exchange. Equal keys are equal content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// `request.observed`, a state.
    pub observed: Option<i64>,
    /// `request.desired`, a state.
    pub desired: Option<i64>,
    /// `request.context`.
    pub context: Option<i64>,
    /// `request.input`.
    pub input: Option<i64>,
    /// `request.requiredResources`, a state.
    pub required: Option<i64>,
    /// `request.extraResources`, a state.
    pub extra: Option<i64>,
    /// `request.requiredSchemas`.
    pub schemas: Option<i64>,
    /// `request.credentials`, without values.
    pub credentials: Option<i64>,
    /// `response.desired`, a state.
    pub answered: Option<i64>,
    /// `response.context`.
    pub answered_context: Option<i64>,
    /// `response.requirements`.
    pub requirements: Option<i64>,
    /// `response.output`.
    pub output: Option<i64>,
}

/// A result of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRow {
    /// 1 fatal, 2 warning, 3 normal, 0 unspecified.
    pub severity: i64,
    /// The text.
    pub message: String,
    /// The reason.
    pub reason: Option<String>,
    /// 1 composite, 2 composite and claim, 0 unspecified.
    pub target: Option<i64>,
}

/// A condition that a function set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionRow {
    /// Its type.
    pub kind: String,
    /// 1 unknown, 2 true, 3 false, 0 unspecified.
    pub status: i64,
    /// The reason.
    pub reason: String,
    /// The text.
    pub message: Option<String>,
    /// 1 composite, 2 composite and claim, 0 unspecified.
    pub target: Option<i64>,
}

/// One resource of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateEntry {
    /// The name of the slot; `''` for the composite resource. Required resources have the name of
    /// the requirement.
    pub name: String,
    /// The position among the items of a requirement. `None` in other states.
    pub item: Option<u32>,
    /// `READY_TRUE`, `READY_FALSE` or `READY_UNSPECIFIED`, if it was set.
    pub ready: Option<String>,
    /// The keys of the connection details, if there are any.
    pub connection_keys: Option<Vec<String>>,
    /// The key of the resource's body. Read it with `Store::body`.
    pub body: Option<i64>,
}

/// A place in the state of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRow {
    /// Its key in the store.
    pub id: i64,
    /// The owner.
    pub owner: i64,
    /// The name of the composed resource, or `''` for the owner itself.
    pub name: String,
    /// The object that was last observed there.
    pub object: Option<i64>,
}

/// The body of a slot from a run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow {
    /// The slot.
    pub slot: i64,
    /// Which side.
    pub side: Side,
    /// The run that had it first. It may have been removed since.
    pub run: i64,
    /// When that run started.
    pub at: i64,
    /// The key of the body, for `Store::body`. `None`: it is gone from then on.
    pub body: Option<i64>,
}

/// A field that a version changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRow {
    /// The slot.
    pub slot: i64,
    /// Which side.
    pub side: Side,
    /// The field path.
    pub path: String,
    /// The run of the version.
    pub run: i64,
    /// The value before, as JSON of at most 200 bytes. `None`: it was absent.
    pub before: Option<String>,
    /// The value after.
    pub after: Option<String>,
}

/// A resource that a step required.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedRow {
    /// The owner whose pipeline required it.
    pub owner: i64,
    /// The step.
    pub step: String,
    /// The name of the requirement.
    pub name: String,
    /// The resource.
    pub object: ObjectRow,
    /// The last run that was recorded to require it.
    pub run: i64,
}

/// Runs of an hour that repeated the run before, of which only some were kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldRow {
    /// The owner.
    pub owner: i64,
    /// The hour since 1970.
    pub hour: i64,
    /// The first kept run of the hour that repeated.
    pub first: i64,
    /// The last one.
    pub last: i64,
    /// The slowest one.
    pub slowest: i64,
    /// How many runs were removed.
    pub runs: i64,
    /// How long these took together, in microseconds.
    pub took: i64,
}

/// How many runs ended in five minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyRow {
    /// When the five minutes began, in microseconds since 1970.
    pub at: i64,
    /// The shape of the runs.
    pub pipeline: i64,
    /// How they ended.
    pub outcome: Outcome,
    /// How many.
    pub runs: i64,
    /// How long they took together.
    pub took: i64,
    /// How long the slowest took.
    pub slowest: i64,
}

/// Emissions that were received and not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossRow {
    /// Its key in the store.
    pub id: i64,
    /// When the first was lost.
    pub at: i64,
    /// When the last was lost.
    pub until: i64,
    /// Who sent them.
    pub source: i64,
    /// Why: `queue full`, `disk full` or `store failed`.
    pub reason: String,
    /// How many.
    pub emissions: i64,
    /// Their size.
    pub bytes: i64,
}

/// What can be found in the runs of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// A field goes back and forth between what is desired and what somebody else wants.
    Flapping,
    /// A function was given the same and answered something else.
    SameInput,
    /// A function asked for other resources each time, until the pipeline gave up.
    UnstableRequirements,
    /// A function takes much longer than it did.
    SlowStep,
    /// A message or a resource is almost as large as it may be.
    Size,
}

impl FindingKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Flapping, Self::SameInput, Self::UnstableRequirements, Self::SlowStep, Self::Size];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flapping => "flapping",
            Self::SameInput => "same-input",
            Self::UnstableRequirements => "unstable-requirements",
            Self::SlowStep => "slow-step",
            Self::Size => "size",
        }
    }

    /// The kind that a word stands for.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What was found in the runs of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingRow {
    /// Its key in the store.
    pub id: i64,
    /// What was found.
    pub kind: FindingKind,
    /// The composite resource or Operation.
    pub owner: ObjectRow,
    /// The version of the owner's API, without the group.
    pub version: String,
    /// The name of the slot, if it is about one.
    pub slot: Option<String>,
    /// The field path, if it is about one.
    pub path: Option<String>,
    /// The function, if it is about one.
    pub function: Option<String>,
    /// The name of the step.
    pub step: String,
    /// The position of the step, from 0.
    pub index: i64,
    /// When the first run started that showed it.
    pub first: i64,
    /// When the last run started that showed it.
    pub last: i64,
    /// The trace of the first run that showed it. It may have been removed since.
    pub first_run: String,
    /// The trace of the last run that showed it.
    pub last_run: String,
    /// How many runs showed it.
    pub count: i64,
    /// Whether it goes on, as far as is known.
    pub open: bool,
    /// What is known of it: names and values.
    pub detail: std::collections::BTreeMap<String, String>,
}

/// Which findings. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingFilter {
    /// Only of this kind.
    pub found: Option<FindingKind>,
    /// Only of owners of this kind, in any spelling of its letters.
    pub kind: Option<String>,
    /// Only of owners of this API group.
    pub group: Option<String>,
    /// Only of owners with this name.
    pub name: Option<String>,
    /// Only of owners in this namespace.
    pub namespace: Option<String>,
    /// Only those that go on.
    pub open: bool,
}

/// Who sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    /// Its key in the store.
    pub id: i64,
    /// `inspector` or `changelogs`.
    pub kind: String,
    /// The cluster.
    pub cluster: String,
    /// The name of the recorder.
    pub name: String,
    /// The number of its last change.
    pub seq: i64,
    /// The hash of its last change.
    pub head: Vec<u8>,
    /// When it first sent something.
    pub first_seen: i64,
    /// When it last sent something.
    pub last_seen: i64,
}

/// A change log entry.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRow {
    /// Its key in the store.
    pub id: i64,
    /// Who received it.
    pub source: i64,
    /// Its number in the chain of the source, from 1.
    pub seq: i64,
    /// The managed resource.
    pub object: ObjectRow,
    /// The API version of the entry.
    pub api_version: String,
    /// When the provider says it happened, in microseconds since 1970. When it was received, if the
    /// entry has no time.
    pub at: i64,
    /// When it was received.
    pub received: i64,
    /// 1 create, 2 update, 3 delete, or what the provider sent.
    pub operation: i64,
    /// Whether it failed.
    pub failed: bool,
    /// `create`, `recreate`, `spec-change`, `drift`, `retry`, `resume` or what the provider says.
    /// Empty if unknown.
    pub cause: String,
    /// The provider.
    pub provider: String,
    /// The external name.
    pub external_name: String,
    /// The generation of the resource.
    pub generation: Option<i64>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The key of the snapshot, for `Store::body`.
    pub snapshot: Option<i64>,
    /// The additional details, an object of texts.
    pub detail: Option<Value>,
    /// The trace that the provider names, as 32 hexadecimal digits.
    pub trace: Option<String>,
    /// The id that the provider gave the entry.
    pub entry_id: Option<String>,
    /// Its hash in the chain.
    pub hash: Vec<u8>,
}

/// Which runs. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only of this composite resource or Operation.
    pub owner: Option<i64>,
    /// Only in this namespace.
    pub namespace: Option<String>,
    /// Only of this kind, in any spelling of its letters.
    pub kind: Option<String>,
    /// Only of this API group.
    pub group: Option<String>,
    /// Only of owners with this name.
    pub name: Option<String>,
    /// Only of this Composition.
    pub composition: Option<String>,
    /// Only of pipelines that call this function.
    pub function: Option<String>,
    /// Only with these outcomes. Empty: any.
    pub outcomes: Vec<Outcome>,
    /// Only of owners with these labels.
    pub labels: Vec<(String, String)>,
    /// Not before this time.
    pub since: Option<i64>,
    /// Before this time.
    pub until: Option<i64>,
    /// Only runs that differ from the run before.
    pub changed: bool,
    /// Only runs whose results or errors have these words.
    pub words: Option<String>,
}

/// Where a list of runs or changes goes on: after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// The time of the last one.
    pub at: i64,
    /// Its key.
    pub id: i64,
}

/// Which changes. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    /// Only of this resource.
    pub object: Option<i64>,
    /// Only of this kind, in any spelling of its letters.
    pub kind: Option<String>,
    /// Only of this API group.
    pub group: Option<String>,
    /// Only in this namespace.
    pub namespace: Option<String>,
    /// Only of resources with this name.
    pub name: Option<String>,
    /// Only of this provider: the whole text or what is before the colon.
    pub provider: Option<String>,
    /// Only this operation.
    pub operation: Option<i64>,
    /// Only failed ones.
    pub failed: bool,
    /// Only with this cause.
    pub cause: Option<String>,
    /// Only of this source.
    pub source: Option<i64>,
    /// Only those that name this trace.
    pub trace: Option<String>,
    /// Not before this time.
    pub since: Option<i64>,
    /// Before this time.
    pub until: Option<i64>,
    /// Only those received after the one with this key, the oldest first. To follow.
    pub newer_than: Option<i64>,
}

/// What a name or a prefix stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// Nothing.
    None,
    /// One.
    One(T),
    /// Several; some of them.
    Many(Vec<T>),
}

/// How much of an exchange is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each part is read or not, independently of the others
pub struct Extent<'a> {
    /// What was observed.
    pub observed: bool,
    /// What was desired before.
    pub given: bool,
    /// What was desired afterwards.
    pub answered: bool,
    /// What is beside these states: the context, the input, required resources.
    pub rest: bool,
    /// The bodies of these states. If they are not read, their keys stand for them: whole numbers,
    /// which no stored document has, as its numbers are doubles.
    pub bodies: bool,
    /// Only this resource of these states, and the composite resource.
    pub slot: Option<&'a str>,
}

impl Extent<'_> {
    /// All of it.
    pub const WHOLE: Self =
        Self { observed: true, given: true, answered: true, rest: true, bodies: true, slot: None };
}

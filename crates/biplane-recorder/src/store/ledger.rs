//! Writes what was received: halves of calls become steps and runs.
//!
//! All state that is kept in memory can be lost: it is read from the store again when it is needed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use biplane_proto::inspector::shipped::step_meta::Context;
use biplane_proto::redact::{Half, Redacted};
use serde_json::Value;

use crate::digest::{self, Content, Identity, Request, Response};
use crate::emission::{Dialect, Emission};

use super::db::{Error, int};
use super::intern::{Memos, Shape};
use super::pack::{pack_id, unpack_id};
use super::read::StepFlags;
use super::rows::{FindingKind, Outcome, RunFlags};
use super::watch::Watch;
use super::{HOUR, Location, Store};

/// A run about which nothing was heard for this long has ended.
pub const SILENCE: Duration = Duration::from_secs(150);

/// More runs than this are not kept in memory.
pub const MOST_OPEN: usize = 4096;

/// The largest number of a step, and of a call of it. A pipeline has a few.
const MOST_STEPS: i32 = 1000;

/// So many bytes of answers that came before their requests are kept. More of them are as after a
/// restart: their steps say that they have no request.
const MOST_EARLY: i64 = 8 * 1024 * 1024;

/// The last microsecond of the year 9999.
const LAST_TIME: i64 = 253_402_300_799_999_999;

/// No call takes longer than a year, in microseconds.
const LONGEST: i64 = 366 * 24 * 3600 * 1_000_000;

/// What a ledger is told about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The cluster that everything is about.
    pub cluster: String,
    /// The name of this recorder. No other recorder of a shared store may have it.
    pub source: String,
    /// Runs that did not fail are counted and not kept.
    pub failures_only: bool,
}

/// Whose pipeline ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A composite resource, and the name of the Composition.
    Composite(Identity, String),
    /// An Operation.
    Operation(Identity),
    /// Nobody is named.
    Nobody,
}

/// Why an emission cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nobody can tell what it belongs to.
    #[error("it does not name its run")]
    NoTrace,
    /// No pipeline has such a step.
    #[error("the number of its step is impossible")]
    Step,
}

/// One half of a call, redacted and in parts.
#[derive(Clone, Debug)]
pub struct HalfRecord {
    pub(super) trace: String,
    pub(super) span: String,
    pub(super) index: i64,
    pub(super) iteration: i64,
    pub(super) step: String,
    pub(super) function: String,
    pub(super) owner: Owner,
    pub(super) started: i64,
    pub(super) nanos: i64,
    /// When it was received, in microseconds since 1970.
    pub(super) received: i64,
    /// When it was received, to measure durations. `None` if it was imported.
    pub(super) arrived: Option<Instant>,
    pub(super) content: HalfContent,
    pub(super) bytes: i64,
    pub(super) redactions: i64,
    pub(super) took: Option<i64>,
    pub(super) cached: Option<bool>,
    pub(super) revision: Option<String>,
    pub(super) design: bool,
}

#[derive(Clone, Debug)]
pub(super) enum HalfContent {
    Request(Content<Request>),
    Response(Content<Response>, String),
}

impl HalfRecord {
    /// Takes an emission apart. The payload is redacted, and nothing else of it is used.
    pub fn new(
        emission: &Emission,
        payload: Redacted<Value>,
        received: i64,
        arrived: Option<Instant>,
    ) -> Result<Self, Unusable> {
        let meta = emission.meta.as_ref().filter(|meta| !meta.trace_id.is_empty());
        let meta = meta.ok_or(Unusable::NoTrace)?;
        // Sums of these must stay numbers, and a run has a row for each of its steps.
        let possible = 0..=MOST_STEPS;
        if !possible.contains(&meta.step_index) || !possible.contains(&meta.iteration) {
            return Err(Unusable::Step);
        }
        let redactions = int(payload.paths().len());
        let content = match emission.half {
            Half::Request => HalfContent::Request(digest::request(&emission.payload, payload)),
            Half::Response => HalfContent::Response(
                digest::response(&emission.payload, payload),
                emission.error.clone(),
            ),
        };
        let owner = match &meta.context {
            Some(Context::CompositionMeta(of)) => Owner::Composite(
                Identity {
                    api_version: of.composite_resource_api_version.clone(),
                    kind: of.composite_resource_kind.clone(),
                    namespace: of.composite_resource_namespace.clone(),
                    name: of.composite_resource_name.clone(),
                    uid: of.composite_resource_uid.clone(),
                },
                of.composition_name.clone(),
            ),
            Some(Context::OperationMeta(of)) => Owner::Operation(Identity {
                api_version: "ops.crossplane.io/v1alpha1".to_owned(),
                kind: "Operation".to_owned(),
                namespace: String::new(),
                name: of.operation_name.clone(),
                uid: of.operation_uid.clone(),
            }),
            None => Owner::Nobody,
        };
        let time = meta.timestamp.unwrap_or_default();
        let micros = i128::from(time.seconds) * 1_000_000 + i128::from(time.nanos) / 1000;
        let micros = i64::try_from(micros.clamp(0, LAST_TIME.into())).unwrap_or(LAST_TIME);
        let took = emission.details.took.and_then(|took| i64::try_from(took.as_micros()).ok());
        Ok(Self {
            trace: meta.trace_id.clone(),
            span: meta.span_id.clone(),
            index: meta.step_index.into(),
            iteration: meta.iteration.into(),
            step: meta.step_name.clone(),
            function: meta.function_name.clone(),
            owner,
            started: micros,
            nanos: (time.nanos % 1000).into(),
            received,
            arrived,
            content,
            bytes: int(emission.payload.len()),
            redactions,
            took: took.map(|took| took.min(LONGEST)),
            cached: emission.details.cached,
            revision: emission.details.revision.clone(),
            design: emission.dialect == Dialect::Design,
        })
    }

    /// The run it belongs to.
    pub fn trace(&self) -> &str {
        &self.trace
    }

    fn is_request(&self) -> bool {
        matches!(self.content, HalfContent::Request(_))
    }

    fn place(&self) -> (Vec<u8>, i64, i64, &str) {
        (pack_id(&self.trace), self.index, self.iteration, &self.span)
    }
}

/// A step of a run in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenStep {
    pub(super) name: String,
    pub(super) function: String,
    pub(super) exchange: Option<i64>,
    pub(super) severity: i64,
    pub(super) failed: bool,
    pub(super) started: i64,
    pub(super) took: Option<i64>,
    pub(super) flags: StepFlags,
    /// When the request came.
    pub(super) asked: Option<Instant>,
    /// An answer that came before its request.
    pub(super) early: Option<Box<HalfRecord>>,
}

/// A run to which more may come.
#[derive(Clone, Debug)]
pub(super) struct OpenRun {
    pub(super) id: i64,
    pub(super) owner: i64,
    pub(super) shape: Shape,
    pub(super) started: i64,
    pub(super) steps: BTreeMap<(i64, i64), OpenStep>,
    pub(super) flags: RunFlags,
    /// What was counted when it was closed before.
    pub(super) counted: Option<(i64, Outcome, i64)>,
    /// When something was last heard of it.
    pub(super) heard: Instant,
}

/// The last run of an owner that was closed.
#[derive(Clone, Debug)]
pub(super) struct LastRun {
    pub(super) run: i64,
    pub(super) pipeline: i64,
    pub(super) outcome: Outcome,
    pub(super) exchanges: Vec<(i64, i64, Option<i64>)>,
    /// How many steps were seen.
    pub(super) seen: usize,
}

/// What a batch did, for whoever follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Runs that were begun or closed.
    pub runs: Vec<i64>,
    /// Changes that were stored, and the ends of the chains: key, source and number.
    pub changes: Vec<(i64, i64, i64)>,
}

/// The one writer of a source.
#[derive(Debug)]
pub struct Ledger {
    pub(super) store: Store,
    pub(super) options: Options,
    pub(super) memos: Memos,
    pub(super) open: BTreeMap<Vec<u8>, OpenRun>,
    pub(super) last: BTreeMap<i64, LastRun>,
    pub(super) inspector: i64,
    pub(super) changelogs: i64,
    pub(super) shapes: BTreeMap<i64, Shape>,
    pub(super) watch: Watch,
    /// Runs that are open in the store may be missing in memory.
    forgotten: bool,
    /// When the runs of each owner were last counted.
    pub(super) counted: i64,
    /// Runs that an earlier process left open, which were closed when the store was opened.
    left: Applied,
    /// How often rows were removed that others point at, as the store says.
    pub(super) removals: Option<Vec<u8>>,
    /// Whether words that nobody uses are removed in the next sweep.
    pub(super) words_are_due: bool,
}

impl Ledger {
    /// Opens a store to write to it. `id` is the id of the store if it is new. Runs that an earlier
    /// process of the same name left open are closed.
    pub fn open(
        location: &Location,
        id: &[u8; 16],
        options: Options,
        now: (i64, Instant),
    ) -> Result<Self, Error> {
        let store = Store::open(location, id)?;
        let mut ledger = Self {
            store,
            options,
            memos: Memos::default(),
            open: BTreeMap::new(),
            last: BTreeMap::new(),
            inspector: 0,
            changelogs: 0,
            shapes: BTreeMap::new(),
            watch: Watch::default(),
            forgotten: false,
            counted: 0,
            left: Applied::default(),
            removals: None,
            words_are_due: false,
        };
        ledger.begin(now)?;
        Ok(ledger)
    }

    fn begin(&mut self, now: (i64, Instant)) -> Result<(), Error> {
        let store_id = self.store.id()?;
        let Options { cluster, source, .. } = self.options.clone();
        self.atomically(true, |ledger| {
            let of = |kind| {
                let head = super::link::genesis(&store_id, kind, &cluster, &source);
                ledger.store.source_id((kind, &cluster, &source), &head, now.0)
            };
            (ledger.inspector, ledger.changelogs) = (of("inspector")?, of("changelogs")?);
            let sql = "SELECT trace FROM run WHERE open = 1 AND source = $1";
            let left = ledger.store.db.query(sql, &[ledger.inspector.into()])?;
            for row in left {
                let trace = row.bytes(0)?;
                if let Some(mut run) = ledger.load(&trace, now.1)? {
                    run.flags.cut_off = true;
                    ledger.left.runs.push(run.id);
                    ledger.close(run)?;
                }
            }
            Ok(())
        })
    }

    /// The runs that were closed when the store was opened, once.
    pub fn take_left(&mut self) -> Applied {
        std::mem::take(&mut self.left)
    }

    /// The store, to read.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Opens the store again after the connection was lost.
    pub fn reconnect(&mut self) -> Result<(), Error> {
        self.forget();
        let id = [0; 16];
        self.store = Store::open(&self.store.location().clone(), &id)?;
        Ok(())
    }

    /// Forgets what is in memory: it may not be in the store.
    fn forget(&mut self) {
        self.memos = Memos::default();
        self.open.clear();
        self.last.clear();
        self.shapes.clear();
        self.watch.forget();
        self.store.cache.borrow_mut().clear();
        self.forgotten = true;
    }

    /// Reads the runs again that are open.
    fn recall(&mut self, now: Instant) -> Result<(), Error> {
        if !self.forgotten {
            return Ok(());
        }
        let sql = "SELECT trace FROM run WHERE open = 1 AND source = $1";
        for row in self.store.db.query(sql, &[self.inspector.into()])? {
            let trace = row.bytes(0)?;
            if !self.open.contains_key(&trace)
                && let Some(run) = self.load(&trace, now)?
            {
                self.open.insert(trace, run);
            }
        }
        self.forgotten = false;
        Ok(())
    }

    /// Does all of it or nothing.
    pub(super) fn atomically<T>(
        &mut self,
        durable: bool,
        run: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.store.db.begin(durable)?;
        let done = self.see_removals().and_then(|()| run(self));
        let done = done.and_then(|done| self.store.db.batch("COMMIT").map(|()| done));
        if done.is_err() {
            self.store.db.roll_back();
            self.forget();
        }
        done
    }

    /// Stores halves of calls. All of them are stored, or an error says that none is.
    pub fn record(&mut self, halves: &[HalfRecord], now: Instant) -> Result<Applied, Error> {
        self.atomically(false, |ledger| {
            ledger.recall(now)?;
            let mut applied = Applied::default();
            let mut answers = BTreeMap::new();
            for half in halves.iter().filter(|half| !half.is_request()) {
                answers.insert(half.place(), half);
            }
            for half in halves {
                if half.is_request() {
                    // A call that is complete is stored at once.
                    let answer = answers.remove(&half.place());
                    ledger.take(half, answer, now, &mut applied)?;
                } else if answers.remove(&half.place()).is_some() {
                    ledger.take(half, None, now, &mut applied)?;
                }
            }
            Ok(applied)
        })
    }

    /// Stores what was lost.
    pub fn lose(
        &mut self,
        (at, until): (i64, i64),
        reason: &str,
        emissions: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        let source = self.inspector;
        self.atomically(false, |ledger| {
            let sql = "INSERT INTO loss (at, until, source, reason, emissions, bytes) \
                VALUES ($1, $2, $3, $4, $5, $6)";
            let params = [
                at.into(),
                until.into(),
                source.into(),
                reason.into(),
                emissions.into(),
                bytes.into(),
            ];
            ledger.store.db.execute(sql, &params).map(drop)
        })
    }

    /// Says of a run that some of its events were lost. Nothing happens if none of it is stored.
    pub fn lost_of(&mut self, trace: &str, now: Instant) -> Result<Applied, Error> {
        let key = pack_id(trace);
        self.atomically(false, |ledger| {
            let mut applied = Applied::default();
            let run = match ledger.open.remove(&key) {
                Some(run) => Some(run),
                None => ledger.load(&key, now)?,
            };
            if let Some(mut run) = run {
                run.flags.gap = true;
                applied.runs.push(run.id);
                ledger.close(run)?;
            }
            Ok(applied)
        })
    }

    /// Closes the runs that have been silent for long.
    pub fn close_silent(&mut self, now: Instant) -> Result<Applied, Error> {
        if self.forgotten {
            self.atomically(false, |ledger| ledger.recall(now))?;
        }
        let silent: Vec<Vec<u8>> = self
            .open
            .iter()
            .filter(|(_, run)| now.saturating_duration_since(run.heard) >= SILENCE)
            .map(|(trace, _)| trace.clone())
            .collect();
        self.close_these(&silent)
    }

    /// Closes all runs, as nothing more will come.
    pub fn close_all(&mut self) -> Result<Applied, Error> {
        if self.forgotten {
            self.atomically(false, |ledger| ledger.recall(Instant::now()))?;
        }
        let all: Vec<Vec<u8>> = self.open.keys().cloned().collect();
        self.close_these(&all)
    }

    fn close_these(&mut self, traces: &[Vec<u8>]) -> Result<Applied, Error> {
        let mut applied = Applied::default();
        // A few at a time, so that changes do not wait.
        for traces in traces.chunks(64) {
            self.atomically(false, |ledger| {
                for trace in traces {
                    if let Some(run) = ledger.open.remove(trace) {
                        applied.runs.push(run.id);
                        ledger.close(run)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(applied)
    }

    /// Takes one half, or a whole call.
    fn take(
        &mut self,
        half: &HalfRecord,
        answer: Option<&HalfRecord>,
        now: Instant,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        let key = pack_id(&half.trace);
        let known = match self.open.remove(&key) {
            Some(run) => Some(run),
            None => self.load(&key, now)?,
        };
        let mut run = if let Some(run) = known {
            run
        } else {
            let run = self.start(half, &key, now, applied)?;
            applied.runs.push(run.id);
            run
        };
        run.heard = now;
        self.step(&mut run, half, answer)?;
        if self.is_over(&run) {
            applied.runs.push(run.id);
            self.close(run)
        } else {
            self.open.insert(key, run);
            self.close_oldest(applied)
        }
    }

    /// Keeps memory bounded.
    fn close_oldest(&mut self, applied: &mut Applied) -> Result<(), Error> {
        if self.open.len() <= MOST_OPEN {
            return Ok(());
        }
        let oldest = self.open.iter().min_by_key(|(_, run)| run.heard).map(|(key, _)| key.clone());
        match oldest.and_then(|key| self.open.remove(&key)) {
            Some(run) => {
                applied.runs.push(run.id);
                self.close(run)
            }
            None => Ok(()),
        }
    }

    /// Makes the row of a run. The owner's run before has ended with it.
    fn start(
        &mut self,
        half: &HalfRecord,
        key: &[u8],
        now: Instant,
        applied: &mut Applied,
    ) -> Result<OpenRun, Error> {
        let (identity, composition) = match &half.owner {
            Owner::Composite(identity, composition) => {
                (identity.clone(), Some(composition.clone()))
            }
            Owner::Operation(identity) => (identity.clone(), None),
            Owner::Nobody => (Identity::default(), None),
        };
        let cluster = self.options.cluster.clone();
        let owner = self.store.object_id(&cluster, &identity, half.received)?;
        let before: Vec<Vec<u8>> = self
            .open
            .iter()
            .filter(|(_, run)| run.owner == owner)
            .map(|(trace, _)| trace.clone())
            .collect();
        // Nobody may have several at a time.
        if half.owner != Owner::Nobody {
            for trace in before {
                if let Some(run) = self.open.remove(&trace) {
                    applied.runs.push(run.id);
                    self.close(run)?;
                }
            }
        }
        let shape = Shape {
            composition,
            group: identity.group().to_owned(),
            version: identity.version().to_owned(),
            kind: identity.kind.clone(),
            steps: Vec::new(),
        };
        let pipeline = self.store.shape_id(&mut self.memos, &shape)?;
        let namespace = self.store.word(&mut self.memos, &identity.namespace)?;
        let sql = "INSERT INTO run (trace, source, owner, namespace, pipeline, started, took, \
            outcome, open, same, flags) VALUES ($1, $2, $3, $4, $5, $6, 0, 5, 1, 0, 0) RETURNING id";
        let params = [
            key.into(),
            self.inspector.into(),
            owner.into(),
            namespace.into(),
            pipeline.into(),
            half.started.into(),
        ];
        let id = self.store.db.number(sql, &params)?;
        let id = self.store.must(id, "a run")?;
        Ok(OpenRun {
            id,
            owner,
            shape,
            started: half.started,
            steps: BTreeMap::new(),
            flags: RunFlags::default(),
            counted: None,
            heard: now,
        })
    }

    /// Reads a run again to which something came late.
    fn load(&mut self, trace: &[u8], now: Instant) -> Result<Option<OpenRun>, Error> {
        let sql = "SELECT id, owner, pipeline, started, flags, open, outcome, took FROM run \
            WHERE trace = $1";
        let Some(row) = self.store.db.first(sql, &[trace.into()])? else { return Ok(None) };
        let (id, pipeline) = (row.int(0)?, row.int(2)?);
        let mut shape = self.store.shape(pipeline)?;
        shape.steps.clear();
        let counted = (row.int(5)? == 0).then_some(());
        let outcome = Outcome::from_number(row.int(6)?);
        let mut run = OpenRun {
            id,
            owner: row.int(1)?,
            shape,
            started: row.int(3)?,
            steps: BTreeMap::new(),
            flags: RunFlags::from_number(row.int(4)?),
            counted: None,
            heard: now,
        };
        if counted.is_some() {
            run.counted = Some((pipeline, outcome, row.int(7)?));
        }
        for step in self.store.steps(id)? {
            let mut flags = StepFlags::default();
            flags.set(StepFlags::NO_REQUEST, step.no_request);
            flags.set(StepFlags::NO_ANSWER, step.no_answer);
            flags.set(StepFlags::EXACT, step.exact);
            flags.set(StepFlags::DESIGN, step.design_dialect);
            flags.set(StepFlags::CACHED, step.cached == Some(true));
            flags.set(StepFlags::NOT_CACHED, step.cached == Some(false));
            let open = OpenStep {
                name: step.step,
                function: step.function,
                exchange: step.exchange,
                severity: step.severity,
                failed: step.error.is_some(),
                started: step.started,
                took: step.took,
                flags,
                asked: None,
                early: None,
            };
            run.steps.insert((step.index, step.iteration), open);
        }
        let sql = "UPDATE run SET open = 1 WHERE id = $1 AND open = 0";
        self.store.db.execute(sql, &[id.into()])?;
        Ok(Some(run))
    }

    /// Stores a half of a step, or all of it.
    fn step(
        &mut self,
        run: &mut OpenRun,
        half: &HalfRecord,
        answer: Option<&HalfRecord>,
    ) -> Result<(), Error> {
        // Retention goes by the time of the sender, whose clock may be ahead.
        let hour = half.received.max(half.started).max(run.started) / HOUR;
        let place = (half.index, half.iteration);
        let known = run.steps.remove(&place);
        let new = known.is_none();
        let mut step = known.unwrap_or_else(|| OpenStep {
            name: half.step.clone(),
            function: half.function.clone(),
            started: half.started,
            flags: StepFlags(StepFlags::NO_REQUEST | StepFlags::NO_ANSWER),
            ..OpenStep::default()
        });
        step.flags.set(StepFlags::DESIGN, half.design);
        let early = step.early.take();
        let (request, response) = match &half.content {
            HalfContent::Request(_) => (Some(half), answer.or(early.as_deref())),
            HalfContent::Response(..) => (None, Some(half)),
        };
        if request.is_some() && response.is_none() && !step.flags.has(StepFlags::NO_ANSWER) {
            // The answer is stored and its request comes after a restart, or twice.
            run.steps.insert(place, step);
            return Ok(());
        }
        if let Some(request) = request {
            step.started = request.started;
            step.asked = request.arrived;
            step.flags.set(StepFlags::NO_REQUEST, false);
        }
        if let Some(response) = response {
            let measured = match (step.asked, response.arrived) {
                (Some(asked), Some(arrived)) => {
                    i64::try_from(arrived.saturating_duration_since(asked).as_micros()).ok()
                }
                // The process was restarted in between, or this is an import.
                (None, Some(_)) => Some(response.received.saturating_sub(step.started).max(0)),
                (_, None) => None,
            };
            step.took = response.took.or(measured).or(Some(0));
            step.flags.set(StepFlags::EXACT, response.took.is_some());
            step.flags.set(StepFlags::CACHED, response.cached == Some(true));
            step.flags.set(StepFlags::NOT_CACHED, response.cached == Some(false));
            step.flags.set(StepFlags::NO_ANSWER, false);
            if let HalfContent::Response(content, error) = &response.content {
                step.severity =
                    content.parts().map_or(0, |parts| digest::severity_number(&parts.results));
                step.failed = !error.is_empty();
            }
        }
        step.exchange = Some(self.exchange(run, step.exchange, request, response, hour)?);
        let revision = match response.and_then(|response| response.revision.as_deref()) {
            Some(revision) => Some(self.store.word(&mut self.memos, revision)?),
            None => None,
        };
        self.write_step(run.id, place, &step, half, revision, new)?;
        if step.flags.has(StepFlags::NO_REQUEST) && self.early_bytes(run) + half.bytes <= MOST_EARLY
        {
            step.early = Some(Box::new(half.clone()));
        }
        run.steps.insert(place, step);
        Ok(())
    }

    /// How many bytes of answers wait in memory for their requests, with those of one more run.
    fn early_bytes(&self, run: &OpenRun) -> i64 {
        let runs = self.open.values().chain([run]);
        let steps = runs.flat_map(|run| run.steps.values());
        steps.filter_map(|step| step.early.as_ref()).map(|early| early.bytes).sum()
    }

    fn write_step(
        &self,
        run: i64,
        (index, iteration): (i64, i64),
        step: &OpenStep,
        half: &HalfRecord,
        revision: Option<i64>,
        new: bool,
    ) -> Result<(), Error> {
        let key = [run.into(), index.into(), iteration.into()];
        let mut params = key.to_vec();
        params.extend([
            step.exchange.into(),
            step.took.into(),
            revision.into(),
            step.flags.0.into(),
        ]);
        if !new {
            let sql = "UPDATE step SET exchange = $4, took = $5, \
                revision = COALESCE($6, revision), flags = $7 \
                WHERE run = $1 AND idx = $2 AND iteration = $3";
            return self.store.db.execute(sql, &params).map(drop);
        }
        let span = pack_id(&half.span);
        params.extend([(&span).into(), half.started.into(), half.nanos.into()]);
        let sql = "INSERT INTO step (run, idx, iteration, exchange, took, revision, flags, span, \
            started, nanos) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
            ON CONFLICT (run, idx, iteration) DO UPDATE SET exchange = excluded.exchange, \
            took = excluded.took, flags = excluded.flags, span = excluded.span";
        self.store.db.execute(sql, &params).map(drop)
    }

    /// What was found since this was last called: new findings, and such that began again.
    pub fn take_found(&mut self) -> Vec<FindingKind> {
        std::mem::take(&mut self.watch.found)
    }

    /// The traces of runs to which more may come.
    pub fn open_traces(&self) -> Vec<String> {
        self.open.keys().map(|key| unpack_id(key)).collect()
    }
}

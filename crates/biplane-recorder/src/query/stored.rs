//! A store as an archive, and import into a store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use biplane_proto::redact::{Half, Redactor};
use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Import, Loss, VerifyItem};
use super::archive::{
    self, After, Archive, Asked, ChangeFilter, Error, Recorded, RunFilter, Scope, Timing,
    WarningFilter, split_kind,
};
use super::changes;
use super::import::{Printed, Reading};
use super::record::{ChangeRecord, Head, ObjectRef, Outcome, Run, Step};
use super::{findings, state, time};
use crate::store::rows::{
    self, ChangeRow, Extent, FindingRow, Found, ObjectRow, Payload, RunRow, Side, StepRow,
};
use crate::store::{self, HalfRecord, Ledger, LedgerOptions, Location, StateOf, Store};

/// A store that is read.
#[derive(Debug)]
pub struct Stored(Store);

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        let text = error.to_string();
        match error {
            store::Error::TooMuch(_) => Self::TooMuch(text),
            store::Error::Missing(_) | store::Error::Older { .. } | store::Error::Newer { .. } => {
                Self::NotReady(text)
            }
            _ => Self::Failed(text),
        }
    }
}

impl Stored {
    /// Opens a store that exists: a file, or `postgres://…`.
    pub fn open(location: &str) -> Result<Self, Error> {
        Ok(Self(Store::open_existing(&Location::parse(location))?))
    }

    /// The run with a key, if it is still kept.
    pub fn run_of_key(&self, key: i64) -> Result<Option<Run>, Error> {
        let Some(row) = self.0.run_by_id(key)? else { return Ok(None) };
        self.load(&self.head(&row)?).map(Some)
    }

    /// The store itself, for those who know things by their keys.
    pub fn store(&self) -> &Store {
        &self.0
    }

    /// What is known of a run without its payloads.
    pub fn head(&self, row: &RunRow) -> Result<Head, Error> {
        let step = |step: rows::PipelineStepRow| {
            (i32::try_from(step.index).unwrap_or(i32::MAX), step.step, step.function)
        };
        // The store knows the time from the first step to the last. That is less than all of it,
        // unless the last step was measured.
        let steps = self.0.steps(row.id)?;
        let took = steps.iter().all(|step| took(step).is_some()).then_some(row.took);
        let api_version = match (row.owner.group.as_str(), row.version.as_str()) {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        };
        Ok(Head {
            key: row.id,
            trace: row.trace.clone(),
            owner: object(&row.owner, api_version),
            composition: row.composition.clone().unwrap_or_default(),
            started: micros(row.started),
            took: took.filter(|took| *took > 0),
            outcome: outcome(row.outcome),
            open: row.open,
            same: row.same,
            steps: self.0.pipeline(row.pipeline)?.into_iter().map(step).collect(),
        })
    }

    fn heads(&self, rows: &[RunRow]) -> Result<Vec<Head>, Error> {
        rows.iter().map(|row| self.head(row)).collect()
    }

    fn row(&self, head: &Head) -> Result<RunRow, Error> {
        let gone = || Error::NotFound(format!("run {} is no longer kept", head.trace));
        self.0.run_by_id(head.key)?.ok_or_else(gone)
    }

    fn step(&self, row: StepRow, extent: &Extent<'_>) -> Result<Step, Error> {
        let took = took(&row);
        let exchange = row.exchange.map(|id| self.0.exchange_within(id, extent));
        let exchange = exchange.transpose()?.flatten();
        let (request, response) = match exchange {
            Some(exchange) => (exchange.request, exchange.response),
            None => (None, None),
        };
        let nanos = i128::from(row.started) * 1000 + i128::from(row.nanos);
        Ok(Step {
            index: i32::try_from(row.index).unwrap_or(i32::MAX),
            iteration: i32::try_from(row.iteration).unwrap_or(i32::MAX),
            name: row.step,
            function: row.function,
            span: row.span,
            started: Timestamp::from_nanosecond(nanos).unwrap_or_default(),
            took,
            cached: row.cached,
            revision: row.revision,
            request: request.filter(|_| !row.no_request).and_then(payload),
            response: response.and_then(payload),
            asked: !row.no_request,
            answered: !row.no_answer,
            error: row.error.filter(|error| !error.is_empty()),
        })
    }

    /// A run of its calls, by position and iteration.
    fn assembled(head: &Head, steps: Vec<Step>) -> Run {
        if !head.open {
            return Run { head: head.clone(), steps };
        }
        // The store says how a run ended, and this one goes on.
        let (trace, owner) = (head.trace.clone(), head.owner.clone());
        let so_far = Run::of_steps(trace, owner, head.composition.clone(), steps);
        let Head { outcome, took, .. } = so_far.head;
        Run { head: Head { took, outcome, ..head.clone() }, steps: so_far.steps }
    }

    /// The exchanges that can have a state of a run, the one that counts first.
    fn exchanges(&self, head: &Head, side: Side) -> Result<Vec<i64>, Error> {
        let steps = self.0.steps(head.key)?;
        if side == Side::Observed {
            let asked = steps.iter().filter(|step| !step.no_request);
            return Ok(asked.filter_map(|step| step.exchange).collect());
        }
        // Of the calls of a step, the last one counts.
        let last: BTreeMap<i64, Option<i64>> =
            steps.iter().map(|step| (step.index, step.exchange)).collect();
        Ok(last.into_values().rev().flatten().collect())
    }

    /// The owners that have an object among their composed resources, with its name there.
    fn places(&self, row: &ObjectRow) -> Result<Vec<(ObjectRef, String)>, Error> {
        let mut found = Vec::new();
        for slot in self.0.slots_of_object(row.id)? {
            if slot.name.is_empty() {
                continue;
            }
            if let Some(owner) = self.0.object(slot.owner)? {
                // The version does not matter to find runs.
                let api_version = format!("{}/", owner.group);
                found.push((object(&owner, api_version), slot.name));
            }
        }
        if found.is_empty()
            && let Some(parent) = row.parent
            && let Some(owner) = self.0.object(parent)?
        {
            // Another object is in its place now.
            for slot in self.0.slots(parent)?.into_iter().filter(|slot| !slot.name.is_empty()) {
                let versions = self.0.versions(slot.id, Side::Observed)?;
                for body in versions.into_iter().rev().filter_map(|version| version.body) {
                    let seen = ObjectRef::of_object(&self.0.body(body)?);
                    if (&seen.kind, &seen.namespace, &seen.name)
                        == (&row.kind, &row.namespace, &row.name)
                    {
                        found.push((object(&owner, format!("{}/", owner.group)), slot.name));
                        break;
                    }
                }
            }
        }
        Ok(found)
    }

    fn change_record(
        &self,
        row: &ChangeRow,
        sources: &[rows::SourceRow],
    ) -> Result<ChangeRecord, Error> {
        let entry = self.0.entry(row)?;
        let received = micros(row.received);
        let mut record = changes::record(&entry, received)
            .ok_or_else(|| Error::Failed(format!("change {} has no JSON form", row.id)))?;
        let source = sources.iter().find(|source| source.id == row.source);
        record.key = row.id;
        record.source = source.map(|source| source.name.clone()).unwrap_or_default();
        record.sequence = row.seq;
        record.object.uid =
            if record.object.uid.is_empty() { row.object.uid.clone() } else { record.object.uid };
        record.at = micros(row.at);
        record.cause = Some(row.cause.clone()).filter(|cause| !cause.is_empty()).or(record.cause);
        record.trace = row.trace.clone().or(record.trace);
        Ok(record)
    }
}

/// How long a step took. Lines that were imported have no times of arrival.
fn took(step: &StepRow) -> Option<i64> {
    step.took.filter(|took| *took > 0 || step.exact)
}

/// What is not JSON is known by its size and hash alone.
fn payload(payload: Payload) -> Option<Value> {
    match payload {
        Payload::Empty => None,
        Payload::Json(value) => Some(value),
        Payload::Opaque { bytes, hash } => {
            Some(format!("not JSON: {bytes} bytes, SHA-256 {hash}…").into())
        }
    }
}

fn micros(time: i64) -> Timestamp {
    Timestamp::from_microsecond(time).unwrap_or_default()
}

fn outcome(outcome: rows::Outcome) -> Outcome {
    match outcome {
        rows::Outcome::Ok => Outcome::Ok,
        rows::Outcome::Warning => Outcome::Warning,
        rows::Outcome::Fatal => Outcome::Fatal,
        rows::Outcome::Error => Outcome::Error,
        rows::Outcome::Incomplete => Outcome::Incomplete,
    }
}

fn row_outcome(outcome: Outcome) -> rows::Outcome {
    match outcome {
        Outcome::Ok => rows::Outcome::Ok,
        Outcome::Warning => rows::Outcome::Warning,
        Outcome::Fatal => rows::Outcome::Fatal,
        Outcome::Error => rows::Outcome::Error,
        Outcome::Incomplete => rows::Outcome::Incomplete,
    }
}

fn object(row: &ObjectRow, api_version: String) -> ObjectRef {
    ObjectRef {
        api_version,
        kind: row.kind.clone(),
        namespace: row.namespace.clone(),
        name: row.name.clone(),
        uid: row.uid.clone(),
    }
}

/// The kind and the group that a user typed.
fn kind_and_group(typed: Option<&String>) -> (Option<String>, Option<String>) {
    match typed.map(|typed| split_kind(typed)) {
        None => (None, None),
        Some((kind, group)) => (Some(kind.to_owned()), group.map(str::to_owned)),
    }
}

fn after(after: Option<After>) -> Option<rows::After> {
    after.map(|After { at, key }| rows::After { at, id: key })
}

/// A filter of runs as the store has it.
fn row_filter(filter: &RunFilter) -> rows::RunFilter {
    let (kind, group) = kind_and_group(filter.kind.as_ref());
    rows::RunFilter {
        kind,
        group,
        name: filter.name.clone(),
        namespace: filter.namespace.clone(),
        composition: filter.composition.clone(),
        function: filter.function.clone(),
        outcomes: filter.outcomes.iter().copied().map(row_outcome).collect(),
        labels: filter.labels.clone(),
        since: filter.since.map(Timestamp::as_microsecond),
        until: filter.until.map(Timestamp::as_microsecond),
        changed: filter.changed,
        ..rows::RunFilter::default()
    }
}

impl Archive for Stored {
    fn runs(
        &self,
        filter: &RunFilter,
        limit: usize,
        from: Option<After>,
    ) -> Result<Vec<Head>, Error> {
        self.heads(&self.0.runs(&row_filter(filter), limit, after(from))?)
    }

    fn by_trace(&self, prefix: &str) -> Result<Vec<Head>, Error> {
        match self.0.run(prefix)? {
            Found::None => Ok(Vec::new()),
            Found::One(row) => Ok(vec![self.head(&row)?]),
            Found::Many(rows) => self.heads(&rows),
        }
    }

    fn load(&self, head: &Head) -> Result<Run, Error> {
        let rows = self.0.steps(head.key)?.into_iter();
        let steps = rows.map(|row| self.step(row, &Extent::WHOLE)).collect::<Result<_, _>>()?;
        Ok(Self::assembled(head, steps))
    }

    fn outline(&self, head: &Head, scope: Scope) -> Result<Run, Error> {
        let rows = self.0.steps(head.key)?;
        let is_all = scope == Scope::Messages;
        let mut extents = Vec::with_capacity(rows.len());
        // What was observed is the same for all steps.
        let mut observed = scope != Scope::Desired;
        for row in &rows {
            let is_asked = row.exchange.is_some() && !row.no_request;
            extents.push(Extent {
                observed,
                given: is_all,
                answered: true,
                rest: is_all,
                bodies: false,
                slot: None,
            });
            observed = is_all || (observed && !is_asked);
        }
        let mut steps = Vec::with_capacity(rows.len());
        let (mut is_found, mut index) = (false, None);
        for (row, mut extent) in rows.into_iter().zip(extents).rev() {
            extent.answered = is_all || !is_found;
            // Only the last call of a step says what it desired.
            let is_last = index.replace(row.index) != Some(row.index);
            let step = self.step(row, &extent)?;
            is_found |= is_last && step.desired(super::record::Side::After).is_some();
            steps.push(step);
        }
        steps.reverse();
        Ok(Self::assembled(head, steps))
    }

    fn outline_of(&self, head: &Head, slot: &str) -> Result<Run, Error> {
        let extent = Extent { bodies: false, slot: Some(slot), ..Extent::WHOLE };
        let rows = self.0.steps(head.key)?.into_iter();
        let steps = rows.map(|row| self.step(row, &extent)).collect::<Result<_, _>>()?;
        Ok(Self::assembled(head, steps))
    }

    fn body(&self, key: i64) -> Result<Value, Error> {
        Ok(self.0.body(key)?)
    }

    fn body_bytes(&self, key: i64) -> Result<usize, Error> {
        Ok(self.0.body_bytes(key)?)
    }

    fn is_redacted(&self, head: &Head) -> Result<bool, Error> {
        Ok(self.0.is_run_redacted(head.key)?)
    }

    fn is_body_redacted(&self, key: i64) -> Result<bool, Error> {
        Ok(self.0.is_body_redacted(key)?)
    }

    fn bodies(&self, head: &Head, side: Side, slots: &[&str]) -> Result<Vec<Option<Value>>, Error> {
        for exchange in self.exchanges(head, side)? {
            match self.0.state_of(exchange, side)? {
                StateOf::NoMessage => {}
                StateOf::Key(state) => {
                    let entries = self.0.state(state)?;
                    let body = |name: &&str| {
                        // They are sorted by name.
                        let at = entries.binary_search_by(|entry| entry.name.as_str().cmp(name));
                        let entry = at.ok().and_then(|at| entries.get(at))?;
                        Some(entry.body.map_or(Value::Null, Value::from))
                    };
                    return Ok(slots.iter().map(body).collect());
                }
                StateOf::Elsewhere => {
                    let run = self.load(head)?;
                    let state = match side {
                        Side::Observed => run.observed(),
                        Side::Desired => run.desired(),
                    };
                    let body =
                        |name: &&str| state::slot(state, name).map(|s| state::body(s).clone());
                    return Ok(slots.iter().map(body).collect());
                }
            }
        }
        Ok(vec![None; slots.len()])
    }

    fn run_before(&self, head: &Head) -> Result<Option<Head>, Error> {
        let before = self.0.run_before(&self.row(head)?)?;
        before.as_ref().map(|row| self.head(row)).transpose()
    }

    fn run_after(&self, head: &Head) -> Result<Option<Head>, Error> {
        let after = self.0.run_after(&self.row(head)?)?;
        after.as_ref().map(|row| self.head(row)).transpose()
    }

    fn has_forgotten(&self, head: &Head) -> Result<bool, Error> {
        Ok(self.0.has_forgotten(&self.row(head)?.owner)?)
    }

    fn timings(&self, head: &Head) -> Result<Vec<Timing>, Error> {
        let timing = |row: StepRow| Timing {
            index: i32::try_from(row.index).unwrap_or(i32::MAX),
            took: took(&row),
            name: row.step,
            function: row.function,
            cached: row.cached,
        };
        Ok(self.0.steps(head.key)?.into_iter().map(timing).collect())
    }

    fn composed(
        &self,
        kind: &str,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<(ObjectRef, ObjectRef, String)>, Error> {
        let (kind, group) = split_kind(kind);
        let mut found = Vec::new();
        for row in self.0.objects(Some(kind), group, namespace, Some(name))? {
            let of = format!("{}/", row.group);
            for (owner, slot) in self.places(&row)? {
                found.push((object(&row, of.clone()), owner, slot));
            }
        }
        Ok(found)
    }

    fn warnings(
        &self,
        filter: &WarningFilter,
        limit: usize,
        from: Option<After>,
    ) -> Result<Vec<FindingRow>, Error> {
        findings::list(&self.0, filter, limit, from)
    }

    fn warning(&self, key: i64) -> Result<Option<FindingRow>, Error> {
        Ok(self.0.finding(key)?)
    }

    fn changes(
        &self,
        filter: &ChangeFilter,
        limit: usize,
        from: Option<After>,
    ) -> Result<Vec<ChangeRecord>, Error> {
        let (kind, group) = kind_and_group(filter.kind.as_ref());
        let operation = match filter.operation.as_deref() {
            None => None,
            Some("create") => Some(1),
            Some("update") => Some(2),
            Some("delete") => Some(3),
            Some(other) => {
                let wrong = |_| Error::Usage(format!("{other:?} is no operation"));
                Some(other.parse().map_err(wrong)?)
            }
        };
        let filter = rows::ChangeFilter {
            kind,
            group,
            namespace: filter.namespace.clone(),
            name: filter.name.clone(),
            provider: filter.provider.clone(),
            operation,
            failed: filter.failed,
            cause: filter.cause.clone(),
            since: filter.since.map(Timestamp::as_microsecond),
            until: filter.until.map(Timestamp::as_microsecond),
            newer_than: filter.newer_than,
            ..rows::ChangeFilter::default()
        };
        let sources = self.0.sources()?;
        let rows = self.0.changes(&filter, limit, after(from))?;
        rows.iter().map(|row| self.change_record(row, &sources)).collect()
    }

    fn change(&self, key: i64) -> Result<Option<ChangeRecord>, Error> {
        let sources = self.0.sources()?;
        self.0.change(key)?.map(|row| self.change_record(&row, &sources)).transpose()
    }

    fn owners_of(&self, wanted: &ObjectRef) -> Result<Vec<(ObjectRef, String)>, Error> {
        let by_uid = match wanted.uid.as_str() {
            "" => None,
            uid => self.0.object_by_uid(uid)?,
        };
        let objects = match by_uid {
            Some(object) => vec![object],
            None => self.0.objects(
                Some(&wanted.kind),
                Some(wanted.group()),
                Some(&wanted.namespace),
                Some(&wanted.name),
            )?,
        };
        let mut found = Vec::new();
        for row in objects {
            found.extend(self.places(&row)?);
        }
        Ok(found)
    }

    fn losses(
        &self,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<Loss>, Error> {
        let since = since.map_or(i64::MIN, Timestamp::as_microsecond);
        let until = until.map_or(i64::MAX, Timestamp::as_microsecond);
        let loss = |row: rows::LossRow| Loss {
            from: time::rfc3339(micros(row.at)),
            until: time::rfc3339(micros(row.until)),
            reason: row.reason,
            emissions: row.emissions,
        };
        Ok(self.0.losses(since, until)?.into_iter().map(loss).collect())
    }

    fn verify(&self) -> Result<Vec<VerifyItem>, Error> {
        let item = |verified: store::Verified| VerifyItem {
            source: match verified.source.cluster.as_str() {
                "" => verified.source.name.clone(),
                cluster => format!("{cluster}/{}", verified.source.name),
            },
            entries: verified.entries,
            removed: (verified.first - 1).max(0),
            head: store::hex(&verified.source.head),
            broken: verified
                .broken
                .iter()
                .map(|broken| format!("entry {}: {}", broken.seq, broken.reason))
                .collect(),
        };
        Ok(self.0.verify()?.into_iter().map(item).collect())
    }

    fn requests(&self, function: &str, filter: &RunFilter) -> Result<Vec<Asked>, Error> {
        let mut found = Vec::new();
        for request in self.0.requests(function, &row_filter(filter))? {
            // Retention may have removed it since.
            let Some(row) = self.0.run_by_id(request.run)? else { continue };
            let steps = self.0.steps(row.id)?;
            let Some(step) = steps.iter().find(|s| s.exchange == Some(request.exchange)) else {
                continue;
            };
            found.push(Asked {
                head: self.head(&row)?,
                index: i32::try_from(step.index).unwrap_or(i32::MAX),
                iteration: i32::try_from(step.iteration).unwrap_or(i32::MAX),
                calls: request.steps,
            });
        }
        found.sort_by_key(|asked| {
            (asked.head.started, asked.head.key, asked.index, asked.iteration)
        });
        Ok(found)
    }

    /// Without the payloads of the other steps of the run.
    fn recorded(&self, asked: &Asked) -> Result<Recorded, Error> {
        let (index, iteration) = (i64::from(asked.index), i64::from(asked.iteration));
        let rows = self.0.steps(asked.head.key)?;
        let is_repeated = rows.iter().any(|s| s.index == index && s.iteration != iteration);
        let row = rows.into_iter().find(|s| s.index == index && s.iteration == iteration);
        let gone =
            || Error::NotFound(format!("a step of run {} is no longer kept", asked.head.trace));
        let step = self.step(row.ok_or_else(gone)?, &Extent::WHOLE)?;
        Ok(Recorded { head: asked.head.clone(), step, is_repeated })
    }
}

/// What an import is told.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The store: a file, or `postgres://…`. It is made if there is none.
    pub store: String,
    /// The id of the store if it is made. It must be random.
    pub id: [u8; 16],
    /// The cluster that everything is about.
    pub cluster: String,
    /// The name under which it is stored.
    pub source: String,
    /// The time.
    pub now: Timestamp,
}

/// How many emissions are stored at a time.
const BATCH: usize = 64;

/// Stores what sidecars printed. Runs keep their times; how long calls took is not in the lines.
pub fn import(
    readings: Vec<Reading>,
    redactor: &Redactor,
    options: &ImportOptions,
) -> Result<Import, Error> {
    let location = Location::parse(&options.store);
    let clock = Instant::now();
    let ledger_options = LedgerOptions {
        cluster: options.cluster.clone(),
        source: options.source.clone(),
        failures_only: false,
    };
    let now = options.now.as_microsecond();
    let mut ledger = Ledger::open(&location, &options.id, ledger_options, (now, clock))?;
    let mut done = Import::default();
    let mut traces = BTreeSet::new();
    let mut redacted: BTreeSet<String> = BTreeSet::new();
    let mut batch = Vec::new();
    let mut all = Vec::new();
    for reading in readings {
        done.skipped.extend(reading.skipped.iter().map(ToString::to_string));
        all.extend(reading.printed);
    }
    for (line, printed) in all {
        match printed {
            Printed::Emission(emission) => {
                let span = emission.meta.as_ref().map(|meta| meta.span_id.clone());
                let span = span.unwrap_or_default();
                let was_redacted = redacted.contains(&span);
                let payload = redactor.line_payload(emission.half, &emission.payload, was_redacted);
                if emission.half == Half::Request && payload.is_redacted() {
                    redacted.insert(span);
                }
                let received = emission
                    .meta
                    .as_ref()
                    .and_then(|meta| meta.timestamp)
                    .map_or(now, |time| time.seconds.saturating_mul(1_000_000));
                match HalfRecord::new(&emission, payload, received, None) {
                    Ok(half) => {
                        traces.insert(half.trace().to_owned());
                        batch.push(half);
                        done.emissions += 1;
                    }
                    Err(unusable) => done.skipped.push(format!("line {line}: {unusable}")),
                }
                if batch.len() == BATCH {
                    ledger.record(&batch, clock)?;
                    batch.clear();
                }
            }
            Printed::Entry(entry) => {
                if let Some(reason) = take_entry(&mut ledger, *entry, redactor, now)? {
                    done.skipped.push(format!("line {line}: {reason}"));
                } else {
                    done.entries += 1;
                }
            }
        }
    }
    ledger.record(&batch, clock)?;
    ledger.close_all()?;
    done.runs = traces.len();
    Ok(done)
}

/// Stores an entry, unless it is there already. Returns why it was not stored.
fn take_entry(
    ledger: &mut Ledger,
    entry: biplane_proto::changelogs::ChangeLogEntry,
    redactor: &Redactor,
    now: i64,
) -> Result<Option<String>, Error> {
    let entry = redactor.entry(entry);
    let at = entry.get().timestamp.map(|time| time.seconds.saturating_mul(1_000_000));
    let filter = rows::ChangeFilter {
        kind: Some(entry.get().kind.clone()),
        name: Some(entry.get().name.clone()),
        since: at,
        until: at.map(|at| at.saturating_add(1)),
        ..rows::ChangeFilter::default()
    };
    if at.is_some() {
        for row in ledger.store().changes(&filter, archive::SAME_SECOND, None)? {
            if ledger.store().entry(&row)? == *entry.get() {
                return Ok(Some("it is in the store already".to_owned()));
            }
        }
    }
    let record = match store::ChangeRecord::new(entry, now) {
        Ok(record) => record,
        Err(error) => return Ok(Some(error.to_string())),
    };
    ledger.append(&[record])?;
    Ok(None)
}

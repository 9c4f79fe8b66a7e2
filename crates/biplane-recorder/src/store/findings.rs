//! Looks at each run that ends for what somebody should know: fields that somebody fights over,
//! answers that differ though nothing else did, requirements that never settle, steps that have
//! become slow, and sizes near a limit.
//!
//! A run that repeats the one before costs nothing but a look at its durations.

mod fights;

use std::collections::{BTreeMap, BTreeSet};

use super::db::Error;
use super::ledger::{LastRun, Ledger, OpenRun, OpenStep};
use super::pack::{List, RequestList, ResponseList};
use super::read::StepFlags;
use super::rows::FindingKind;
use super::watch::Open;

/// What the control plane says when requirements never settle.
const UNSTABLE: &str = "requirements didn't stabilize";

/// gRPC refuses messages that are larger, unless both sides are told otherwise.
const MOST_MESSAGE: i64 = 4 * 1024 * 1024;
/// etcd refuses objects that are larger, unless it is told otherwise.
const MOST_OBJECT: i64 = 1536 * 1024;

/// From here on a size is near its limit.
const fn near(limit: i64) -> i64 {
    limit / 5 * 4
}

/// A finding that so many runs of its owner do not show has ended.
const PATIENCE: u32 = 10;

/// Something that a run shows.
#[derive(Debug)]
struct Sighting {
    kind: FindingKind,
    slot: Option<i64>,
    path: Option<i64>,
    /// Position, name and function.
    step: Option<(i64, String, String)>,
    detail: BTreeMap<&'static str, String>,
}

impl Sighting {
    fn of_step(kind: FindingKind, index: i64, step: &OpenStep) -> Self {
        Self {
            kind,
            slot: None,
            path: None,
            step: Some((index, step.name.clone(), step.function.clone())),
            detail: BTreeMap::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.detail.insert(name, value.to_string());
        self
    }
}

/// What an answer says, to tell whether another says the same.
#[derive(PartialEq)]
struct Said {
    parts: [Option<i64>; 4],
    other: Vec<u8>,
    severity: i64,
    conditions: Vec<(String, i64, String)>,
}

/// The parts of an answer.
const PARTS: [&str; 4] = ["desired", "context", "requirements", "output"];

impl Ledger {
    /// Looks for findings in a run that has ended.
    pub(super) fn look_for_findings(
        &mut self,
        run: &OpenRun,
        pipeline: i64,
        same: bool,
        last: Option<&LastRun>,
    ) -> Result<(), Error> {
        let mut found = Vec::new();
        self.find_unstable(run, &mut found)?;
        if run.counted.is_none() {
            self.find_slow(run, pipeline, &mut found);
        }
        if !same {
            self.find_in_exchanges(run, last, &mut found)?;
            self.find_fights(run, &mut found)?;
        }
        let mut seen = Vec::new();
        for sighting in &found {
            seen.push(self.note(run, sighting)?);
        }
        if run.counted.is_none() {
            self.age(run.owner, same, &seen)?;
        }
        Ok(())
    }

    fn find_unstable(&self, run: &OpenRun, found: &mut Vec<Sighting>) -> Result<(), Error> {
        for ((index, _), step) in &run.steps {
            let Some(exchange) = step.exchange.filter(|_| step.failed) else { continue };
            let sql = "SELECT m.text FROM exchange e JOIN message m ON m.id = e.error \
                WHERE e.id = $1";
            let Some(row) = self.store.db.first(sql, &[exchange.into()])? else { continue };
            if row.text(0)?.contains(UNSTABLE) {
                found.push(Sighting::of_step(FindingKind::UnstableRequirements, *index, step));
            }
        }
        Ok(())
    }

    fn find_slow(&mut self, run: &OpenRun, pipeline: i64, found: &mut Vec<Sighting>) {
        for ((index, iteration), step) in &run.steps {
            let is_last = run.steps.range((*index, iteration + 1)..(index + 1, 0)).next().is_none();
            let is_told = !step.flags.has(StepFlags::NO_ANSWER)
                && !step.flags.has(StepFlags::NO_REQUEST)
                && !step.flags.has(StepFlags::CACHED)
                && !step.failed;
            // What was imported has no durations.
            let Some(took) = step.took.filter(|took| *took > 0 && is_last && is_told) else {
                continue;
            };
            if let Some(median) = self.watch.took((pipeline, *index), took) {
                let sighting = Sighting::of_step(FindingKind::SlowStep, *index, step);
                found.push(sighting.with("tookMicros", took).with("medianMicros", median));
            }
        }
    }

    fn find_in_exchanges(
        &mut self,
        run: &OpenRun,
        last: Option<&LastRun>,
        found: &mut Vec<Sighting>,
    ) -> Result<(), Error> {
        let mut large = BTreeMap::new();
        for ((index, iteration), step) in &run.steps {
            let Some(exchange) = step.exchange else { continue };
            let sql = "SELECT input, request_bytes, response_bytes FROM exchange WHERE id = $1";
            let Some(row) = self.store.db.first(sql, &[exchange.into()])? else { continue };
            let (input, request, response) = (row.bytes(0)?, row.int(1)?, row.int(2)?);
            let (what, bytes) =
                if request > response { ("request", request) } else { ("response", response) };
            if bytes >= near(MOST_MESSAGE) {
                let sighting = Sighting::of_step(FindingKind::Size, *index, step);
                let sighting = sighting.with("what", what).with("bytes", bytes);
                found.push(sighting.with("limit", MOST_MESSAGE));
            }
            if bytes >= near(MOST_OBJECT) {
                self.find_large_bodies(exchange, &mut large)?;
            }
            let place = (*index, *iteration, Some(exchange));
            let repeats = last.is_some_and(|last| last.exchanges.contains(&place));
            if !repeats && !step.failed {
                self.find_same_input(run, (*index, *iteration), step, exchange, &input, found)?;
            }
        }
        for (name, bytes) in large {
            let slot = self.store.slot_id(&mut self.memos, run.owner, &name)?;
            let sighting = Sighting {
                kind: FindingKind::Size,
                slot: Some(slot),
                path: None,
                step: None,
                detail: BTreeMap::new(),
            };
            let sighting = sighting.with("what", "resource").with("bytes", bytes);
            found.push(sighting.with("limit", MOST_OBJECT));
        }
        Ok(())
    }

    /// The resources of a call that are almost as large as they may be, with their sizes.
    fn find_large_bodies(
        &self,
        exchange: i64,
        large: &mut BTreeMap<String, i64>,
    ) -> Result<(), Error> {
        let (request, response) = self.lists(exchange)?;
        let mut states = BTreeSet::new();
        if let Some(List::Blobs { ids, .. }) = request {
            states.extend(ids.first().copied().flatten());
        }
        if let Some(List::Blobs { ids, .. }) = response {
            states.extend(ids.first().copied().flatten());
        }
        for state in states {
            for entry in self.store.state(state)? {
                let Some(body) = entry.body else { continue };
                let sql = "SELECT size FROM blob WHERE id = $1";
                let size = self.store.db.number(sql, &[body.into()])?.unwrap_or_default();
                if size >= near(MOST_OBJECT) {
                    let known = large.entry(entry.name).or_default();
                    *known = (*known).max(size);
                }
            }
        }
        Ok(())
    }

    /// Whether a function answered something else when it was last given the same.
    fn find_same_input(
        &mut self,
        run: &OpenRun,
        (index, iteration): (i64, i64),
        step: &OpenStep,
        exchange: i64,
        input: &[u8],
        found: &mut Vec<Sighting>,
    ) -> Result<(), Error> {
        if input.is_empty() {
            return Ok(());
        }
        let sql = "SELECT id FROM exchange WHERE input = $1 AND id <> $2 AND error IS NULL \
            AND response IS NOT NULL AND request IS NOT NULL ORDER BY id LIMIT 20";
        let rows = self.store.db.query(sql, &[input.into(), exchange.into()])?;
        if rows.is_empty() {
            return Ok(());
        }
        let Some(here) = self.said(exchange)? else { return Ok(()) };
        let mut ids = vec![exchange];
        for row in &rows {
            ids.push(row.int(0)?);
        }
        let list: Vec<String> = ids.iter().map(i64::to_string).collect();
        let sql = format!(
            "SELECT s.exchange, s.revision, r.trace FROM run r JOIN step s ON s.run = r.id \
                WHERE r.owner = $1 AND r.id < $2 AND s.idx = $3 AND s.exchange IN ({}) \
                ORDER BY r.started DESC, r.id DESC LIMIT 50",
            list.join(", ")
        );
        let uses = self.store.db.query(&sql, &[run.owner.into(), run.id.into(), index.into()])?;
        let Some(before) = uses.first() else { return Ok(()) };
        let other = before.int(0)?;
        let there = if other == exchange { None } else { self.said(other)? };
        let Some(there) = there.filter(|there| *there != here) else { return Ok(()) };
        let sql = "SELECT revision FROM step WHERE run = $1 AND idx = $2 AND iteration = $3";
        let revision =
            self.store.db.number(sql, &[run.id.into(), index.into(), iteration.into()])?;
        if revision.is_some() && before.int_or(1)?.is_some() && revision != before.int_or(1)? {
            // Another revision of a function may answer something else.
            return Ok(());
        }
        let mut alternates = false;
        for row in &uses {
            alternates |= row.int(0)? == exchange;
        }
        let (part, resources) = self.first_difference(&there, &here)?;
        let sighting = Sighting::of_step(FindingKind::SameInput, index, step)
            .with("part", part)
            .with("how", if alternates { "alternating" } else { "once" })
            .with("runBefore", super::pack::unpack_id(&before.bytes(2)?));
        let named = resources.join(", ");
        found.push(if named.is_empty() { sighting } else { sighting.with("resources", named) });
        Ok(())
    }

    fn said(&self, exchange: i64) -> Result<Option<Said>, Error> {
        let sql = "SELECT response, severity FROM exchange WHERE id = $1 AND error IS NULL";
        let Some(row) = self.store.db.first(sql, &[exchange.into()])? else { return Ok(None) };
        let Some(bytes) = row.bytes_or(0)? else { return Ok(None) };
        let (parts, other) = match ResponseList::unpack(&bytes)? {
            List::Blobs { ids, .. } => ([ids[0], ids[1], ids[2], ids[3]], Vec::new()),
            List::Empty | List::Opaque { .. } => ([None; 4], bytes),
        };
        let severity = row.int(1)?;
        let sql = "SELECT type, status, reason FROM condition WHERE exchange = $1 ORDER BY ord";
        let mut conditions = Vec::new();
        for row in self.store.db.query(sql, &[exchange.into()])? {
            conditions.push((row.text(0)?, row.int(1)?, row.text(2)?));
        }
        Ok(Some(Said { parts, other, severity, conditions }))
    }

    /// The first part in which two answers differ, and the resources that do.
    fn first_difference(
        &self,
        before: &Said,
        after: &Said,
    ) -> Result<(&'static str, Vec<String>), Error> {
        if before.parts[0] != after.parts[0] {
            let (was, is) = (self.bodies(before.parts[0])?, self.bodies(after.parts[0])?);
            let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
            let differing = names.into_iter().filter(|name| was.get(*name) != is.get(*name));
            return Ok((PARTS[0], differing.take(5).cloned().collect()));
        }
        let pairs = PARTS.iter().zip(before.parts.iter().zip(&after.parts));
        let part = pairs.filter(|(_, (was, is))| was != is).map(|(part, _)| *part).next();
        let rest =
            if before.conditions == after.conditions { "results" } else { "conditions" };
        Ok((part.unwrap_or(rest), Vec::new()))
    }

    /// Writes down what a run shows, and returns the key of the finding.
    fn note(&mut self, run: &OpenRun, sighting: &Sighting) -> Result<i64, Error> {
        let kind = sighting.kind.name();
        let (index, step, function) = sighting.step.clone().unwrap_or_default();
        let sql = "SELECT id, last, open FROM finding WHERE owner = $1 AND kind = $2 \
            AND COALESCE(slot, 0) = $3 AND COALESCE(path, 0) = $4 AND step = $5 AND idx = $6";
        let params = [
            run.owner.into(),
            kind.into(),
            sighting.slot.unwrap_or_default().into(),
            sighting.path.unwrap_or_default().into(),
            (&step).into(),
            index.into(),
        ];
        let known = self.store.db.first(sql, &params)?;
        let trace = self.store.db.first("SELECT trace FROM run WHERE id = $1", &[run.id.into()])?;
        let trace = trace.map(|row| row.bytes(0)).transpose()?.unwrap_or_default();
        let detail = serde_json::to_string(&sighting.detail).unwrap_or_default();
        if let Some(known) = known {
            let id = known.int(0)?;
            if run.counted.is_some() && known.int(1)? >= run.started {
                // It was counted when the run ended for the first time.
                return Ok(id);
            }
            let sql = "UPDATE finding SET last = $2, last_run = $3, count = count + 1, open = 1, \
                detail = $4 WHERE id = $1";
            let params = [id.into(), run.started.into(), (&trace).into(), (&detail).into()];
            self.store.db.execute(sql, &params)?;
            if known.int(2)? == 0 {
                self.opened(run.owner, id, sighting.kind)?;
            }
            return Ok(id);
        }
        let function = match function.as_str() {
            "" => None,
            function => Some(self.store.word(&mut self.memos, function)?),
        };
        let sql = "INSERT INTO finding (kind, owner, slot, path, function, step, idx, first, last, \
            first_run, last_run, count, open, detail) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $9, 1, 1, $10) RETURNING id";
        let params = [
            kind.into(),
            run.owner.into(),
            sighting.slot.into(),
            sighting.path.into(),
            function.into(),
            (&step).into(),
            index.into(),
            run.started.into(),
            (&trace).into(),
            (&detail).into(),
        ];
        let id = self.store.db.number(sql, &params)?;
        let id = self.store.must(id, "a finding")?;
        self.opened(run.owner, id, sighting.kind)?;
        Ok(id)
    }

    fn opened(&mut self, owner: i64, id: i64, kind: FindingKind) -> Result<(), Error> {
        self.watch.found.push(kind);
        let of_owner = self.open_findings()?.entry(owner).or_default();
        // If they have just been read, it is there already.
        of_owner.retain(|open| open.id != id);
        of_owner.push(Open { id, kind, since: 0 });
        Ok(())
    }

    fn open_findings(&mut self) -> Result<&mut BTreeMap<i64, Vec<Open>>, Error> {
        let read = match self.watch.open.take() {
            Some(open) => open,
            None => {
                let mut open: BTreeMap<i64, Vec<Open>> = BTreeMap::new();
                let sql = "SELECT id, owner, kind FROM finding WHERE open = 1 ORDER BY id";
                for row in self.store.db.query(sql, &[])? {
                    let Some(kind) = FindingKind::of_name(&row.text(2)?) else { continue };
                    open.entry(row.int(1)?).or_default().push(Open {
                        id: row.int(0)?,
                        kind,
                        since: 0,
                    });
                }
                open
            }
        };
        Ok(self.watch.open.insert(read))
    }

    /// Ends the findings of an owner that its runs have not shown for a while.
    fn age(&mut self, owner: i64, same: bool, seen: &[i64]) -> Result<(), Error> {
        let Some(of_owner) = self.open_findings()?.get_mut(&owner) else { return Ok(()) };
        let mut ended = Vec::new();
        of_owner.retain_mut(|open| {
            // What repeats has the size that it had.
            let is_seen = seen.contains(&open.id) || same && open.kind == FindingKind::Size;
            open.since = if is_seen { 0 } else { open.since + 1 };
            if open.since >= PATIENCE {
                ended.push(open.id);
            }
            open.since < PATIENCE
        });
        for id in ended {
            self.store.db.execute("UPDATE finding SET open = 0 WHERE id = $1", &[id.into()])?;
        }
        Ok(())
    }

    /// The lists of blobs of an exchange.
    pub(super) fn lists(
        &self,
        exchange: i64,
    ) -> Result<(Option<RequestList>, Option<ResponseList>), Error> {
        let sql = "SELECT request, response FROM exchange WHERE id = $1";
        let Some(row) = self.store.db.first(sql, &[exchange.into()])? else {
            return Ok((None, None));
        };
        let request = row.bytes_or(0)?.map(|bytes| RequestList::unpack(&bytes)).transpose()?;
        let response = row.bytes_or(1)?.map(|bytes| ResponseList::unpack(&bytes)).transpose()?;
        Ok((request, response))
    }
}

//! Looks at each run that ends for what somebody should know: fields that somebody fights over,
//! answers that differ though nothing else did, requirements that never settle, steps that have
//! become slow, and sizes near a limit.
//!
//! A run that repeats the one before costs nothing but a look at its durations.

mod fights;

use std::collections::{BTreeMap, BTreeSet};

use super::db::{Error, Row};
use super::fields;
use super::ledger::{LastRun, Ledger, OpenRun, OpenStep};
use super::pack::{List, RequestList, ResponseList};
use super::read::StepFlags;
use super::rows::{FindingKind, StateEntry};
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

/// So many answers to the same input are remembered.
const MOST_ANSWERS: usize = 4;

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

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.detail.insert(name, value.into());
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

impl Said {
    /// A text that is the same for the same answer.
    fn key(&self) -> String {
        let parts = self.parts.map(|part| part.unwrap_or_default().to_string());
        let conditions: Vec<String> =
            self.conditions.iter().map(|(kind, status, _)| format!("{kind}={status}")).collect();
        format!("{}/{}/{}", parts.join("."), self.severity, conditions.join(","))
            .replace(char::is_whitespace, "_")
    }
}

/// When a step was given the same before.
struct Before {
    exchange: i64,
    revision: Option<i64>,
    trace: String,
}

impl Before {
    fn of(row: &Row) -> Result<Self, Error> {
        let trace = super::pack::unpack_id(&row.bytes(2)?);
        Ok(Self { exchange: row.int(0)?, revision: row.int_or(1)?, trace })
    }
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
                found.push(
                    sighting
                        .with("tookMicros", took.to_string())
                        .with("medianMicros", median.to_string()),
                );
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
            let sql = "SELECT request_bytes, response_bytes FROM exchange WHERE id = $1";
            let Some(row) = self.store.db.first(sql, &[exchange.into()])? else { continue };
            let (request, response) = (row.int(0)?, row.int(1)?);
            let (what, bytes) =
                if request > response { ("request", request) } else { ("response", response) };
            if bytes >= near(MOST_MESSAGE) {
                let sighting = Sighting::of_step(FindingKind::Size, *index, step);
                let sighting = sighting.with("what", what).with("bytes", bytes.to_string());
                found.push(sighting.with("limit", MOST_MESSAGE.to_string()));
            }
            if bytes >= near(MOST_OBJECT) {
                self.find_large_bodies(exchange, &mut large)?;
            }
            let place = (*index, *iteration, Some(exchange));
            let repeats = last.is_some_and(|last| last.exchanges.contains(&place));
            if !repeats && !step.failed {
                self.find_same_input(run, (*index, *iteration), step, exchange, last, found)?;
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
            let sighting = sighting.with("what", "resource").with("bytes", bytes.to_string());
            found.push(sighting.with("limit", MOST_OBJECT.to_string()));
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
        place: (i64, i64),
        step: &OpenStep,
        exchange: i64,
        last: Option<&LastRun>,
        found: &mut Vec<Sighting>,
    ) -> Result<(), Error> {
        let (index, iteration) = place;
        let before = match self.last_time(run, index, exchange)? {
            Some(before) => Some(before),
            None => self.time_before(place, exchange, last)?,
        };
        let Some(Before { exchange: other, revision, trace }) = before else { return Ok(()) };
        let (Some(there), Some(here)) = (self.said(other)?, self.said(exchange)?) else {
            return Ok(());
        };
        if there == here {
            return Ok(());
        }
        let sql = "SELECT revision FROM step WHERE run = $1 AND idx = $2 AND iteration = $3";
        let own = self.store.db.number(sql, &[run.id.into(), index.into(), iteration.into()])?;
        if own.is_some() && revision.is_some() && own != revision {
            // Another revision of a function may answer something else.
            return Ok(());
        }
        let mut seen = self.answers_seen(run.owner, index, &step.name)?;
        let how = match (seen.is_empty(), seen.contains(&here.key())) {
            (true, _) => "once",
            (false, true) => "alternating",
            (false, false) => "again",
        };
        for key in [there.key(), here.key()] {
            if !seen.contains(&key) {
                seen.push(key);
            }
        }
        let seen = seen.split_off(seen.len().saturating_sub(MOST_ANSWERS));
        let (part, resources) = self.first_difference(&there, &here)?;
        let sighting = Sighting::of_step(FindingKind::SameInput, index, step)
            .with("part", part)
            .with("how", how)
            .with("answers", seen.join(" "))
            .with("runBefore", trace);
        let named = resources.join(", ");
        found.push(if named.is_empty() { sighting } else { sighting.with("resources", named) });
        Ok(())
    }

    /// The last run of an owner in which a step was given exactly the same.
    fn last_time(&self, run: &OpenRun, index: i64, exchange: i64) -> Result<Option<Before>, Error> {
        let sql = "SELECT o.id FROM exchange e JOIN exchange o ON o.input = e.input AND o.id <> e.id \
            WHERE e.id = $1 AND e.request IS NOT NULL AND o.request IS NOT NULL \
            AND o.response IS NOT NULL AND o.error IS NULL ORDER BY o.id LIMIT 20";
        let rows = self.store.db.query(sql, &[exchange.into()])?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut ids = vec![exchange.to_string()];
        for row in &rows {
            ids.push(row.int(0)?.to_string());
        }
        let sql = format!(
            "SELECT s.exchange, s.revision, r.trace FROM run r JOIN step s ON s.run = r.id \
                WHERE r.owner = $1 AND r.id < $2 AND s.idx = $3 AND s.exchange IN ({}) \
                ORDER BY r.started DESC, r.id DESC LIMIT 1",
            ids.join(", ")
        );
        let row = self.store.db.first(&sql, &[run.owner.into(), run.id.into(), index.into()])?;
        row.as_ref().map(Before::of).transpose()
    }

    /// The run before, if a step was given the same in it but for bookkeeping.
    fn time_before(
        &self,
        (index, iteration): (i64, i64),
        exchange: i64,
        last: Option<&LastRun>,
    ) -> Result<Option<Before>, Error> {
        let Some(last) = last else { return Ok(None) };
        let place = last.exchanges.iter().find(|(i, n, _)| (*i, *n) == (index, iteration));
        let Some((_, _, Some(other))) = place else { return Ok(None) };
        if !self.is_same_request(*other, exchange)? {
            return Ok(None);
        }
        let sql = "SELECT s.exchange, s.revision, r.trace FROM run r JOIN step s ON s.run = r.id \
            WHERE r.id = $1 AND s.idx = $2 AND s.iteration = $3";
        let key = [last.run.into(), index.into(), iteration.into()];
        self.store.db.first(sql, &key)?.as_ref().map(Before::of).transpose()
    }

    /// Whether two requests say the same but for bookkeeping. Where something is redacted, that is
    /// not known.
    fn is_same_request(&self, a: i64, b: i64) -> Result<bool, Error> {
        let sql = "SELECT count(*) FROM exchange WHERE id IN ($1, $2) AND redactions = 0 \
            AND error IS NULL";
        if self.store.db.number(sql, &[a.into(), b.into()])? != Some(2) {
            return Ok(false);
        }
        let sql = "SELECT count(*) FROM exchange a JOIN exchange b ON b.function = a.function \
            WHERE a.id = $1 AND b.id = $2";
        if self.store.db.number(sql, &[a.into(), b.into()])? != Some(1) {
            return Ok(false);
        }
        let (Some(List::Blobs { ids: a, .. }), _) = self.lists(a)? else { return Ok(false) };
        let (Some(List::Blobs { ids: b, .. }), _) = self.lists(b)? else { return Ok(false) };
        // The first four are states.
        if a[4..8] != b[4..8] {
            return Ok(false);
        }
        for (a, b) in a.iter().zip(&b).take(4) {
            if !self.is_same_state(*a, *b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_same_state(&self, a: Option<i64>, b: Option<i64>) -> Result<bool, Error> {
        let (a, b) = match (a, b) {
            _ if a == b => return Ok(true),
            (Some(a), Some(b)) => (self.store.state(a)?, self.store.state(b)?),
            _ => return Ok(false),
        };
        if a.len() != b.len() {
            return Ok(false);
        }
        for (a, b) in a.iter().zip(&b) {
            let beside = |entry: &StateEntry| StateEntry { body: None, ..entry.clone() };
            if beside(a) != beside(b) {
                return Ok(false);
            }
            match (a.body, b.body) {
                (a, b) if a == b => {}
                (Some(a), Some(b)) => {
                    let (a, b) = (self.store.body(a)?, self.store.body(b)?);
                    if !fields::differences(&a, &b).is_empty() {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The answers that a finding has seen already.
    fn answers_seen(&self, owner: i64, index: i64, step: &str) -> Result<Vec<String>, Error> {
        let sql = "SELECT detail FROM finding WHERE owner = $1 AND kind = $2 AND step = $3 \
            AND idx = $4";
        let kind = FindingKind::SameInput.name();
        let params = [owner.into(), kind.into(), step.into(), index.into()];
        let Some(row) = self.store.db.first(sql, &params)? else { return Ok(Vec::new()) };
        let detail: BTreeMap<String, String> =
            serde_json::from_str(&row.text(0)?).unwrap_or_default();
        let answers = detail.get("answers").map(String::as_str).unwrap_or_default();
        Ok(answers.split_whitespace().map(str::to_owned).collect())
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
        let rest = if before.conditions == after.conditions { "results" } else { "conditions" };
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
        if self.watch.open.is_none() {
            let mut open: BTreeMap<i64, Vec<Open>> = BTreeMap::new();
            let sql = "SELECT id, owner, kind FROM finding WHERE open = 1 ORDER BY id";
            for row in self.store.db.query(sql, &[])? {
                let Some(kind) = FindingKind::of_name(&row.text(2)?) else { continue };
                let one = Open { id: row.int(0)?, kind, since: 0 };
                open.entry(row.int(1)?).or_default().push(one);
            }
            self.watch.open = Some(open);
        }
        Ok(self.watch.open.get_or_insert_default())
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

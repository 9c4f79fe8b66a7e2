//! Decides when a run has ended and how, and stores what it changed.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::{Identity, links};

use super::db::{Error, int};
use super::fields;
use super::intern::Shape;
use super::ledger::{LastRun, Ledger, OpenRun};
use super::pack::List;
use super::read::StepFlags;
use super::rows::{Outcome, Side};

/// Runs are counted in these.
pub(super) const BUCKET: i64 = 300_000_000;

/// More owners than this are not kept in memory.
const MOST_OWNERS: usize = 16 * 1024;

/// How many steps there are up to one. Indexes come from outside and may be anything.
fn steps_up_to(index: i64) -> usize {
    usize::try_from(index.saturating_add(1)).unwrap_or_default()
}

/// The worst of what the steps say.
fn outcome(run: &OpenRun) -> Outcome {
    let steps = || run.steps.values();
    if steps().any(|step| step.failed) {
        Outcome::Error
    } else if steps().any(|step| step.severity == 1) {
        Outcome::Fatal
    } else if run.flags.gap || run.flags.no_answer || run.flags.no_request {
        Outcome::Incomplete
    } else if steps().any(|step| step.severity == 2) {
        Outcome::Warning
    } else {
        Outcome::Ok
    }
}

impl Ledger {
    /// Whether no more is expected of a run: it failed, or its last step answered and the pipeline
    /// was no longer when it was last seen.
    pub(super) fn is_over(&mut self, run: &OpenRun) -> bool {
        if run.steps.values().any(|step| step.failed || step.severity == 1) {
            return true;
        }
        let pending = StepFlags::NO_ANSWER | StepFlags::NO_REQUEST;
        if run.flags.gap || run.steps.values().any(|step| step.flags.0 & pending != 0) {
            return false;
        }
        let seen = run.steps.keys().map(|(index, _)| index + 1).max().unwrap_or_default();
        let indexes: BTreeSet<&i64> = run.steps.keys().map(|(index, _)| index).collect();
        if int(indexes.len()) != seen {
            return false;
        }
        match self.last_of(run.owner, run.id) {
            Ok(Some(last)) => match self.shape_of(last.pipeline) {
                Ok(shape) => int(shape.steps.len()) <= seen,
                Err(_) => false,
            },
            // It will end all the same, only later.
            Ok(None) | Err(_) => false,
        }
    }

    fn shape_of(&mut self, id: i64) -> Result<Shape, Error> {
        if let Some(shape) = self.shapes.get(&id) {
            return Ok(shape.clone());
        }
        let shape = self.store.shape(id)?;
        if self.shapes.len() >= MOST_OWNERS {
            self.shapes.clear();
        }
        self.shapes.insert(id, shape.clone());
        Ok(shape)
    }

    /// The last run of an owner that was closed, other than this one.
    fn last_of(&mut self, owner: i64, other_than: i64) -> Result<Option<LastRun>, Error> {
        if let Some(last) = self.last.get(&owner)
            && last.run != other_than
        {
            return Ok(Some(last.clone()));
        }
        let sql = "SELECT id, pipeline, outcome FROM run WHERE owner = $1 AND open = 0 \
            AND id <> $2 AND id < $3 ORDER BY started DESC, id DESC LIMIT 1";
        let before = if self.last.contains_key(&owner) { other_than } else { i64::MAX };
        let params = [owner.into(), other_than.into(), before.into()];
        let Some(row) = self.store.db.first(sql, &params)? else { return Ok(None) };
        let run = row.int(0)?;
        let sql =
            "SELECT idx, iteration, exchange FROM step WHERE run = $1 ORDER BY idx, iteration";
        let mut exchanges = Vec::new();
        for row in self.store.db.query(sql, &[run.into()])? {
            exchanges.push((row.int(0)?, row.int(1)?, row.int_or(2)?));
        }
        let seen = exchanges.iter().map(|(index, _, _)| steps_up_to(*index)).max();
        let last = LastRun {
            run,
            pipeline: row.int(1)?,
            outcome: Outcome::from_number(row.int(2)?),
            exchanges,
            seen: seen.unwrap_or_default(),
        };
        Ok(Some(last))
    }

    /// Ends a run. If something comes late, it is opened and closed again.
    pub(super) fn close(&mut self, mut run: OpenRun) -> Result<(), Error> {
        let last = self.last_of(run.owner, run.id)?;
        let seen = run.steps.keys().map(|(index, _)| steps_up_to(*index)).max().unwrap_or_default();
        let has = |flag: i64| run.steps.values().any(|step| step.flags.has(flag));
        let missing = (0..seen).any(|index| {
            let index = int(index);
            run.steps.range((index, 0)..(index + 1, 0)).next().is_none()
        });
        run.flags.no_answer = has(StepFlags::NO_ANSWER);
        run.flags.no_request = has(StepFlags::NO_REQUEST);
        run.flags.gap |= missing;

        let known = match &last {
            Some(last) => Some(self.shape_of(last.pipeline)?),
            None => None,
        };
        let mut shape = run.shape.clone();
        for index in 0..seen {
            let at = int(index);
            let step = run.steps.range((at, 0)..(at + 1, 0)).next();
            let of_known = || known.as_ref().and_then(|known| known.steps.get(index).cloned());
            let step = step.map(|(_, step)| (step.name.clone(), step.function.clone()));
            shape.steps.push(step.or_else(of_known).unwrap_or_default());
        }
        let longer = known.filter(|known| {
            known.steps.len() > seen
                && known.steps.starts_with(&shape.steps)
                && (&known.composition, &known.group, &known.version, &known.kind)
                    == (&shape.composition, &shape.group, &shape.version, &shape.kind)
        });
        let mut pipeline = None;
        if longer.is_some()
            && let Some(last) = &last
        {
            let ended_well = matches!(outcome(&run), Outcome::Ok | Outcome::Warning);
            // Once, the rest may be missing. Twice, the pipeline has become shorter.
            let twice = last.seen == seen && !last.outcome.is_failure();
            if !(ended_well && twice) {
                pipeline = Some(last.pipeline);
                run.flags.gap |= ended_well;
            }
        }
        let outcome = outcome(&run);
        let pipeline = match pipeline {
            Some(pipeline) => pipeline,
            None => self.store.shape_id(&mut self.memos, &shape)?,
        };
        let started = run.steps.values().map(|step| step.started).min().unwrap_or(run.started);
        let end = |step: &super::ledger::OpenStep| {
            step.started.saturating_add(step.took.unwrap_or_default())
        };
        let last_end = run.steps.values().map(end).max();
        let took = last_end.map_or(0, |end| end.saturating_sub(started).max(0));
        let exchanges: Vec<(i64, i64, Option<i64>)> = run
            .steps
            .iter()
            .map(|((index, iteration), step)| (*index, *iteration, step.exchange))
            .collect();
        let same = outcome != Outcome::Incomplete
            && last.as_ref().is_some_and(|last| {
                (&last.exchanges, last.outcome, last.pipeline) == (&exchanges, outcome, pipeline)
            });
        let sql = "UPDATE run SET pipeline = $2, started = $3, took = $4, outcome = $5, open = 0, \
            same = $6, flags = $7 WHERE id = $1";
        let params = [
            run.id.into(),
            pipeline.into(),
            started.into(),
            took.into(),
            (outcome as i64).into(),
            i64::from(same).into(),
            run.flags.number().into(),
        ];
        self.store.db.execute(sql, &params)?;
        if let Some((pipeline, outcome, took)) = run.counted {
            self.count(run.started, pipeline, outcome, took, -1)?;
            for table in ["version", "field"] {
                let sql = format!("DELETE FROM {table} WHERE run = $1");
                self.store.db.execute(&sql, &[run.id.into()])?;
            }
        }
        self.count(started, pipeline, outcome, took, 1)?;
        run.started = started;
        if self.options.failures_only && matches!(outcome, Outcome::Ok | Outcome::Warning) {
            for sql in ["DELETE FROM step WHERE run = $1", "DELETE FROM run WHERE id = $1"] {
                self.store.db.execute(sql, &[run.id.into()])?;
            }
        } else {
            if !same {
                self.write_changes(&run, outcome)?;
            }
            self.look_for_findings(&run, pipeline, same, last.as_ref())?;
        }
        if self.last.len() >= MOST_OWNERS {
            self.last.clear();
        }
        let last = LastRun { run: run.id, pipeline, outcome, exchanges, seen };
        self.last.insert(run.owner, last);
        Ok(())
    }

    fn count(
        &self,
        started: i64,
        pipeline: i64,
        outcome: Outcome,
        took: i64,
        by: i64,
    ) -> Result<(), Error> {
        let sql = "INSERT INTO tally (bucket, pipeline, outcome, runs, took, slowest) \
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (bucket, pipeline, outcome) DO UPDATE SET \
            runs = tally.runs + excluded.runs, took = tally.took + excluded.took, \
            slowest = CASE WHEN tally.slowest < excluded.slowest THEN excluded.slowest \
            ELSE tally.slowest END";
        let bucket = started.div_euclid(BUCKET) * BUCKET;
        let params = [
            bucket.into(),
            pipeline.into(),
            (outcome as i64).into(),
            by.into(),
            (took * by).into(),
            (if by > 0 { took } else { 0 }).into(),
        ];
        self.store.db.execute(sql, &params).map(drop)
    }

    /// Stores the versions, fields, links and needs of a run that is not as the one before.
    fn write_changes(&mut self, run: &OpenRun, outcome: Outcome) -> Result<(), Error> {
        let mut desired = None;
        if matches!(outcome, Outcome::Ok | Outcome::Warning)
            && let Some((_, step)) = run.steps.last_key_value()
            && let Some(exchange) = step.exchange
            && let (_, Some(List::Blobs { ids, .. })) = self.lists(exchange)?
        {
            desired = Some(self.bodies(ids[0])?);
        }
        if let Some(desired) = &desired {
            self.write_versions(run, Side::Desired, desired, None)?;
        }
        let mut observed = None;
        for step in run.steps.values() {
            let Some(exchange) = step.exchange else { continue };
            let (Some(List::Blobs { ids, .. }), _) = self.lists(exchange)? else { continue };
            if observed.is_none() {
                observed = Some(self.bodies(ids[0])?);
            }
            for state in [ids[2], ids[3]].into_iter().flatten() {
                self.write_needs(run, &step.name, state)?;
            }
        }
        match &observed {
            Some(observed) => self.write_versions(run, Side::Observed, observed, desired.as_ref()),
            None => Ok(()),
        }
    }

    /// The bodies of a state by slot.
    pub(super) fn bodies(&self, state: Option<i64>) -> Result<BTreeMap<String, i64>, Error> {
        let entries = match state {
            Some(id) => self.store.state(id)?,
            None => Vec::new(),
        };
        Ok(entries.into_iter().filter_map(|entry| Some((entry.name, entry.body?))).collect())
    }

    fn write_versions(
        &mut self,
        run: &OpenRun,
        side: Side,
        now: &BTreeMap<String, i64>,
        desired: Option<&BTreeMap<String, i64>>,
    ) -> Result<(), Error> {
        let sql = "SELECT s.name, v.blob FROM slot s JOIN version v ON v.slot = s.id \
            AND v.side = $2 WHERE s.owner = $1 AND v.run = (SELECT max(run) FROM version \
            WHERE slot = s.id AND side = $2 AND run < $3)";
        let params = [run.owner.into(), (side as i64).into(), run.id.into()];
        let mut before = BTreeMap::new();
        for row in self.store.db.query(sql, &params)? {
            before.insert(row.text(0)?, row.int_or(1)?);
        }
        for (name, body) in now {
            let old = before.remove(name).flatten();
            if old == Some(*body) {
                continue;
            }
            let slot = self.store.slot_id(&mut self.memos, run.owner, name)?;
            self.write_version(run, slot, side, Some(*body))?;
            let value = self.store.body(*body)?;
            if side == Side::Observed {
                self.link(run, slot, name, &value)?;
            }
            let Some(old) = old else { continue };
            let mut fields = fields::differences(&self.store.body(old)?, &value);
            if side == Side::Observed {
                // Of what is observed, only what somebody wants is of interest.
                let wanted = match desired.and_then(|desired| desired.get(name)) {
                    Some(wanted) => Some(*wanted),
                    None => self.last_desired(slot)?,
                };
                let wanted = match wanted {
                    Some(wanted) => fields::paths(&self.store.body(wanted)?),
                    None => BTreeSet::new(),
                };
                fields.retain(|field| wanted.contains(&field.path));
            }
            for field in fields {
                let path = self.store.word(&mut self.memos, &field.path)?;
                let sql = "INSERT INTO field (slot, side, path, run, before, after) \
                    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (slot, side, path, run) DO NOTHING";
                let params = [
                    slot.into(),
                    (side as i64).into(),
                    path.into(),
                    run.id.into(),
                    field.before.as_ref().into(),
                    field.after.as_ref().into(),
                ];
                self.store.db.execute(sql, &params)?;
            }
        }
        for (name, old) in before {
            if old.is_some() {
                let slot = self.store.slot_id(&mut self.memos, run.owner, &name)?;
                self.write_version(run, slot, side, None)?;
            }
        }
        Ok(())
    }

    pub(super) fn last_desired(&self, slot: i64) -> Result<Option<i64>, Error> {
        let sql = "SELECT blob FROM version WHERE slot = $1 AND side = 1 ORDER BY run DESC LIMIT 1";
        self.store.db.number(sql, &[slot.into()])
    }

    fn write_version(
        &self,
        run: &OpenRun,
        slot: i64,
        side: Side,
        blob: Option<i64>,
    ) -> Result<(), Error> {
        let sql = "INSERT INTO version (slot, side, run, at, blob) VALUES ($1, $2, $3, $4, $5) \
            ON CONFLICT (slot, side, run) DO UPDATE SET blob = excluded.blob";
        let params =
            [slot.into(), (side as i64).into(), run.id.into(), run.started.into(), blob.into()];
        self.store.db.execute(sql, &params).map(drop)
    }

    /// Says which object is in a slot, and what the owner is linked to.
    fn link(
        &mut self,
        run: &OpenRun,
        slot: i64,
        name: &str,
        body: &serde_json::Value,
    ) -> Result<(), Error> {
        let cluster = self.options.cluster.clone();
        let object = if name.is_empty() {
            self.store.set_links(&cluster, run.owner, &links(body), run.started)?;
            run.owner
        } else {
            let identity = Identity::of(body);
            if identity.name.is_empty() {
                return Ok(());
            }
            let object = self.store.object_id(&cluster, &identity, run.started)?;
            let sql = "UPDATE object SET parent = $2 WHERE id = $1";
            self.store.db.execute(sql, &[object.into(), run.owner.into()])?;
            object
        };
        let sql = "UPDATE slot SET object = $2 WHERE id = $1";
        self.store.db.execute(sql, &[slot.into(), object.into()]).map(drop)
    }

    fn write_needs(&mut self, run: &OpenRun, step: &str, state: i64) -> Result<(), Error> {
        let cluster = self.options.cluster.clone();
        for entry in self.store.state(state)? {
            let Some(body) = entry.body else { continue };
            let identity = Identity::of(&self.store.body(body)?);
            if identity.name.is_empty() {
                continue;
            }
            let object = self.store.object_id(&cluster, &identity, run.started)?;
            let step = self.store.word(&mut self.memos, step)?;
            let name = self.store.word(&mut self.memos, &entry.name)?;
            let sql = "INSERT INTO need (owner, step, name, object, run) \
                VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner, step, name, object) \
                DO UPDATE SET run = excluded.run";
            let params = [run.owner.into(), step.into(), name.into(), object.into(), run.id.into()];
            self.store.db.execute(sql, &params)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::steps_up_to;

    #[test]
    fn odd_indexes_are_no_trouble() {
        let counts = [-1, i64::MIN, 0, 4, i64::MAX].map(steps_up_to);
        assert_eq!(counts, [0, 0, 1, 5, usize::try_from(i64::MAX).unwrap()]);
    }
}

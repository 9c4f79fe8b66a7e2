//! Removes what is too old or too much, and folds runs that repeat.
//!
//! Everything is done in slices, so that changes and runs do not wait for it.

use super::db::{Engine, Error};
use super::ledger::Ledger;
use super::{HOUR, schema};

/// How many runs a slice removes.
const RUNS: i64 = 50;

/// How many rows of content a slice removes.
const CONTENT: i64 = 500;

/// How many pages are given back to the disk after a slice.
const PAGES: i64 = 64;

/// The runs of each owner are counted this often.
const COUNT_EVERY: i64 = HOUR / 6;

/// The lock of the one recorder that removes content from a shared store.
const SWEEP_LOCK: i64 = 0x6269_706c_0002;

/// How long things are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Runs that started longer ago are removed. In microseconds.
    pub runs_for: i64,
    /// Changes that were received longer ago are removed. In microseconds.
    pub changes_for: i64,
    /// The oldest runs are removed while the store has more bytes.
    pub size: u64,
    /// The oldest runs of an owner are removed if it has more that changed something, or failed.
    pub per_owner: i64,
}

/// What a slice did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many runs were removed or folded.
    pub runs: u64,
    /// How many changes were removed.
    pub changes: u64,
    /// How many rows of content were removed.
    pub content: u64,
}

impl Swept {
    /// Whether there was something to do, and there may be more.
    pub fn any(&self) -> bool {
        self.runs + self.changes + self.content > 0
    }
}

impl Ledger {
    /// Removes one slice of what need not be kept any longer. Call it again while it does something.
    pub fn sweep(&mut self, retention: &Retention, now: i64) -> Result<Swept, Error> {
        let mut swept = Swept::default();
        let leads = self.atomically(false, |ledger| {
            if !ledger.leads()? {
                return Ok(false);
            }
            swept.runs = ledger.fold_slice(now)?;
            if swept.runs == 0 {
                swept.runs = ledger.remove_runs(retention, now)?;
            }
            Ok(true)
        })?;
        if !leads {
            return Ok(swept);
        }
        // The chain goes on after a removal that is on the disk.
        swept.changes = self.remove_changes(retention, now)?;
        if swept.runs == 0 && swept.changes == 0 {
            swept.content = self.sweep_content(now)?;
        }
        if swept.any() {
            self.give_back()?;
        }
        Ok(swept)
    }

    /// Whether this recorder is the one that removes, until the transaction ends.
    fn leads(&self) -> Result<bool, Error> {
        match self.store.engine() {
            Engine::Sqlite => Ok(true),
            Engine::Postgres => {
                let sql = "SELECT pg_try_advisory_xact_lock($1)";
                Ok(self.store.db.number(sql, &[SWEEP_LOCK.into()])? == Some(1))
            }
        }
    }

    /// Folds the runs of one owner and hour that repeated: the first, the last and the slowest stay.
    fn fold_slice(&mut self, now: i64) -> Result<u64, Error> {
        // Late events may still come for younger ones.
        let before = (now / HOUR - 1) * HOUR;
        let from = self.folded_until()?;
        let sql = "SELECT owner, started / 3600000000 AS hour, count(*) FROM run \
            WHERE started >= $1 AND started < $2 AND same = 1 AND open = 0 \
            GROUP BY owner, started / 3600000000 HAVING count(*) > 3 LIMIT 20";
        let groups = self.store.db.query(sql, &[from.into(), before.into()])?;
        if groups.is_empty() {
            if from < before {
                let text = before.to_string();
                schema::set_meta(&self.store.db, "folded", text.as_bytes())?;
            }
            return Ok(0);
        }
        let mut removed = 0;
        for group in groups {
            removed += self.fold(group.int(0)?, group.int(1)?)?;
        }
        Ok(removed)
    }

    /// Up to here everything is folded.
    fn folded_until(&self) -> Result<i64, Error> {
        let text = schema::meta(&self.store.db, "folded")?;
        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    fn fold(&mut self, owner: i64, hour: i64) -> Result<u64, Error> {
        let sql = "SELECT id, took FROM run WHERE owner = $1 AND started >= $2 AND started < $3 \
            AND same = 1 AND open = 0 ORDER BY started, id";
        let params = [owner.into(), (hour * HOUR).into(), ((hour + 1) * HOUR).into()];
        let mut runs = Vec::new();
        for row in self.store.db.query(sql, &params)? {
            runs.push((row.int(0)?, row.int(1)?));
        }
        let (Some(first), Some(last)) = (runs.first().copied(), runs.last().copied()) else {
            return Ok(0);
        };
        let Some(slowest) = runs.iter().copied().max_by_key(|(id, took)| (*took, -id)) else {
            return Ok(0);
        };
        let kept = [first.0, last.0, slowest.0];
        let gone: Vec<(i64, i64)> = runs.into_iter().filter(|(id, _)| !kept.contains(id)).collect();
        let took = gone.iter().fold(0, |sum: i64, (_, took)| sum.saturating_add(*took));
        let ids: Vec<i64> = gone.iter().map(|(id, _)| *id).collect();
        let sql = "INSERT INTO fold (owner, hour, first, last, slowest, runs, took) \
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (owner, hour) DO UPDATE SET \
            first = excluded.first, last = excluded.last, slowest = excluded.slowest, \
            runs = fold.runs + excluded.runs, took = fold.took + excluded.took";
        let params = [
            owner.into(),
            hour.into(),
            first.0.into(),
            last.0.into(),
            slowest.0.into(),
            ids.len().into(),
            took.into(),
        ];
        self.store.db.execute(sql, &params)?;
        self.delete_runs(&ids)
    }

    fn delete_runs(&mut self, ids: &[i64]) -> Result<u64, Error> {
        for ids in ids.chunks(500) {
            let list: Vec<String> = ids.iter().map(i64::to_string).collect();
            let list = list.join(", ");
            // Nothing of these is cached by the text of the statement, so they are a batch.
            self.store.db.batch(&format!(
                "DELETE FROM step WHERE run IN ({list}); DELETE FROM run WHERE id IN ({list})"
            ))?;
        }
        Ok(ids.len() as u64)
    }

    /// Removes the oldest runs: by age, by the size of the store and by the number of each owner.
    fn remove_runs(&mut self, retention: &Retention, now: i64) -> Result<u64, Error> {
        let until = now - retention.runs_for;
        let sql = format!(
            "SELECT id FROM run WHERE started < $1 AND open = 0 ORDER BY started LIMIT {RUNS}"
        );
        let mut ids = self.ids(&sql, &[until.into()])?;
        if ids.is_empty() && self.store.size()? > retention.size {
            let sql = format!("SELECT id FROM run WHERE open = 0 ORDER BY started LIMIT {RUNS}");
            ids = self.ids(&sql, &[])?;
        }
        if ids.is_empty() && (now - self.counted).abs() >= COUNT_EVERY {
            ids = self.too_many(retention.per_owner)?;
            if ids.is_empty() {
                self.counted = now;
            }
        }
        if ids.is_empty() {
            return Ok(0);
        }
        let list: Vec<String> = ids.iter().map(i64::to_string).collect();
        let sql = format!("SELECT DISTINCT owner FROM run WHERE id IN ({})", list.join(", "));
        let owners = self.ids(&sql, &[])?;
        let removed = self.delete_runs(&ids)?;
        for owner in &owners {
            self.store.mark_forgotten(*owner)?;
        }
        self.forget_owners(&owners)?;
        Ok(removed)
    }

    fn ids(&self, sql: &str, params: &[super::db::Param<'_>]) -> Result<Vec<i64>, Error> {
        self.store.db.query(sql, params)?.iter().map(|row| row.int(0)).collect()
    }

    /// The oldest runs of an owner that has too many. Runs that repeated are folded, and count only
    /// while they wait for it.
    fn too_many(&self, per_owner: i64) -> Result<Vec<i64>, Error> {
        let sql = "SELECT owner, count(*) FROM run WHERE same = 0 AND open = 0 \
            GROUP BY owner HAVING count(*) > $1 LIMIT 1";
        let Some(row) = self.store.db.first(sql, &[per_owner.into()])? else {
            return Ok(Vec::new());
        };
        let owner = row.int(0)?;
        let surplus = row.int(1)? - per_owner;
        let sql = format!(
            "SELECT started FROM run WHERE owner = $1 AND same = 0 AND open = 0 \
                ORDER BY started, id LIMIT 1 OFFSET {}",
            surplus.min(RUNS)
        );
        let Some(first_kept) = self.store.db.number(&sql, &[owner.into()])? else {
            return Ok(Vec::new());
        };
        // What repeated a run that goes has nothing left to repeat.
        let sql = format!(
            "SELECT id FROM run WHERE owner = $1 AND started < $2 AND open = 0 \
                ORDER BY started LIMIT {}",
            RUNS * 4
        );
        self.ids(&sql, &[owner.into(), first_kept.into()])
    }

    /// An owner without runs goes whole. Its name stays: changes or other owners may name it.
    fn forget_owners(&mut self, owners: &[i64]) -> Result<(), Error> {
        let mut any = false;
        for owner in owners {
            let params = [(*owner).into()];
            let sql = "SELECT id FROM run WHERE owner = $1 LIMIT 1";
            if self.store.db.number(sql, &params)?.is_some() {
                continue;
            }
            any = true;
            for sql in [
                "DELETE FROM version WHERE slot IN (SELECT id FROM slot WHERE owner = $1)",
                "DELETE FROM field WHERE slot IN (SELECT id FROM slot WHERE owner = $1)",
                "DELETE FROM slot WHERE owner = $1",
                "DELETE FROM fold WHERE owner = $1",
                "DELETE FROM need WHERE owner = $1",
                "DELETE FROM finding WHERE owner = $1",
            ] {
                self.store.db.execute(sql, &params)?;
            }
        }
        if any {
            // All recorders know slots that are gone.
            self.tell_removals()?;
        }
        Ok(())
    }

    /// Removes the oldest changes of each source, and says in the chain where it goes on.
    fn remove_changes(&mut self, retention: &Retention, now: i64) -> Result<u64, Error> {
        let until = now - retention.changes_for;
        let sql =
            "SELECT source, max(seq), count(*) FROM change WHERE received < $1 GROUP BY source";
        let due = self.store.db.query(sql, &[until.into()])?;
        let mut removed = 0;
        for row in due {
            let source = row.int(0)?;
            removed += self.atomically(true, |ledger| {
                // Those of the source with the smallest numbers that are too old, without a gap.
                let sql = format!(
                    "SELECT seq, received, hash FROM change WHERE source = $1 \
                        ORDER BY seq LIMIT {CONTENT}"
                );
                let rows = ledger.store.db.query(&sql, &[source.into()])?;
                let mut last = None;
                for row in &rows {
                    if row.int(1)? >= until {
                        break;
                    }
                    last = Some((row.int(0)?, row.bytes(2)?));
                }
                let Some((seq, hash)) = last else { return Ok(0) };
                let sql = "DELETE FROM change WHERE source = $1 AND seq <= $2";
                let count = ledger.store.db.execute(sql, &[source.into(), seq.into()])?;
                let sql = "INSERT INTO checkpoint (source, seq, hash, removed, at, reason) \
                    VALUES ($1, $2, $3, $4, $5, 'age') ON CONFLICT (source, seq) DO NOTHING";
                let params = [source.into(), seq.into(), (&hash).into(), count.into(), now.into()];
                ledger.store.db.execute(sql, &params)?;
                Ok(count)
            })?;
        }
        Ok(removed)
    }

    /// Removes content that neither a kept run nor a kept change needs.
    fn sweep_content(&mut self, now: i64) -> Result<u64, Error> {
        // Once an hour is enough, as that is how exactly is known when something was needed.
        let mark = schema::meta(&self.store.db, "swept")?;
        let hour = (now / HOUR).to_string();
        if mark.as_deref() == Some(hour.as_bytes()) {
            return Ok(0);
        }
        let removed = self.atomically(false, |ledger| {
            if !ledger.leads()? {
                return Ok(0);
            }
            let removed = ledger.content_slice(now)?;
            if removed == 0 {
                schema::set_meta(&ledger.store.db, "swept", hour.as_bytes())?;
            }
            Ok(removed)
        })?;
        if removed > 0 {
            // What is gone must not be found again.
            self.memos = super::intern::Memos::default();
            self.store.cache.borrow_mut().clear();
        }
        Ok(removed)
    }

    fn content_slice(&mut self, now: i64) -> Result<u64, Error> {
        let db = &self.store.db;
        // Everything is needed in the hour of its arrival, which may be later than that of its start.
        let oldest = |sql: &str| db.number(sql, &[]).map(|at| at.unwrap_or(now).min(now));
        let run = oldest("SELECT min(started) FROM run")? / HOUR - 1;
        let change = oldest("SELECT min(received) FROM change")? / HOUR - 1;
        let oldest_run = db.number("SELECT min(id) FROM run", &[])?.unwrap_or(i64::MAX);

        // Of the versions before the oldest run, the last is what was there when it began.
        let sql = format!(
            "SELECT v.slot, v.side, v.run FROM version v WHERE v.run < $1 AND EXISTS \
                (SELECT 1 FROM version l WHERE l.slot = v.slot AND l.side = v.side \
                AND l.run > v.run AND l.run <= $1) LIMIT {CONTENT}"
        );
        let old = db.query(&sql, &[oldest_run.into()])?;
        for row in &old {
            let key = [row.int(0)?.into(), row.int(1)?.into(), row.int(2)?.into()];
            let sql = "DELETE FROM version WHERE slot = $1 AND side = $2 AND run = $3";
            db.execute(sql, &key)?;
            let sql = "DELETE FROM field WHERE slot = $1 AND side = $2 AND run = $3";
            db.execute(sql, &key)?;
        }
        if !old.is_empty() {
            return Ok(old.len() as u64);
        }
        let sql = format!("SELECT id FROM exchange WHERE used < $1 ORDER BY used LIMIT {CONTENT}");
        let exchanges = self.ids_in(&sql, &[run.into()])?;
        if exchanges.0 > 0 {
            for table in ["result", "condition"] {
                db.batch(&format!("DELETE FROM {table} WHERE exchange IN ({})", exchanges.1))?;
            }
            db.batch(&format!("DELETE FROM exchange WHERE id IN ({})", exchanges.1))?;
            return Ok(exchanges.0);
        }
        // Bodies of versions are needed as long as the version is there, and so are their bases.
        let sql = "UPDATE blob SET used = $1 WHERE used < $1 AND id IN \
            (SELECT blob FROM version WHERE blob IS NOT NULL)";
        db.execute(sql, &[run.into()])?;
        for _ in 0..2 {
            let sql = "UPDATE blob SET used = $1 WHERE used < $1 AND id IN \
                (SELECT base FROM blob WHERE used >= $1 AND base IS NOT NULL)";
            db.execute(sql, &[run.into()])?;
            let sql = "UPDATE blob SET held = $1 WHERE held < $1 AND id IN \
                (SELECT base FROM blob WHERE held >= $1 AND base IS NOT NULL)";
            db.execute(sql, &[change.into()])?;
        }
        let mut removed = 0;
        for table in ["blob", "message"] {
            let sql = format!(
                "SELECT id FROM {table} WHERE used < $1 AND held < $2 ORDER BY used LIMIT {CONTENT}"
            );
            let (count, list) = self.ids_in(&sql, &[run.into(), change.into()])?;
            if count > 0 {
                db.batch(&format!("DELETE FROM {table} WHERE id IN ({list})"))?;
            }
            removed += count;
        }
        if removed == 0 {
            let before = (run * HOUR).into();
            db.execute("DELETE FROM tally WHERE bucket < $1", &[before])?;
            let before = (run * HOUR).into();
            db.execute("DELETE FROM loss WHERE until < $1", &[before])?;
            let sql = "DELETE FROM fold WHERE hour < $1";
            db.execute(sql, &[run.into()])?;
            return self.sweep_unused(run.min(change), now);
        }
        Ok(removed)
    }

    /// The keys that a query finds: how many, and as a list.
    pub(super) fn ids_in(
        &self,
        sql: &str,
        params: &[super::db::Param<'_>],
    ) -> Result<(u64, String), Error> {
        let ids = self.ids(sql, params)?;
        let list: Vec<String> = ids.iter().map(i64::to_string).collect();
        Ok((ids.len() as u64, list.join(", ")))
    }

    /// Gives free pages back to the disk. A server does it by itself.
    fn give_back(&self) -> Result<(), Error> {
        match self.store.engine() {
            Engine::Sqlite => {
                // Each row of the answer is a page.
                let sql = format!("PRAGMA incremental_vacuum({PAGES})");
                self.store.db.query(&sql, &[]).map(drop)
            }
            Engine::Postgres => Ok(()),
        }
    }
}

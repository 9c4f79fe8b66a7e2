//! Removes the rows that others pointed at, once nobody does: objects, shapes of runs and words.
//!
//! Recorders remember the keys of these rows. A recorder removes some only while no other one is within
//! a transaction, and says so in the store. All of them look there when they begin the next. It does not
//! wait for that: others would wait behind it. There is another time.

use super::db::{Engine, Error};
use super::ledger::Ledger;
use super::postgres::KEYS_LOCK;
use super::{HOUR, schema};

/// How many objects a slice removes.
const OBJECTS: i64 = 500;

/// Shapes and words are few. They are looked at so rarely because everything that is kept is read for
/// it.
const WORDS_EVERY: i64 = 24 * HOUR;

/// Where the store says how often rows were removed, and when words were.
const REMOVALS: &str = "removals";
const WORDS: &str = "words";

/// The columns that have the key of an object.
const OF_OBJECTS: [(&str, &str); 9] = [
    ("run", "owner"),
    ("slot", "owner"),
    ("slot", "object"),
    ("need", "owner"),
    ("need", "object"),
    ("change", "object"),
    ("finding", "owner"),
    ("fold", "owner"),
    ("object", "parent"),
];

/// The columns that have the key of a word.
const OF_WORDS: [(&str, &str); 12] = [
    ("run", "namespace"),
    ("step", "revision"),
    ("exchange", "function"),
    ("result", "reason"),
    ("pipeline", "composition"),
    ("pipeline_step", "step"),
    ("pipeline_step", "function"),
    ("field", "path"),
    ("need", "step"),
    ("need", "name"),
    ("finding", "function"),
    ("finding", "path"),
];

impl Ledger {
    /// Forgets keys if rows were removed since the last transaction, by whichever recorder.
    pub(super) fn see_removals(&mut self) -> Result<(), Error> {
        let removals = schema::meta(&self.store.db, REMOVALS)?;
        if removals != self.removals {
            self.memos = super::intern::Memos::default();
            self.last.clear();
            self.shapes.clear();
            self.removals = removals;
        }
        Ok(())
    }

    /// Removes a slice of what nobody points at and was last seen before an hour.
    pub(super) fn sweep_unused(&mut self, before: i64, now: i64) -> Result<u64, Error> {
        let objects = self.sweep_objects(before)?;
        // There is never more of them to remove after that.
        let words = if objects == 0 { self.sweep_words(now)? } else { 0 };
        if objects + words > 0 {
            self.tell_removals()?;
        }
        Ok(objects)
    }

    /// Lets all recorders forget keys.
    pub(super) fn tell_removals(&mut self) -> Result<(), Error> {
        let count = schema::meta(&self.store.db, REMOVALS)?.unwrap_or_default();
        let count: u64 = String::from_utf8_lossy(&count).parse().unwrap_or_default();
        schema::set_meta(&self.store.db, REMOVALS, (count + 1).to_string().as_bytes())?;
        self.see_removals()
    }

    /// Whether no other recorder is within a transaction. If so, none begins one before this one ends.
    fn is_alone(&self) -> Result<bool, Error> {
        match self.store.engine() {
            Engine::Sqlite => Ok(true),
            Engine::Postgres => {
                let sql =
                    "SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN 1 ELSE 0 END::bigint";
                Ok(self.store.db.number(sql, &[KEYS_LOCK.into()])? == Some(1))
            }
        }
    }

    fn sweep_objects(&self, before: i64) -> Result<u64, Error> {
        let unused = OF_OBJECTS.map(|(table, column)| {
            format!("NOT EXISTS (SELECT 1 FROM {table} t WHERE t.{column} = o.id)")
        });
        let sql = format!(
            "SELECT o.id FROM object o WHERE o.last_seen < $1 AND {} AND o.id NOT IN \
                (SELECT claim FROM object WHERE claim IS NOT NULL) LIMIT {OBJECTS}",
            unused.join(" AND ")
        );
        let params = [(before * HOUR).into()];
        if self.store.db.first(&sql, &params)?.is_none() || !self.is_alone()? {
            return Ok(0);
        }
        let (count, list) = self.ids_in(&sql, &params)?;
        if count > 0 {
            self.store.db.batch(&format!(
                "DELETE FROM label WHERE object IN ({list}); DELETE FROM object WHERE id IN ({list})"
            ))?;
            self.store.forget_marks(&list)?;
        }
        Ok(count)
    }

    fn sweep_words(&mut self, now: i64) -> Result<u64, Error> {
        let db = &self.store.db;
        if !std::mem::take(&mut self.words_are_due) {
            let day = (now / WORDS_EVERY).to_string();
            if schema::meta(db, WORDS)?.as_deref() != Some(day.as_bytes()) {
                // In a transaction of its own: if what follows fails, it is not tried again at once.
                schema::set_meta(db, WORDS, day.as_bytes())?;
                self.words_are_due = true;
            }
            return Ok(0);
        }
        if !self.is_alone()? {
            self.words_are_due = true;
            return Ok(0);
        }
        let unused = "NOT IN (SELECT pipeline FROM run UNION SELECT pipeline FROM tally)";
        db.execute(&format!("DELETE FROM pipeline_step WHERE pipeline {unused}"), &[])?;
        let pipelines = db.execute(&format!("DELETE FROM pipeline WHERE id {unused}"), &[])?;
        let used = OF_WORDS.map(|(table, column)| {
            format!("SELECT {column} FROM {table} WHERE {column} IS NOT NULL")
        });
        let sql = format!("DELETE FROM word WHERE id NOT IN ({})", used.join(" UNION "));
        Ok(pipelines + db.execute(&sql, &[])?)
    }
}

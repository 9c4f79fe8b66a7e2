//! Reads what pages need beside runs and changes: words, owners, news, counts and what was searched.

use super::Store;
use super::db::{Engine, Error, Param, Row};
use super::read::{OBJECT, RUN, RUN_FROM, object, run};
use super::rows::{FieldRow, ObjectRow, RunRow, Side, SlotRow};

/// How many messages, and how many of the last runs that failed or warned, a search looks at.
const SEARCHED_MESSAGES: usize = 200;
const SEARCHED_RUNS: usize = 500;

impl Store {
    /// The text of an interned word.
    pub fn word_text(&self, id: i64) -> Result<Option<String>, Error> {
        let row = self.db.first("SELECT text FROM word WHERE id = $1", &[id.into()])?;
        row.map(|row| row.text(0)).transpose()
    }

    /// The key of an interned word.
    pub fn word_key(&self, text: &str) -> Result<Option<i64>, Error> {
        self.db.number("SELECT id FROM word WHERE text = $1", &[text.into()])
    }

    /// The slot of an owner with this name.
    pub fn slot_named(&self, owner: i64, name: &str) -> Result<Option<SlotRow>, Error> {
        let sql = "SELECT id, owner, name, object FROM slot WHERE owner = $1 AND name = $2";
        let row = self.db.first(sql, &[owner.into(), name.into()])?;
        let slot = |row: Row| {
            Ok(SlotRow {
                id: row.int(0)?,
                owner: row.int(1)?,
                name: row.text(2)?,
                object: row.int_or(3)?,
            })
        };
        row.map(slot).transpose()
    }

    /// The composite resources and Operations that have runs, by key, after one of them.
    pub fn owners(&self, after: i64, limit: usize) -> Result<Vec<ObjectRow>, Error> {
        // One look into the index for each owner, however many runs it has.
        let sql = format!(
            "WITH RECURSIVE n(id, count) AS (SELECT min(owner), 1 FROM run WHERE owner > $1 \
                UNION ALL SELECT (SELECT min(owner) FROM run WHERE owner > n.id), n.count + 1 \
                FROM n WHERE n.id IS NOT NULL AND n.count < {limit}) \
                SELECT {OBJECT} FROM n JOIN object o ON o.id = n.id ORDER BY o.id"
        );
        self.db.query(&sql, &[after.into()])?.iter().map(|row| object(row, 0)).collect()
    }

    /// The Compositions of runs, by name.
    pub fn compositions(&self, limit: usize) -> Result<Vec<(i64, String)>, Error> {
        self.words(&format!(
            "SELECT DISTINCT w.id, w.text FROM pipeline p JOIN word w ON w.id = p.composition \
                ORDER BY w.text LIMIT {limit}"
        ))
    }

    /// The functions of pipelines, by name.
    pub fn functions(&self, limit: usize) -> Result<Vec<(i64, String)>, Error> {
        self.words(&format!(
            "SELECT DISTINCT w.id, w.text FROM pipeline_step s JOIN word w ON w.id = s.function \
                ORDER BY w.text LIMIT {limit}"
        ))
    }

    /// The namespaces of runs, by name.
    pub fn namespaces(&self, limit: usize) -> Result<Vec<(i64, String)>, Error> {
        self.words(&format!(
            "WITH RECURSIVE n(id) AS (SELECT min(namespace) FROM run UNION ALL \
                SELECT (SELECT min(namespace) FROM run WHERE namespace > n.id) \
                FROM n WHERE n.id IS NOT NULL) \
                SELECT w.id, w.text FROM n JOIN word w ON w.id = n.id WHERE w.text <> '' \
                ORDER BY w.text LIMIT {limit}"
        ))
    }

    /// The labels that users gave to composite resources and claims, by key and value.
    pub fn user_labels(&self, limit: usize) -> Result<Vec<(String, String)>, Error> {
        let sql = format!(
            "SELECT DISTINCT key, value FROM label WHERE key NOT LIKE 'crossplane.io/%' \
                ORDER BY key, value LIMIT {limit}"
        );
        let rows = self.db.query(&sql, &[])?;
        rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
    }

    fn words(&self, sql: &str) -> Result<Vec<(i64, String)>, Error> {
        self.db.query(sql, &[])?.iter().map(|row| Ok((row.int(0)?, row.text(1)?))).collect()
    }

    /// The key of the run that was stored last.
    pub fn newest_run(&self) -> Result<Option<i64>, Error> {
        self.db.number("SELECT max(id) FROM run", &[])
    }

    /// When the last run that is kept started.
    pub fn latest_start(&self) -> Result<Option<i64>, Error> {
        self.db.number("SELECT max(started) FROM run", &[])
    }

    /// Runs that were stored after another, in the order in which they were.
    pub fn runs_stored_after(&self, key: i64, limit: usize) -> Result<Vec<RunRow>, Error> {
        let sql = format!("{RUN}, {OBJECT} {RUN_FROM} WHERE r.id > $1 ORDER BY r.id LIMIT {limit}");
        self.db.query(&sql, &[key.into()])?.iter().map(run).collect()
    }

    /// How many kept runs that started from one time until another did not repeat the run before.
    pub fn changed_runs(&self, since: i64, until: i64) -> Result<i64, Error> {
        let sql = "SELECT count(*) FROM run WHERE same = 0 AND started >= $1 AND started < $2";
        Ok(self.db.number(sql, &[since.into(), until.into()])?.unwrap_or_default())
    }

    /// Whether there is a change log entry.
    pub fn has_changes(&self) -> Result<bool, Error> {
        Ok(self.db.number("SELECT min(id) FROM change", &[])?.is_some())
    }

    /// Objects whose name begins so, by name.
    pub fn objects_named(&self, prefix: &str, limit: usize) -> Result<Vec<ObjectRow>, Error> {
        // No name has a character after this one. PostgreSQL may order texts as people do, not by
        // their characters.
        let end = format!("{prefix}\u{10ffff}");
        let (condition, params) = match self.engine() {
            Engine::Sqlite => {
                ("o.name >= $1 AND o.name < $2", vec![Param::from(prefix), Param::from(&end)])
            }
            Engine::Postgres => ("starts_with(o.name, $1)", vec![Param::from(prefix)]),
        };
        let sql = format!(
            "SELECT {OBJECT} FROM object o WHERE {condition} \
                ORDER BY o.name, o.kind, o.id LIMIT {limit}"
        );
        self.db.query(&sql, &params)?.iter().map(|row| object(row, 0)).collect()
    }

    /// The last runs whose results or errors have all of these words, among those that failed or
    /// warned last.
    pub fn runs_that_say(&self, words: &str, limit: usize) -> Result<Vec<RunRow>, Error> {
        let words = self.search_words(words);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.message_condition().replace('?', "$1");
        let sql = format!(
            "SELECT id FROM message WHERE id IN ({found}) ORDER BY id DESC LIMIT {SEARCHED_MESSAGES}"
        );
        let rows = self.db.query(&sql, &[(&words).into()])?;
        let ids: Vec<String> =
            rows.iter().map(|row| row.int(0).map(|id| id.to_string())).collect::<Result<_, _>>()?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids = ids.join(", ");
        let sql = format!(
            "{RUN}, {OBJECT} {RUN_FROM} WHERE r.id IN (SELECT id FROM run WHERE outcome > 1 \
                ORDER BY started DESC LIMIT {SEARCHED_RUNS}) \
                AND EXISTS (SELECT 1 FROM step s JOIN exchange e ON e.id = s.exchange \
                LEFT JOIN result x ON x.exchange = e.id \
                WHERE s.run = r.id AND (e.error IN ({ids}) OR x.message IN ({ids}))) \
                ORDER BY r.started DESC, r.id DESC LIMIT {limit}"
        );
        self.db.query(&sql, &[])?.iter().map(run).collect()
    }

    /// The last changes of a field path, on the side of what is desired.
    pub fn fields_at(&self, path: &str, limit: usize) -> Result<Vec<FieldRow>, Error> {
        let sql = format!(
            "SELECT f.slot, f.side, f.run, f.before, f.after FROM field f \
                WHERE f.path = (SELECT id FROM word WHERE text = $1) AND f.side = 1 \
                ORDER BY f.run DESC, f.slot LIMIT {limit}"
        );
        let field = |row: &Row| {
            Ok(FieldRow {
                slot: row.int(0)?,
                side: Side::from_number(row.int(1)?),
                path: path.to_owned(),
                run: row.int(2)?,
                before: row.text_or(3)?,
                after: row.text_or(4)?,
            })
        };
        self.db.query(&sql, &[path.into()])?.iter().map(field).collect()
    }
}

//! The two databases behind one small interface: statements with `$1`, and rows of plain cells.
//!
//! Statements are written once. Nothing here knows what is stored.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Instant;

use super::postgres::Postgres;
pub(super) use super::sql::{Engine, Error, Param, Row, int};
use super::sqlite::Sqlite;

/// A connection to one of the two.
#[derive(Debug)]
enum Connection {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// What may still be read for somebody who asks.
#[derive(Debug)]
struct Limits {
    until: Instant,
    bytes: usize,
    /// What was counted already. Reading it again costs nothing.
    counted: BTreeSet<i64>,
}

/// A connection, and what may be read over it.
#[derive(Debug)]
pub(super) struct Db {
    connection: Connection,
    limits: RefCell<Option<Limits>>,
}

impl Db {
    pub(super) fn sqlite(sqlite: Sqlite) -> Self {
        Self { connection: Connection::Sqlite(sqlite), limits: RefCell::default() }
    }

    pub(super) fn postgres(postgres: Postgres) -> Self {
        Self { connection: Connection::Postgres(postgres), limits: RefCell::default() }
    }

    /// Limits what is read from now on. Statements after this time fail, and so does reading more
    /// content than this.
    pub(super) fn limit(&self, until: Instant, bytes: usize) {
        let counted = BTreeSet::new();
        *self.limits.borrow_mut() = Some(Limits { until, bytes, counted });
        match &self.connection {
            Connection::Sqlite(db) => db.limit(until),
            Connection::Postgres(db) => db.limit(until),
        }
    }

    /// Lets the statements of the transaction that was begun take long.
    pub(super) fn be_patient(&self) -> Result<(), Error> {
        match &self.connection {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(db) => db.be_patient(),
        }
    }

    /// Counts content that is read.
    pub(super) fn spend(&self, id: i64, size: usize) -> Result<(), Error> {
        let mut limits = self.limits.borrow_mut();
        let Some(limits) = limits.as_mut() else { return Ok(()) };
        if !limits.counted.insert(id) {
            return Ok(());
        }
        let left = limits.bytes.checked_sub(size);
        limits.bytes = left.ok_or(Error::TooMuch("the answer is too large"))?;
        Ok(())
    }

    fn check_time(&self) -> Result<(), Error> {
        match self.limits.borrow().as_ref() {
            Some(limits) if Instant::now() >= limits.until => {
                Err(Error::TooMuch("the answer takes too long"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn engine(&self) -> Engine {
        match self.connection {
            Connection::Sqlite(_) => Engine::Sqlite,
            Connection::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs a statement and returns how many rows it changed.
    pub(super) fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        match &self.connection {
            Connection::Sqlite(db) => db.execute(sql, params),
            Connection::Postgres(db) => db.execute(sql, params),
        }
    }

    /// Runs a statement and returns its rows.
    pub(super) fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        self.check_time()?;
        match &self.connection {
            Connection::Sqlite(db) => db.query(sql, params),
            Connection::Postgres(db) => db.query(sql, params),
        }
    }

    /// The first row of an answer.
    pub(super) fn first(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// The first number of an answer. Nothing if there is no row or no number.
    pub(super) fn number(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<i64>, Error> {
        self.first(sql, params)?.map_or(Ok(None), |row| row.int_or(0))
    }

    /// Runs statements without values.
    pub(super) fn batch(&self, sql: &str) -> Result<(), Error> {
        match &self.connection {
            Connection::Sqlite(db) => db.batch(sql),
            Connection::Postgres(db) => db.batch(sql),
        }
    }

    /// Begins a transaction. What is durable is on the disk when it is committed.
    pub(super) fn begin(&self, durable: bool) -> Result<(), Error> {
        match &self.connection {
            Connection::Sqlite(db) => db.begin(durable),
            Connection::Postgres(db) => db.begin(durable),
        }
    }

    /// Runs all of it or nothing. What is durable is on the disk when this returns.
    pub(super) fn transaction<T>(
        &self,
        durable: bool,
        run: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.begin(durable)?;
        match run(self) {
            Ok(done) => match self.batch("COMMIT") {
                Ok(()) => Ok(done),
                Err(error) => {
                    self.roll_back();
                    Err(error)
                }
            },
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    /// Reads everything as it is at one moment, whatever is written meanwhile.
    pub(super) fn snapshot<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.batch(match self.engine() {
            Engine::Sqlite => "BEGIN",
            Engine::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        })?;
        let done = read(self);
        self.roll_back();
        done
    }

    /// Undoes what was begun. There may be nothing to undo.
    pub(super) fn roll_back(&self) {
        if let Err(error) = self.batch("ROLLBACK") {
            tracing::debug!(%error, "cannot roll back");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_statement_that_never_ends_is_ended() {
        let db = Db::sqlite(Sqlite::in_memory(1 << 20).unwrap());
        db.limit(Instant::now() + Duration::from_millis(20), 100);
        let sql = "WITH RECURSIVE all_of (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM all_of) \
            SELECT count(*) FROM all_of";
        let error = db.query(sql, &[]).unwrap_err();
        assert!(matches!(error, Error::TooMuch(_)), "{error}");
    }
}

//! The two databases behind one small interface: statements with `$1`, and rows of plain cells.
//!
//! Statements are written once. Nothing here knows what is stored.

use super::postgres::Postgres;
pub(super) use super::sql::{Engine, Error, Param, Row, int};
use super::sqlite::Sqlite;

/// A connection to one of the two.
#[derive(Debug)]
pub(super) enum Db {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Db {
    pub(super) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs a statement and returns how many rows it changed.
    pub(super) fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        match self {
            Self::Sqlite(db) => db.execute(sql, params),
            Self::Postgres(db) => db.execute(sql, params),
        }
    }

    /// Runs a statement and returns its rows.
    pub(super) fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        match self {
            Self::Sqlite(db) => db.query(sql, params),
            Self::Postgres(db) => db.query(sql, params),
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
        match self {
            Self::Sqlite(db) => db.batch(sql),
            Self::Postgres(db) => db.batch(sql),
        }
    }

    /// Begins a transaction. What is durable is on the disk when it is committed.
    pub(super) fn begin(&self, durable: bool) -> Result<(), Error> {
        match self {
            Self::Sqlite(db) => db.begin(durable),
            Self::Postgres(db) => db.begin(durable),
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

    /// Undoes what was begun. There may be nothing to undo.
    pub(super) fn roll_back(&self) {
        if let Err(error) = self.batch("ROLLBACK") {
            tracing::debug!(%error, "cannot roll back");
        }
    }
}

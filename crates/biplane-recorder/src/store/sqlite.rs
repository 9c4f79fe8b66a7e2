//! A store in a file, with SQLite.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use super::sql::{Cell, Error, Param, Row};

/// How long a statement waits for another program that writes. Who has more patience tries again.
const PATIENCE: Duration = Duration::from_secs(3);

/// A statement looks this often whether it takes too long: after so many of SQLite's instructions.
const LOOK: i32 = 10_000;

/// Statements that are kept prepared.
const STATEMENTS: usize = 128;

/// A connection to a file.
#[derive(Debug)]
pub(super) struct Sqlite(Connection, Arc<Deadline>);

/// When the statements of a connection are to end.
#[derive(Debug)]
struct Deadline {
    begun: Instant,
    /// Microseconds after that. Zero: never.
    micros: AtomicU64,
}

impl Deadline {
    fn is_over(&self) -> bool {
        let micros = self.micros.load(Ordering::Relaxed);
        micros != 0 && self.begun.elapsed() >= Duration::from_micros(micros)
    }
}

impl Sqlite {
    /// Opens a file to write, and makes it if there is none.
    pub(super) fn open(path: &Path, cache: usize) -> Result<Self, Error> {
        private(path);
        let connection = Connection::open(path).map_err(failed)?;
        let db = Self::with(connection, cache)?;
        // A file that has tables keeps its own setting.
        db.batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;")?;
        db.batch("PRAGMA journal_size_limit = 8388608; PRAGMA wal_autocheckpoint = 1000;")?;
        Ok(db)
    }

    /// A database without a file.
    pub(super) fn in_memory(cache: usize) -> Result<Self, Error> {
        Self::with(Connection::open_in_memory().map_err(failed)?, cache)
    }

    /// Opens a file to read. Somebody may write it at the same time.
    pub(super) fn read(path: &Path, cache: usize) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::Missing(path.display().to_string()));
        }
        // Reading a file in this mode needs its index in shared memory, which must be writable.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        let db = Self::with(connection, cache)?;
        db.batch("PRAGMA query_only = ON")?;
        Ok(db)
    }

    fn with(mut connection: Connection, cache: usize) -> Result<Self, Error> {
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let deadline = Arc::new(Deadline { begun: Instant::now(), micros: AtomicU64::new(0) });
        let watched = Arc::clone(&deadline);
        connection.progress_handler(LOOK, Some(move || watched.is_over())).map_err(failed)?;
        let db = Self(connection, deadline);
        db.batch(&format!("PRAGMA cache_size = -{}; PRAGMA temp_store = MEMORY;", cache / 1024))?;
        Ok(db)
    }

    /// Statements that go on at this time fail.
    pub(super) fn limit(&self, until: Instant) {
        let after = until.saturating_duration_since(self.1.begun).as_micros();
        self.1.micros.store(u64::try_from(after).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
    }

    pub(super) fn begin(&self, durable: bool) -> Result<(), Error> {
        self.batch(if durable {
            "PRAGMA synchronous = FULL; BEGIN IMMEDIATE"
        } else {
            "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE"
        })
    }

    pub(super) fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        let mut statement = self.0.prepare_cached(&numbered(sql)).map_err(failed)?;
        let changed = statement.execute(params_from_iter(params)).map_err(failed)?;
        Ok(changed as u64)
    }

    pub(super) fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let mut statement = self.0.prepare_cached(&numbered(sql)).map_err(failed)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(params)).map_err(failed)?;
        let mut answer = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let cell = |at| row.get_ref(at).map_err(failed).and_then(cell);
            answer.push(Row((0..columns).map(cell).collect::<Result<_, _>>()?));
        }
        Ok(answer)
    }

    pub(super) fn batch(&self, sql: &str) -> Result<(), Error> {
        self.0.execute_batch(sql).map_err(failed)
    }
}

/// Makes a file that is not there, for nobody else to read. SQLite reports what does not work.
fn private(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let _ = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
}

/// SQLite writes `?1` for what PostgreSQL writes `$1`. No statement has a `$` elsewhere.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

fn cell(value: ValueRef<'_>) -> Result<Cell, Error> {
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map(str::to_owned);
        text.map_err(|_| Error::Damaged("a text is not UTF-8".to_owned()))
    };
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Text(value) => Cell::Text(text(value)?),
        ValueRef::Blob(value) => Cell::Bytes(value.to_owned()),
        ValueRef::Real(value) => {
            return Err(Error::Damaged(format!("{value} is not a whole number")));
        }
    })
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

/// Writing and growing a file fail in these ways when the disk is full.
const NO_ROOM: [i32; 2] = [rusqlite::ffi::SQLITE_IOERR_WRITE, rusqlite::ffi::SQLITE_IOERR_SHMSIZE];

#[allow(clippy::needless_pass_by_value)] // `map_err` hands it over
fn failed(error: rusqlite::Error) -> Error {
    let text = error.to_string();
    match error.sqlite_error() {
        Some(code) if NO_ROOM.contains(&code.extended_code) => Error::Full(text),
        Some(code) => match code.code {
            ErrorCode::DiskFull => Error::Full(text),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Busy(text),
            ErrorCode::OperationInterrupted => Error::TooMuch("the answer takes too long"),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::Damaged(text),
            _ => Error::Failed(text),
        },
        None => Error::Failed(text),
    }
}

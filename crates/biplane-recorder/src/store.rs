//! Keeps runs and changes: in a file (SQLite), or on a server that several recorders may share
//! (PostgreSQL).
//!
//! Nothing here is asynchronous. Call it from a thread of its own.

mod append;
mod blob;
mod chain;
mod changes;
mod close;
mod db;
mod fields;
mod findings;
mod intern;
mod ledger;
mod link;
mod managers;
mod pack;
mod postgres;
mod read;
mod read_changes;
mod read_exchanges;
mod read_findings;
mod read_objects;
mod read_pages;
mod read_states;
mod retain;
pub mod rows;
mod schema;
mod sql;
mod sqlite;
mod unused;
mod watch;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

pub use chain::{Broken, Verified};
pub use changes::ChangeRecord;
pub use ledger::{
    Applied, HalfRecord, Ledger, MOST_OPEN, Options as LedgerOptions, Owner, SILENCE, Unusable,
};
pub use managers::managers_of;
pub use pack::hex;
pub use read_states::StateOf;
pub use retain::{Retention, Swept};
pub use schema::VERSION;
pub use sql::{Engine, Error};

use blob::Cache;
use db::Db;
use postgres::Postgres;
use sqlite::Sqlite;

/// Microseconds of an hour.
pub const HOUR: i64 = 3_600_000_000;

/// The most memory that a connection uses for pages, and for the content of blobs.
const PAGES: usize = 8 * 1024 * 1024;
const BLOBS: usize = 2 * 1024 * 1024;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file.
    File(PathBuf),
    /// A connection string of PostgreSQL.
    Server(String),
    /// The memory of this process. It ends with the connection.
    Memory,
}

impl Location {
    /// Reads what a flag has: `postgres://…` or `postgresql://…` is a server, all else a path.
    pub fn parse(text: &str) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Self::Server(text.to_owned())
        } else {
            Self::File(text.into())
        }
    }

    /// The path of a file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server(_) | Self::Memory => None,
        }
    }
}

impl std::fmt::Display for Location {
    /// A server is shown without its password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Memory => f.write_str("memory"),
            Self::Server(text) => match text
                .split_once("://")
                .and_then(|(scheme, rest)| rest.rsplit_once('@').map(|(_, host)| (scheme, host)))
            {
                Some((scheme, host)) => write!(f, "{scheme}://{}", without_query(host)),
                None => f.write_str(without_query(text)),
            },
        }
    }
}

/// A query may have a password.
fn without_query(text: &str) -> &str {
    text.split_once('?').map_or(text, |(address, _)| address)
}

/// A connection to a store. It reads; a [`Ledger`] also writes.
#[derive(Debug)]
pub struct Store {
    db: Db,
    location: Location,
    cache: RefCell<Cache>,
}

impl Store {
    /// Opens a store to write. If there is none it is made, with this id, which must be random. An
    /// older one is brought up to date.
    pub fn open(location: &Location, id: &[u8; 16]) -> Result<Self, Error> {
        let db = match location {
            Location::File(path) => Db::sqlite(Sqlite::open(path, PAGES)?),
            Location::Server(text) => Db::postgres(Postgres::connect(text)?),
            Location::Memory => Db::sqlite(Sqlite::in_memory(PAGES)?),
        };
        schema::migrate(&db, id)?;
        Ok(Self::with(db, location))
    }

    /// Opens a store to read.
    pub fn open_existing(location: &Location) -> Result<Self, Error> {
        let db = match location {
            Location::File(path) => Db::sqlite(Sqlite::read(path, BLOBS)?),
            Location::Server(text) => Db::postgres(Postgres::connect(text)?),
            Location::Memory => return Err(Error::Missing(location.to_string())),
        };
        let tables = match db.engine() {
            Engine::Sqlite => "SELECT count(*) FROM sqlite_master WHERE name = 'meta'",
            Engine::Postgres => {
                "SELECT count(*) FROM pg_tables WHERE tablename = 'meta' \
                    AND schemaname = ANY (current_schemas(false))"
            }
        };
        if db.number(tables, &[])?.unwrap_or_default() == 0 {
            return Err(Error::Missing(location.to_string()));
        }
        let found = schema::version(&db)?.unwrap_or_default();
        if found > VERSION {
            return Err(Error::Newer { found, known: VERSION });
        }
        if found < VERSION {
            return Err(Error::Older { found });
        }
        Ok(Self::with(db, location))
    }

    fn with(db: Db, location: &Location) -> Self {
        Self { db, location: location.clone(), cache: RefCell::new(Cache::new(BLOBS)) }
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Limits what is read from now on for somebody who asks: until when, and how many bytes of
    /// content.
    pub fn limit(&self, until: std::time::Instant, bytes: usize) {
        self.db.limit(until, bytes);
    }

    /// Which database it is.
    pub fn engine(&self) -> Engine {
        self.db.engine()
    }

    /// The id of the store, which never changes.
    pub fn id(&self) -> Result<Vec<u8>, Error> {
        let id = schema::meta(&self.db, "store")?;
        id.ok_or_else(|| Error::Damaged("the store has no id".to_owned()))
    }

    /// How many bytes it takes, without what is free for reuse.
    pub fn size(&self) -> Result<u64, Error> {
        let sql = match self.engine() {
            Engine::Sqlite => {
                "SELECT (p.page_count - f.freelist_count) * s.page_size \
                    FROM pragma_page_count() p, pragma_freelist_count() f, pragma_page_size() s"
            }
            Engine::Postgres => "SELECT pg_database_size(current_database())",
        };
        Ok(u64::try_from(self.db.number(sql, &[])?.unwrap_or_default()).unwrap_or_default())
    }
}

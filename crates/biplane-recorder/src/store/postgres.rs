//! A store on a server, with PostgreSQL.

mod tls;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::{Duration, Instant};

use tokio::runtime::{self, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Client, Config, Statement};

use super::sql::{Cell as Value, Error, Param, Row};

/// How long connecting may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a statement may take, and one that changes the tables.
const STATEMENT: Duration = Duration::from_mins(1);
const MIGRATION: Duration = Duration::from_hours(6);

/// A server that has not answered for so much longer is gone.
const GRACE: Duration = Duration::from_secs(5);

/// When a server that says nothing is asked whether it is there, how often, and when it is gone.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(3), 3);
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

/// The lock that every transaction of a recorder shares, but for one that removes rows whose keys
/// others remember.
pub(super) const KEYS_LOCK: i64 = 0x6269_706c_0004;

/// What every connection asks of the server: not to wait long for others, and to end what a recorder
/// began that is gone.
const SETTINGS: &str = "SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '30s'";

/// A connection to a server. It has a runtime of its own, so it must not be used where another
/// runtime is.
pub(super) struct Postgres {
    client: Client,
    statements: RefCell<BTreeMap<String, Statement>>,
    /// How long a statement may take.
    limit: Cell<Duration>,
    /// No answer came in time. Whatever comes now belongs to another statement.
    is_lost: Cell<bool>,
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Postgres {
    /// Connects to the server that a connection string names.
    pub(super) fn connect(location: &str) -> Result<Self, Error> {
        let (location, roots) = tls::roots_of(location);
        let mut config: Config = location.parse().map_err(failed)?;
        if config.get_application_name().is_none() {
            config.application_name("biplane recorder");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        if !location.contains("keepalives") {
            let (idle, interval, retries) = KEEPALIVE;
            config.keepalives_idle(idle).keepalives_interval(interval).keepalives_retries(retries);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNACKNOWLEDGED);
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Failed(error.to_string()))?;
        let tls = tls::Connector::new(&config, roots.as_deref())?;
        let connected = runtime.block_on(async {
            // Also if it listens and says nothing.
            tokio::time::timeout(PATIENCE + GRACE, config.connect(tls)).await
        });
        let silent = |_| Error::Disconnected("the server does not answer".to_owned());
        let (client, connection) = connected.map_err(silent)?.map_err(failed)?;
        runtime.spawn(async move {
            // The next statement says that the connection is gone.
            if let Err(error) = connection.await {
                tracing::debug!(error = %text(&error), "the connection to PostgreSQL ended");
            }
        });
        let db = Self {
            client,
            statements: RefCell::default(),
            limit: Cell::new(STATEMENT),
            is_lost: Cell::new(false),
            runtime: Some(runtime),
        };
        db.batch(SETTINGS)?;
        db.batch(&format!("SET statement_timeout = {}", STATEMENT.as_millis()))?;
        Ok(db)
    }

    /// Statements that go on at this time fail.
    pub(super) fn limit(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        // If the server does not take it, the next statement says why.
        let set = self.batch(&format!("SET statement_timeout = {}", left.as_millis()));
        if let Err(error) = set {
            tracing::debug!(%error, "cannot limit statements");
        }
        self.limit.set(left);
    }

    /// Lets the statements of the transaction that was begun take long.
    pub(super) fn be_patient(&self) -> Result<(), Error> {
        self.limit.set(MIGRATION);
        let patience = MIGRATION.as_millis();
        self.batch(&format!(
            "SET LOCAL statement_timeout = {patience}; SET LOCAL lock_timeout = {patience}"
        ))
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let Some(runtime) = self.runtime.as_ref().filter(|_| !self.is_lost.get()) else {
            return Err(Error::Disconnected("the connection is closed".to_owned()));
        };
        let patience = self.limit.get() + GRACE;
        runtime.block_on(async {
            tokio::time::timeout(patience, work).await.unwrap_or_else(|_| {
                self.is_lost.set(true);
                Err(Error::Disconnected("the server does not answer".to_owned()))
            })
        })
    }

    pub(super) fn begin(&self, durable: bool) -> Result<(), Error> {
        if self.limit.get() == MIGRATION {
            self.limit.set(STATEMENT);
        }
        let commit = if durable { "on" } else { "off" };
        let begun = self.batch(&format!(
            "BEGIN; SET LOCAL synchronous_commit = {commit}; \
                SELECT pg_advisory_xact_lock_shared({KEYS_LOCK})"
        ));
        if begun.is_err() {
            // The lock may not have been given. What began must not go on as a transaction that failed.
            let _ = self.batch("ROLLBACK");
        }
        begun
    }

    async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        let known = self.statements.borrow().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await.map_err(failed)?;
        self.statements.borrow_mut().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        self.wait(async {
            let statement = self.prepared(sql).await?;
            self.client.execute(&statement, &borrowed(params)).await.map_err(failed)
        })
    }

    pub(super) fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let rows = self.wait(async {
            let statement = self.prepared(sql).await?;
            self.client.query(&statement, &borrowed(params)).await.map_err(failed)
        })?;
        rows.iter().map(row).collect()
    }

    pub(super) fn batch(&self, sql: &str) -> Result<(), Error> {
        self.wait(async { self.client.batch_execute(sql).await.map_err(failed) })
    }
}

fn borrowed<'a>(params: &'a [Param<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

fn row(row: &tokio_postgres::Row) -> Result<Row, Error> {
    let cell = |(at, column): (usize, &tokio_postgres::Column)| {
        Ok(match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(at).map_err(failed)?.map(Value::Int),
            Type::INT4 => {
                let value = row.try_get::<_, Option<i32>>(at).map_err(failed)?;
                value.map(|value| Value::Int(value.into()))
            }
            Type::BOOL => {
                let value = row.try_get::<_, Option<bool>>(at).map_err(failed)?;
                value.map(|value| Value::Int(value.into()))
            }
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at).map_err(failed)?.map(Value::Bytes),
            Type::VOID => None,
            _ => row.try_get::<_, Option<String>>(at).map_err(failed)?.map(Value::Text),
        }
        .unwrap_or(Value::Null))
    };
    row.columns().iter().enumerate().map(cell).collect::<Result<_, _>>().map(Row)
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(value) if *kind == Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
            Self::Int(value) => value.to_sql(kind, out),
            // There are no texts with this character.
            Self::Text(value) if value.contains('\0') => {
                value.replace('\0', "\u{fffd}").to_sql(kind, out)
            }
            Self::Text(value) => value.to_sql(kind, out),
            Self::Bytes(value) => value.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// The whole text of an error.
fn text(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[allow(clippy::needless_pass_by_value)] // `map_err` hands it over
fn failed(error: tokio_postgres::Error) -> Error {
    let text = text(&error);
    if error.is_closed() {
        return Error::Disconnected(text);
    }
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => Error::Full(text),
        Some(code)
            if [
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::LOCK_NOT_AVAILABLE,
                SqlState::T_R_SERIALIZATION_FAILURE,
            ]
            .contains(code) =>
        {
            Error::Busy(text)
        }
        // The server ends, or the connection.
        Some(code)
            if code.code().starts_with("57P")
                || code.code().starts_with("08")
                || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT =>
        {
            Error::Disconnected(text)
        }
        Some(code) if *code == SqlState::QUERY_CANCELED => {
            Error::TooMuch("the answer takes too long")
        }
        Some(_) => Error::Failed(text),
        // Nobody answered.
        None => Error::Disconnected(text),
    }
}

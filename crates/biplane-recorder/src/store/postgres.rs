//! A store on a server, with PostgreSQL.

mod tls;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::Duration;

use tokio::runtime::{self, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Client, Config, Statement};

use super::sql::{Cell, Error, Param, Row};

/// How long connecting may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a server. It has a runtime of its own, so it must not be used where another
/// runtime is.
pub(super) struct Postgres {
    client: Client,
    statements: RefCell<BTreeMap<String, Statement>>,
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
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Failed(error.to_string()))?;
        let tls = tls::Connector::new(&config, roots.as_deref())?;
        let (client, connection) = runtime.block_on(config.connect(tls)).map_err(failed)?;
        runtime.spawn(async move {
            // The next statement says that the connection is gone.
            if let Err(error) = connection.await {
                tracing::debug!(error = %text(&error), "the connection to PostgreSQL ended");
            }
        });
        Ok(Self { client, statements: RefCell::default(), runtime: Some(runtime) })
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => Err(Error::Disconnected("the connection is closed".to_owned())),
        }
    }

    pub(super) fn begin(&self, durable: bool) -> Result<(), Error> {
        self.batch(if durable {
            "BEGIN; SET LOCAL synchronous_commit = on"
        } else {
            "BEGIN; SET LOCAL synchronous_commit = off"
        })
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
            Type::INT8 => row.try_get::<_, Option<i64>>(at).map_err(failed)?.map(Cell::Int),
            Type::INT4 => {
                let value = row.try_get::<_, Option<i32>>(at).map_err(failed)?;
                value.map(|value| Cell::Int(value.into()))
            }
            Type::BOOL => {
                let value = row.try_get::<_, Option<bool>>(at).map_err(failed)?;
                value.map(|value| Cell::Int(value.into()))
            }
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at).map_err(failed)?.map(Cell::Bytes),
            Type::VOID => None,
            _ => row.try_get::<_, Option<String>>(at).map_err(failed)?.map(Cell::Text),
        }
        .unwrap_or(Cell::Null))
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
        Some(code) if code.code().starts_with("57P") || code.code().starts_with("08") => {
            Error::Disconnected(text)
        }
        Some(_) => Error::Failed(text),
        // Nobody answered.
        None => Error::Disconnected(text),
    }
}

//! The tables of a store as they are, past everything that the store does.

use biplane_recorder::store::Location;
use rusqlite::types::Value as Lite;
use tokio_postgres::types::{ToSql, Type};

/// A value of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row with the names of its columns.
pub(crate) type Row = Vec<(String, Cell)>;

/// A connection of its own.
pub(crate) enum Raw {
    File(rusqlite::Connection),
    Server(tokio_postgres::Client, tokio::runtime::Runtime),
}

impl Raw {
    pub(crate) fn open(location: &Location) -> Self {
        match location {
            Location::File(path) => Self::File(rusqlite::Connection::open(path).unwrap()),
            Location::Server(text) => {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let client = runtime.block_on(async {
                    let connected = tokio_postgres::connect(text, tokio_postgres::NoTls).await;
                    let (client, connection) = connected.unwrap();
                    tokio::spawn(connection);
                    client
                });
                Self::Server(client, runtime)
            }
            Location::Memory => panic!("nobody else can read it"),
        }
    }

    /// The rows that a statement finds.
    pub(crate) fn rows(&self, sql: &str) -> Vec<Row> {
        match self {
            Self::File(raw) => {
                let mut statement = raw.prepare(sql).unwrap();
                let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
                let row = |row: &rusqlite::Row<'_>| {
                    let cell = |(at, name): (usize, &String)| {
                        let cell = match row.get(at).unwrap() {
                            Lite::Null | Lite::Real(_) => Cell::Null,
                            Lite::Integer(value) => Cell::Int(value),
                            Lite::Text(value) => Cell::Text(value),
                            Lite::Blob(value) => Cell::Bytes(value),
                        };
                        (name.clone(), cell)
                    };
                    Ok(names.iter().enumerate().map(cell).collect())
                };
                statement.query_map([], row).unwrap().map(Result::unwrap).collect()
            }
            Self::Server(client, runtime) => {
                let rows = runtime.block_on(client.query(sql, &[])).unwrap();
                rows.iter().map(of_server).collect()
            }
        }
    }

    /// The only number that a statement finds.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        match self.rows(sql).as_slice() {
            [row] => match row.as_slice() {
                [(_, Cell::Int(number))] => *number,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// The names of all tables.
    pub(crate) fn tables(&self) -> Vec<String> {
        let sql = match self {
            Self::File(_) => "SELECT name FROM sqlite_master WHERE type = 'table'",
            Self::Server(..) => "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'",
        };
        let name = |row: Row| match row.into_iter().next() {
            Some((_, Cell::Text(name))) => name,
            other => panic!("{other:?}"),
        };
        self.rows(sql).into_iter().map(name).collect()
    }

    /// Runs a statement with one value, `$1`. Whether the database took it.
    pub(crate) fn set(&self, sql: &str, value: &Cell) -> bool {
        match self {
            Self::File(raw) => {
                let value = match value.clone() {
                    Cell::Null => Lite::Null,
                    Cell::Int(value) => Lite::Integer(value),
                    Cell::Text(value) => Lite::Text(value),
                    Cell::Bytes(value) => Lite::Blob(value),
                };
                raw.execute(&sql.replace('$', "?"), [value]).is_ok()
            }
            Self::Server(client, runtime) => {
                let value: &(dyn ToSql + Sync) = match value {
                    Cell::Null => &None::<i64>,
                    Cell::Int(value) => value,
                    Cell::Text(value) => value,
                    Cell::Bytes(value) => value,
                };
                runtime.block_on(client.execute(sql, &[value])).is_ok()
            }
        }
    }

    /// Runs a statement.
    pub(crate) fn execute(&self, sql: &str) {
        match self {
            Self::File(raw) => raw.execute_batch(sql).unwrap(),
            Self::Server(client, runtime) => {
                runtime.block_on(client.batch_execute(sql)).unwrap();
            }
        }
    }
}

fn of_server(row: &tokio_postgres::Row) -> Row {
    let cell = |(at, column): (usize, &tokio_postgres::Column)| {
        let cell = match *column.type_() {
            Type::INT8 => row.get::<_, Option<i64>>(at).map(Cell::Int),
            Type::BYTEA => row.get::<_, Option<Vec<u8>>>(at).map(Cell::Bytes),
            _ => row.get::<_, Option<String>>(at).map(Cell::Text),
        };
        (column.name().to_owned(), cell.unwrap_or(Cell::Null))
    };
    row.columns().iter().enumerate().map(cell).collect()
}

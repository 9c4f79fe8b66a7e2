//! What goes into statements and comes out of them, and what can go wrong.

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A file.
    Sqlite,
    /// A server, which several recorders may share.
    Postgres,
}

/// Why a store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no room.
    #[error("the store is full: {0}")]
    Full(String),
    /// Another program holds the store.
    #[error("the store is busy: {0}")]
    Busy(String),
    /// The connection to the server is gone.
    #[error("the connection to the store is lost: {0}")]
    Disconnected(String),
    /// There is no store, and none is to be made.
    #[error("there is no store at {0}")]
    Missing(String),
    /// A newer program has written the store.
    #[error("the store has version {found}, and this program knows version {known} at most")]
    Newer {
        /// The version of the store.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// An older program has written the store.
    #[error("the store has version {found}; start the recorder to bring it up to date")]
    Older {
        /// The version of the store.
        found: i64,
    },
    /// Reading takes longer, or gives more, than was allowed.
    #[error("{0}")]
    TooMuch(&'static str),
    /// The store has content that no recorder writes.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The database refused.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// A value of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Param<'a> {
    /// Nothing.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl From<i64> for Param<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

/// A count as databases have numbers.
pub(super) fn int(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

impl From<usize> for Param<'_> {
    fn from(value: usize) -> Self {
        Self::Int(int(value))
    }
}

impl From<u64> for Param<'_> {
    fn from(value: u64) -> Self {
        Self::Int(int(value))
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a> From<&'a Vec<u8>> for Param<'a> {
    fn from(value: &'a Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Param<'a> {
    fn from(value: &'a [u8; N]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// Nothing.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A row of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row(pub(super) Vec<Cell>);

impl Row {
    fn wrong<T>(&self, at: usize, expected: &str) -> Result<T, Error> {
        Err(Error::Damaged(format!("column {at} is {:?} instead of {expected}", self.0.get(at))))
    }

    /// A number.
    pub(super) fn int(&self, at: usize) -> Result<i64, Error> {
        match self.0.get(at) {
            Some(Cell::Int(value)) => Ok(*value),
            _ => self.wrong(at, "a number"),
        }
    }

    /// A number, or nothing.
    pub(super) fn int_or(&self, at: usize) -> Result<Option<i64>, Error> {
        match self.0.get(at) {
            Some(Cell::Null) => Ok(None),
            _ => self.int(at).map(Some),
        }
    }

    /// A text.
    pub(super) fn text(&self, at: usize) -> Result<String, Error> {
        match self.0.get(at) {
            Some(Cell::Text(value)) => Ok(value.clone()),
            _ => self.wrong(at, "a text"),
        }
    }

    /// A text, or nothing.
    pub(super) fn text_or(&self, at: usize) -> Result<Option<String>, Error> {
        match self.0.get(at) {
            Some(Cell::Null) => Ok(None),
            _ => self.text(at).map(Some),
        }
    }

    /// Bytes.
    pub(super) fn bytes(&self, at: usize) -> Result<Vec<u8>, Error> {
        match self.0.get(at) {
            Some(Cell::Bytes(value)) => Ok(value.clone()),
            _ => self.wrong(at, "bytes"),
        }
    }

    /// Bytes, or nothing.
    pub(super) fn bytes_or(&self, at: usize) -> Result<Option<Vec<u8>>, Error> {
        match self.0.get(at) {
            Some(Cell::Null) => Ok(None),
            _ => self.bytes(at).map(Some),
        }
    }
}

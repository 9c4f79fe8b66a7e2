//! Reads which bodies the states of an exchange have, and no body.

use biplane_proto::redact::{MARKER, MARKER_BASE64};

use super::Store;
use super::db::Error;
use super::pack::{List, RequestList, ResponseList};
use super::rows::Side;

/// A state of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateOf {
    /// It has a state with this key.
    Key(i64),
    /// There is no message that could have one.
    NoMessage,
    /// The message has none, or one of an unexpected form.
    Elsewhere,
}

impl Store {
    /// What was observed, or what was desired afterwards.
    pub fn state_of(&self, exchange: i64, side: Side) -> Result<StateOf, Error> {
        let column = match side {
            Side::Observed => "request",
            Side::Desired => "response",
        };
        let sql = format!("SELECT {column} FROM exchange WHERE id = $1");
        let row = self.db.first(&sql, &[exchange.into()])?;
        let Some(list) = row.map(|row| row.bytes_or(0)).transpose()?.flatten() else {
            return Ok(StateOf::NoMessage);
        };
        let first = match side {
            Side::Observed => match RequestList::unpack(&list)? {
                List::Blobs { ids, .. } => ids[0],
                List::Empty => return Ok(StateOf::NoMessage),
                List::Opaque { .. } => None,
            },
            Side::Desired => match ResponseList::unpack(&list)? {
                List::Blobs { ids, .. } => ids[0],
                List::Empty => return Ok(StateOf::NoMessage),
                List::Opaque { .. } => None,
            },
        };
        Ok(first.map_or(StateOf::Elsewhere, StateOf::Key))
    }

    /// The size of a body.
    pub fn body_bytes(&self, id: i64) -> Result<usize, Error> {
        let size = self.db.number("SELECT size FROM blob WHERE id = $1", &[id.into()])?;
        Ok(size.and_then(|size| usize::try_from(size).ok()).unwrap_or_default())
    }

    /// Whether any value of a run's exchanges was redacted.
    pub fn is_run_redacted(&self, run: i64) -> Result<bool, Error> {
        let sql = "SELECT max(e.redactions) FROM step s JOIN exchange e ON e.id = s.exchange \
            WHERE s.run = $1";
        Ok(self.db.number(sql, &[run.into()])?.unwrap_or_default() > 0)
    }

    /// How many values of an exchange were redacted.
    pub fn redactions(&self, exchange: i64) -> Result<Option<i64>, Error> {
        self.db.number("SELECT redactions FROM exchange WHERE id = $1", &[exchange.into()])
    }

    /// Whether anything in a body was redacted.
    pub fn is_body_redacted(&self, id: i64) -> Result<bool, Error> {
        let bytes = self.blob(id)?;
        let has = |marker: &str| memchr::memmem::find(&bytes, marker.as_bytes()).is_some();
        Ok(has(MARKER) || has(MARKER_BASE64))
    }
}

//! Reads changes, and puts their entries together again.

use biplane_model::Object;
use biplane_proto::changelogs::ChangeLogEntry;
use biplane_proto::{Struct, Timestamp};
use serde_json::Value;

use super::Store;
use super::changes::HAS_TIME;
use super::db::{Error, Row};
use super::pack::{hex, unhex};
use super::read::{Conditions, object};
use super::rows::{After, ChangeFilter, ChangeRow};

/// The columns of a change from `c` and of its object from `o`.
pub(super) const CHANGE: &str = "c.id, c.source, c.seq, c.at, c.received, c.operation, c.failed, \
    c.cause, c.api_version, c.provider, c.external_name, c.generation, c.error, c.snapshot, \
    c.detail, c.trace, c.entry_id, c.hash, c.object, c.flags, o.id, o.cluster, o.grp, o.kind, \
    o.namespace, o.name, o.uid, o.parent, o.claim, o.first_seen, o.last_seen";

/// Where the columns of the object begin.
const OBJECT_AT: usize = 20;

pub(super) fn change(row: &Row) -> Result<ChangeRow, Error> {
    let detail = row.text_or(14)?.map(|text| match biplane_go::json::decode(text.as_bytes()) {
        Ok((value, None)) => Ok(value),
        _ => Err(Error::Damaged("the details of a change are not JSON".to_owned())),
    });
    Ok(ChangeRow {
        id: row.int(0)?,
        source: row.int(1)?,
        seq: row.int(2)?,
        at: row.int(3)?,
        received: row.int(4)?,
        operation: row.int(5)?,
        failed: match row.int(6)? {
            0 => false,
            1 => true,
            other => return Err(Error::Damaged(format!("failed is {other}"))),
        },
        cause: row.text(7)?,
        api_version: row.text(8)?,
        provider: row.text(9)?,
        external_name: row.text(10)?,
        generation: row.int_or(11)?,
        error: row.text_or(12)?,
        snapshot: row.int_or(13)?,
        detail: detail.transpose()?,
        trace: row.bytes_or(15)?.map(|bytes| hex(&bytes)),
        entry_id: row.text_or(16)?,
        hash: row.bytes(17)?,
        object: object(row, OBJECT_AT)?,
    })
}

impl Store {
    /// Changes, the newest first. A page goes on after the last change of the page before.
    pub fn changes(
        &self,
        filter: &ChangeFilter,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<ChangeRow>, Error> {
        let mut conditions = Conditions::default();
        if let Some(object) = filter.object {
            conditions.add("c.object = ?", object);
        }
        if let Some(kind) = &filter.kind {
            conditions.add("lower(o.kind) = lower(?)", kind);
        }
        if let Some(group) = &filter.group {
            conditions.add("o.grp = ?", group);
        }
        if let Some(namespace) = &filter.namespace {
            conditions.add("o.namespace = ?", namespace);
        }
        if let Some(name) = &filter.name {
            conditions.add("o.name = ?", name);
        }
        if let Some(provider) = &filter.provider {
            let number = conditions.next(provider);
            conditions.plain(&format!(
                "(c.provider = {number} OR substr(c.provider, 1, length({number}) + 1) = \
                    {number} || ':')"
            ));
        }
        if let Some(operation) = filter.operation {
            conditions.add("c.operation = ?", operation);
        }
        if filter.failed {
            conditions.plain("c.failed = 1");
        }
        if let Some(cause) = &filter.cause {
            conditions.add("c.cause = ?", cause);
        }
        if let Some(source) = filter.source {
            conditions.add("c.source = ?", source);
        }
        let trace = match &filter.trace {
            Some(trace) => {
                let digits: Vec<u8> = trace.bytes().filter(|byte| *byte != b'-').collect();
                match unhex(&digits) {
                    Some(bytes) => Some(bytes),
                    // Nothing can have it.
                    None => return Ok(Vec::new()),
                }
            }
            None => None,
        };
        if let Some(trace) = &trace {
            conditions.add("c.trace = ?", trace);
        }
        if let Some(since) = filter.since {
            conditions.add("c.at >= ?", since);
        }
        if let Some(until) = filter.until {
            conditions.add("c.at < ?", until);
        }
        let mut order = "c.at DESC, c.id DESC";
        if let Some(id) = filter.newer_than {
            conditions.add("c.id > ?", id);
            order = "c.id";
        }
        if let Some(After { at, id }) = after {
            let (at, id) = (conditions.next(at), conditions.next(id));
            conditions.plain(&format!("(c.at < {at} OR (c.at = {at} AND c.id < {id}))"));
        }
        let sql = format!(
            "SELECT {CHANGE} FROM change c JOIN object o ON o.id = c.object WHERE {} \
                ORDER BY {order} LIMIT {limit}",
            conditions.text()
        );
        self.db.query(&sql, &conditions.params)?.iter().map(change).collect()
    }

    /// A change by its key.
    pub fn change(&self, id: i64) -> Result<Option<ChangeRow>, Error> {
        let sql = format!(
            "SELECT {CHANGE} FROM change c JOIN object o ON o.id = c.object WHERE c.id = $1"
        );
        self.db.first(&sql, &[id.into()])?.as_ref().map(change).transpose()
    }

    /// The entry of a change, as it was received, without secrets.
    pub fn entry(&self, change: &ChangeRow) -> Result<ChangeLogEntry, Error> {
        let sql = "SELECT flags FROM change WHERE id = $1";
        let flags = self.db.number(sql, &[change.id.into()])?.unwrap_or(HAS_TIME);
        self.entry_with(change, flags)
    }

    pub(super) fn entry_with(
        &self,
        change: &ChangeRow,
        flags: i64,
    ) -> Result<ChangeLogEntry, Error> {
        let snapshot = match change.snapshot {
            Some(id) => match Object::from_value(self.body(id)?) {
                Some(object) => Some(Struct::from(object)),
                None => return Err(Error::Damaged(format!("snapshot {id} is not an object"))),
            },
            None => None,
        };
        let details = change.detail.as_ref().and_then(Value::as_object).into_iter().flatten();
        let timestamp = (flags & HAS_TIME != 0)
            .then(|| Timestamp { seconds: change.at.div_euclid(1_000_000), nanos: 0 });
        Ok(ChangeLogEntry {
            timestamp,
            provider: change.provider.clone(),
            api_version: change.api_version.clone(),
            kind: change.object.kind.clone(),
            name: change.object.name.clone(),
            external_name: change.external_name.clone(),
            operation: i32::try_from(change.operation).unwrap_or_default(),
            snapshot,
            error_message: change.error.clone(),
            additional_details: details
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
        })
    }
}

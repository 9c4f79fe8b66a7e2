//! Stores change log entries, each tied to the one before by its hash.

use biplane_go::json::Style;
use biplane_model::Object;
use biplane_proto::changelogs::{ChangeLogEntry, OperationType};
use biplane_proto::json;
use biplane_proto::redact::Redacted;
use serde_json::Value;

use crate::digest::{Body, Identity};

use super::db::{Engine, Error};
use super::ledger::{Applied, Ledger};
use super::link::link;
use super::pack::unhex;
use super::{HOUR, Store};

/// The key of the id that a sender gives an entry, so that it is stored once however often it is
/// sent.
pub(super) const ENTRY_ID: &str = "entryId";

/// The lock that one of several recorders holds while it stores changes.
const APPEND_LOCK: i64 = 0x6269_706c_0003;

/// The entry has a time of its own.
pub(super) const HAS_TIME: i64 = 1;

/// A change log entry without secrets, as it was received.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRecord {
    pub(super) entry: ChangeLogEntry,
    /// The JSON line, which is what is hashed.
    pub(super) line: String,
    pub(super) received: i64,
}

impl ChangeRecord {
    /// Prepares an entry that was received at a time, in microseconds since 1970.
    pub fn new(entry: Redacted<ChangeLogEntry>, received: i64) -> Result<Self, json::Error> {
        let mut entry = entry.into_inner();
        // PostgreSQL has no texts with this character.
        let texts = [&mut entry.provider, &mut entry.api_version, &mut entry.kind, &mut entry.name];
        texts.into_iter().for_each(without_nul);
        without_nul(&mut entry.external_name);
        entry.error_message.iter_mut().for_each(without_nul);
        let line = json::to_string(&entry)?;
        Ok(Self { entry, line, received })
    }
}

fn without_nul(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

/// What is derived from an entry, beside its own fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Derived {
    pub(super) identity: Identity,
    pub(super) at: i64,
    pub(super) flags: i64,
    pub(super) cause: String,
    pub(super) generation: Option<i64>,
    pub(super) detail: Option<String>,
    pub(super) trace: Option<Vec<u8>>,
    pub(super) entry_id: Option<String>,
}

impl Derived {
    pub(super) fn of(entry: &ChangeLogEntry, received: i64) -> Self {
        let snapshot = entry.snapshot.as_ref().map(biplane_proto::Struct::object);
        let text = |path: &[&str]| {
            snapshot
                .map(|snapshot| snapshot.str_at(path))
                .unwrap_or_default()
                .replace('\0', "\u{fffd}")
        };
        let generation = snapshot
            .and_then(|snapshot| snapshot.at(&["metadata", "generation"]))
            .and_then(biplane_model::object::integer);
        let details = &entry.additional_details;
        let time = entry.timestamp.and_then(|time| time.seconds.checked_mul(1_000_000));
        let text_of = |(key, value): (&String, &String)| (key.clone(), Value::from(value.as_str()));
        let detail: serde_json::Map<String, Value> = details.iter().map(text_of).collect();
        Self {
            identity: Identity {
                api_version: entry.api_version.clone(),
                kind: entry.kind.clone(),
                namespace: text(&["metadata", "namespace"]),
                name: entry.name.clone(),
                uid: text(&["metadata", "uid"]),
            },
            at: time.unwrap_or(received),
            flags: if entry.timestamp.is_some() { HAS_TIME } else { 0 },
            cause: cause(entry, snapshot, generation).replace('\0', "\u{fffd}"),
            generation,
            detail: (!details.is_empty())
                .then(|| biplane_go::json::object_to_string(&detail, Style::PROTOJSON)),
            trace: details.get("traceparent").and_then(|parent| trace(parent)),
            entry_id: details.get(ENTRY_ID).map(|id| id.replace('\0', "\u{fffd}")),
        }
    }
}

/// The trace of a W3C `traceparent`.
fn trace(parent: &str) -> Option<Vec<u8>> {
    let id = parent.split('-').nth(1)?;
    unhex(id.as_bytes()).filter(|bytes| bytes.len() == 16)
}

/// Why the provider did it: what it says, or else what its generation and its Synced condition tell.
fn cause(entry: &ChangeLogEntry, snapshot: Option<&Object>, generation: Option<i64>) -> String {
    if let Some(cause) = entry.additional_details.get("cause") {
        return cause.clone();
    }
    let Some(snapshot) = snapshot else { return String::new() };
    match OperationType::try_from(entry.operation) {
        Ok(OperationType::Create) => {
            let succeeded = snapshot.annotation("crossplane.io/external-create-succeeded");
            if succeeded.is_empty() { "create" } else { "recreate" }
        }
        Ok(OperationType::Delete) => "delete",
        Ok(OperationType::Update) => cause_of_update(snapshot, generation).unwrap_or_default(),
        _ => "",
    }
    .to_owned()
}

/// CL-72
fn cause_of_update(snapshot: &Object, generation: Option<i64>) -> Option<&'static str> {
    let conditions = snapshot.at(&["status", "conditions"])?.as_array()?;
    let synced = conditions.iter().find(|condition| condition["type"] == "Synced")?;
    if synced["reason"] == "ReconcilePaused" {
        return Some("resume");
    }
    let observed = synced.get("observedGeneration").and_then(biplane_model::object::integer)?;
    Some(if generation? != observed {
        "spec-change"
    } else if synced["status"] == "True" {
        "drift"
    } else {
        "retry"
    })
}

impl Ledger {
    /// Stores change log entries, each with the hash of the one before. They are on the disk when
    /// this returns.
    pub fn append(&mut self, records: &[ChangeRecord]) -> Result<Applied, Error> {
        self.atomically(true, |ledger| {
            let mut applied = Applied::default();
            append(ledger, records, &mut applied)?;
            Ok(applied)
        })
    }
}

/// Stores entries at the end of the chain.
fn append(
    ledger: &mut Ledger,
    records: &[ChangeRecord],
    applied: &mut Applied,
) -> Result<(), Error> {
    let source = ledger.changelogs;
    if ledger.store.engine() == Engine::Postgres {
        // One recorder at a time, so that keys are committed in their order. Who follows changes by
        // their keys would miss one that comes later with a smaller key.
        ledger.store.db.query("SELECT pg_advisory_xact_lock($1)", &[APPEND_LOCK.into()])?;
    }
    let lock = match ledger.store.engine() {
        // Nobody else writes.
        Engine::Sqlite => "SELECT seq, head FROM source WHERE id = $1",
        Engine::Postgres => "SELECT seq, head FROM source WHERE id = $1 FOR UPDATE",
    };
    let row = ledger.store.db.first(lock, &[source.into()])?;
    let row = ledger.store.must(row, "a source")?;
    let (mut seq, mut head) = (row.int(0)?, row.bytes(1)?);
    let mut last = 0;
    for record in records {
        let derived = Derived::of(&record.entry, record.received);
        if let Some(id) = &derived.entry_id {
            let sql = "SELECT id FROM change WHERE source = $1 AND entry_id = $2";
            if ledger.store.db.number(sql, &[source.into(), id.into()])?.is_some() {
                continue;
            }
        }
        seq += 1;
        head = link(&head, seq, record.received, &record.line).to_vec();
        let id = insert(ledger, record, &derived, (source, seq), &head)?;
        last = last.max(record.received);
        applied.changes.push((id, source, seq));
    }
    let sql = "UPDATE source SET seq = $2, head = $3, \
        last_seen = CASE WHEN last_seen < $4 THEN $4 ELSE last_seen END WHERE id = $1";
    let params = [source.into(), seq.into(), (&head).into(), last.into()];
    ledger.store.db.execute(sql, &params).map(drop)
}

fn insert(
    ledger: &mut Ledger,
    record: &ChangeRecord,
    derived: &Derived,
    (source, seq): (i64, i64),
    hash: &[u8],
) -> Result<i64, Error> {
    let entry = &record.entry;
    let hour = record.received / HOUR;
    let cluster = ledger.options.cluster.clone();
    let object = ledger.store.object_id(&cluster, &derived.identity, record.received)?;
    let snapshot = match &entry.snapshot {
        Some(snapshot) => Some(put_snapshot(&ledger.store, object, snapshot.object(), hour)?),
        None => None,
    };
    let sql = "INSERT INTO change (source, seq, object, at, received, operation, failed, cause, \
        api_version, provider, external_name, generation, error, snapshot, detail, trace, entry_id, \
        flags, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
        $17, $18, $19) RETURNING id";
    let params = [
        source.into(),
        seq.into(),
        object.into(),
        derived.at.into(),
        record.received.into(),
        i64::from(entry.operation).into(),
        i64::from(entry.error_message.is_some()).into(),
        (&derived.cause).into(),
        (&entry.api_version).into(),
        (&entry.provider).into(),
        (&entry.external_name).into(),
        derived.generation.into(),
        entry.error_message.as_ref().into(),
        snapshot.into(),
        derived.detail.as_ref().into(),
        derived.trace.as_ref().into(),
        derived.entry_id.as_ref().into(),
        derived.flags.into(),
        hash.into(),
    ];
    let id = ledger.store.db.number(sql, &params)?;
    ledger.store.must(id, "a change")
}

/// Stores a snapshot. Its relative is what was last observed of the object, else its last snapshot.
fn put_snapshot(store: &Store, object: i64, snapshot: &Object, hour: i64) -> Result<i64, Error> {
    let text = biplane_go::json::object_to_string(snapshot, Style::PROTOJSON);
    let hash = Body::hash_of(&text);
    let sql = "SELECT v.blob FROM slot s JOIN version v ON v.slot = s.id AND v.side = 0 \
        WHERE s.object = $1 AND v.blob IS NOT NULL ORDER BY v.run DESC LIMIT 1";
    let mut relative = store.db.number(sql, &[object.into()])?;
    if relative.is_none() {
        let sql = "SELECT snapshot FROM change WHERE object = $1 AND snapshot IS NOT NULL \
            ORDER BY at DESC, id DESC LIMIT 1";
        relative = store.db.number(sql, &[object.into()])?;
    }
    let (id, new) = store.put_blob(&hash, text.as_bytes(), relative, (0, hour))?;
    if !new {
        store.stamp_blob(id, 0, hour)?;
    }
    Ok(id)
}

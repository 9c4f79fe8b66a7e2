//! The tables of the store, one text for both databases, and how an older store is brought up to
//! date.
//!
//! Times are microseconds since 1970 in UTC, hours are hours since 1970. A hash is the first 16
//! bytes of SHA-256. Content is stored once, by hash: bodies and states (`blob`), exchanges, runs.

use super::db::{Db, Engine, Error};

/// The version of the schema that this program writes.
pub const VERSION: i64 = 2;

/// What takes a store from one version to the next. The first makes the tables.
const MIGRATIONS: &[&str] = &[FIRST, FINDINGS];

const FIRST: &str = "
-- The names of functions, steps, compositions, namespaces, reasons and field paths.
CREATE TABLE word (id @ID@, text TEXT NOT NULL UNIQUE);

-- Who sends. `seq` and `head` are the end of the chain of its changes.
CREATE TABLE source (id @ID@, kind TEXT NOT NULL, cluster TEXT NOT NULL, name TEXT NOT NULL,
    seq @INT@ NOT NULL, head @BYTES@ NOT NULL, first_seen @INT@ NOT NULL, last_seen @INT@ NOT NULL,
    UNIQUE (kind, cluster, name));

-- Composite resources, claims, Operations, composed and required resources.
CREATE TABLE object (id @ID@, cluster TEXT NOT NULL, grp TEXT NOT NULL, kind TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL, parent @INT@, claim @INT@,
    first_seen @INT@ NOT NULL, last_seen @INT@ NOT NULL,
    UNIQUE (cluster, grp, kind, namespace, name));
CREATE INDEX object_uid ON object (uid);
CREATE INDEX object_parent ON object (parent);
CREATE INDEX object_name ON object (name, kind);

-- Labels of composite resources and of claims.
CREATE TABLE label (object @INT@ NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (object, key))@CLUSTERED@;
CREATE INDEX label_value ON label (key, value, object);

-- A place in the state of an owner: a composed resource's name, or '' for the owner itself.
CREATE TABLE slot (id @ID@, owner @INT@ NOT NULL, name TEXT NOT NULL, object @INT@,
    UNIQUE (owner, name));
CREATE INDEX slot_object ON slot (object);

-- Bodies and states. `data` is as it is if it has `size` bytes, otherwise it is compressed, with
-- `base` as its prefix if there is one. `sum` is a checksum of `data`. `used` is the hour in which a run last needed it, `held`
-- the one in which a change did.
CREATE TABLE blob (id @ID@, hash @BYTES@ NOT NULL UNIQUE, base @INT@, depth @INT@ NOT NULL,
    size @INT@ NOT NULL, sum @INT@ NOT NULL, used @INT@ NOT NULL, held @INT@ NOT NULL,
    data @BYTES@ NOT NULL);
CREATE INDEX blob_used ON blob (used);

-- The texts of results and errors.
CREATE TABLE message (id @ID@, hash @BYTES@ NOT NULL UNIQUE, text TEXT NOT NULL,
    used @INT@ NOT NULL, held @INT@ NOT NULL);

-- A request with its response. `request` and `response` are lists of blobs.
CREATE TABLE exchange (id @ID@, hash @BYTES@ NOT NULL UNIQUE, input @BYTES@ NOT NULL,
    function @INT@ NOT NULL, severity @INT@ NOT NULL, request @BYTES@, response @BYTES@,
    error @INT@, ttl @INT@, redactions @INT@ NOT NULL, request_bytes @INT@ NOT NULL,
    response_bytes @INT@ NOT NULL, used @INT@ NOT NULL);
CREATE INDEX exchange_input ON exchange (input);
CREATE INDEX exchange_used ON exchange (used);

CREATE TABLE result (exchange @INT@ NOT NULL, ord @INT@ NOT NULL, severity @INT@ NOT NULL,
    message @INT@ NOT NULL, reason @INT@, target @INT@, PRIMARY KEY (exchange, ord))@CLUSTERED@;
CREATE INDEX result_message ON result (message);

CREATE TABLE condition (exchange @INT@ NOT NULL, ord @INT@ NOT NULL, type TEXT NOT NULL,
    status @INT@ NOT NULL, reason TEXT NOT NULL, message TEXT, target @INT@,
    PRIMARY KEY (exchange, ord))@CLUSTERED@;

-- The shape of a run: what was composed, and by which steps.
CREATE TABLE pipeline (id @ID@, hash @BYTES@ NOT NULL UNIQUE, composition @INT@, grp TEXT NOT NULL,
    version TEXT NOT NULL, kind TEXT NOT NULL, steps @INT@ NOT NULL);
CREATE INDEX pipeline_composition ON pipeline (composition);
CREATE INDEX pipeline_kind ON pipeline (kind);

CREATE TABLE pipeline_step (pipeline @INT@ NOT NULL, idx @INT@ NOT NULL, step @INT@ NOT NULL,
    function @INT@ NOT NULL, PRIMARY KEY (pipeline, idx))@CLUSTERED@;
CREATE INDEX pipeline_step_function ON pipeline_step (function, pipeline);

CREATE TABLE run (id @ID@, trace @BYTES@ NOT NULL UNIQUE, source @INT@ NOT NULL, owner @INT@ NOT NULL,
    namespace @INT@ NOT NULL, pipeline @INT@ NOT NULL, started @INT@ NOT NULL, took @INT@ NOT NULL,
    outcome @INT@ NOT NULL, open @INT@ NOT NULL, same @INT@ NOT NULL, flags @INT@ NOT NULL);
CREATE INDEX run_started ON run (started);
CREATE INDEX run_owner ON run (owner, started);
CREATE INDEX run_pipeline ON run (pipeline, outcome, started);
CREATE INDEX run_namespace ON run (namespace, started);
CREATE INDEX run_failed ON run (outcome, started) WHERE outcome > 1;
CREATE INDEX run_changed ON run (started) WHERE same = 0;
CREATE INDEX run_open ON run (open) WHERE open = 1;

-- `nanos` are the nanoseconds that `started` leaves out.
CREATE TABLE step (run @INT@ NOT NULL, idx @INT@ NOT NULL, iteration @INT@ NOT NULL,
    exchange @INT@, span @BYTES@ NOT NULL, started @INT@ NOT NULL, nanos @INT@ NOT NULL, took @INT@,
    revision @INT@, flags @INT@ NOT NULL, PRIMARY KEY (run, idx, iteration))@CLUSTERED@;

-- What became of the runs of an hour that repeated the run before.
CREATE TABLE fold (owner @INT@ NOT NULL, hour @INT@ NOT NULL, first @INT@ NOT NULL,
    last @INT@ NOT NULL, slowest @INT@ NOT NULL, runs @INT@ NOT NULL, took @INT@ NOT NULL,
    PRIMARY KEY (owner, hour))@CLUSTERED@;

-- The body of a slot from a run on. No blob: it is gone. `side` 0 is observed, 1 is desired.
CREATE TABLE version (slot @INT@ NOT NULL, side @INT@ NOT NULL, run @INT@ NOT NULL, at @INT@ NOT NULL,
    blob @INT@, PRIMARY KEY (slot, side, run))@CLUSTERED@;
CREATE INDEX version_run ON version (run);

-- The fields that a version changed, as JSON. No text: the field is absent.
CREATE TABLE field (slot @INT@ NOT NULL, side @INT@ NOT NULL, path @INT@ NOT NULL, run @INT@ NOT NULL,
    before TEXT, after TEXT, PRIMARY KEY (slot, side, path, run))@CLUSTERED@;
CREATE INDEX field_run ON field (run);

-- The resources that the steps of an owner required, and the last run that did.
CREATE TABLE need (owner @INT@ NOT NULL, step @INT@ NOT NULL, name @INT@ NOT NULL,
    object @INT@ NOT NULL, run @INT@ NOT NULL, PRIMARY KEY (owner, step, name, object))@CLUSTERED@;
CREATE INDEX need_object ON need (object, owner);

CREATE TABLE finding (id @ID@, kind TEXT NOT NULL, owner @INT@ NOT NULL, slot @INT@, path @INT@,
    function @INT@, first @INT@ NOT NULL, last @INT@ NOT NULL, count @INT@ NOT NULL,
    open @INT@ NOT NULL);
CREATE INDEX finding_open ON finding (open, last);

-- How many runs ended in five minutes.
CREATE TABLE tally (bucket @INT@ NOT NULL, pipeline @INT@ NOT NULL, outcome @INT@ NOT NULL,
    runs @INT@ NOT NULL, took @INT@ NOT NULL, slowest @INT@ NOT NULL,
    PRIMARY KEY (bucket, pipeline, outcome))@CLUSTERED@;

CREATE TABLE loss (id @ID@, at @INT@ NOT NULL, until @INT@ NOT NULL, source @INT@ NOT NULL,
    reason TEXT NOT NULL, emissions @INT@ NOT NULL, bytes @INT@ NOT NULL);
CREATE INDEX loss_at ON loss (at);

-- A change log entry. `api_version` is the entry's; the object has kind, name and namespace.
CREATE TABLE change (id @ID@, source @INT@ NOT NULL, seq @INT@ NOT NULL, object @INT@ NOT NULL,
    at @INT@ NOT NULL, received @INT@ NOT NULL, operation @INT@ NOT NULL, failed @INT@ NOT NULL,
    cause TEXT NOT NULL, api_version TEXT NOT NULL, provider TEXT NOT NULL,
    external_name TEXT NOT NULL, generation @INT@, error TEXT, snapshot @INT@, detail TEXT,
    trace @BYTES@, entry_id TEXT, flags @INT@ NOT NULL, hash @BYTES@ NOT NULL,
    UNIQUE (source, seq));
CREATE INDEX change_object ON change (object, at);
CREATE INDEX change_at ON change (at);
CREATE INDEX change_failed ON change (at) WHERE failed = 1;
CREATE INDEX change_trace ON change (trace) WHERE trace IS NOT NULL;
CREATE UNIQUE INDEX change_entry ON change (source, entry_id) WHERE entry_id IS NOT NULL;

-- Where the chain of a source goes on after changes were removed.
CREATE TABLE checkpoint (source @INT@ NOT NULL, seq @INT@ NOT NULL, hash @BYTES@ NOT NULL,
    removed @INT@ NOT NULL, at @INT@ NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (source, seq))@CLUSTERED@;
";

/// What a finding says beside its owner: the step, the runs that showed it, and names with values.
const FINDINGS: &str = "
ALTER TABLE finding ADD COLUMN step TEXT NOT NULL DEFAULT '';
ALTER TABLE finding ADD COLUMN idx @INT@ NOT NULL DEFAULT 0;
ALTER TABLE finding ADD COLUMN first_run @BYTES@;
ALTER TABLE finding ADD COLUMN last_run @BYTES@;
ALTER TABLE finding ADD COLUMN detail TEXT NOT NULL DEFAULT '{}';
CREATE INDEX finding_owner ON finding (owner, kind);
CREATE INDEX finding_last ON finding (last);
";

/// The full text index of messages in SQLite.
const SEARCH_SQLITE: &str = "
CREATE VIRTUAL TABLE message_text USING fts5(text, content='message', content_rowid='id');
CREATE TRIGGER message_added AFTER INSERT ON message BEGIN
    INSERT INTO message_text (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER message_removed AFTER DELETE ON message BEGIN
    INSERT INTO message_text (message_text, rowid, text) VALUES ('delete', old.id, old.text);
END;
";

/// The full text index of messages in PostgreSQL.
const SEARCH_POSTGRES: &str = "
CREATE INDEX message_text ON message USING gin (to_tsvector('simple', text));
";

fn adapted(text: &str, engine: Engine) -> String {
    let (id, int, bytes, clustered) = match engine {
        Engine::Sqlite => {
            // A key is never given out again: others may still know what it stood for.
            ("INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER", "BLOB", " WITHOUT ROWID")
        }
        Engine::Postgres => {
            ("BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "BIGINT", "BYTEA", "")
        }
    };
    let text = text.replace("@ID@", id).replace("@INT@", int);
    text.replace("@BYTES@", bytes).replace("@CLUSTERED@", clustered)
}

/// The lock that one of several recorders holds while it changes the tables.
const MIGRATION_LOCK: i64 = 0x6269_706c_0001;

/// Makes the tables, or brings those of an older program up to date. Nothing happens to a store
/// that a newer program has changed: that is an error.
pub(super) fn migrate(db: &Db, store_id: &[u8; 16]) -> Result<(), Error> {
    db.transaction(true, |db| {
        if db.engine() == Engine::Postgres {
            // Another recorder may be changing them, and they may be large.
            db.be_patient()?;
            db.query("SELECT pg_advisory_xact_lock($1)", &[MIGRATION_LOCK.into()])?;
        }
        db.batch(&adapted(
            "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value @BYTES@ NOT NULL)",
            db.engine(),
        ))?;
        let found = version(db)?.unwrap_or(0);
        if found > VERSION {
            return Err(Error::Newer { found, known: VERSION });
        }
        if found < VERSION {
            db.be_patient()?;
        }
        let done = usize::try_from(found).unwrap_or_default();
        for migration in MIGRATIONS.iter().skip(done) {
            db.batch(&adapted(migration, db.engine()))?;
        }
        if found == 0 {
            let search = match db.engine() {
                Engine::Sqlite => SEARCH_SQLITE,
                Engine::Postgres => SEARCH_POSTGRES,
            };
            db.batch(search)?;
            set_meta(db, "store", store_id)?;
        }
        set_meta(db, "version", VERSION.to_string().as_bytes())
    })
}

/// The version of the tables. `None` if there are none.
pub(super) fn version(db: &Db) -> Result<Option<i64>, Error> {
    let Some(text) = meta(db, "version")? else { return Ok(None) };
    let text = String::from_utf8_lossy(&text).into_owned();
    text.parse().map(Some).map_err(|_| Error::Damaged(format!("the version is {text:?}")))
}

pub(super) fn meta(db: &Db, key: &str) -> Result<Option<Vec<u8>>, Error> {
    let row = db.first("SELECT value FROM meta WHERE key = $1", &[key.into()])?;
    row.map(|row| row.bytes(0)).transpose()
}

pub(super) fn set_meta(db: &Db, key: &str, value: &[u8]) -> Result<(), Error> {
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) \
        ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.execute(sql, &[key.into(), value.into()]).map(drop)
}

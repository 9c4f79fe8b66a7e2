//! Reads objects, the versions of their bodies, what they need, losses and counts.

use super::db::{Error, Param, Row};
use super::read::{Conditions, OBJECT, object};
use super::rows::{
    FieldRow, FoldRow, LossRow, NeedRow, ObjectRow, Outcome, Side, SlotRow, SourceRow, TallyRow,
    VersionRow,
};
use super::{Store, schema};

/// Where it is noted that runs of an owner were removed, before its key.
const FORGOTTEN: &str = "forgotten/";

fn forgotten(owner: i64) -> String {
    format!("{FORGOTTEN}{owner}")
}

impl Store {
    /// The slots of an owner, by name. The first is `''`, the owner itself.
    pub fn slots(&self, owner: i64) -> Result<Vec<SlotRow>, Error> {
        self.slots_where("owner = $1 ORDER BY name", owner)
    }

    /// The slots in which an object was observed.
    pub fn slots_of_object(&self, object: i64) -> Result<Vec<SlotRow>, Error> {
        self.slots_where("object = $1 ORDER BY id", object)
    }

    /// A slot by its key.
    pub fn slot(&self, id: i64) -> Result<Option<SlotRow>, Error> {
        Ok(self.slots_where("id = $1", id)?.into_iter().next())
    }

    fn slots_where(&self, condition: &str, value: i64) -> Result<Vec<SlotRow>, Error> {
        let sql = format!("SELECT id, owner, name, object FROM slot WHERE {condition}");
        let slot = |row: &Row| {
            Ok(SlotRow {
                id: row.int(0)?,
                owner: row.int(1)?,
                name: row.text(2)?,
                object: row.int_or(3)?,
            })
        };
        self.db.query(&sql, &[value.into()])?.iter().map(slot).collect()
    }

    /// The versions of a slot on one side, the oldest first.
    pub fn versions(&self, slot: i64, side: Side) -> Result<Vec<VersionRow>, Error> {
        let condition = "slot = $1 AND side = $2 ORDER BY run";
        self.versions_where(condition, &[slot.into(), (side as i64).into()])
    }

    /// The versions that began in a run.
    pub fn versions_of_run(&self, run: i64) -> Result<Vec<VersionRow>, Error> {
        self.versions_where("run = $1 ORDER BY slot, side", &[run.into()])
    }

    /// What a slot had in a run: its last version that is not younger.
    pub fn version_at(&self, slot: i64, side: Side, run: i64) -> Result<Option<VersionRow>, Error> {
        let condition = "slot = $1 AND side = $2 AND run <= $3 ORDER BY run DESC LIMIT 1";
        let params = [slot.into(), (side as i64).into(), run.into()];
        Ok(self.versions_where(condition, &params)?.into_iter().next())
    }

    fn versions_where(&self, text: &str, params: &[Param<'_>]) -> Result<Vec<VersionRow>, Error> {
        let sql = format!("SELECT slot, side, run, at, blob FROM version WHERE {text}");
        let version = |row: &Row| {
            Ok(VersionRow {
                slot: row.int(0)?,
                side: Side::from_number(row.int(1)?),
                run: row.int(2)?,
                at: row.int(3)?,
                body: row.int_or(4)?,
            })
        };
        self.db.query(&sql, params)?.iter().map(version).collect()
    }

    /// The fields that changed in a run, by slot, side and path.
    pub fn fields_of_run(&self, run: i64) -> Result<Vec<FieldRow>, Error> {
        self.fields_where("f.run = $1 ORDER BY f.slot, f.side, w.text", &[run.into()])
    }

    /// The fields of a slot that ever changed, by path and run.
    pub fn fields_of_slot(&self, slot: i64, side: Side) -> Result<Vec<FieldRow>, Error> {
        let condition = "f.slot = $1 AND f.side = $2 ORDER BY w.text, f.run";
        self.fields_where(condition, &[slot.into(), (side as i64).into()])
    }

    fn fields_where(&self, text: &str, params: &[Param<'_>]) -> Result<Vec<FieldRow>, Error> {
        let sql = format!(
            "SELECT f.slot, f.side, w.text, f.run, f.before, f.after FROM field f \
                JOIN word w ON w.id = f.path WHERE {text}"
        );
        let field = |row: &Row| {
            Ok(FieldRow {
                slot: row.int(0)?,
                side: Side::from_number(row.int(1)?),
                path: row.text(2)?,
                run: row.int(3)?,
                before: row.text_or(4)?,
                after: row.text_or(5)?,
            })
        };
        self.db.query(&sql, params)?.iter().map(field).collect()
    }

    /// The resources that the steps of an owner required.
    pub fn needs(&self, owner: i64) -> Result<Vec<NeedRow>, Error> {
        self.needs_where("n.owner = $1", owner)
    }

    /// The owners whose steps required a resource.
    pub fn needed_by(&self, object: i64) -> Result<Vec<NeedRow>, Error> {
        self.needs_where("n.object = $1", object)
    }

    fn needs_where(&self, condition: &str, value: i64) -> Result<Vec<NeedRow>, Error> {
        let sql = format!(
            "SELECT n.owner, st.text, nm.text, n.run, {OBJECT} FROM need n \
                JOIN word st ON st.id = n.step JOIN word nm ON nm.id = n.name \
                JOIN object o ON o.id = n.object WHERE {condition} \
                ORDER BY n.owner, st.text, nm.text, o.id"
        );
        let need = |row: &Row| {
            Ok(NeedRow {
                owner: row.int(0)?,
                step: row.text(1)?,
                name: row.text(2)?,
                run: row.int(3)?,
                object: object(row, 4)?,
            })
        };
        self.db.query(&sql, &[value.into()])?.iter().map(need).collect()
    }

    /// Objects by kind, group, namespace and name, each if given. Kinds are found in any spelling of
    /// their letters. At most 100, the last seen first.
    pub fn objects(
        &self,
        kind: Option<&str>,
        group: Option<&str>,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<Vec<ObjectRow>, Error> {
        let mut conditions = Conditions::default();
        if let Some(name) = name {
            conditions.add("o.name = ?", name);
        }
        if let Some(kind) = kind {
            conditions.add("lower(o.kind) = lower(?)", kind);
        }
        if let Some(group) = group {
            conditions.add("o.grp = ?", group);
        }
        if let Some(namespace) = namespace {
            conditions.add("o.namespace = ?", namespace);
        }
        let sql = format!(
            "SELECT {OBJECT} FROM object o WHERE {} ORDER BY o.last_seen DESC, o.id LIMIT 100",
            conditions.text()
        );
        self.db.query(&sql, &conditions.params)?.iter().map(|row| object(row, 0)).collect()
    }

    /// An object by its key.
    pub fn object(&self, id: i64) -> Result<Option<ObjectRow>, Error> {
        let sql = format!("SELECT {OBJECT} FROM object o WHERE o.id = $1");
        self.db.first(&sql, &[id.into()])?.map(|row| object(&row, 0)).transpose()
    }

    /// The object whose last known uid this is.
    pub fn object_by_uid(&self, uid: &str) -> Result<Option<ObjectRow>, Error> {
        let sql = format!("SELECT {OBJECT} FROM object o WHERE o.uid = $1 ORDER BY o.id LIMIT 1");
        self.db.first(&sql, &[uid.into()])?.map(|row| object(&row, 0)).transpose()
    }

    /// The composite resources that belong to another.
    pub fn children(&self, parent: i64) -> Result<Vec<ObjectRow>, Error> {
        let sql = format!("SELECT {OBJECT} FROM object o WHERE o.parent = $1 ORDER BY o.id");
        self.db.query(&sql, &[parent.into()])?.iter().map(|row| object(row, 0)).collect()
    }

    /// The labels of an object, by key.
    pub fn labels(&self, object: i64) -> Result<Vec<(String, String)>, Error> {
        let sql = "SELECT key, value FROM label WHERE object = $1 ORDER BY key";
        let rows = self.db.query(sql, &[object.into()])?;
        rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
    }

    /// What was lost from one time until another.
    pub fn losses(&self, since: i64, until: i64) -> Result<Vec<LossRow>, Error> {
        let sql = "SELECT id, at, until, source, reason, emissions, bytes FROM loss \
            WHERE until >= $1 AND at < $2 ORDER BY at, id";
        let loss = |row: &Row| {
            Ok(LossRow {
                id: row.int(0)?,
                at: row.int(1)?,
                until: row.int(2)?,
                source: row.int(3)?,
                reason: row.text(4)?,
                emissions: row.int(5)?,
                bytes: row.int(6)?,
            })
        };
        self.db.query(sql, &[since.into(), until.into()])?.iter().map(loss).collect()
    }

    /// What became of runs of an owner that repeated, by hour.
    pub fn folds(&self, owner: i64) -> Result<Vec<FoldRow>, Error> {
        let sql = "SELECT owner, hour, first, last, slowest, runs, took FROM fold \
            WHERE owner = $1 ORDER BY hour";
        let fold = |row: &Row| {
            Ok(FoldRow {
                owner: row.int(0)?,
                hour: row.int(1)?,
                first: row.int(2)?,
                last: row.int(3)?,
                slowest: row.int(4)?,
                runs: row.int(5)?,
                took: row.int(6)?,
            })
        };
        self.db.query(sql, &[owner.into()])?.iter().map(fold).collect()
    }

    /// How many runs ended, in steps of five minutes.
    pub fn tallies(&self, since: i64, until: i64) -> Result<Vec<TallyRow>, Error> {
        let sql = "SELECT bucket, pipeline, outcome, runs, took, slowest FROM tally \
            WHERE bucket >= $1 AND bucket < $2 ORDER BY bucket, pipeline, outcome";
        let tally = |row: &Row| {
            Ok(TallyRow {
                at: row.int(0)?,
                pipeline: row.int(1)?,
                outcome: Outcome::from_number(row.int(2)?),
                runs: row.int(3)?,
                took: row.int(4)?,
                slowest: row.int(5)?,
            })
        };
        self.db.query(sql, &[since.into(), until.into()])?.iter().map(tally).collect()
    }

    /// Whether an owner had runs that are no longer kept.
    pub fn has_forgotten(&self, owner: &ObjectRow) -> Result<bool, Error> {
        Ok(schema::meta(&self.db, &forgotten(owner.id))?.is_some())
    }

    /// Notes that runs of an owner were removed.
    pub(super) fn mark_forgotten(&self, owner: i64) -> Result<(), Error> {
        schema::set_meta(&self.db, &forgotten(owner), b"")
    }

    /// Removes what was noted of owners that are gone, which are a list of their keys.
    pub(super) fn forget_marks(&self, owners: &str) -> Result<(), Error> {
        let keys: Vec<String> =
            owners.split(", ").map(|owner| format!("'{FORGOTTEN}{owner}'")).collect();
        self.db.batch(&format!("DELETE FROM meta WHERE key IN ({})", keys.join(", ")))
    }

    /// When the oldest run that is kept started.
    pub fn oldest_run(&self) -> Result<Option<i64>, Error> {
        self.db.number("SELECT min(started) FROM run", &[])
    }

    /// Who sent something, in order of arrival.
    pub fn sources(&self) -> Result<Vec<SourceRow>, Error> {
        let sql = "SELECT id, kind, cluster, name, seq, head, first_seen, last_seen FROM source \
            ORDER BY id";
        let source = |row: &Row| {
            Ok(SourceRow {
                id: row.int(0)?,
                kind: row.text(1)?,
                cluster: row.text(2)?,
                name: row.text(3)?,
                seq: row.int(4)?,
                head: row.bytes(5)?,
                first_seen: row.int(6)?,
                last_seen: row.int(7)?,
            })
        };
        self.db.query(sql, &[])?.iter().map(source).collect()
    }
}

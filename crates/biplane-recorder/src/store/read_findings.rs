//! Reads what was found in runs.

use std::collections::BTreeMap;

use super::Store;
use super::db::{Error, Row};
use super::pack::unpack_id;
use super::read::{Conditions, OBJECT, object};
use super::rows::{After, FindingFilter, FindingKind, FindingRow};

const FINDING: &str = "SELECT f.id, f.kind, s.name, w.text, fn.text, f.step, f.idx, f.first, f.last, \
    f.first_run, f.last_run, f.count, f.open, f.detail, (SELECT p.version FROM run r \
    JOIN pipeline p ON p.id = r.pipeline WHERE r.owner = f.owner ORDER BY r.started DESC LIMIT 1)";

const FINDING_FROM: &str = "FROM finding f JOIN object o ON o.id = f.owner \
    LEFT JOIN slot s ON s.id = f.slot LEFT JOIN word w ON w.id = f.path \
    LEFT JOIN word fn ON fn.id = f.function";

/// `None` if a newer program has found something that this one does not know.
fn finding(row: &Row) -> Result<Option<FindingRow>, Error> {
    let Some(kind) = FindingKind::of_name(&row.text(1)?) else { return Ok(None) };
    let trace =
        |at| Ok::<_, Error>(row.bytes_or(at)?.as_deref().map(unpack_id).unwrap_or_default());
    let detail: BTreeMap<String, String> = serde_json::from_str(&row.text(13)?).unwrap_or_default();
    Ok(Some(FindingRow {
        id: row.int(0)?,
        kind,
        slot: row.text_or(2)?,
        path: row.text_or(3)?,
        function: row.text_or(4)?,
        step: row.text(5)?,
        index: row.int(6)?,
        first: row.int(7)?,
        last: row.int(8)?,
        first_run: trace(9)?,
        last_run: trace(10)?,
        count: row.int(11)?,
        open: row.int(12)? != 0,
        detail,
        version: row.text_or(14)?.unwrap_or_default(),
        owner: object(row, 15)?,
    }))
}

impl Store {
    /// What was found, the last seen first.
    pub fn findings(
        &self,
        filter: &FindingFilter,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<FindingRow>, Error> {
        let mut conditions = Conditions::default();
        if let Some(found) = filter.found {
            conditions.add("f.kind = ?", found.name());
        }
        if filter.open {
            conditions.plain("f.open = 1");
        }
        if let Some(kind) = &filter.kind {
            conditions.add("lower(o.kind) = lower(?)", kind);
        }
        if let Some(group) = &filter.group {
            conditions.add("o.grp = ?", group);
        }
        if let Some(name) = &filter.name {
            conditions.add("o.name = ?", name);
        }
        if let Some(namespace) = &filter.namespace {
            conditions.add("o.namespace = ?", namespace);
        }
        if let Some(After { at, id }) = after {
            let (at, id) = (conditions.next(at), conditions.next(id));
            conditions.plain(&format!("(f.last < {at} OR (f.last = {at} AND f.id < {id}))"));
        }
        let sql = format!(
            "{FINDING}, {OBJECT} {FINDING_FROM} WHERE {} ORDER BY f.last DESC, f.id DESC LIMIT {limit}",
            conditions.text()
        );
        let rows = self.db.query(&sql, &conditions.params)?;
        let found = rows.iter().map(finding).collect::<Result<Vec<_>, _>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// A finding by its key.
    pub fn finding(&self, id: i64) -> Result<Option<FindingRow>, Error> {
        let sql = format!("{FINDING}, {OBJECT} {FINDING_FROM} WHERE f.id = $1");
        let row = self.db.first(&sql, &[id.into()])?;
        Ok(row.as_ref().map(finding).transpose()?.flatten())
    }
}

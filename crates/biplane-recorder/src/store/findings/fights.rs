//! Finds fields that go back and forth between what is desired and what somebody else wants.

use std::collections::BTreeMap;

use super::super::db::Error;
use super::super::fields;
use super::super::ledger::{Ledger, OpenRun};
use super::super::managers::managers_of;
use super::super::rows::{FindingKind, Side};
use super::Sighting;

/// A field that changed so often between two values goes back and forth.
const CHANGES: usize = 3;

impl Ledger {
    pub(super) fn find_fights(
        &mut self,
        run: &OpenRun,
        found: &mut Vec<Sighting>,
    ) -> Result<(), Error> {
        let sql = "SELECT f.slot, f.path, w.text FROM field f JOIN word w ON w.id = f.path \
            WHERE f.run = $1 AND f.side = 0 ORDER BY f.slot, w.text";
        for row in self.store.db.query(sql, &[run.id.into()])? {
            let (slot, path, text) = (row.int(0)?, row.int(1)?, row.text(2)?);
            if let Some(sighting) = self.fight(run, slot, path, &text)? {
                found.push(sighting);
            }
        }
        Ok(())
    }

    fn fight(
        &self,
        run: &OpenRun,
        slot: i64,
        path: i64,
        text: &str,
    ) -> Result<Option<Sighting>, Error> {
        let db = &self.store.db;
        let sql = format!(
            "SELECT run, before, after FROM field WHERE slot = $1 AND side = 0 AND path = $2 \
                AND run <= $3 ORDER BY run DESC LIMIT {CHANGES}"
        );
        let rows = db.query(&sql, &[slot.into(), path.into(), run.id.into()])?;
        let [newest, middle, oldest] = rows.as_slice() else { return Ok(None) };
        let (was, is) = (newest.text_or(1)?, newest.text_or(2)?);
        let goes = |row: &super::super::db::Row, from: &Option<String>, to: &Option<String>| {
            Ok::<_, Error>(row.text_or(1)? == *from && row.text_or(2)? == *to)
        };
        if !goes(middle, &is, &was)? || !goes(oldest, &was, &is)? {
            return Ok(None);
        }
        // While what is desired changes too, nobody fights.
        let sql = "SELECT run FROM field WHERE slot = $1 AND side = 1 AND path = $2 \
            AND run >= $3 LIMIT 1";
        let since = oldest.int(0)?;
        if db.number(sql, &[slot.into(), path.into(), since.into()])?.is_some() {
            return Ok(None);
        }
        let Some(desired) = self.last_desired(slot)? else { return Ok(None) };
        let desired = fields::value(&self.store.body(desired)?, text);
        // Whoever wants the other value has set it in the newest version, or in the one before.
        let foreign_run = match (&desired, &was, &is) {
            (Some(desired), _, Some(is)) if desired == is => middle.int(0)?,
            (Some(desired), Some(was), _) if desired == was => run.id,
            _ => return Ok(None),
        };
        let other = if foreign_run == run.id { is } else { was };
        let version = self.store.version_at(slot, Side::Observed, foreign_run)?;
        let managers = match version.and_then(|version| version.body) {
            Some(body) => managers_of(&self.store.body(body)?, text),
            None => Vec::new(),
        };
        let mut detail = BTreeMap::from([
            ("desired", desired.unwrap_or_default()),
            ("observed", other.unwrap_or_else(|| "absent".to_owned())),
        ]);
        if !managers.is_empty() {
            detail.insert("managers", managers.join(", "));
        }
        let sighting = Sighting {
            kind: FindingKind::Flapping,
            slot: Some(slot),
            path: Some(path),
            step: None,
            detail,
        };
        Ok(Some(sighting))
    }
}

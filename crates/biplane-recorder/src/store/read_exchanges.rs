//! Reads which distinct requests were made.

use std::collections::BTreeMap;

use super::Store;
use super::db::Error;
use super::read::Conditions;
use super::rows::{RequestRow, RunFilter};

impl Store {
    /// The distinct requests to a function in the runs of a filter, by the last run that had each.
    /// Of answers to the same request, the last one counts. The filter's function, page and words do
    /// not matter.
    pub fn requests(&self, function: &str, filter: &RunFilter) -> Result<Vec<RequestRow>, Error> {
        let filter = RunFilter { function: Some(function.to_owned()), ..filter.clone() };
        let shapes = self.shapes(&filter)?.unwrap_or_default();
        if shapes.is_empty() {
            return Ok(Vec::new());
        }
        let mut conditions = Conditions::default();
        let list: Vec<String> = shapes.iter().map(i64::to_string).collect();
        conditions.plain(&format!("r.pipeline IN ({})", list.join(", ")));
        conditions.add("e.function = (SELECT id FROM word WHERE text = ?)", function);
        conditions.plain("e.request IS NOT NULL");
        if !filter.outcomes.is_empty() {
            let list: Vec<String> =
                filter.outcomes.iter().map(|outcome| (*outcome as i64).to_string()).collect();
            conditions.plain(&format!("r.outcome IN ({})", list.join(", ")));
        }
        conditions.of_runs(&filter);
        let sql = format!(
            "SELECT e.id, e.input, MAX(s.run), COUNT(*) FROM run r JOIN step s ON s.run = r.id \
                JOIN exchange e ON e.id = s.exchange WHERE {} GROUP BY e.id, e.input",
            conditions.text()
        );
        let mut found: BTreeMap<Vec<u8>, RequestRow> = BTreeMap::new();
        for row in self.db.query(&sql, &conditions.params)? {
            let new = RequestRow { exchange: row.int(0)?, run: row.int(2)?, steps: row.int(3)? };
            let known = found.entry(row.bytes(1)?).or_insert(RequestRow { steps: 0, ..new });
            let steps = known.steps + new.steps;
            if (new.run, new.exchange) > (known.run, known.exchange) {
                *known = new;
            }
            known.steps = steps;
        }
        let mut found: Vec<RequestRow> = found.into_values().collect();
        found.sort_by_key(|request| (request.run, request.exchange));
        Ok(found)
    }
}

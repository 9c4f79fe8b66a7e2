//! Reads runs, steps, exchanges and the states of resources.

use serde_json::{Map, Value};

use crate::digest::{Condition, ResultOf, conditions_value, results_value, ttl_text};
use biplane_proto::redact::MARKER_BASE64;

use super::Store;
use super::db::{Engine, Error, Param, Row};
use super::pack::{List, PackedState, RequestList, ResponseList, hex, prefix_range, unpack_id};
use super::rows::{
    After, ConditionRow, ExchangeRow, Extent, Found, ObjectRow, Outcome, Parts, Payload,
    PipelineStepRow, ResultRow, RunFilter, RunFlags, RunRow, StateEntry, StepRow,
};

/// The columns of an object, from `o`.
pub(super) const OBJECT: &str = "o.id, o.cluster, o.grp, o.kind, o.namespace, o.name, o.uid, \
    o.parent, o.claim, o.first_seen, o.last_seen";

pub(super) fn object(row: &Row, at: usize) -> Result<ObjectRow, Error> {
    Ok(ObjectRow {
        id: row.int(at)?,
        cluster: row.text(at + 1)?,
        group: row.text(at + 2)?,
        kind: row.text(at + 3)?,
        namespace: row.text(at + 4)?,
        name: row.text(at + 5)?,
        uid: row.text(at + 6)?,
        parent: row.int_or(at + 7)?,
        claim: row.int_or(at + 8)?,
        first_seen: row.int(at + 9)?,
        last_seen: row.int(at + 10)?,
    })
}

pub(super) const RUN: &str = "SELECT r.id, r.trace, r.source, r.pipeline, r.started, r.took, r.outcome, \
    r.open, r.same, r.flags, p.version, p.steps, w.text";

pub(super) const RUN_FROM: &str = "FROM run r JOIN pipeline p ON p.id = r.pipeline \
    JOIN object o ON o.id = r.owner LEFT JOIN word w ON w.id = p.composition";

pub(super) fn run(row: &Row) -> Result<RunRow, Error> {
    Ok(RunRow {
        id: row.int(0)?,
        trace: unpack_id(&row.bytes(1)?),
        source: row.int(2)?,
        pipeline: row.int(3)?,
        started: row.int(4)?,
        took: row.int(5)?,
        outcome: Outcome::from_number(row.int(6)?),
        open: row.int(7)? != 0,
        same: row.int(8)? != 0,
        flags: RunFlags::from_number(row.int(9)?),
        version: row.text(10)?,
        steps: row.int(11)?,
        composition: row.text_or(12)?,
        owner: object(row, 13)?,
    })
}

/// Conditions of a statement with their values.
#[derive(Debug, Default)]
pub(super) struct Conditions<'a> {
    pub(super) texts: Vec<String>,
    pub(super) params: Vec<Param<'a>>,
}

impl<'a> Conditions<'a> {
    /// Adds a condition; `?` in it stands for the value.
    pub(super) fn add(&mut self, text: &str, param: impl Into<Param<'a>>) {
        self.params.push(param.into());
        self.texts.push(text.replace('?', &format!("${}", self.params.len())));
    }

    /// Adds a condition without a value.
    pub(super) fn plain(&mut self, text: &str) {
        self.texts.push(text.to_owned());
    }

    /// The number of the next value.
    pub(super) fn next(&mut self, param: impl Into<Param<'a>>) -> String {
        self.params.push(param.into());
        format!("${}", self.params.len())
    }

    pub(super) fn text(&self) -> String {
        if self.texts.is_empty() { "1 = 1".to_owned() } else { self.texts.join(" AND ") }
    }

    /// Whose runs, and of which time.
    pub(super) fn of_runs(&mut self, filter: &'a RunFilter) {
        if let Some(namespace) = &filter.namespace {
            self.add("r.namespace = (SELECT id FROM word WHERE text = ?)", namespace);
        }
        if let Some(name) = &filter.name {
            self.add("r.owner IN (SELECT id FROM object WHERE name = ?)", name);
        }
        for (key, value) in &filter.labels {
            let key = self.next(key);
            let value = self.next(value);
            self.plain(&format!(
                "r.owner IN (SELECT object FROM label WHERE key = {key} AND value = {value})"
            ));
        }
        if let Some(since) = filter.since {
            self.add("r.started >= ?", since);
        }
        if let Some(until) = filter.until {
            self.add("r.started < ?", until);
        }
    }
}

impl Store {
    /// Runs, the newest first. A page goes on after the last run of the page before.
    pub fn runs(
        &self,
        filter: &RunFilter,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<RunRow>, Error> {
        if let Some(owners) = self.owners_named(filter)? {
            // The runs of each are read in order, however many runs others have.
            let mut merged = Vec::new();
            for owner in owners {
                let of = RunFilter {
                    owner: Some(owner),
                    name: None,
                    kind: None,
                    group: None,
                    namespace: None,
                    ..filter.clone()
                };
                merged.extend(self.runs(&of, limit, after)?);
            }
            merged.sort_by_key(|run| std::cmp::Reverse((run.started, run.id)));
            merged.truncate(limit);
            return Ok(merged);
        }
        let shapes = self.shapes(filter)?;
        if shapes.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Vec::new());
        }
        // An exact prefix of an index for each shape and outcome is read in order, with a limit.
        let few = shapes.as_ref().filter(|shapes| shapes.len() <= 64 && filter.owner.is_none());
        let Some(shapes) = few else {
            return self.runs_of(filter, shapes.as_deref(), None, limit, after);
        };
        let outcomes: &[Outcome] =
            if filter.outcomes.is_empty() { &Outcome::ALL } else { &filter.outcomes };
        let mut merged = Vec::new();
        for shape in shapes {
            for outcome in outcomes {
                merged.extend(self.runs_of(
                    filter,
                    None,
                    Some((*shape, *outcome)),
                    limit,
                    after,
                )?);
            }
        }
        merged.sort_by_key(|run| std::cmp::Reverse((run.started, run.id)));
        merged.truncate(limit);
        Ok(merged)
    }

    /// The owners that a filter by name can mean, unless they are many or there is no such filter.
    fn owners_named(&self, filter: &RunFilter) -> Result<Option<Vec<i64>>, Error> {
        const MANY: usize = 16;
        let (None, Some(name)) = (filter.owner, &filter.name) else { return Ok(None) };
        let mut conditions = Conditions::default();
        conditions.add("name = ?", name);
        if let Some(kind) = &filter.kind {
            conditions.add("lower(kind) = lower(?)", kind);
        }
        if let Some(group) = &filter.group {
            conditions.add("grp = ?", group);
        }
        if let Some(namespace) = &filter.namespace {
            conditions.add("namespace = ?", namespace);
        }
        let sql = format!(
            "SELECT id FROM object WHERE {} ORDER BY id LIMIT {}",
            conditions.text(),
            MANY + 1
        );
        let rows = self.db.query(&sql, &conditions.params)?;
        let owners: Vec<i64> = rows.iter().map(|row| row.int(0)).collect::<Result<_, _>>()?;
        Ok(Some(owners).filter(|owners| owners.len() <= MANY))
    }

    /// The shapes that fit a filter by kind, Composition or function. `None` if there is none.
    pub(super) fn shapes(&self, filter: &RunFilter) -> Result<Option<Vec<i64>>, Error> {
        let mut conditions = Conditions::default();
        if let Some(kind) = &filter.kind {
            conditions.add("lower(p.kind) = lower(?)", kind);
        }
        if let Some(group) = &filter.group {
            conditions.add("p.grp = ?", group);
        }
        if let Some(composition) = &filter.composition {
            conditions.add("p.composition = (SELECT id FROM word WHERE text = ?)", composition);
        }
        if let Some(function) = &filter.function {
            conditions.add(
                "p.id IN (SELECT pipeline FROM pipeline_step WHERE function = \
                    (SELECT id FROM word WHERE text = ?))",
                function,
            );
        }
        if conditions.texts.is_empty() {
            return Ok(None);
        }
        let sql = format!("SELECT p.id FROM pipeline p WHERE {} ORDER BY p.id", conditions.text());
        let rows = self.db.query(&sql, &conditions.params)?;
        rows.iter().map(|row| row.int(0)).collect::<Result<_, _>>().map(Some)
    }

    fn runs_of(
        &self,
        filter: &RunFilter,
        shapes: Option<&[i64]>,
        exact: Option<(i64, Outcome)>,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<RunRow>, Error> {
        let mut conditions = Conditions::default();
        if let Some((pipeline, outcome)) = exact {
            conditions.add("r.pipeline = ?", pipeline);
            conditions.add("r.outcome = ?", outcome as i64);
        }
        if let Some(shapes) = shapes {
            let list: Vec<String> = shapes.iter().map(i64::to_string).collect();
            conditions.plain(&format!("r.pipeline IN ({})", list.join(", ")));
        }
        if exact.is_none() && !filter.outcomes.is_empty() {
            let list: Vec<String> =
                filter.outcomes.iter().map(|outcome| (*outcome as i64).to_string()).collect();
            conditions.plain(&format!("r.outcome IN ({})", list.join(", ")));
            if !filter.outcomes.contains(&Outcome::Ok) {
                // So that the index of failures can be used.
                conditions.plain("r.outcome > 1");
            }
        }
        if let Some(owner) = filter.owner {
            conditions.add("r.owner = ?", owner);
        }
        conditions.of_runs(filter);
        if filter.changed {
            conditions.plain("r.same = 0");
        }
        if let Some(words) = &filter.words {
            let found = self.message_condition();
            conditions.add(
                &format!(
                    "r.id IN (SELECT s.run FROM step s JOIN exchange e ON e.id = s.exchange WHERE \
                        e.error IN ({found}) OR e.id IN \
                        (SELECT exchange FROM result WHERE message IN ({found})))"
                ),
                words,
            );
        }
        if let Some(After { at, id }) = after {
            let (at, id) = (conditions.next(at), conditions.next(id));
            conditions.plain(&format!("(r.started < {at} OR (r.started = {at} AND r.id < {id}))"));
        }
        let sql = format!(
            "{RUN}, {OBJECT} {RUN_FROM} WHERE {} ORDER BY r.started DESC, r.id DESC LIMIT {limit}",
            conditions.text()
        );
        self.db.query(&sql, &conditions.params)?.iter().map(run).collect()
    }

    /// A query for the messages that have all words of `?`.
    pub(super) fn message_condition(&self) -> &'static str {
        match self.engine() {
            Engine::Sqlite => "SELECT rowid FROM message_text WHERE message_text MATCH ?",
            Engine::Postgres => {
                "SELECT id FROM message WHERE \
                    to_tsvector('simple', text) @@ plainto_tsquery('simple', ?)"
            }
        }
    }

    /// Texts of results and errors that have all of these words.
    pub fn messages(&self, words: &str, limit: usize) -> Result<Vec<String>, Error> {
        let words = self.search_words(words);
        let found = self.message_condition().replace('?', "$1");
        let sql = format!(
            "SELECT text FROM message WHERE id IN ({found}) ORDER BY id DESC LIMIT {limit}"
        );
        let rows = self.db.query(&sql, &[(&words).into()])?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// Words as the search takes them: quoted in SQLite, where they would be a language otherwise.
    /// Give this to [`RunFilter::words`].
    pub fn search_words(&self, words: &str) -> String {
        match self.engine() {
            Engine::Sqlite => {
                let quoted = |word: &str| format!("\"{}\"", word.replace('"', "\"\""));
                words.split_whitespace().map(quoted).collect::<Vec<_>>().join(" ")
            }
            Engine::Postgres => words.to_owned(),
        }
    }

    /// The run whose trace begins so. Dashes and the case of letters do not matter.
    pub fn run(&self, prefix: &str) -> Result<Found<RunRow>, Error> {
        let exact = super::pack::pack_id(prefix);
        let sql = format!("{RUN}, {OBJECT} {RUN_FROM} WHERE r.trace = $1");
        if let Some(row) = self.db.first(&sql, &[(&exact).into()])? {
            return run(&row).map(Found::One);
        }
        let Some((from, before)) = prefix_range(prefix) else { return Ok(Found::None) };
        let mut conditions = Conditions::default();
        conditions.add("r.trace >= ?", &from);
        if let Some(before) = &before {
            conditions.add("r.trace < ?", before);
        }
        let sql = format!(
            "{RUN}, {OBJECT} {RUN_FROM} WHERE {} ORDER BY r.trace LIMIT 10",
            conditions.text()
        );
        let rows = self.db.query(&sql, &conditions.params)?;
        let mut runs: Vec<RunRow> = rows.iter().map(run).collect::<Result<_, _>>()?;
        Ok(match runs.len() {
            0 => Found::None,
            1 => Found::One(runs.remove(0)),
            _ => Found::Many(runs),
        })
    }

    /// A run by its key.
    pub fn run_by_id(&self, id: i64) -> Result<Option<RunRow>, Error> {
        let sql = format!("{RUN}, {OBJECT} {RUN_FROM} WHERE r.id = $1");
        self.db.first(&sql, &[id.into()])?.as_ref().map(run).transpose()
    }

    /// The run of the same owner before another that is still kept.
    pub fn run_before(&self, of: &RunRow) -> Result<Option<RunRow>, Error> {
        self.beside(of, "<", "DESC")
    }

    /// The run of the same owner after another.
    pub fn run_after(&self, of: &RunRow) -> Result<Option<RunRow>, Error> {
        self.beside(of, ">", "ASC")
    }

    fn beside(&self, of: &RunRow, sign: &str, order: &str) -> Result<Option<RunRow>, Error> {
        let sql = format!(
            "{RUN}, {OBJECT} {RUN_FROM} WHERE r.owner = $1 AND (r.started {sign} $2 \
                OR (r.started = $2 AND r.id {sign} $3)) \
                ORDER BY r.started {order}, r.id {order} LIMIT 1"
        );
        let params = [of.owner.id.into(), of.started.into(), of.id.into()];
        self.db.first(&sql, &params)?.as_ref().map(run).transpose()
    }

    /// The steps of a run that were reached, in order of position and iteration.
    pub fn steps(&self, run: i64) -> Result<Vec<StepRow>, Error> {
        let sql = "SELECT s.run, s.idx, s.iteration, st.text, fn.text, s.exchange, s.span, \
            s.started, s.nanos, s.took, rev.text, s.flags, e.severity, m.text, e.request_bytes, \
            e.response_bytes \
            FROM step s JOIN run r ON r.id = s.run \
            LEFT JOIN pipeline_step ps ON ps.pipeline = r.pipeline AND ps.idx = s.idx \
            LEFT JOIN exchange e ON e.id = s.exchange \
            LEFT JOIN word st ON st.id = ps.step \
            LEFT JOIN word fn ON fn.id = COALESCE(e.function, ps.function) \
            LEFT JOIN word rev ON rev.id = s.revision LEFT JOIN message m ON m.id = e.error \
            WHERE s.run = $1 ORDER BY s.idx, s.iteration";
        let step = |row: &Row| {
            let flags = StepFlags(row.int(11)?);
            Ok(StepRow {
                run: row.int(0)?,
                index: row.int(1)?,
                iteration: row.int(2)?,
                step: row.text_or(3)?.unwrap_or_default(),
                function: row.text_or(4)?.unwrap_or_default(),
                exchange: row.int_or(5)?,
                span: unpack_id(&row.bytes(6)?),
                started: row.int(7)?,
                nanos: row.int(8)?,
                took: row.int_or(9)?,
                revision: row.text_or(10)?,
                exact: flags.has(StepFlags::EXACT),
                cached: flags.cached(),
                no_request: flags.has(StepFlags::NO_REQUEST),
                no_answer: flags.has(StepFlags::NO_ANSWER),
                design_dialect: flags.has(StepFlags::DESIGN),
                severity: row.int_or(12)?.unwrap_or_default(),
                error: row.text_or(13)?,
                bytes: (row.int_or(14)?.unwrap_or_default(), row.int_or(15)?.unwrap_or_default()),
            })
        };
        self.db.query(sql, &[run.into()])?.iter().map(step).collect()
    }

    /// The shape of runs: all steps, whether they are reached or not.
    pub fn pipeline(&self, id: i64) -> Result<Vec<PipelineStepRow>, Error> {
        let sql = "SELECT ps.idx, st.text, fn.text FROM pipeline_step ps \
            JOIN word st ON st.id = ps.step JOIN word fn ON fn.id = ps.function \
            WHERE ps.pipeline = $1 ORDER BY ps.idx";
        let step = |row: &Row| {
            Ok(PipelineStepRow { index: row.int(0)?, step: row.text(1)?, function: row.text(2)? })
        };
        self.db.query(sql, &[id.into()])?.iter().map(step).collect()
    }

    /// What was asked and answered, put together again. Everything is redacted.
    pub fn exchange(&self, id: i64) -> Result<Option<ExchangeRow>, Error> {
        self.exchange_within(id, &Extent::WHOLE)
    }

    /// The same with as much of it as is wanted.
    pub fn exchange_within(
        &self,
        id: i64,
        extent: &Extent<'_>,
    ) -> Result<Option<ExchangeRow>, Error> {
        let sql = "SELECT e.input, w.text, e.severity, e.request, e.response, m.text, e.ttl, \
            e.redactions, e.request_bytes, e.response_bytes FROM exchange e \
            JOIN word w ON w.id = e.function LEFT JOIN message m ON m.id = e.error \
            WHERE e.id = $1";
        let Some(row) = self.db.first(sql, &[id.into()])? else { return Ok(None) };
        let results = self.results(id)?;
        let conditions = self.conditions(id)?;
        let request = row.bytes_or(3)?.map(|b| RequestList::unpack(&b)).transpose()?;
        let response = row.bytes_or(4)?.map(|b| ResponseList::unpack(&b)).transpose()?;
        let mut parts = Parts::default();
        if let Some(List::Blobs { ids, .. }) = &request {
            [parts.observed, parts.desired, parts.required, parts.extra, parts.context] =
                [ids[0], ids[1], ids[2], ids[3], ids[4]];
            [parts.input, parts.schemas, parts.credentials] = [ids[5], ids[6], ids[7]];
        }
        if let Some(List::Blobs { ids, .. }) = &response {
            [parts.answered, parts.answered_context, parts.requirements, parts.output] =
                [ids[0], ids[1], ids[2], ids[3]];
        }
        let ttl = row.int_or(6)?;
        Ok(Some(ExchangeRow {
            id,
            input: row.bytes(0)?,
            function: row.text(1)?,
            severity: row.int(2)?,
            request: request.map(|list| self.request(list, extent)).transpose()?,
            response: response
                .map(|list| self.response(list, &results, &conditions, ttl, extent))
                .transpose()?,
            parts,
            error: row.text_or(5)?,
            ttl,
            redactions: row.int(7)?,
            request_bytes: row.int(8)?,
            response_bytes: row.int(9)?,
            results,
            conditions,
        }))
    }

    pub(super) fn results(&self, exchange: i64) -> Result<Vec<ResultRow>, Error> {
        let sql = "SELECT r.severity, m.text, w.text, r.target FROM result r \
            JOIN message m ON m.id = r.message LEFT JOIN word w ON w.id = r.reason \
            WHERE r.exchange = $1 ORDER BY r.ord";
        let result = |row: &Row| {
            Ok(ResultRow {
                severity: row.int(0)?,
                message: row.text(1)?,
                reason: row.text_or(2)?,
                target: row.int_or(3)?,
            })
        };
        self.db.query(sql, &[exchange.into()])?.iter().map(result).collect()
    }

    fn conditions(&self, exchange: i64) -> Result<Vec<ConditionRow>, Error> {
        let sql = "SELECT type, status, reason, message, target FROM condition \
            WHERE exchange = $1 ORDER BY ord";
        let condition = |row: &Row| {
            Ok(ConditionRow {
                kind: row.text(0)?,
                status: row.int(1)?,
                reason: row.text(2)?,
                message: row.text_or(3)?,
                target: row.int_or(4)?,
            })
        };
        self.db.query(sql, &[exchange.into()])?.iter().map(condition).collect()
    }

    /// The map that a list of blobs begins with: the rest, with the tag in it.
    fn rest(&self, rest: Option<i64>, tag: Option<String>) -> Result<Map<String, Value>, Error> {
        let mut map = match rest.map(|id| self.body(id)).transpose()? {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        if let Some(tag) = tag
            && let Some(Value::Object(meta)) = map.get_mut("meta")
        {
            meta.insert("tag".to_owned(), tag.into());
        }
        Ok(map)
    }

    fn request(&self, list: RequestList, extent: &Extent<'_>) -> Result<Payload, Error> {
        let (ids, tag) = match list {
            List::Empty => return Ok(Payload::Empty),
            List::Opaque { bytes, hash } => {
                return Ok(Payload::Opaque { bytes, hash: hex(&hash) });
            }
            List::Blobs { ids, tag } => (ids, tag),
        };
        let mut map = self.rest(ids[8], tag)?;
        let states = [("observed", ids[0], extent.observed), ("desired", ids[1], extent.given)];
        for (key, id, _) in states.into_iter().filter(|(.., is_wanted)| *is_wanted) {
            if let Some(id) = id {
                map.insert(key.to_owned(), self.state_value(id, extent)?);
            }
        }
        if !extent.rest {
            return Ok(Payload::Json(Value::Object(map)));
        }
        for (key, id) in ["requiredResources", "extraResources"].into_iter().zip([ids[2], ids[3]]) {
            if let Some(id) = id {
                map.insert(key.to_owned(), self.required_value(id)?);
            }
        }
        let keys = ["context", "input", "requiredSchemas", "credentials"];
        self.add_bodies(&mut map, &keys, &ids[4..8])?;
        Ok(Payload::Json(Value::Object(map)))
    }

    fn response(
        &self,
        list: ResponseList,
        results: &[ResultRow],
        conditions: &[ConditionRow],
        ttl: Option<i64>,
        extent: &Extent<'_>,
    ) -> Result<Payload, Error> {
        let (ids, tag) = match list {
            List::Empty => return Ok(Payload::Empty),
            List::Opaque { bytes, hash } => {
                return Ok(Payload::Opaque { bytes, hash: hex(&hash) });
            }
            List::Blobs { ids, tag } => (ids, tag),
        };
        let mut map = self.rest(ids[4], tag)?;
        if let Some(ttl) = ttl
            && let Some(Value::Object(meta)) = map.get_mut("meta")
        {
            meta.insert("ttl".to_owned(), ttl_text(ttl).into());
        }
        if let Some(id) = ids[0].filter(|_| extent.answered) {
            map.insert("desired".to_owned(), self.state_value(id, extent)?);
        }
        if extent.rest {
            self.add_bodies(&mut map, &["context", "requirements", "output"], &ids[1..4])?;
        }
        // What has an unexpected form is in the rest.
        if !results.is_empty() && !map.contains_key("results") {
            let results: Vec<ResultOf> = results.iter().map(Into::into).collect();
            map.insert("results".to_owned(), results_value(&results));
        }
        if !conditions.is_empty() && !map.contains_key("conditions") {
            let conditions: Vec<Condition> = conditions.iter().map(Into::into).collect();
            map.insert("conditions".to_owned(), conditions_value(&conditions));
        }
        Ok(Payload::Json(Value::Object(map)))
    }

    fn add_bodies(
        &self,
        map: &mut Map<String, Value>,
        keys: &[&str],
        ids: &[Option<i64>],
    ) -> Result<(), Error> {
        for (key, id) in keys.iter().zip(ids) {
            if let Some(id) = id {
                map.insert((*key).to_owned(), self.body(*id)?);
            }
        }
        Ok(())
    }

    /// The resource or Struct behind a key.
    pub fn body(&self, id: i64) -> Result<Value, Error> {
        match biplane_go::json::decode(&self.blob(id)?) {
            Ok((value, None)) => Ok(value),
            _ => Err(Error::Damaged(format!("blob {id} is not JSON"))),
        }
    }

    pub(super) fn packed_state(&self, id: i64) -> Result<PackedState, Error> {
        PackedState::unpack(&self.blob(id)?)
    }

    /// The resources of a state, sorted by name.
    pub fn state(&self, id: i64) -> Result<Vec<StateEntry>, Error> {
        Ok(self.packed_state(id)?.entries)
    }

    fn entry_value(&self, entry: &StateEntry, with_body: bool) -> Result<Value, Error> {
        let mut map = Map::new();
        if let Some(keys) = &entry.connection_keys {
            let values = keys.iter().map(|key| (key.clone(), MARKER_BASE64.into())).collect();
            map.insert("connectionDetails".to_owned(), Value::Object(values));
        }
        if let Some(ready) = &entry.ready {
            map.insert("ready".to_owned(), ready.clone().into());
        }
        if let Some(body) = entry.body {
            let body = if with_body { self.body(body)? } else { body.into() };
            map.insert("resource".to_owned(), body);
        }
        Ok(Value::Object(map))
    }

    fn state_value(&self, id: i64, extent: &Extent<'_>) -> Result<Value, Error> {
        let state = self.packed_state(id)?;
        let mut map = Map::new();
        let mut resources = Map::new();
        let is_wanted = |name: &str| extent.slot.is_none_or(|slot| name == slot || name.is_empty());
        for entry in state.entries.iter().filter(|entry| is_wanted(&entry.name)) {
            let value = self.entry_value(entry, extent.bodies)?;
            if entry.name.is_empty() {
                map.insert("composite".to_owned(), value);
            } else {
                resources.insert(entry.name.clone(), value);
            }
        }
        if state.has_resources {
            map.insert("resources".to_owned(), Value::Object(resources));
        }
        Ok(Value::Object(map))
    }

    fn required_value(&self, id: i64) -> Result<Value, Error> {
        let mut map = Map::new();
        for entry in &self.packed_state(id)?.entries {
            let found = map.entry(entry.name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if entry.item.is_none() {
                continue;
            }
            let value = self.entry_value(entry, true)?;
            if let Value::Object(found) = found {
                let items = found.entry("items").or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(items) = items {
                    items.push(value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

impl From<&ResultRow> for ResultOf {
    fn from(row: &ResultRow) -> Self {
        let ResultRow { severity, message, reason, target } = row.clone();
        Self { severity, message, reason, target }
    }
}

impl From<&ConditionRow> for Condition {
    fn from(row: &ConditionRow) -> Self {
        let ConditionRow { kind, status, reason, message, target } = row.clone();
        Self { kind, status, reason, message, target }
    }
}

/// What is known about a step, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StepFlags(pub(super) i64);

impl StepFlags {
    pub(super) const NO_REQUEST: i64 = 1;
    pub(super) const NO_ANSWER: i64 = 2;
    pub(super) const CACHED: i64 = 4;
    pub(super) const NOT_CACHED: i64 = 8;
    pub(super) const EXACT: i64 = 16;
    pub(super) const DESIGN: i64 = 32;

    pub(super) fn has(self, flag: i64) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn set(&mut self, flag: i64, value: bool) {
        if value { self.0 |= flag } else { self.0 &= !flag }
    }

    fn cached(self) -> Option<bool> {
        if self.has(Self::CACHED) {
            Some(true)
        } else {
            self.has(Self::NOT_CACHED).then_some(false)
        }
    }
}

//! Stores the content of a call: bodies, states, messages and the exchange that ties them.

use crate::digest::{
    Body, Content, Hash, Hasher, Request, Response, State, conditions_value, results_value,
    severity_number,
};

use super::db::{Error, int};
use super::ledger::{HalfContent, HalfRecord, Ledger, OpenRun};
use super::pack::{List, PackedState, RequestList, ResponseList};
use super::rows::{Side, StateEntry};

/// A place of a blob in the life of an owner, where the blob before it is a relative.
struct Place<'a> {
    owner: i64,
    /// Which kind of place.
    kind: i64,
    name: &'a str,
    /// What owners have in common whose blobs in this place are relatives.
    family: &'a str,
}

/// Kinds of places. Bodies have the numbers of their sides.
const STATES: i64 = 16;
const BODIES: i64 = 32;

/// A request as it is stored.
struct Asked {
    input: Vec<u8>,
    list: RequestList,
    bytes: i64,
    redactions: i64,
}

fn part_hash(hasher: &mut Hasher, body: Option<&Body>) {
    hasher.add_or(body.map(|body| &body.hash[..]));
}

fn state_hash(hasher: &mut Hasher, state: Option<&State>) {
    hasher.add_or(state.map(|state| &state.hash[..]));
}

/// Hashes function and request alone, and the tag where something was redacted: then it is all that
/// tells two requests apart.
fn input_hash(function: &str, content: &Content<Request>, redactions: i64) -> Hash {
    let mut hasher = Hasher::new("input");
    hasher.add(function.as_bytes());
    match content {
        Content::Empty => hasher.add(b"empty"),
        Content::Opaque { hash, .. } => hasher.add(hash),
        Content::Parts(parts) => {
            for state in [&parts.observed, &parts.desired, &parts.required, &parts.extra] {
                state_hash(&mut hasher, state.as_ref());
            }
            let bodies =
                [&parts.context, &parts.input, &parts.schemas, &parts.credentials, &parts.rest];
            for body in bodies {
                part_hash(&mut hasher, body.as_ref());
            }
            if redactions > 0 {
                hasher.add_or(parts.tag.as_ref().map(String::as_bytes));
            }
        }
    }
    hasher.finish()
}

fn response_hash(content: &Content<Response>) -> Hash {
    let mut hasher = Hasher::new("response");
    match content {
        Content::Empty => hasher.add(b"empty"),
        Content::Opaque { hash, .. } => hasher.add(hash),
        Content::Parts(parts) => {
            state_hash(&mut hasher, parts.desired.as_ref());
            for body in [&parts.context, &parts.requirements, &parts.output, &parts.rest] {
                part_hash(&mut hasher, body.as_ref());
            }
            hasher.add_or(parts.tag.as_ref().map(String::as_bytes));
            hasher.add_or(parts.ttl.map(i64::to_be_bytes).as_ref().map(|ttl| &ttl[..]));
            hasher.add(results_value(&parts.results).to_string().as_bytes());
            hasher.add(conditions_value(&parts.conditions).to_string().as_bytes());
        }
    }
    hasher.finish()
}

impl Ledger {
    /// The key of an exchange of what was asked, now or before, and of what was answered.
    pub(super) fn exchange(
        &mut self,
        run: &OpenRun,
        known: Option<i64>,
        request: Option<&HalfRecord>,
        response: Option<&HalfRecord>,
        hour: i64,
    ) -> Result<i64, Error> {
        let function = request.or(response).map(|half| half.function.clone()).unwrap_or_default();
        let asked = match request {
            Some(half) => self.asked(run, half, hour)?,
            None => self.asked_before(known)?,
        };
        let answer = response.and_then(|half| match &half.content {
            HalfContent::Response(content, error) => Some((half, content, error)),
            HalfContent::Request(_) => None,
        });
        let mut hasher = Hasher::new("exchange");
        hasher.add(function.as_bytes());
        hasher.add_or(asked.as_ref().map(|asked| &asked.input[..]));
        hasher.add_or(asked.as_ref().and_then(|asked| asked.list.tag()).map(str::as_bytes));
        hasher
            .add_or(answer.map(|(_, content, _)| response_hash(content)).as_ref().map(|h| &h[..]));
        hasher.add_or(answer.map(|(_, _, error)| error.as_bytes()));
        let hash = hasher.finish();

        // What the answer is made of is needed in this hour, too.
        let list = match answer {
            Some((half, content, _)) => Some(self.answered(run, half, content, hour)?),
            None => None,
        };
        if let Some((id, used)) = self.memos.exchanges.get(&hash) {
            if used >= hour {
                return Ok(id);
            }
            // Another recorder may have removed it.
            if self.stamp_exchange(id, hour)? {
                self.memos.exchanges.put(hash, (id, hour));
                return Ok(id);
            }
        }
        let find = "SELECT id FROM exchange WHERE hash = $1";
        let id = match self.store.db.number(find, &[(&hash).into()])? {
            Some(id) => {
                self.stamp_exchange(id, hour)?;
                id
            }
            None => self.insert_exchange(&hash, &function, asked, answer, list, hour)?,
        };
        self.memos.exchanges.put(hash, (id, hour));
        Ok(id)
    }

    /// Says that an exchange is needed in an hour. Whether it is there.
    fn stamp_exchange(&self, id: i64, hour: i64) -> Result<bool, Error> {
        let db = &self.store.db;
        let params = [id.into(), hour.into()];
        let sql =
            "UPDATE exchange SET used = CASE WHEN used < $2 THEN $2 ELSE used END WHERE id = $1";
        let is_there = db.execute(sql, &params)? > 0;
        let sql = "UPDATE message SET used = $2 WHERE used < $2 AND (id IN \
            (SELECT message FROM result WHERE exchange = $1) OR id = \
            (SELECT error FROM exchange WHERE id = $1))";
        db.execute(sql, &params)?;
        Ok(is_there)
    }

    fn insert_exchange(
        &mut self,
        hash: &Hash,
        function: &str,
        asked: Option<Asked>,
        answer: Option<(&HalfRecord, &Content<Response>, &String)>,
        list: Option<ResponseList>,
        hour: i64,
    ) -> Result<i64, Error> {
        let function = self.store.word(&mut self.memos, function)?;
        let parts = answer.and_then(|(_, content, _)| content.parts());
        let error = match answer {
            Some((_, _, error)) if !error.is_empty() => Some(self.store.message_id(error, hour)?),
            _ => None,
        };
        let redactions = asked.as_ref().map_or(0, |asked| asked.redactions)
            + answer.map_or(0, |(half, _, _)| half.redactions);
        let input = asked.as_ref().map(|asked| asked.input.clone()).unwrap_or_default();
        let request_bytes = asked.as_ref().map_or(0, |asked| asked.bytes);
        let request = asked.map(|asked| asked.list.pack());
        let response = list.map(|list| list.pack());
        let severity = parts.map_or(0, |parts| severity_number(&parts.results));
        let sql = "INSERT INTO exchange (hash, input, function, severity, request, response, \
            error, ttl, redactions, request_bytes, response_bytes, used) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
            ON CONFLICT (hash) DO NOTHING RETURNING id";
        let params = [
            (&hash[..]).into(),
            (&input).into(),
            function.into(),
            severity.into(),
            request.as_ref().into(),
            response.as_ref().into(),
            error.into(),
            parts.and_then(|parts| parts.ttl).into(),
            redactions.into(),
            request_bytes.into(),
            answer.map_or(0, |(half, _, _)| half.bytes).into(),
            hour.into(),
        ];
        let Some(id) = self.store.db.number(sql, &params)? else {
            let find = "SELECT id FROM exchange WHERE hash = $1";
            let id = self.store.db.number(find, &[(&hash[..]).into()])?;
            return self.store.must(id, "an exchange");
        };
        for (ord, result) in parts.into_iter().flat_map(|p| &p.results).enumerate() {
            let message = self.store.message_id(&result.message, hour)?;
            let reason = match &result.reason {
                Some(reason) => Some(self.store.word(&mut self.memos, reason)?),
                None => None,
            };
            let sql = "INSERT INTO result (exchange, ord, severity, message, reason, target) \
                VALUES ($1, $2, $3, $4, $5, $6)";
            let params = [
                id.into(),
                ord.into(),
                result.severity.into(),
                message.into(),
                reason.into(),
                result.target.into(),
            ];
            self.store.db.execute(sql, &params)?;
        }
        for (ord, condition) in parts.into_iter().flat_map(|p| &p.conditions).enumerate() {
            let sql = "INSERT INTO condition (exchange, ord, type, status, reason, message, target) \
                VALUES ($1, $2, $3, $4, $5, $6, $7)";
            let params = [
                id.into(),
                ord.into(),
                (&condition.kind).into(),
                condition.status.into(),
                (&condition.reason).into(),
                condition.message.as_ref().into(),
                condition.target.into(),
            ];
            self.store.db.execute(sql, &params)?;
        }
        Ok(id)
    }

    /// The request of a step that came before.
    fn asked_before(&self, exchange: Option<i64>) -> Result<Option<Asked>, Error> {
        let Some(id) = exchange else { return Ok(None) };
        let sql = "SELECT input, request, request_bytes, redactions FROM exchange WHERE id = $1";
        let Some(row) = self.store.db.first(sql, &[id.into()])? else { return Ok(None) };
        let Some(request) = row.bytes_or(1)? else { return Ok(None) };
        let list = RequestList::unpack(&request)?;
        let (bytes, redactions) = (row.int(2)?, row.int(3)?);
        Ok(Some(Asked { input: row.bytes(0)?, list, bytes, redactions }))
    }

    /// Stores the parts of a request.
    fn asked(
        &mut self,
        run: &OpenRun,
        half: &HalfRecord,
        hour: i64,
    ) -> Result<Option<Asked>, Error> {
        let HalfContent::Request(content) = &half.content else { return Ok(None) };
        let input = input_hash(&half.function, content, half.redactions).to_vec();
        let list = match content {
            Content::Empty => List::Empty,
            Content::Opaque { bytes, hash } => List::Opaque { bytes: *bytes, hash: *hash },
            Content::Parts(parts) => {
                let desired = Side::Desired as i64;
                let states = [
                    (&parts.observed, Side::Observed as i64),
                    (&parts.desired, desired),
                    (&parts.required, 2),
                    (&parts.extra, 3),
                ];
                let bodies =
                    [&parts.context, &parts.input, &parts.schemas, &parts.credentials, &parts.rest];
                let mut ids = [None; 9];
                for (id, (state, side)) in ids.iter_mut().zip(states) {
                    *id = self.put_state(run, half.index, state.as_ref(), side, hour)?;
                }
                for (at, (id, body)) in ids.iter_mut().skip(4).zip(bodies).enumerate() {
                    let kind = BODIES + half.index * 16 + int(at);
                    *id = self.put_body(run, kind, &half.step, body.as_ref(), hour)?;
                }
                List::Blobs { ids, tag: parts.tag.clone() }
            }
        };
        let (bytes, redactions) = (half.bytes, half.redactions);
        Ok(Some(Asked { input, list, bytes, redactions }))
    }

    /// Stores the parts of a response.
    fn answered(
        &mut self,
        run: &OpenRun,
        half: &HalfRecord,
        content: &Content<Response>,
        hour: i64,
    ) -> Result<ResponseList, Error> {
        let parts = match content {
            Content::Empty => return Ok(List::Empty),
            Content::Opaque { bytes, hash } => {
                return Ok(List::Opaque { bytes: *bytes, hash: *hash });
            }
            Content::Parts(parts) => parts,
        };
        let mut ids = [None; 5];
        let next = half.index + 1;
        ids[0] = self.put_state(run, next, parts.desired.as_ref(), Side::Desired as i64, hour)?;
        let bodies = [&parts.context, &parts.requirements, &parts.output, &parts.rest];
        for (at, (id, body)) in ids.iter_mut().skip(1).zip(bodies).enumerate() {
            // The context of an answer is a relative of that of the next request.
            let kind =
                if at == 0 { BODIES + next * 16 } else { BODIES + half.index * 16 + 8 + int(at) };
            *id = self.put_body(run, kind, &half.step, body.as_ref(), hour)?;
        }
        Ok(List::Blobs { ids, tag: parts.tag.clone() })
    }

    fn put_body(
        &mut self,
        run: &OpenRun,
        kind: i64,
        step: &str,
        body: Option<&Body>,
        hour: i64,
    ) -> Result<Option<i64>, Error> {
        let Some(body) = body else { return Ok(None) };
        let place = Place { owner: run.owner, kind, name: "", family: step };
        self.put(&body.hash, body.text.as_bytes(), &place, hour).map(Some)
    }

    /// Stores a state with its bodies.
    fn put_state(
        &mut self,
        run: &OpenRun,
        index: i64,
        state: Option<&State>,
        side: i64,
        hour: i64,
    ) -> Result<Option<i64>, Error> {
        let Some(state) = state else { return Ok(None) };
        if let Some((id, used)) = self.memos.blobs.get(&state.hash)
            && used >= hour
        {
            // So are its bodies.
            return Ok(Some(id));
        }
        let mut entries = Vec::with_capacity(state.entries.len());
        for entry in &state.entries {
            let body = match &entry.body {
                Some(body) => {
                    let item = entry.item.map(|item| format!("{}/{item}", entry.name));
                    let name = item.as_deref().unwrap_or(&entry.name);
                    let family = &run.shape.kind;
                    let place = Place { owner: run.owner, kind: side, name, family };
                    Some(self.put(&body.hash, body.text.as_bytes(), &place, hour)?)
                }
                None => None,
            };
            let ready = entry.ready.and_then(|r| crate::digest::READY.get(usize::from(r)));
            entries.push(StateEntry {
                name: entry.name.clone(),
                item: entry.item,
                ready: ready.map(|ready| (*ready).to_owned()),
                connection_keys: entry.keys.clone(),
                body,
            });
        }
        let packed = PackedState {
            has_composite: state.has_composite,
            has_resources: state.has_resources,
            entries,
        };
        let place = Place {
            owner: run.owner,
            kind: STATES + side,
            // What is observed is the same in all steps.
            name: &(if side == 0 { 0 } else { index }).to_string(),
            family: &run.shape.kind,
        };
        self.put(&state.hash, &packed.pack(), &place, hour).map(Some)
    }

    /// Stores bytes that a run needs in an hour, with what was in the same place before as their
    /// relative.
    fn put(
        &mut self,
        hash: &Hash,
        bytes: &[u8],
        place: &Place<'_>,
        hour: i64,
    ) -> Result<i64, Error> {
        let last = (place.owner, place.kind, place.name.to_owned());
        if let Some((id, used)) = self.memos.blobs.get(hash)
            && used >= hour
        {
            self.memos.last.put(last, id);
            return Ok(id);
        }
        let first = (place.kind, format!("{}\0{}", place.family, place.name));
        let relative = match self.memos.last.get(&last) {
            Some(id) => Some(id),
            None => match self.last_version(place)? {
                Some(id) => Some(id),
                None => self.memos.first.get(&first),
            },
        };
        let (id, new) = self.store.put_blob(hash, bytes, relative, (hour, 0))?;
        if !new {
            self.store.stamp_blob(id, hour, 0)?;
        }
        self.memos.blobs.put(*hash, (id, hour));
        self.memos.last.put(last, id);
        if self.memos.first.get(&first).is_none() {
            self.memos.first.put(first, id);
        }
        Ok(id)
    }

    /// The last version of a slot, of this side or else of the other.
    fn last_version(&self, place: &Place<'_>) -> Result<Option<i64>, Error> {
        if place.kind > 1 {
            return Ok(None);
        }
        if let Some(id) = self.memos.last.get(&(place.owner, 1 - place.kind, place.name.to_owned()))
        {
            return Ok(Some(id));
        }
        let sql = "SELECT v.blob FROM slot s JOIN version v ON v.slot = s.id \
            WHERE s.owner = $1 AND s.name = $2 AND v.blob IS NOT NULL \
            ORDER BY CASE WHEN v.side = $3 THEN 0 ELSE 1 END, v.run DESC LIMIT 1";
        let params = [place.owner.into(), place.name.into(), place.kind.into()];
        self.store.db.number(sql, &params)
    }
}

//! Finds or makes the rows that others point at: words, objects, labels, slots, messages, shapes.

use std::collections::BTreeMap;

use crate::digest::{Composite, Hash, Hasher, Identity};

use super::Store;
use super::db::{Error, Param};

/// Forgets everything when it has this many entries, rather than to keep track of their age.
const MOST: usize = 64 * 1024;

/// What was looked up before.
#[derive(Debug)]
pub(super) struct Memo<K, V>(BTreeMap<K, V>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V: Copy> Memo<K, V> {
    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.0.get(key).copied()
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(key, value);
    }
}

/// All that is known of the rows of the store. It is to be forgotten when a transaction fails.
#[derive(Debug, Default)]
pub(super) struct Memos {
    pub(super) words: Memo<String, i64>,
    pub(super) slots: Memo<(i64, String), i64>,
    /// Keys and the hour in which they were last needed.
    pub(super) blobs: Memo<Hash, (i64, i64)>,
    pub(super) exchanges: Memo<Hash, (i64, i64)>,
    /// The last blob in a place.
    pub(super) last: Memo<(i64, i64, String), i64>,
    /// The first blob in a place, of whichever owner.
    pub(super) first: Memo<(i64, String), i64>,
}

/// A shape of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) composition: Option<String>,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    /// Names of steps and functions.
    pub(super) steps: Vec<(String, String)>,
}

impl Shape {
    fn hash(&self) -> Hash {
        let mut hasher = Hasher::new("pipeline");
        hasher.add_or(self.composition.as_ref().map(String::as_bytes));
        for part in [&self.group, &self.version, &self.kind] {
            hasher.add(part.as_bytes());
        }
        for (step, function) in &self.steps {
            hasher.add(step.as_bytes());
            hasher.add(function.as_bytes());
        }
        hasher.finish()
    }
}

impl Store {
    /// The key of a word.
    pub(super) fn word(&self, memos: &mut Memos, text: &str) -> Result<i64, Error> {
        if let Some(id) = memos.words.get(text) {
            return Ok(id);
        }
        let find = "SELECT id FROM word WHERE text = $1";
        let make = "INSERT INTO word (text) VALUES ($1) ON CONFLICT (text) DO NOTHING RETURNING id";
        let id = self.found_or_made(find, make, &[text.into()], "a word")?;
        memos.words.put(text.to_owned(), id);
        Ok(id)
    }

    /// The key of a row that is looked up, and made if it is not there.
    fn found_or_made(
        &self,
        find: &str,
        make: &str,
        params: &[Param<'_>],
        what: &str,
    ) -> Result<i64, Error> {
        if let Some(id) = self.db.number(find, params)? {
            return Ok(id);
        }
        if let Some(id) = self.db.number(make, params)? {
            return Ok(id);
        }
        self.must(self.db.number(find, params)?, what)
    }

    /// What another recorder was faster to insert must be there.
    #[allow(clippy::unused_self)] // reads better at the end of a lookup
    pub(super) fn must<T>(&self, found: Option<T>, what: &str) -> Result<T, Error> {
        found.ok_or_else(|| Error::Busy(format!("{what} came and went")))
    }

    /// The key of an object. Its uid and the hour in which it was seen are kept up to date.
    pub(super) fn object_id(&self, cluster: &str, of: &Identity, at: i64) -> Result<i64, Error> {
        let key = [cluster, of.group(), &of.kind, &of.namespace, &of.name];
        let params = key.map(Into::into);
        let find = "SELECT id, uid, last_seen FROM object WHERE cluster = $1 AND grp = $2 \
            AND kind = $3 AND namespace = $4 AND name = $5";
        let mut found = self.db.first(find, &params)?;
        if found.is_none() {
            let sql = "INSERT INTO object (cluster, grp, kind, namespace, name, uid, first_seen, \
                last_seen) VALUES ($1, $2, $3, $4, $5, $6, $7, $7) \
                ON CONFLICT (cluster, grp, kind, namespace, name) DO NOTHING RETURNING id";
            let mut all = params.to_vec();
            all.extend([(&of.uid).into(), at.into()]);
            if let Some(id) = self.db.number(sql, &all)? {
                return Ok(id);
            }
            found = self.db.first(find, &params)?;
        }
        let found = self.must(found, "an object")?;
        let id = found.int(0)?;
        let other_uid = !of.uid.is_empty() && found.text(1)? != of.uid;
        if other_uid || found.int(2)? / super::HOUR < at / super::HOUR {
            let sql = "UPDATE object SET uid = CASE WHEN $2 = '' THEN uid ELSE $2 END, \
                last_seen = CASE WHEN last_seen < $3 THEN $3 ELSE last_seen END WHERE id = $1";
            self.db.execute(sql, &[id.into(), (&of.uid).into(), at.into()])?;
        }
        Ok(id)
    }

    /// The key of a slot.
    pub(super) fn slot_id(&self, memos: &mut Memos, owner: i64, name: &str) -> Result<i64, Error> {
        let key = (owner, name.to_owned());
        if let Some(id) = memos.slots.get(&key) {
            return Ok(id);
        }
        let find = "SELECT id FROM slot WHERE owner = $1 AND name = $2";
        let make = "INSERT INTO slot (owner, name) VALUES ($1, $2) \
            ON CONFLICT (owner, name) DO NOTHING RETURNING id";
        let id = self.found_or_made(find, make, &[owner.into(), name.into()], "a slot")?;
        memos.slots.put(key, id);
        Ok(id)
    }

    /// The key of a message that a run needs in an hour, or a change.
    pub(super) fn message_id(&self, text: &str, used: i64) -> Result<i64, Error> {
        let mut hasher = Hasher::new("message");
        hasher.add(text.as_bytes());
        let hash = hasher.finish();
        let find = "SELECT id, used FROM message WHERE hash = $1";
        if let Some(row) = self.db.first(find, &[(&hash).into()])? {
            let id = row.int(0)?;
            if row.int(1)? < used {
                let sql = "UPDATE message SET used = $2 WHERE id = $1 AND used < $2";
                self.db.execute(sql, &[id.into(), used.into()])?;
            }
            return Ok(id);
        }
        let sql = "INSERT INTO message (hash, text, used, held) VALUES ($1, $2, $3, 0) \
            ON CONFLICT (hash) DO NOTHING RETURNING id";
        match self.db.number(sql, &[(&hash).into(), text.into(), used.into()])? {
            Some(id) => Ok(id),
            None => self.must(self.db.number(find, &[(&hash).into()])?, "a message"),
        }
    }

    /// The key of a shape.
    pub(super) fn shape_id(&self, memos: &mut Memos, shape: &Shape) -> Result<i64, Error> {
        let hash = shape.hash();
        let find = "SELECT id FROM pipeline WHERE hash = $1";
        if let Some(id) = self.db.number(find, &[(&hash).into()])? {
            return Ok(id);
        }
        let composition = match &shape.composition {
            Some(name) => Some(self.word(memos, name)?),
            None => None,
        };
        let sql = "INSERT INTO pipeline (hash, composition, grp, version, kind, steps) \
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (hash) DO NOTHING RETURNING id";
        let params = [
            (&hash).into(),
            composition.into(),
            (&shape.group).into(),
            (&shape.version).into(),
            (&shape.kind).into(),
            shape.steps.len().into(),
        ];
        let Some(id) = self.db.number(sql, &params)? else {
            return self.must(self.db.number(find, &[(&hash).into()])?, "a pipeline");
        };
        for (index, (step, function)) in shape.steps.iter().enumerate() {
            let (step, function) = (self.word(memos, step)?, self.word(memos, function)?);
            let sql = "INSERT INTO pipeline_step (pipeline, idx, step, function) \
                VALUES ($1, $2, $3, $4) ON CONFLICT (pipeline, idx) DO NOTHING";
            let params = [id.into(), index.into(), step.into(), function.into()];
            self.db.execute(sql, &params)?;
        }
        Ok(id)
    }

    /// A shape by its key.
    pub(super) fn shape(&self, id: i64) -> Result<Shape, Error> {
        let sql = "SELECT w.text, p.grp, p.version, p.kind FROM pipeline p \
            LEFT JOIN word w ON w.id = p.composition WHERE p.id = $1";
        let Some(row) = self.db.first(sql, &[id.into()])? else {
            return Err(Error::Damaged(format!("pipeline {id} is missing")));
        };
        let steps = self.pipeline(id)?.into_iter().map(|step| (step.step, step.function));
        Ok(Shape {
            composition: row.text_or(0)?,
            group: row.text(1)?,
            version: row.text(2)?,
            kind: row.text(3)?,
            steps: steps.collect(),
        })
    }

    /// The key of a source, which is made if it is new.
    pub(super) fn source_id(
        &self,
        (kind, cluster, name): (&str, &str, &str),
        head: &[u8],
        at: i64,
    ) -> Result<i64, Error> {
        let find = "SELECT id FROM source WHERE kind = $1 AND cluster = $2 AND name = $3";
        let params = [kind.into(), cluster.into(), name.into()];
        if let Some(id) = self.db.number(find, &params)? {
            return Ok(id);
        }
        let sql = "INSERT INTO source (kind, cluster, name, seq, head, first_seen, last_seen) \
            VALUES ($1, $2, $3, 0, $4, $5, $5) \
            ON CONFLICT (kind, cluster, name) DO NOTHING RETURNING id";
        let mut all = params.to_vec();
        all.extend([head.into(), at.into()]);
        match self.db.number(sql, &all)? {
            Some(id) => Ok(id),
            None => self.must(self.db.number(find, &params)?, "a source"),
        }
    }

    /// Keeps what links a composite resource to others.
    pub(super) fn set_links(
        &self,
        cluster: &str,
        object: i64,
        links: &Composite,
        at: i64,
    ) -> Result<(), Error> {
        let mut parent = None;
        if let Some(of) = &links.parent {
            parent = Some(self.object_id(cluster, of, at)?);
        }
        let mut claim = None;
        if let Some(of) = &links.claim {
            claim = Some(self.object_id(cluster, of, at)?);
        }
        let sql = "UPDATE object SET parent = $2, claim = $3 WHERE id = $1";
        self.db.execute(sql, &[object.into(), parent.into(), claim.into()])?;
        for object in [Some(object), claim].into_iter().flatten() {
            self.db.execute("DELETE FROM label WHERE object = $1", &[object.into()])?;
            for (key, value) in &links.labels {
                let sql = "INSERT INTO label (object, key, value) VALUES ($1, $2, $3) \
                    ON CONFLICT (object, key) DO UPDATE SET value = excluded.value";
                self.db.execute(sql, &[object.into(), key.into(), value.into()])?;
            }
        }
        Ok(())
    }
}

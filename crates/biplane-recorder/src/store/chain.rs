//! The chain of hashes over the changes of a source. A change that was altered, added or removed
//! later does not fit into it.

use biplane_proto::json;

use super::Store;
use super::changes::Derived;
use super::db::Error;
use super::link::{genesis, link};
use super::read_changes::change;
use super::rows::{ChangeRow, SourceRow};

/// So many changes are read at a time.
const PAGE: i64 = 500;

/// More than this need not be named.
const MOST_BROKEN: usize = 100;

/// What does not fit into a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The number of the change.
    pub seq: i64,
    /// What is wrong with it.
    pub reason: String,
}

/// The state of the chain of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The source.
    pub source: SourceRow,
    /// The first change that is kept. Those before were removed by retention.
    pub first: i64,
    /// How many changes were looked at.
    pub entries: i64,
    /// What is wrong. Empty if the chain is whole.
    pub broken: Vec<Broken>,
}

impl Store {
    /// Computes the chains of all sources again.
    pub fn verify(&self) -> Result<Vec<Verified>, Error> {
        let id = self.id()?;
        let sources = self.sources()?;
        let sources = sources.into_iter().filter(|source| source.kind == "changelogs");
        // Entries come and go while this reads. Each chain is looked at as it is at one moment.
        let verified = |source: SourceRow| {
            self.db.snapshot(|_| {
                let now = self.sources()?.into_iter().find(|now| now.id == source.id);
                self.verify_source(&id, now.unwrap_or(source))
            })
        };
        sources.map(verified).collect()
    }

    fn verify_source(&self, store: &[u8], source: SourceRow) -> Result<Verified, Error> {
        let sql = "SELECT seq, hash FROM checkpoint WHERE source = $1 ORDER BY seq DESC LIMIT 1";
        let (mut seq, mut head) = match self.db.first(sql, &[source.id.into()])? {
            Some(row) => (row.int(0)?, row.bytes(1)?),
            None => (0, genesis(store, "changelogs", &source.cluster, &source.name).to_vec()),
        };
        let first = seq + 1;
        let mut entries = 0;
        let mut broken = Vec::new();
        let mut wrong = |seq: i64, reason: &str| {
            if broken.len() < MOST_BROKEN {
                broken.push(Broken { seq, reason: reason.to_owned() });
            }
        };
        let mut after = i64::MIN;
        loop {
            let sql = format!(
                "SELECT {} FROM change c JOIN object o ON o.id = c.object \
                    WHERE c.source = $1 AND c.seq > $2 ORDER BY c.seq LIMIT {PAGE}",
                super::read_changes::CHANGE
            );
            let rows = self.db.query(&sql, &[source.id.into(), after.into()])?;
            let Some(last) = rows.last() else { break };
            after = last.int(2)?;
            for row in &rows {
                let number = row.int(2)?;
                entries += 1;
                match change(row) {
                    Ok(change) => {
                        for missing in (seq + 1..number).take(MOST_BROKEN) {
                            wrong(missing, "it is missing");
                        }
                        if number <= seq {
                            wrong(number, "it was removed and is there again");
                        }
                        if let Err(reason) = self.fits(&change, &head, row.int(19)?) {
                            wrong(number, &reason);
                        }
                        head = change.hash;
                    }
                    Err(error) => wrong(number, &error.to_string()),
                }
                seq = number;
            }
        }
        if seq != source.seq {
            wrong(source.seq, "it is missing: the source has counted it");
        } else if head != source.head {
            wrong(seq, "its hash is not the one that the source has");
        }
        Ok(Verified { source, first, entries, broken })
    }

    /// Whether a change is what was hashed, and what is derived from it is what it says.
    fn fits(&self, change: &ChangeRow, head: &[u8], flags: i64) -> Result<(), String> {
        let entry = self.entry_with(change, flags).map_err(|error| error.to_string())?;
        let line = json::to_string(&entry).map_err(|error| error.to_string())?;
        if link(head, change.seq, change.received, &line)[..] != change.hash[..] {
            return Err("it was altered, or the one before it was".to_owned());
        }
        let derived = Derived::of(&entry, change.received);
        let stored = Derived {
            identity: crate::digest::Identity {
                api_version: change.api_version.clone(),
                kind: change.object.kind.clone(),
                namespace: change.object.namespace.clone(),
                name: change.object.name.clone(),
                // It is that of the object now.
                uid: derived.identity.uid.clone(),
            },
            at: change.at,
            flags,
            cause: change.cause.clone(),
            generation: change.generation,
            detail: derived.detail.clone(),
            trace: change.trace.as_ref().and_then(|t| super::pack::unhex(t.as_bytes())),
            entry_id: change.entry_id.clone(),
        };
        let failed = entry.error_message.is_some();
        let group = derived.identity.group() == change.object.group;
        if stored != derived || failed != change.failed || !group {
            return Err("what is derived from it was altered".to_owned());
        }
        Ok(())
    }
}

//! A wrapper around a cluster that does not send applies which would change nothing.
//!
//! The decision is made from the object that the caller has just read and from what earlier applies
//! of this process came to: see [`biplane_schema::merge::Ledger`].

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use biplane_model::{Gvk, Object, ObjectId};
use biplane_schema::merge::{Applying, Ledger, Verdict, verdict};
use tokio::time::Instant;

use crate::cluster::{
    Access, Applied, Apply, Cluster, Delete, Deleted, Effect, List, Page, Part, Patch, Query,
    Source, Subscribe, Write,
};
use crate::error::{ReadError, WriteError};
use crate::watch::Subscription;

/// What happens to applies that would change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Skipping {
    /// They are not sent.
    #[default]
    Skip,
    /// They are sent as dry runs, and those that would have changed something are counted.
    Verify,
    /// They are sent.
    Send,
}

/// How often a skipped apply is sent as a dry run while others keep changing the object.
const VERIFICATIONS: usize = 5;

/// A cluster that does not send applies which would change nothing.
pub struct Quiet {
    inner: Arc<dyn Cluster>,
    skipping: Skipping,
    ledger: Mutex<Ledger>,
    /// After a change of schemas: what has been applied since, as hashes of the object and of manager
    /// and part. Until then, managed fields are not to be trusted.
    applied_since: Mutex<Option<BTreeSet<(u64, u64)>>>,
    skipped: AtomicU64,
    wrong: AtomicU64,
}

impl fmt::Debug for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quiet").field("skipping", &self.skipping).finish_non_exhaustive()
    }
}

impl Quiet {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Cluster>, skipping: Skipping) -> Self {
        Self {
            inner,
            skipping,
            ledger: Mutex::default(),
            applied_since: Mutex::default(),
            skipped: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
        }
    }

    /// How many applies were not sent.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// How many of them would have changed something, if that is verified.
    pub fn wrong(&self) -> u64 {
        self.wrong.load(Ordering::Relaxed)
    }

    /// Forgets an object that does not exist any more.
    pub fn forget(&self, uid: &str) {
        self.ledger().forget(uid);
        if let Some(since) = &mut *self.applied_since() {
            let of = hash(uid);
            let marks: Vec<_> = since.range((of, 0)..=(of, u64::MAX)).copied().collect();
            for mark in marks {
                since.remove(&mark);
            }
        }
    }

    /// Sends every apply once more, because a kind has another schema now: what managed fields say
    /// depends on it.
    pub fn distrust(&self) {
        self.ledger().clear();
        *self.applied_since() = Some(BTreeSet::new());
    }

    fn applied_since(&self) -> MutexGuard<'_, Option<BTreeSet<(u64, u64)>>> {
        self.applied_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an apply would change nothing.
    fn can_skip(&self, intent: &Object, known: &Object, how: &Applying<'_>) -> bool {
        let trusted = match &*self.applied_since() {
            Some(since) => since.contains(&mark(known, how)),
            None => true,
        };
        trusted
            && (verdict(intent, known, how) == Verdict::Same
                || self.ledger().knows(intent, known, how))
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Quiet {
    /// Sends a skipped apply as a dry run, and counts it if it would have changed something.
    async fn verify(&self, intent: &Object, part: Part, known: &Object, how: &Apply, by: Instant) {
        if self.would_change(intent, part, known, how, by).await {
            self.wrong.fetch_add(1, Ordering::Relaxed);
            tracing::error!(object = %intent.id(), "an apply that was skipped would have changed something");
        }
    }

    /// Whether an apply would change an object. Others may change it at the same time: then the
    /// answer differs from what was known, but not from what is there.
    async fn would_change(
        &self,
        intent: &Object,
        part: Part,
        known: &Object,
        how: &Apply,
        by: Instant,
    ) -> bool {
        let write = Write { dry_run: true, ..how.write.clone() };
        let dry = Apply { write, ..how.clone() };
        let mut there = known.clone();
        for _ in 0..VERIFICATIONS {
            let answer = self.inner.apply(intent, part, None, &dry, by).await;
            // An apply that is refused or not answered changes nothing.
            let Ok(Applied { object: applied, .. }) = answer else { return false };
            let applied = unversioned(&applied);
            if applied == unversioned(&there) {
                return false;
            }
            let now = self.inner.get(&intent.id(), Source::Live, by).await;
            let Ok(now) = now else { return false };
            if applied == unversioned(&now) {
                return false;
            }
            if now.resource_version() == there.resource_version() {
                return true;
            }
            there = now;
        }
        true
    }
}

/// Object, and manager and part, as hashes.
fn mark(object: &Object, how: &Applying<'_>) -> (u64, u64) {
    (hash(object.uid()), hash((how.manager, how.subresource)))
}

fn hash(value: impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// An object without its version and the times of its managers, which a dry run may change. The order
/// of managers follows their times.
fn unversioned(object: &Object) -> Object {
    let mut object = object.clone();
    object.remove_at(&["metadata", "resourceVersion"]);
    let managers = object.remove_at(&["metadata", "managedFields"]);
    if let Some(biplane_model::Value::Array(mut entries)) = managers {
        for entry in entries.iter_mut().filter_map(|entry| entry.as_object_mut()) {
            entry.remove("time");
        }
        entries.sort_by_cached_key(ToString::to_string);
        object.set_at_or_ignore(&["metadata", "managedFields"], entries);
    }
    object
}

#[async_trait]
impl Cluster for Quiet {
    async fn get(&self, id: &ObjectId, source: Source, by: Instant) -> Result<Object, ReadError> {
        self.inner.get(id, source, by).await
    }

    async fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        by: Instant,
    ) -> Result<Page, ReadError> {
        self.inner.list(gvk, query, how, by).await
    }

    async fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
        by: Instant,
    ) -> Result<Subscription, ReadError> {
        self.inner.subscribe(gvk, query, how, by).await
    }

    async fn create(&self, object: Object, how: &Write, by: Instant) -> Result<Object, WriteError> {
        self.inner.create(object, how, by).await
    }

    async fn update(
        &self,
        object: &Object,
        part: Part,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        self.inner.update(object, part, how, by).await
    }

    async fn patch(
        &self,
        id: &ObjectId,
        part: Part,
        patch: &Patch,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        self.inner.patch(id, part, patch, how, by).await
    }

    async fn apply(
        &self,
        intent: &Object,
        part: Part,
        known: Option<&Object>,
        how: &Apply,
        by: Instant,
    ) -> Result<Applied, WriteError> {
        let subresource = Some(part.subresource()).filter(|name| !name.is_empty());
        let applying = Applying { manager: &how.write.manager, subresource };
        if let (Some(known), false) = (known, how.write.dry_run)
            && self.skipping != Skipping::Send
            && self.can_skip(intent, known, &applying)
        {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            if self.skipping == Skipping::Verify {
                self.verify(intent, part, known, how, by).await;
            }
            return Ok(Applied { object: known.clone(), effect: Effect::Skipped });
        }
        let applied = self.inner.apply(intent, part, known, how, by).await?;
        if !how.write.dry_run {
            self.ledger().remember(intent, &applied.object, &applying);
            if let Some(since) = &mut *self.applied_since() {
                since.insert(mark(&applied.object, &applying));
            }
        }
        Ok(applied)
    }

    async fn delete(
        &self,
        id: &ObjectId,
        how: &Delete,
        by: Instant,
    ) -> Result<Deleted, WriteError> {
        let deleted = self.inner.delete(id, how, by).await?;
        if deleted == Deleted::Gone && !how.dry_run {
            self.forget(&how.only_if.uid);
        }
        Ok(deleted)
    }

    async fn is_namespaced(&self, gvk: &Gvk, by: Instant) -> Result<bool, ReadError> {
        self.inner.is_namespaced(gvk, by).await
    }

    async fn schema(&self, gvk: &Gvk, by: Instant) -> Result<Option<Object>, ReadError> {
        self.inner.schema(gvk, by).await
    }

    async fn access(
        &self,
        gvk: &Gvk,
        namespace: &str,
        verb: &str,
        by: Instant,
    ) -> Result<Access, ReadError> {
        self.inner.access(gvk, namespace, verb, by).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::ApiServer;

    #[tokio::test]
    async fn nothing_is_remembered_of_an_object_that_is_gone() {
        let quiet = Quiet::new(Arc::new(ApiServer::default()), Skipping::Skip);
        quiet.distrust();
        let by = Instant::now() + std::time::Duration::from_mins(1);
        let mut uids = Vec::new();
        for name in ["a", "b"] {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"namespace": "ns", "name": name}, "data": {"k": "v"}});
            let map = Object::from_value(map).unwrap_or_default();
            let how = Apply::forced("us");
            let applied = quiet.apply(&map, Part::Main, None, &how, by).await.unwrap();
            uids.push(applied.object.uid().to_owned());
        }
        let marks = || quiet.applied_since().as_ref().map_or(0, BTreeSet::len);
        assert_eq!(marks(), 2);
        quiet.forget(&uids[0]);
        assert_eq!(marks(), 1);
        quiet.forget(&uids[1]);
        assert_eq!((marks(), quiet.ledger().len()), (0, 0));
    }
}

//! What a reconcile has seen: the version of every object that it read or wrote.
//!
//! A change that the last reconcile of a key has seen already is not news. So the echo of an own
//! write wakes nobody, and a foreign change that slipped in between does.
//!
//! [`Noting`] is the cluster that reconcilers use. It notes versions for the reconcile in whose task
//! it is called.

use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use biplane_cluster::{
    Access, Applied, Apply, Cluster, Delete, Deleted, Effect, List, Page, Part, Patch, Query,
    ReadError, Source, Subscribe, Subscription, Write, WriteError,
};
use biplane_model::{Gvk, Object, ObjectId};
use tokio::time::Instant;

/// The version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// The object did not exist.
    Absent,
    /// Versions are numbers that grow.
    Number(u64),
    /// A server whose versions are something else.
    Text(String),
}

impl Version {
    /// The version of an object.
    pub fn of(object: &Object) -> Self {
        let text = object.resource_version();
        text.parse().map_or_else(|_| Self::Text(text.to_owned()), Self::Number)
    }
}

/// An object in all versions of its kind, as a hash.
fn object_key(id: &ObjectId) -> u64 {
    hash((&id.gvk.group, &id.gvk.kind, &id.namespace, &id.name))
}

fn kind_key(gvk: &Gvk) -> u64 {
    hash((&gvk.group, &gvk.kind))
}

fn hash(value: impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A sorted list of keys with values. It takes a fraction of the memory of a map: there is one for
/// each object that is reconciled.
#[derive(Clone, Debug)]
struct Sorted<T>(Vec<(u64, T)>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Sorted<T> {
    fn at(&self, key: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(key, _)| *key)
    }

    fn get(&self, key: u64) -> Option<&T> {
        Some(&self.0[self.at(key).ok()?].1)
    }

    fn insert(&mut self, key: u64, value: T) {
        match self.at(key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    fn extend(&mut self, later: Self) {
        for (key, value) in later.0 {
            self.insert(key, value);
        }
    }
}

/// What one reconcile has seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    objects: Sorted<Version>,
    /// The versions of lists. Everything of the kind up to it was seen, unless the object was also
    /// read alone.
    lists: Sorted<u64>,
    /// Whether a Secret was read.
    secrets: bool,
}

/// More objects than this are not remembered one by one. What is not remembered is news.
const MOST_OF_A_LIST: usize = 64;

impl Seen {
    fn note(&mut self, id: &ObjectId, version: Version) {
        self.objects.insert(object_key(id), version);
    }

    fn note_list(&mut self, gvk: &Gvk, page: &Page) {
        if let Ok(version) = page.version.parse::<u64>() {
            // The first list counts: what changed before the second one was not in the first.
            let kind = kind_key(gvk);
            if self.lists.get(kind).is_none() {
                self.lists.insert(kind, version);
            }
        } else if page.objects.len() <= MOST_OF_A_LIST {
            for object in &page.objects {
                self.note(&object.id(), Version::of(object));
            }
        }
    }

    /// Whether a Secret was read.
    pub fn has_read_secrets(&self) -> bool {
        self.secrets
    }

    /// Whether an object in this version is new to the reconcile.
    pub fn is_news(&self, id: &ObjectId, version: &Version) -> bool {
        let Some(seen) = self.objects.get(object_key(id)) else {
            let list = self.lists.get(kind_key(&id.gvk));
            return match (list, version) {
                (Some(list), Version::Number(version)) => version > list,
                _ => true,
            };
        };
        match (seen, version) {
            (Version::Number(seen), Version::Number(version)) => version > seen,
            (seen, version) => seen != version,
        }
    }

    /// Adds what a later reconcile has seen.
    pub fn extend(&mut self, later: Self) {
        self.objects.extend(later.objects);
        self.lists.extend(later.lists);
        self.secrets |= later.secrets;
    }
}

/// Notes what one reconcile sees.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Seen>>);

tokio::task_local! {
    static NOTES: Notes;
}

impl Notes {
    /// Runs a reconcile and notes what it sees.
    pub async fn scope<F: Future>(&self, reconcile: F) -> F::Output {
        NOTES.scope(self.clone(), reconcile).await
    }

    /// What was seen.
    pub fn take(&self) -> Seen {
        let mut seen = std::mem::take(&mut *self.lock());
        // It is kept until the next reconcile.
        seen.objects.0.shrink_to_fit();
        seen.lists.0.shrink_to_fit();
        seen
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes something for the reconcile in whose task this is called, if there is one.
fn note(with: impl FnOnce(&mut Seen)) {
    // Outside of reconciles nobody asks what was seen.
    let _ = NOTES.try_with(|notes| with(&mut notes.lock()));
}

/// A cluster that notes the versions of what is read and written through it.
#[derive(Clone)]
pub struct Noting(Arc<dyn Cluster>);

impl Noting {
    /// Wraps a cluster.
    pub fn new(inner: Arc<dyn Cluster>) -> Self {
        Self(inner)
    }
}

impl std::fmt::Debug for Noting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Noting")
    }
}

fn wrote(answer: Result<Object, WriteError>, dry_run: bool) -> Result<Object, WriteError> {
    if let (Ok(object), false) = (&answer, dry_run) {
        note(|seen| seen.note(&object.id(), Version::of(object)));
    }
    answer
}

#[async_trait]
impl Cluster for Noting {
    async fn get(&self, id: &ObjectId, source: Source, by: Instant) -> Result<Object, ReadError> {
        let answer = self.0.get(id, source, by).await;
        let version = match &answer {
            Ok(object) => Version::of(object),
            Err(ReadError::NotFound(_)) => Version::Absent,
            Err(_) => return answer,
        };
        note(|seen| {
            seen.note(id, version);
            seen.secrets |= id.gvk.kind == "Secret" && id.gvk.group.is_empty();
        });
        answer
    }

    async fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        by: Instant,
    ) -> Result<Page, ReadError> {
        let answer = self.0.list(gvk, query, how, by).await;
        if let Ok(page) = &answer {
            note(|seen| seen.note_list(gvk, page));
        }
        answer
    }

    async fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
        by: Instant,
    ) -> Result<Subscription, ReadError> {
        self.0.subscribe(gvk, query, how, by).await
    }

    async fn create(&self, object: Object, how: &Write, by: Instant) -> Result<Object, WriteError> {
        wrote(self.0.create(object, how, by).await, how.dry_run)
    }

    async fn update(
        &self,
        object: &Object,
        part: Part,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        wrote(self.0.update(object, part, how, by).await, how.dry_run)
    }

    async fn patch(
        &self,
        id: &ObjectId,
        part: Part,
        patch: &Patch,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        wrote(self.0.patch(id, part, patch, how, by).await, how.dry_run)
    }

    async fn apply(
        &self,
        intent: &Object,
        part: Part,
        known: Option<&Object>,
        how: &Apply,
        by: Instant,
    ) -> Result<Applied, WriteError> {
        let answer = self.0.apply(intent, part, known, how, by).await;
        if let (Ok(applied), false) = (&answer, how.write.dry_run) {
            // An apply that changed nothing may answer with a foreign change that was not read.
            let news = matches!(applied.effect, Effect::Created | Effect::Changed);
            if news || known.is_none() {
                note(|seen| seen.note(&applied.object.id(), Version::of(&applied.object)));
            }
        }
        answer
    }

    async fn delete(
        &self,
        id: &ObjectId,
        how: &Delete,
        by: Instant,
    ) -> Result<Deleted, WriteError> {
        let answer = self.0.delete(id, how, by).await;
        let gone = match &answer {
            Ok(deleted) => *deleted == Deleted::Gone && !how.dry_run,
            Err(error) => error.is_not_found(),
        };
        if gone {
            note(|seen| seen.note(id, Version::Absent));
        }
        answer
    }

    async fn is_namespaced(&self, gvk: &Gvk, by: Instant) -> Result<bool, ReadError> {
        self.0.is_namespaced(gvk, by).await
    }

    async fn schema(&self, gvk: &Gvk, by: Instant) -> Result<Option<Object>, ReadError> {
        self.0.schema(gvk, by).await
    }

    async fn access(
        &self,
        gvk: &Gvk,
        namespace: &str,
        verb: &str,
        by: Instant,
    ) -> Result<Access, ReadError> {
        self.0.access(gvk, namespace, verb, by).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use biplane_cluster::memory::ApiServer;
    use serde_json::json;

    use super::*;

    fn config_map(name: &str) -> Object {
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "ns"}, "data": {"k": "v"}});
        Object::from_value(value).unwrap()
    }

    #[tokio::test]
    async fn own_writes_are_no_news_and_foreign_ones_are() {
        let server = Arc::new(ApiServer::default());
        let noting = Noting::new(server.clone());
        let by = Instant::now() + Duration::from_mins(1);
        let notes = Notes::default();
        let (id, other) = (config_map("a").id(), config_map("b").id());
        let written = notes
            .scope(async {
                let missing = noting.get(&other, Source::Cache, by).await;
                assert!(missing.unwrap_err().is_not_found());
                noting.create(config_map("a"), &Write::by("us"), by).await.unwrap()
            })
            .await;
        let seen = notes.take();
        assert!(!seen.is_news(&id, &Version::of(&written)), "an echo");
        let mut changed = written.clone();
        changed.set_at(&["data", "k"], "w").unwrap();
        let changed = server.update(&changed, Part::Main, &Write::by("them"), by).await.unwrap();
        assert!(seen.is_news(&id, &Version::of(&changed)));
        assert!(seen.is_news(&id, &Version::Absent), "it was there");
        assert!(!seen.is_news(&other, &Version::Absent), "it was not there");
        let created = server.create(config_map("b"), &Write::by("them"), by).await.unwrap();
        assert!(seen.is_news(&other, &Version::of(&created)));
    }

    #[tokio::test]
    async fn a_list_has_seen_what_was_there_but_not_instead_of_a_read() {
        let server = Arc::new(ApiServer::default());
        let noting = Noting::new(server.clone());
        let by = Instant::now() + Duration::from_mins(1);
        let a = server.create(config_map("a"), &Write::by("them"), by).await.unwrap();
        let notes = Notes::default();
        let kind = Gvk::new("v1", "ConfigMap");
        let newer = notes
            .scope(async {
                noting.get(&a.id(), Source::Cache, by).await.unwrap();
                let mut newer = a.clone();
                newer.set_at(&["data", "k"], "w").unwrap();
                let how = Write::by("them");
                let newer = server.update(&newer, Part::Main, &how, by).await.unwrap();
                server.create(config_map("b"), &how, by).await.unwrap();
                noting.list(&kind, &Query::default(), &List::cached(), by).await.unwrap();
                newer
            })
            .await;
        let seen = notes.take();
        let b = server.get(&config_map("b").id(), Source::Live, by).await.unwrap();
        assert!(!seen.is_news(&b.id(), &Version::of(&b)), "it was listed");
        assert!(seen.is_news(&a.id(), &Version::of(&newer)), "the older one was read");
        let c = server.create(config_map("c"), &Write::by("them"), by).await.unwrap();
        assert!(seen.is_news(&c.id(), &Version::of(&c)));
    }

    #[tokio::test]
    async fn what_is_read_outside_of_a_reconcile_is_noted_nowhere() {
        let noting = Noting::new(Arc::new(ApiServer::default()));
        let by = Instant::now() + Duration::from_mins(1);
        assert!(noting.get(&config_map("a").id(), Source::Cache, by).await.is_err());
    }
}

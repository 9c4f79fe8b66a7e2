//! A cluster like the in-memory client of Crossplane's render engine: an apply replaces the stored
//! object, a status write replaces the status, and there are no versions, managers, checks or
//! deadlines. A dry run is not known either.

use std::borrow::Cow;
use std::ops::Deref;

use async_trait::async_trait;
use biplane_model::{Gvk, Object, ObjectId};
use tokio::time::Instant;

use super::journal::Verb;
use super::store::{Memory, Presentation, Store};
use crate::cluster::{
    Access, Applied, Apply, Cluster, Delete, Deleted, Effect, List, Page, Part, Patch, Query,
    Source, Subscribe, Write,
};
use crate::error::{ReadError, WriteError};
use crate::events::{Event, Events};
use crate::watch::Subscription;

/// A cluster that stores what it is given.
#[derive(Debug)]
pub struct RenderClient(Memory<Plain>);

/// Objects are shown as they are stored. The versions of a kind are different kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Presentation for Plain {
    fn kind(gvk: &Gvk) -> Cow<'_, Gvk> {
        Cow::Borrowed(gvk)
    }

    /// A kind without a version, and a list of a kind, stand for all versions of the kind.
    fn is_of(stored: &Gvk, wanted: &Gvk) -> bool {
        let items = wanted.kind.strip_suffix("List").filter(|kind| !kind.is_empty());
        stored.kind == items.unwrap_or(&wanted.kind)
            && stored.group == wanted.group
            && (stored.version == wanted.version
                || stored.version.is_empty()
                || wanted.version.is_empty())
    }

    fn convert(&self, object: &Object, _gvk: &Gvk) -> Object {
        object.clone()
    }
}

impl Default for RenderClient {
    fn default() -> Self {
        Self(Memory::new(Plain))
    }
}

impl Deref for RenderClient {
    type Target = Memory<Plain>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Events for RenderClient {
    fn record(&self, event: Event) {
        self.0.record(event);
    }
}

impl RenderClient {
    /// Creates an empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds objects unchanged and without a journal entry. A later object replaces an earlier one
    /// of the same kind, namespace and name.
    pub fn seed(&self, objects: impl IntoIterator<Item = Object>) {
        let mut store = self.lock();
        store.objects.extend(objects.into_iter().map(|object| (object.id(), object)));
    }
}

/// The not-found message of a client that does not know plural names.
fn not_found(id: &ObjectId) -> String {
    format!("{} \"{}\" not found", id.gvk.group_kind(), id.name)
}

/// Replaces the status. If the caller's object has no status, the stored one is kept. Returns the
/// object, and what was stored before.
fn status(store: &mut Store<Plain>, from: &Object, verb: Verb) -> (Object, Option<Object>) {
    let id = from.id();
    let merged = match store.objects.get(&id) {
        None => from.clone(),
        Some(stored) => {
            let mut merged = stored.clone();
            for key in ["status", "conditions"] {
                if let Some(value) = from.get(key) {
                    merged.make_mut().insert(key.to_owned(), value.clone());
                }
            }
            merged
        }
    };
    let before = store.put(id, &merged);
    store.note(verb, merged.clone());
    (merged, before)
}

#[async_trait]
impl Cluster for RenderClient {
    async fn get(&self, id: &ObjectId, _source: Source, _by: Instant) -> Result<Object, ReadError> {
        self.read(|store| store.get(id).ok_or_else(|| ReadError::NotFound(not_found(id))))
    }

    async fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        _by: Instant,
    ) -> Result<Page, ReadError> {
        self.read(|store| {
            let objects = store.list(gvk, query, how.form);
            Ok(Page { objects, ..Page::default() })
        })
    }

    async fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
        _by: Instant,
    ) -> Result<Subscription, ReadError> {
        self.0.subscribe(gvk, query, how)
    }

    async fn create(
        &self,
        object: Object,
        _how: &Write,
        _by: Instant,
    ) -> Result<Object, WriteError> {
        self.write(|store| {
            store.put(object.id(), &object);
            Ok(object)
        })
    }

    async fn update(
        &self,
        object: &Object,
        part: Part,
        _how: &Write,
        _by: Instant,
    ) -> Result<Object, WriteError> {
        self.write(|store| match part {
            Part::Main => {
                store.put(object.id(), object);
                store.note(Verb::Update, object.clone());
                Ok(object.clone())
            }
            Part::Status => Ok(status(store, object, Verb::UpdateStatus).0),
        })
    }

    /// Returns the stored object: patches other than applies have no effect in Crossplane.
    async fn patch(
        &self,
        id: &ObjectId,
        _part: Part,
        _patch: &Patch,
        _how: &Write,
        _by: Instant,
    ) -> Result<Object, WriteError> {
        self.write(|store| store.get(id).ok_or_else(|| WriteError::NotFound(not_found(id))))
    }

    async fn apply(
        &self,
        intent: &Object,
        part: Part,
        _known: Option<&Object>,
        _how: &Apply,
        _by: Instant,
    ) -> Result<Applied, WriteError> {
        self.write(|store| {
            let (object, before) = match part {
                Part::Main => {
                    let before = store.put(intent.id(), intent);
                    store.note(Verb::Apply, intent.clone());
                    (intent.clone(), before)
                }
                Part::Status => status(store, intent, Verb::ApplyStatus),
            };
            let effect = match before {
                None => Effect::Created,
                Some(before) if before == object => Effect::Unchanged,
                Some(_) => Effect::Changed,
            };
            Ok(Applied { object, effect })
        })
    }

    async fn delete(
        &self,
        id: &ObjectId,
        _how: &Delete,
        _by: Instant,
    ) -> Result<Deleted, WriteError> {
        self.write(|store| {
            if let Some(object) = store.take(id) {
                store.note(Verb::Delete, object);
            }
            Ok(Deleted::Gone)
        })
    }

    /// Crossplane's render client treats every kind as namespaced.
    async fn is_namespaced(&self, _gvk: &Gvk, _by: Instant) -> Result<bool, ReadError> {
        self.read(|_| Ok(true))
    }

    async fn schema(&self, gvk: &Gvk, _by: Instant) -> Result<Option<Object>, ReadError> {
        self.read(|store| store.schema(gvk))
    }

    async fn access(
        &self,
        gvk: &Gvk,
        _namespace: &str,
        _verb: &str,
        _by: Instant,
    ) -> Result<Access, ReadError> {
        self.read(|_| {
            let resource = format!("{}/{}", gvk.group_kind().to_lowercase(), gvk.version);
            Ok(Access { allowed: true, resource })
        })
    }
}

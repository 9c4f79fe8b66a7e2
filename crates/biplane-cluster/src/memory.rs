//! An in-memory cluster for the render engine and for tests.
//!
//! It stores objects, keeps a journal of every write, and can fail at any single call. The write
//! policy decides how a write changes the stored object: [`WritePolicy::ApiServer`] behaves like a
//! real API server. [`WritePolicy::Upstream`] behaves like the client of Crossplane's render
//! engine, which replaces objects where a server would merge them.

mod apiserver;
mod faults;
mod upstream;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use biplane_model::{Gvk, Object, ObjectId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cluster::{
    Access, Apply, Cluster, Delete, Event, ListQuery, Patch, ReadError, Source, WatchEvent,
    WriteError,
};
use apiserver::Endpoint;
pub use apiserver::{Counted, RegisterError, Sources};
pub use faults::{Answer, Fault, When};

/// How a write changes the stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePolicy {
    /// Like a real API server: field managers, versions, schemas, finalizers, garbage collection.
    ApiServer,
    /// Like the in-memory client of Crossplane's render engine: whole objects, no versions.
    Upstream,
}

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It was created.
    Create,
    /// It was replaced.
    Update,
    /// Its status was replaced.
    UpdateStatus,
    /// It was applied.
    Apply,
    /// Its status was applied.
    ApplyStatus,
    /// It was patched.
    Patch,
    /// It was deleted.
    Delete,
}

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A successful write.
    Write {
        /// The kind of the write.
        verb: Verb,
        /// The sent object for an apply, the removed object for a delete, otherwise the stored
        /// object.
        object: Object,
    },
    /// An event.
    Event(Event),
}

/// The objects and their watchers.
#[derive(Debug, Default)]
struct Store {
    objects: BTreeMap<ObjectId, Object>,
    documents: BTreeMap<(String, String), Object>,
    journal: Vec<Entry>,
    watchers: Vec<Watcher>,
    faults: faults::Plan,
    server: apiserver::Server,
    /// UIDs of removed objects whose dependents have not been processed yet.
    gone: Vec<String>,
}

#[derive(Debug)]
struct Watcher {
    gvk: Gvk,
    query: ListQuery,
    sender: UnboundedSender<WatchEvent>,
}

/// An in-memory cluster.
#[derive(Debug)]
pub struct MemoryCluster {
    policy: WritePolicy,
    store: Mutex<Store>,
}

impl MemoryCluster {
    /// Creates an empty cluster.
    pub fn new(policy: WritePolicy) -> Self {
        Self { policy, store: Mutex::default() }
    }

    /// Creates an empty cluster that behaves like an API server. `sources` provides its time and
    /// UIDs.
    ///
    /// Writes that do not name a field manager use `manager`.
    pub fn api_server(manager: &str, sources: impl Sources + 'static) -> Self {
        let server = apiserver::Server::new(manager, Box::new(sources));
        let store = Store { server, ..Store::default() };
        Self { policy: WritePolicy::ApiServer, store: Mutex::new(store) }
    }

    /// Changes the field manager of writes that do not name one.
    pub fn write_as(&self, manager: &str) {
        self.store().server.write_as(manager);
    }

    /// Serves the kind that a CustomResourceDefinition defines, with its schemas. Storing such a
    /// definition has the same effect.
    pub fn register(&self, definition: &Object) -> Result<(), RegisterError> {
        self.store().server.kinds.register(definition)
    }

    /// Adds objects unchanged and without a journal entry. A later object replaces an earlier one
    /// of the same kind, namespace and name.
    pub fn seed(&self, objects: impl IntoIterator<Item = Object>) {
        let mut store = self.store();
        for object in objects {
            match self.policy {
                WritePolicy::ApiServer => apiserver::seed(&mut store, object),
                WritePolicy::Upstream => {
                    store.objects.insert(object.id(), object);
                }
            }
        }
    }

    /// Serves an OpenAPI v3 document for a group and version, unless one is already served.
    pub fn serve_openapi(&self, group: &str, version: &str, document: &Object) {
        self.store()
            .documents
            .entry((group.to_owned(), version.to_owned()))
            .or_insert_with(|| document.clone());
    }

    /// Returns every write and event so far, in order.
    pub fn journal(&self) -> Vec<Entry> {
        self.store().journal.clone()
    }

    /// Returns all objects, ordered by kind, namespace and name.
    pub fn objects(&self) -> Vec<Object> {
        let store = self.store();
        let mut all: Vec<_> = store.objects.iter().collect();
        all.sort_by_key(|(id, _)| (&id.gvk, &id.namespace, &id.name));
        all.into_iter().map(|(_, object)| object.clone()).collect()
    }

    /// Plans a failure. See [`Fault`].
    pub fn inject(&self, fault: Fault) {
        self.store().faults.set(fault);
    }

    /// Ends a crash, discards planned failures and resets the call counter.
    pub fn restart(&self) {
        self.store().faults = faults::Plan::default();
    }

    /// Returns the number of calls since the start or the last [`MemoryCluster::restart`].
    pub fn calls(&self) -> usize {
        self.store().faults.calls()
    }

    // Every write stores whole objects, so the store stays consistent after a panic.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(
        &self,
        run: impl FnOnce(&mut Store) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let mut store = self.store();
        let ticket = store.faults.enter()?;
        let answer = run(&mut store);
        store.faults.leave(ticket)?;
        answer
    }

    fn write<T>(
        &self,
        run: impl FnOnce(&mut Store) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        let mut store = self.store();
        let ticket = store.faults.enter()?;
        let answer = run(&mut store);
        store.faults.leave(ticket)?;
        answer
    }
}

impl Store {
    /// Stores an object, notifies watchers and writes the journal.
    fn put(&mut self, verb: Verb, object: &Object, journal: Option<Object>) {
        let id = object.id();
        let gvk = id.gvk.clone();
        let known = self.objects.insert(id, object.clone()).is_some();
        let event = if known { WatchEvent::Modified } else { WatchEvent::Added };
        self.notify(&gvk, object, event);
        if let Some(object) = journal {
            self.journal.push(Entry::Write { verb, object });
        }
    }

    /// Removes an object, notifies watchers and writes the journal.
    fn take(&mut self, id: &ObjectId) -> Option<Object> {
        let object = self.objects.remove(id)?;
        self.notify(&id.gvk, &object, WatchEvent::Deleted);
        self.journal.push(Entry::Write { verb: Verb::Delete, object: object.clone() });
        Some(object)
    }

    fn notify(&mut self, gvk: &Gvk, object: &Object, event: fn(Object) -> WatchEvent) {
        self.watchers.retain(|w| {
            w.gvk != *gvk
                || !matches(object, &w.query)
                || w.sender.send(event(object.clone())).is_ok()
        });
    }

    fn list(&self, gvk: &Gvk, query: &ListQuery) -> Vec<Object> {
        let items = gvk.kind.strip_suffix("List").filter(|kind| !kind.is_empty());
        let kind = items.unwrap_or(&gvk.kind);
        let mut found: Vec<_> = self
            .objects
            .iter()
            .filter(|(id, object)| {
                id.gvk.kind == kind
                    && id.gvk.group == gvk.group
                    && (id.gvk.version == gvk.version
                        || id.gvk.version.is_empty()
                        || gvk.version.is_empty())
                    && matches(object, query)
            })
            .collect();
        found.sort_by_key(|(id, _)| (&id.namespace, &id.name));
        found.into_iter().map(|(_, object)| object.clone()).collect()
    }
}

fn matches(object: &Object, query: &ListQuery) -> bool {
    (query.namespace.is_empty() || object.namespace() == query.namespace)
        && object.has_labels(query.labels.iter().map(|(key, value)| (&**key, &**value)))
}

/// The not-found message of a client that does not know plural names.
fn not_found(id: &ObjectId) -> String {
    format!("{} \"{}\" not found", id.gvk.group_kind(), id.name)
}

#[async_trait]
impl Cluster for MemoryCluster {
    async fn get(&self, id: &ObjectId, _source: Source) -> Result<Object, ReadError> {
        self.read(|store| {
            let found = store.objects.get(id).cloned();
            found.ok_or_else(|| {
                ReadError::NotFound(match self.policy {
                    WritePolicy::ApiServer => apiserver::not_found(store, id),
                    WritePolicy::Upstream => not_found(id),
                })
            })
        })
    }

    async fn list(&self, gvk: &Gvk, query: &ListQuery) -> Result<Vec<Object>, ReadError> {
        self.read(|store| Ok(store.list(gvk, query)))
    }

    async fn watch(
        &self,
        gvk: &Gvk,
        query: &ListQuery,
    ) -> Result<UnboundedReceiver<WatchEvent>, ReadError> {
        let (sender, receiver) = unbounded_channel();
        // One lock for both steps, so that no write happens between the list and the watch.
        self.read(|store| {
            for object in store.list(gvk, query) {
                // The receiver still exists, so this cannot fail.
                let _ = sender.send(WatchEvent::Added(object));
            }
            store.watchers.push(Watcher { gvk: gvk.clone(), query: query.clone(), sender });
            Ok(receiver)
        })
    }

    async fn create(&self, object: Object) -> Result<Object, WriteError> {
        self.write(|store| match self.policy {
            WritePolicy::ApiServer => apiserver::create(store, object),
            WritePolicy::Upstream => Ok(upstream::create(store, object)),
        })
    }

    async fn update(&self, object: &Object) -> Result<Object, WriteError> {
        self.write(|store| match self.policy {
            WritePolicy::ApiServer => apiserver::update(store, object, Endpoint::Main),
            WritePolicy::Upstream => Ok(upstream::update(store, object)),
        })
    }

    async fn update_status(&self, object: &Object) -> Result<Object, WriteError> {
        self.write(|store| match self.policy {
            WritePolicy::ApiServer => apiserver::update(store, object, Endpoint::Status),
            WritePolicy::Upstream => Ok(upstream::status(store, object, Verb::UpdateStatus)),
        })
    }

    async fn apply(&self, intent: &Object, how: &Apply) -> Result<Object, WriteError> {
        self.write(|store| match self.policy {
            WritePolicy::ApiServer => apiserver::apply(store, intent, how, Endpoint::Main),
            WritePolicy::Upstream => Ok(upstream::apply(store, intent)),
        })
    }

    async fn apply_status(&self, intent: &Object, how: &Apply) -> Result<Object, WriteError> {
        self.write(|store| match self.policy {
            WritePolicy::ApiServer => apiserver::apply(store, intent, how, Endpoint::Status),
            WritePolicy::Upstream => Ok(upstream::status(store, intent, Verb::ApplyStatus)),
        })
    }

    async fn patch(&self, id: &ObjectId, patch: &Patch) -> Result<Object, WriteError> {
        self.write(|store| match self.policy {
            WritePolicy::ApiServer => apiserver::patch(store, id, patch),
            WritePolicy::Upstream => upstream::patch(store, id),
        })
    }

    async fn delete(&self, id: &ObjectId, how: &Delete) -> Result<(), WriteError> {
        self.write(|store| match self.policy {
            WritePolicy::ApiServer => apiserver::delete(store, id, how),
            WritePolicy::Upstream => {
                store.take(id);
                Ok(())
            }
        })
    }

    async fn record(&self, event: Event) {
        let mut store = self.store();
        if !store.faults.crashed() {
            store.journal.push(Entry::Event(event));
        }
    }

    async fn is_namespaced(&self, gvk: &Gvk) -> Result<bool, ReadError> {
        self.read(|store| match self.policy {
            WritePolicy::ApiServer => apiserver::is_namespaced(store, gvk),
            // Crossplane's render client treats every kind as namespaced.
            WritePolicy::Upstream => Ok(true),
        })
    }

    async fn openapi(&self, group: &str, version: &str) -> Result<Option<Object>, ReadError> {
        self.read(|store| Ok(store.documents.get(&(group.to_owned(), version.to_owned())).cloned()))
    }

    async fn access(&self, gvk: &Gvk, _namespace: &str, _verb: &str) -> Result<Access, ReadError> {
        self.read(|_| {
            let resource = format!("{}/{}", gvk.group_kind().to_lowercase(), gvk.version);
            Ok(Access { allowed: true, resource, user: String::new() })
        })
    }
}

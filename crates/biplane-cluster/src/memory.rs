//! A cluster that lives in memory: the render engine's world, and the tests'.
//!
//! It keeps objects, a journal of every write, and can be told to fail at any single call. How
//! a write changes what is stored is one of two policies: [`WritePolicy::ApiServer`] behaves as a
//! real API server does, [`WritePolicy::Upstream`] as the client of upstream's render engine does,
//! which replaces where a server would merge.

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

/// How a write changes what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePolicy {
    /// As a real API server: field managers, versions, schemas, finalizers, garbage collection.
    ApiServer,
    /// As the in-memory client of upstream's render engine: whole objects, no versions.
    Upstream,
}

/// What was done to an object.
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

/// One line of the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A write that went through.
    Write {
        /// What was done.
        verb: Verb,
        /// For an apply what was sent, for a delete what was there, else what is stored now.
        object: Object,
    },
    /// An event.
    Event(Event),
}

/// The objects, and who watches them.
#[derive(Debug, Default)]
struct Store {
    objects: BTreeMap<ObjectId, Object>,
    documents: BTreeMap<(String, String), Object>,
    journal: Vec<Entry>,
    watchers: Vec<Watcher>,
    faults: faults::Plan,
    server: apiserver::Server,
    /// Identities of removed objects whose dependents have not been looked after yet.
    gone: Vec<String>,
    /// How often someone has had it to himself.
    #[cfg(test)]
    held: usize,
}

#[derive(Debug)]
struct Watcher {
    gvk: Gvk,
    query: ListQuery,
    sender: UnboundedSender<WatchEvent>,
}

/// A cluster that lives in memory.
#[derive(Debug)]
pub struct MemoryCluster {
    policy: WritePolicy,
    store: Mutex<Store>,
}

impl MemoryCluster {
    /// An empty cluster.
    pub fn new(policy: WritePolicy) -> Self {
        Self { policy, store: Mutex::default() }
    }

    /// An empty cluster that behaves as an API server, with a time and identities of its own.
    ///
    /// Writes that do not name a field manager are those of `manager`.
    pub fn api_server(manager: &str, sources: impl Sources + 'static) -> Self {
        let server = apiserver::Server::new(manager, Box::new(sources));
        let store = Store { server, ..Store::default() };
        Self { policy: WritePolicy::ApiServer, store: Mutex::new(store) }
    }

    /// Changes whose writes those are that do not name a field manager.
    pub fn write_as(&self, manager: &str) {
        self.store().server.write_as(manager);
    }

    /// Serves the kind that a CustomResourceDefinition defines, with its schemas. Storing a
    /// definition has the same effect.
    pub fn register(&self, definition: &Object) -> Result<(), RegisterError> {
        self.store().server.kinds.register(definition)
    }

    /// Puts objects in as they are, without a trace in the journal. A later object replaces an
    /// earlier one of the same kind, namespace and name.
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

    /// Serves an OpenAPI v3 document for a group and version, unless one is served already.
    pub fn serve_openapi(&self, group: &str, version: &str, document: &Object) {
        self.store()
            .documents
            .entry((group.to_owned(), version.to_owned()))
            .or_insert_with(|| document.clone());
    }

    /// Every write and event so far, in order.
    pub fn journal(&self) -> Vec<Entry> {
        self.store().journal.clone()
    }

    /// Every object, in order of kind, namespace and name.
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

    /// Ends a crash and forgets planned failures; counting starts anew.
    pub fn restart(&self) {
        self.store().faults = faults::Plan::default();
    }

    /// How many calls have been made since the start or the last [`MemoryCluster::restart`].
    pub fn calls(&self) -> usize {
        self.store().faults.calls()
    }

    // A thread that panicked left whole objects behind, so the store is still good.
    fn store(&self) -> MutexGuard<'_, Store> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(test)]
        let store = tests::count(store);
        store
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
    /// Stores an object, tells watchers and writes the journal.
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

    /// Removes an object, tells watchers and writes the journal.
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

/// As a client that does not know plurals says it.
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
        // In one go, so that nothing is written between what is there and what comes.
        self.read(|store| {
            for object in store.list(gvk, query) {
                // The receiver is still ours, so this cannot fail.
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
            // Upstream's render client says so of every kind.
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

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn count(mut store: MutexGuard<'_, Store>) -> MutexGuard<'_, Store> {
        store.held += 1;
        store
    }

    /// What is written after the list is made and before anyone watches would never be told.
    #[tokio::test]
    async fn nothing_can_be_written_while_a_watch_begins() {
        let cluster = MemoryCluster::new(WritePolicy::Upstream);
        let before = cluster.store().held;
        cluster.watch(&Gvk::new("v1", "ConfigMap"), &ListQuery::default()).await.unwrap();
        let watching = cluster.store().held - before - 1;
        assert_eq!(watching, 1, "the store is let go of in between");
    }
}

//! What both in-memory clusters share: the objects, the subscriptions, the journal and the planned
//! failures.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use biplane_model::{Gvk, Object, ObjectId};
use biplane_schema::openapi;

use super::faults::{Fault, Plan};
use super::journal::{Entry, Verb};
use super::objects::Objects;
use crate::cluster::{Form, Query, Subscribe};
use crate::error::{ReadError, WriteError};
use crate::events::{Event, Events};
use crate::watch::{Name, Publisher, State, Subscription, subscription};

/// The objects of a cluster, with `S`, what its server knows besides them.
#[derive(Debug, Default)]
pub(super) struct Store<S> {
    pub(super) objects: Objects,
    pub(super) documents: BTreeMap<(String, String), Object>,
    pub(super) journal: Vec<Entry>,
    subscribers: Vec<Subscriber>,
    faults: Plan,
    pub(super) server: S,
}

#[derive(Debug)]
struct Subscriber {
    gvk: Gvk,
    query: Query,
    form: Form,
    publisher: Publisher,
}

/// How a server presents its objects.
pub trait Presentation: Send + 'static {
    /// The kind that an object of a kind is stored under.
    fn kind(gvk: &Gvk) -> Cow<'_, Gvk>;
    /// Where an object is stored.
    fn key(id: ObjectId) -> ObjectId {
        match Self::kind(&id.gvk) {
            Cow::Borrowed(_) => id,
            Cow::Owned(gvk) => ObjectId { gvk, ..id },
        }
    }
    /// Whether a stored object is of a kind.
    fn is_of(stored: &Gvk, wanted: &Gvk) -> bool;
    /// An object in the version of a kind.
    fn convert(&self, object: &Object, gvk: &Gvk) -> Object;
}

impl<S: Presentation> Store<S> {
    /// Returns the stored object, in the version of the id.
    pub(super) fn get(&self, id: &ObjectId) -> Option<Object> {
        let object = self.objects.named(&S::kind(&id.gvk), id)?;
        Some(self.server.convert(object, &id.gvk))
    }

    /// Returns the objects of a kind that match, ordered by namespace and name.
    pub(super) fn list(&self, gvk: &Gvk, query: &Query, form: Form) -> Vec<Object> {
        let mut found: Vec<_> = self
            .objects
            .of(|stored| S::is_of(stored, gvk))
            .filter(|(_, object)| query.matches(object))
            .collect();
        found.sort_by_key(|(id, _)| (&id.namespace, &id.name));
        found.into_iter().map(|(_, object)| form.of(self.server.convert(object, gvk))).collect()
    }

    /// Stores an object at its key and tells subscribers. Returns what was stored there before.
    pub(super) fn put(&mut self, key: ObjectId, object: &Object) -> Option<Object> {
        if self.subscribers.is_empty() {
            return self.objects.insert(key, object.clone());
        }
        let before = self.objects.insert(key.clone(), object.clone());
        self.tell(&key, before.as_ref(), Some(object));
        before
    }

    /// Removes an object and tells subscribers.
    pub(super) fn take(&mut self, id: &ObjectId) -> Option<Object> {
        let id = S::key(id.clone());
        let object = self.objects.remove(&id)?;
        self.tell(&id, Some(&object), None);
        Some(object)
    }

    /// Tells subscribers about a change. An object that stops matching is gone for them.
    fn tell(&mut self, id: &ObjectId, before: Option<&Object>, after: Option<&Object>) {
        let server = &self.server;
        self.subscribers.retain(|s| {
            if !S::is_of(&id.gvk, &s.gvk) {
                return true;
            }
            let matches = |object: &&Object| s.query.matches(object);
            let after = after.filter(matches);
            if after.is_none() && !before.is_some_and(|object| matches(&object)) {
                return true;
            }
            let state = after.map(|object| s.form.of(server.convert(object, &s.gvk)).into());
            s.publisher.tell(Name::new(&id.namespace, &id.name), state)
        });
    }

    /// Returns the schema of a kind from the served documents.
    pub(super) fn schema(&self, gvk: &Gvk) -> Result<Option<Object>, ReadError> {
        let document = self.documents.get(&(gvk.group.clone(), gvk.version.clone()));
        let flat = document.map(|document| openapi::schema_of(document, gvk)).transpose();
        flat.map(Option::flatten).map_err(|error| ReadError::Malformed(error.to_string()))
    }

    /// Runs a write that leaves no trace.
    pub(super) fn rehearse<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T
    where
        S: Clone,
    {
        let (objects, server) = (self.objects.clone(), self.server.clone());
        let subscribers = std::mem::take(&mut self.subscribers);
        let journal = self.journal.len();
        let answer = run(self);
        self.journal.truncate(journal);
        (self.objects, self.server, self.subscribers) = (objects, server, subscribers);
        answer
    }
}

/// A shared store. Both in-memory clusters dereference to it.
#[derive(Debug)]
pub struct Memory<S>(Arc<Mutex<Store<S>>>);

impl<S> Memory<S> {
    pub(super) fn new(server: S) -> Self {
        Self(Arc::new(Mutex::new(Store {
            objects: Objects::default(),
            documents: BTreeMap::new(),
            journal: Vec::new(),
            subscribers: Vec::new(),
            faults: Plan::default(),
            server,
        })))
    }

    // Every write stores whole objects, so the store stays consistent after a panic.
    pub(super) fn lock(&self) -> MutexGuard<'_, Store<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read<T>(
        &self,
        run: impl FnOnce(&mut Store<S>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let mut store = self.lock();
        let ticket = store.faults.enter()?;
        let answer = run(&mut store);
        store.faults.leave(ticket)?;
        answer
    }

    pub(super) fn write<T>(
        &self,
        run: impl FnOnce(&mut Store<S>) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        let mut store = self.lock();
        let ticket = store.faults.enter()?;
        let answer = run(&mut store);
        store.faults.leave(ticket)?;
        answer
    }

    /// Serves an OpenAPI v3 document for a group and version, unless one is already served.
    pub fn serve_openapi(&self, group: &str, version: &str, document: &Object) {
        self.lock()
            .documents
            .entry((group.to_owned(), version.to_owned()))
            .or_insert_with(|| document.clone());
    }

    /// Returns every write and event so far, in order.
    pub fn journal(&self) -> Vec<Entry> {
        self.lock().journal.clone()
    }

    /// Returns the number of entries of the journal, without copying them.
    pub fn journal_len(&self) -> usize {
        self.lock().journal.len()
    }

    /// Returns all objects, ordered by kind, namespace and name.
    pub fn objects(&self) -> Vec<Object> {
        let store = self.lock();
        let mut all: Vec<_> = store.objects.iter().collect();
        all.sort_by_key(|(id, _)| (&id.gvk, &id.namespace, &id.name));
        all.into_iter().map(|(_, object)| object.clone()).collect()
    }

    /// Plans a failure. See [`Fault`].
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.set(fault);
    }

    /// Ends a crash, discards planned failures and resets the call counter.
    pub fn restart(&self) {
        self.lock().faults = Plan::default();
    }

    /// Returns the number of calls since the start or the last [`Memory::restart`].
    pub fn calls(&self) -> usize {
        self.lock().faults.calls()
    }
}

impl<S: Presentation> Memory<S> {
    /// Returns an object, in the version of its id.
    pub fn object(&self, id: &ObjectId) -> Option<Object> {
        self.lock().get(id)
    }

    /// Begins a subscription. One lock for the list and the registration, so that no write happens
    /// between them.
    pub(super) fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
    ) -> Result<Subscription, ReadError> {
        let weak = Arc::downgrade(&self.0);
        let (kind, matching, form) = (gvk.clone(), query.clone(), how.form);
        let list = move || {
            let store = weak.upgrade();
            let store = store.as_ref().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
            let all = store.map(|store| store.list(&kind, &matching, form)).unwrap_or_default();
            states(all)
        };
        self.read(|store| {
            let initial = store.list(gvk, query, how.form);
            let (publisher, subscription) = subscription(how.capacity, list, states(initial));
            store.subscribers.push(Subscriber {
                gvk: gvk.clone(),
                query: query.clone(),
                form: how.form,
                publisher,
            });
            Ok(subscription)
        })
    }
}

fn states(objects: Vec<Object>) -> Vec<(Name, State)> {
    objects.into_iter().map(|object| (Name::of(&object), object.into())).collect()
}

impl<S: Send> Events for Memory<S> {
    fn record(&self, event: Event) {
        let mut store = self.lock();
        if !store.faults.crashed() {
            store.journal.push(Entry::Event(Box::new(event)));
        }
    }
}

impl<S> Store<S> {
    /// Writes the journal.
    pub(super) fn note(&mut self, verb: Verb, object: Object) {
        self.journal.push(Entry::Write { verb, object });
    }
}

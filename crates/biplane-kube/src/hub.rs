//! One watch per kind and selection, shared by all who want to know, and what the watches know.
//!
//! A subscription or a read is served by a watch that covers it: one of the same kind, with at least
//! its form and a selection at least as wide. A watch ends some time after its last subscription.

mod cache;
mod item;
mod text;
mod watching;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use biplane_cluster::watch::{Name, Packed as _, Subscription, subscription};
use biplane_cluster::{Form, Query, ReadError, Subscribe};
use biplane_model::{Gvk, Object, ObjectId};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::api::Api;
use crate::failure::Failure;
use crate::kinds::{Kind, Kinds};
use cache::{Cache, Known, Via};
use item::{Item, Stored};
pub(crate) use watching::{Listed, METADATA_LIST, item, selection};

/// Whether a watch can be used.
#[derive(Clone, Debug)]
enum Phase {
    /// The first list runs. It has failed before if there is an error.
    Starting(Option<ReadError>),
    /// The list is complete.
    Synced,
    /// It has ended, perhaps with an error.
    Ended(Option<ReadError>),
}

/// A watch.
struct Watch {
    kind: Arc<Kind>,
    query: Query,
    form: Form,
    cache: Mutex<Cache>,
    phase: watch::Sender<Phase>,
    /// How many subscriptions use it.
    users: watch::Sender<usize>,
    task: Mutex<Option<AbortHandle>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("kind", &self.kind.gvk).finish_non_exhaustive()
    }
}

impl Watch {
    fn new(kind: Arc<Kind>, query: Query, form: Form) -> Self {
        Self {
            cache: Mutex::new(Cache::new(&kind.gvk, query.clone(), form)),
            kind,
            query,
            form,
            phase: watch::Sender::new(Phase::Starting(None)),
            users: watch::Sender::new(0),
            task: Mutex::default(),
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_synced(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Synced)
    }

    /// Whether this watch knows everything about the objects of a query.
    fn covers(&self, gvk: &Gvk, query: &Query, form: Form) -> bool {
        let mine = &self.query;
        self.kind.gvk == *gvk
            && (self.form == Form::Whole || form == Form::Metadata)
            && (mine.namespace.is_empty() || mine.namespace == query.namespace)
            && (mine.name.is_empty() || mine.name == query.name)
            && mine.labels.iter().all(|(name, value)| query.labels.get(name) == Some(value))
            && mine
                .labelled
                .iter()
                .all(|name| query.labelled.contains(name) || query.labels.contains_key(name))
    }

    /// Waits until the first list is complete.
    async fn synced(&self, by: Instant) -> Result<(), ReadError> {
        let mut phase = self.phase.subscribe();
        let ready = phase.wait_for(|phase| !matches!(phase, Phase::Starting(_)));
        let phase = match timeout_at(by, ready).await {
            Ok(Ok(phase)) => phase.clone(),
            _ => self.phase.borrow().clone(),
        };
        match phase {
            Phase::Synced => Ok(()),
            Phase::Starting(Some(error)) | Phase::Ended(Some(error)) => Err(error),
            Phase::Starting(None) => Err(Failure::TimedOut.into()),
            Phase::Ended(None) => Err(Failure::unknown_kind(&self.kind.gvk).into()),
        }
    }

    fn end(&self, error: Option<ReadError>) {
        self.phase.send_replace(Phase::Ended(error));
        self.cache().end();
    }
}

/// The right to use a watch. The watch knows that it is used until this is dropped.
#[derive(Debug)]
struct Lease(Arc<Watch>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.users.send_modify(|users| *users -= 1);
    }
}

/// What is known of an object without asking the server.
#[derive(Debug)]
pub(crate) enum Cached {
    /// It exists.
    Object(Object),
    /// It does not exist.
    Absent,
    /// The server has to be asked.
    Unknown,
}

type Watches = BTreeMap<(String, String), Vec<Arc<Watch>>>;

/// All watches.
pub(crate) struct Hub {
    api: Arc<Api>,
    kinds: Arc<Kinds>,
    linger: Duration,
    /// By group and kind.
    watches: Mutex<Watches>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Hub {
    pub(crate) fn new(api: Arc<Api>, kinds: Arc<Kinds>, linger: Duration) -> Self {
        Self { api, kinds, linger, watches: Mutex::default() }
    }

    fn watches(&self) -> MutexGuard<'_, Watches> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watches of a kind, in all its versions.
    fn of(&self, gvk: &Gvk) -> Vec<Arc<Watch>> {
        let place = (gvk.group.clone(), gvk.kind.clone());
        self.watches().get(&place).cloned().unwrap_or_default()
    }

    /// How many watches run.
    pub(crate) fn len(&self) -> usize {
        self.watches().values().map(Vec::len).sum()
    }

    /// Begins a subscription.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        kind: &Arc<Kind>,
        query: &Query,
        how: &Subscribe,
        by: Instant,
    ) -> Result<Subscription, ReadError> {
        let lease = self.lease(kind, query, how.form);
        lease.0.synced(by).await?;
        let watch = Arc::clone(&lease.0);
        let (wanted, form) = (query.clone(), how.form);
        let list = move || lease.0.cache().states(&wanted, form);
        // One lock for the list and the registration, so that no change happens between them.
        let mut cache = watch.cache();
        let (publisher, reader) = subscription(how.capacity, list, cache.states(query, form));
        // A watch that ended meanwhile drops the publisher at once, and the reader is told.
        if watch.is_synced() {
            cache.subscribe(query.clone(), form, publisher);
        }
        Ok(reader)
    }

    /// Finds a watch that covers a query, or starts one.
    fn lease(self: &Arc<Self>, kind: &Arc<Kind>, query: &Query, form: Form) -> Lease {
        let gvk = &kind.gvk;
        let mut watches = self.watches();
        let of_kind = watches.entry((gvk.group.clone(), gvk.kind.clone())).or_default();
        let found = of_kind.iter().find(|watch| watch.covers(gvk, query, form)).cloned();
        let watch = found.unwrap_or_else(|| {
            let watch = Arc::new(Watch::new(Arc::clone(kind), query.clone(), form));
            of_kind.push(Arc::clone(&watch));
            watch
        });
        watch.users.send_modify(|users| *users += 1);
        let mut task = watch.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            let run = run(Arc::downgrade(self), Arc::clone(&watch), self.linger);
            *task = Some(tokio::spawn(run).abort_handle());
        }
        drop(task);
        Lease(watch)
    }

    /// Removes a watch that nobody uses. Returns whether it was removed.
    fn retire(&self, watch: &Arc<Watch>) -> bool {
        let mut watches = self.watches();
        if *watch.users.borrow() > 0 {
            return false;
        }
        remove(&mut watches, watch);
        true
    }

    /// Removes a watch that cannot go on.
    fn drop_watch(&self, watch: &Arc<Watch>, error: Option<ReadError>) {
        remove(&mut self.watches(), watch);
        watch.end(error);
    }

    /// Returns an object if a watch knows it.
    pub(crate) fn get(&self, id: &ObjectId) -> Cached {
        known(&self.of(&id.gvk), id)
    }

    /// Returns the UID and the version of an object, as the watches have them.
    pub(crate) fn identity(&self, id: &ObjectId) -> Option<(String, u64)> {
        let name = name(id);
        let known = self.of(&id.gvk).into_iter().filter_map(|watch| watch.cache().identity(&name));
        known.max_by_key(|(_, version)| *version)
    }

    /// Returns the objects that match and the version of the list, if a watch covers the query.
    pub(crate) fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        form: Form,
    ) -> Option<(Vec<Object>, String)> {
        let watches = self.of(gvk);
        let watch = watches.iter().find(|w| w.covers(gvk, query, form) && w.is_synced())?;
        let (stored, version) = {
            let cache = watch.cache();
            (cache.list(query)?, cache.version().to_owned())
        };
        let objects: Option<Vec<Object>> = stored.iter().map(|stored| stored.object()).collect();
        Some((objects?.into_iter().map(|object| form.of(object)).collect(), version))
    }

    /// Takes an object that was read in a form, or written. `text` is all of it, if there is one.
    pub(crate) fn saw(&self, object: &Object, form: Form, text: Option<&[u8]>) {
        let gvk = object.gvk();
        let watches = self.of(&gvk);
        if watches.is_empty() {
            return;
        }
        let item = Item::new(object, text);
        for watch in watches {
            let mut cache = watch.cache();
            if watch.kind.gvk == gvk && (form == Form::Whole || watch.form == Form::Metadata) {
                cache.put(&item, Via::Answer);
            } else {
                cache.await_version(&item);
            }
        }
    }

    /// Takes that an object was deleted: it had this UID, and a read or a write found it gone.
    pub(crate) fn saw_gone(&self, id: &ObjectId, uid: &str) {
        let name = name(id);
        for watch in self.of(&id.gvk) {
            watch.cache().bury(&name, uid);
        }
    }

    /// The objects of a kind that watches know and that match.
    pub(crate) fn identities(&self, gvk: &Gvk, query: &Query) -> Vec<(ObjectId, String)> {
        let watches = self.of(gvk);
        let known = watches.iter().flat_map(|watch| watch.cache().identities(query));
        known
            .map(|(name, uid)| (ObjectId::new(gvk.clone(), name.namespace(), name.name()), uid))
            .collect()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        for watch in std::mem::take(&mut *self.watches()).into_values().flatten() {
            watch.end(None);
            let task = watch.task.lock().unwrap_or_else(PoisonError::into_inner).take();
            task.inspect(AbortHandle::abort);
        }
    }
}

fn remove(watches: &mut Watches, watch: &Arc<Watch>) {
    let gvk = &watch.kind.gvk;
    let place = (gvk.group.clone(), gvk.kind.clone());
    if let Some(of_kind) = watches.get_mut(&place) {
        of_kind.retain(|other| !Arc::ptr_eq(other, watch));
        if of_kind.is_empty() {
            watches.remove(&place);
        }
    }
}

/// What the watches of a kind know about an object, together.
///
/// Each hears of a change at its own time. Whoever was told by one of them must not be given an older
/// state by another one: it would take the change for nothing new, and nobody would tell it again.
fn known(watches: &[Arc<Watch>], id: &ObjectId) -> Cached {
    let name = name(id);
    let mut found: Option<Arc<Stored>> = None;
    let mut absent = false;
    for watch in watches {
        if watch.kind.gvk != id.gvk || !watch.is_synced() {
            continue;
        }
        let known = watch.cache().get(&name);
        match known {
            Known::Object(object) if found.as_ref().is_none_or(|f| f.version < object.version) => {
                found = Some(object);
            }
            Known::Absent => absent = true,
            Known::Object(_) | Known::Nothing => {}
        }
    }
    let doubted = match &found {
        Some(found) => watches.iter().any(|watch| watch.cache().knows_better(&name, found)),
        None => !absent || watches.iter().any(|watch| watch.cache().has(&name)),
    };
    match found {
        _ if doubted => Cached::Unknown,
        Some(found) => found.object().map_or(Cached::Unknown, Cached::Object),
        None => Cached::Absent,
    }
}

fn name(id: &ObjectId) -> Name {
    Name::new(&id.namespace, &id.name)
}

/// Runs a watch until nobody has used it for a while, or it cannot go on.
async fn run(hub: std::sync::Weak<Hub>, watch: Arc<Watch>, linger: Duration) {
    tokio::select! {
        () = unused(&hub, &watch, linger) => {
            tracing::debug!(kind = %watch.kind.gvk, "nobody uses the watch any more");
            watch.end(None);
        }
        error = watching::run(&hub, &watch) => {
            if let Some(hub) = hub.upgrade() {
                hub.drop_watch(&watch, error);
            }
        }
    }
}

/// Ends when the watch has been removed because nobody uses it.
async fn unused(hub: &std::sync::Weak<Hub>, watch: &Arc<Watch>, linger: Duration) {
    let mut users = watch.users.subscribe();
    loop {
        if users.wait_for(|users| *users == 0).await.is_err() {
            return;
        }
        if timeout(linger, users.wait_for(|users| *users > 0)).await.is_ok() {
            continue;
        }
        match hub.upgrade() {
            Some(hub) if !hub.retire(watch) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests;

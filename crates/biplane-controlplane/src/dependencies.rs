//! The dependencies of composite resources: remembers them, watches them, and finds the composite
//! resources to reconcile when one of them changes.
//!
//! Composed resources are watched whole, but only those with the label that all composed resources
//! carry. Required resources are watched as metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use biplane_cluster::{Change, Form, Query, Quiet};
use biplane_engine::Failure;
use biplane_engine::composite::dependencies::{Dependencies, DependencyIndex, Tracked};
use biplane_model::{Gvk, ObjectId, labels};
use biplane_proto::function::v1::ResourceSelector;

use crate::controller::{Mapping, Watch, states};
use crate::queue::Key;
use crate::registry::{WatchHandle, WeakRegistry};

/// Why a kind is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// Objects of it are composed.
    Composed,
    /// Functions require objects of it.
    Required,
    /// Objects of it are read, and nobody is woken when they change.
    Read,
}

/// A kind, and why it is watched.
type Watched = (Gvk, Role);

/// The dependencies of the composite resources of one controller.
pub struct Tracker {
    controller: String,
    registry: WeakRegistry,
    /// Whether changes of dependencies wake composite resources.
    realtime: bool,
    /// Forgets objects that do not exist any more.
    quiet: Arc<Quiet>,
    index: Arc<DependencyIndex>,
    state: Mutex<State>,
    /// Only one reconcile starts watches at a time.
    starting: tokio::sync::Mutex<()>,
    this: Weak<Self>,
}

#[derive(Debug, Default)]
struct State {
    /// What each composite resource wants watched, and the number of its dependencies.
    wanted: BTreeMap<Key, (Arc<BTreeSet<Watched>>, usize)>,
    /// The different sets in `wanted`: most composite resources of a kind want the same.
    sets: BTreeSet<Arc<BTreeSet<Watched>>>,
    /// How many composite resources want something watched.
    counts: BTreeMap<Watched, usize>,
    watches: BTreeMap<Watched, WatchHandle>,
}

impl State {
    fn want(&mut self, key: &Key, wanted: &BTreeSet<Watched>, dependencies: usize) {
        match self.wanted.get_mut(key) {
            Some((same, count)) if **same == *wanted => {
                *count = dependencies;
                return;
            }
            Some(_) => self.forget(key),
            None => {}
        }
        for watched in wanted {
            *self.counts.entry(watched.clone()).or_default() += 1;
        }
        let set = self.sets.get(wanted).cloned().unwrap_or_else(|| Arc::new(wanted.clone()));
        self.sets.insert(Arc::clone(&set));
        self.wanted.insert(key.clone(), (set, dependencies));
    }

    fn forget(&mut self, key: &Key) {
        let Some((wanted, _)) = self.wanted.remove(key) else { return };
        for watched in &*wanted {
            if let Some(count) = self.counts.get_mut(watched) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(watched);
                }
            }
        }
        // Here and in the set of sets.
        if Arc::strong_count(&wanted) == 2 {
            self.sets.remove(&*wanted);
        }
    }
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracker").field("controller", &self.controller).finish_non_exhaustive()
    }
}

impl Tracker {
    /// Tracks the dependencies of a controller's composite resources.
    pub fn new(
        controller: &str,
        registry: WeakRegistry,
        realtime: bool,
        quiet: Arc<Quiet>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            controller: controller.to_owned(),
            registry,
            realtime,
            quiet,
            index: Arc::default(),
            state: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            this: this.clone(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the dependencies of a composite resource. They are watched later.
    pub fn expect(&self, xr: &ObjectId, dependencies: Tracked) {
        self.note(xr, dependencies);
    }

    /// Notes the dependencies of a composite resource. Returns what must be watched.
    fn note(&self, xr: &ObjectId, dependencies: Tracked) -> BTreeSet<Watched> {
        let wanted = watched(&dependencies);
        let count = dependencies.composed.len() + dependencies.requirements.len();
        self.index.replace(xr, dependencies);
        self.state().want(&Key::from(xr), &wanted, count);
        wanted
    }

    /// Watches everything that was noted.
    pub async fn watch_all(&self) {
        let wanted: Vec<Watched> = self.state().counts.keys().cloned().collect();
        for watched in wanted {
            let kind = watched.0.clone();
            if let Err(error) = self.start(&[watched].into()).await {
                // The reconciles of those who depend on it will say so.
                tracing::debug!(%kind, %error, "cannot watch composed resources yet");
            }
        }
    }

    /// Starts the watches that are missing, and waits until they have listed what exists.
    async fn start(&self, wanted: &BTreeSet<Watched>) -> Result<(), Failure> {
        let missing = |watched: &&Watched| !self.state().watches.contains_key(*watched);
        if !wanted.iter().any(|watched| missing(&watched)) {
            return Ok(());
        }
        let _one = self.starting.lock().await;
        let missing: Vec<_> = wanted.iter().filter(missing).cloned().collect();
        for watched in missing {
            let Some(registry) = self.registry.upgrade() else { return Ok(()) };
            let handle = registry.watch(&self.controller, self.watch(&watched)).await?;
            self.state().watches.insert(watched, handle);
        }
        Ok(())
    }

    fn watch(&self, watched: &Watched) -> Watch {
        let (gvk, role) = watched;
        let (form, query) = match role {
            Role::Composed => {
                let labelled = [labels::COMPOSITE.to_owned()].into();
                (Form::Whole, Query { labelled, ..Query::default() })
            }
            Role::Required | Role::Read => (Form::Metadata, Query::default()),
        };
        let mapping = Dependents {
            index: Arc::clone(&self.index),
            wakes: self.realtime && *role != Role::Read,
            quiet: Arc::clone(&self.quiet),
            tracker: self.this.clone(),
            watched: watched.clone(),
        };
        let (r#type, own, gvk) = ("Dependency", false, gvk.clone());
        Watch { r#type, gvk, query, form, own, mapping: Arc::new(mapping) }
    }

    /// Watches Secrets, because some are read. They are read again only when they changed.
    pub async fn watch_secrets(&self) {
        let watched = (Gvk::new("v1", "Secret"), Role::Read);
        if let Err(error) = self.start(&[watched].into()).await {
            tracing::debug!(controller = self.controller, %error, "cannot watch Secrets");
        }
    }

    /// The number of objects that a composite resource depends on.
    pub fn count(&self, key: &Key) -> usize {
        self.state().wanted.get(key).map_or(0, |(_, count)| *count)
    }

    /// Ends watches of kinds that no composite resource depends on.
    pub fn tidy(&self) {
        let unwanted: Vec<_> = {
            let mut state = self.state();
            let State { counts, watches, .. } = &mut *state;
            let unwanted =
                |watched: &Watched| watched.1 != Role::Read && !counts.contains_key(watched);
            let unwanted: Vec<_> = watches.keys().filter(|w| unwanted(w)).cloned().collect();
            unwanted.into_iter().filter_map(|watched| watches.remove(&watched)).collect()
        };
        drop(unwanted);
    }

    /// A watch has ended by itself. Returns the composite resources that depend on its kind.
    fn ended(&self, watched: &Watched) -> BTreeSet<Key> {
        let mut state = self.state();
        state.watches.remove(watched);
        let depend = state.wanted.iter().filter(|(_, (wanted, _))| wanted.contains(watched));
        depend.map(|(key, _)| key.clone()).collect()
    }
}

#[async_trait]
impl Dependencies for Tracker {
    async fn track(&self, xr: &ObjectId, dependencies: Tracked) -> Result<(), Failure> {
        let wanted = self.note(xr, dependencies);
        self.start(&wanted).await
    }

    fn forget(&self, xr: &ObjectId) {
        self.index.forget(xr);
        self.state().forget(&Key::from(xr));
    }

    fn requirements(&self, xr: &ObjectId, step: &str) -> Vec<(String, ResourceSelector)> {
        self.index.requirements(xr, step)
    }
}

fn watched(dependencies: &Tracked) -> BTreeSet<Watched> {
    let composed = dependencies.composed.iter().map(|id| (id.gvk.clone(), Role::Composed));
    let required = dependencies.requirements.iter().map(|requirement| {
        let selector = &requirement.selector;
        (Gvk::new(&selector.api_version, &selector.kind), Role::Required)
    });
    composed.chain(required).collect()
}

/// Finds the composite resources that depend on an object.
struct Dependents {
    index: Arc<DependencyIndex>,
    wakes: bool,
    quiet: Arc<Quiet>,
    tracker: Weak<Tracker>,
    watched: Watched,
}

impl Mapping for Dependents {
    fn keys(&self, change: &Change) -> BTreeSet<Key> {
        if let Change::Gone { last } = change {
            self.quiet.forget(last.uid());
        }
        if !self.wakes {
            return BTreeSet::new();
        }
        states(change)
            .flat_map(|object| self.index.dependents(object))
            .map(|xr| Key::from(&xr))
            .collect()
    }

    fn ended(&self) -> Result<(), BTreeSet<Key>> {
        // The next reconcile of a composite resource that depends on the kind watches it again.
        Err(self.tracker.upgrade().map(|tracker| tracker.ended(&self.watched)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_shared_and_go_with_their_last_user() {
        let set = |kind: &str| BTreeSet::from([(Gvk::new("v1", kind), Role::Composed)]);
        let (a, b) = (Key::new("", "a"), Key::new("", "b"));
        let mut state = State::default();
        state.want(&a, &set("ConfigMap"), 5);
        state.want(&b, &set("ConfigMap"), 5);
        assert!(Arc::ptr_eq(&state.wanted[&a].0, &state.wanted[&b].0));
        state.want(&a, &set("Secret"), 2);
        state.want(&a, &set("Secret"), 3);
        assert_eq!((state.sets.len(), state.wanted[&a].1), (2, 3));
        assert_eq!(state.counts.values().copied().collect::<Vec<_>>(), [1, 1]);
        state.forget(&a);
        state.forget(&b);
        assert!(state.sets.is_empty() && state.counts.is_empty());
    }
}

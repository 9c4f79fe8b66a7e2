//! The controllers of composite resources: assembles the engine's reconciler for one kind, and maps
//! changes to composite resources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::{Change, Quiet};
use biplane_engine::composite::dependencies::{Dependencies as _, Tracked};
use biplane_engine::composite::{Authorizer, Behaviour, CompositionIndex, Layout, Reconciler};
use biplane_engine::{Context, ReconcileError, Requeue};
use biplane_model::{Gvk, Object, ObjectId, composition, labels};

use crate::breaker::{Breaker, Limits as BreakerLimits};
use crate::controller::{Controller, Mapping, Reconcile, Watch, states};
use crate::dependencies::Tracker;
use crate::queue::{Key, Limits};
use crate::registry::{Registry, StartError, Started};
use crate::seen::Seen;
use crate::timeline::Timeline;

/// The longest back-off of composite resources.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);

/// Performs the reconciles of composite resources in place of their reconciler.
///
/// It may prepare a reconciler of its own from the one that it is given, or do something else
/// entirely. What it reads and writes through the reconciler's cluster counts as seen.
#[async_trait]
pub trait Perform: Send + Sync {
    /// Reconciles one composite resource.
    async fn perform(&self, reconciler: &Reconciler, key: &Key) -> Result<Requeue, ReconcileError>;
}

/// A controller of composite resources to run.
#[derive(Clone, Debug)]
pub struct CompositeSpec {
    /// How composite resources are reconciled. The control plane decides about polling and limits.
    pub behaviour: Behaviour,
    /// Identifies what was specified. A running controller with another text is replaced.
    pub specification: String,
}

/// How all controllers of composite resources behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether dependencies are watched, so that polling is not needed.
    pub realtime: bool,
    /// The interval between reconciles without a trigger, if dependencies are not watched.
    pub poll_interval: Duration,
    /// The shortest interval that an annotation can request.
    pub min_poll_interval: Duration,
    /// How many composite resources of a kind are reconciled at a time.
    pub concurrent: usize,
    /// The limits of the circuit breaker.
    pub breaker: BreakerLimits,
    /// The user name of the control plane, to explain refused writes.
    pub user: Option<String>,
    /// Whether Compositions of mode Resources are composed.
    pub resources_mode: bool,
    /// Whether Compositions have environments.
    pub environments: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            realtime: true,
            poll_interval: Duration::from_mins(1),
            min_poll_interval: Duration::from_secs(1),
            concurrent: 100,
            breaker: BreakerLimits::default(),
            user: None,
            resources_mode: false,
            environments: false,
        }
    }
}

/// Starts and stops controllers of composite resources.
#[derive(Clone)]
pub struct Composites {
    /// Where they run.
    pub registry: Registry,
    /// What their reconcilers work with.
    pub context: Context,
    /// The cluster that does not send what changes nothing. It forgets what does not exist.
    pub quiet: Arc<Quiet>,
    /// Compositions and their revisions, decoded.
    pub index: Arc<CompositionIndex>,
    /// How they behave.
    pub settings: Settings,
    /// Performs reconciles, if it is set.
    pub perform: Option<Arc<dyn Perform>>,
}

impl std::fmt::Debug for Composites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Composites").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn composition_kind() -> Gvk {
    Gvk::new(composition::API_VERSION, "Composition")
}

fn revision_kind() -> Gvk {
    Gvk::new(composition::API_VERSION, "CompositionRevision")
}

impl Composites {
    /// The controller that keeps the index. Those of composite resources feed it too, so that it
    /// knows a change before anybody is woken by it.
    pub(crate) fn indexing(&self) -> Controller {
        let (compositions, revisions) = (Arc::clone(&self.index), Arc::clone(&self.index));
        let watches = vec![
            Watch::observed("Composition", composition_kind(), move |change| {
                compositions.composition_changed(change);
            }),
            Watch::observed("CompositionRevision", revision_kind(), move |change| {
                revisions.revision_changed(change);
            }),
        ];
        Controller::observing("compositions", watches)
    }

    /// Runs a controller. One that runs with another specification is replaced.
    pub async fn ensure(&self, spec: &CompositeSpec) -> Result<Started, StartError> {
        // Cheap if nothing is to do: this is called whenever a definition is reconciled.
        if self.registry.runs(&spec.behaviour.controller, &spec.specification) {
            return Ok(Started::Running);
        }
        self.registry.ensure(&spec.specification, self.assemble(spec)).await
    }

    /// Stops a controller by its name, and waits for its running reconciles.
    pub async fn stop(&self, name: &str) {
        self.registry.stop(name).await;
    }

    fn assemble(&self, spec: &CompositeSpec) -> Controller {
        let settings = &self.settings;
        let behaviour = Behaviour {
            realtime: settings.realtime,
            poll_interval: if settings.realtime { Duration::ZERO } else { settings.poll_interval },
            min_poll_interval: settings.min_poll_interval,
            resources_mode: settings.resources_mode,
            environments: settings.environments,
            ..spec.behaviour.clone()
        };
        let (name, gvk, layout) =
            (behaviour.controller.clone(), behaviour.gvk.clone(), behaviour.layout);
        let shared = &self.registry.0;
        let weak = self.registry.downgrade();
        let tracker = Tracker::new(&name, weak, settings.realtime, Arc::clone(&self.quiet));
        let breaker = Arc::new(Breaker::new(&name, settings.breaker, shared.metrics.clone()));
        let mut reconciler = Reconciler::new(self.context.clone(), behaviour);
        reconciler.dependencies = tracker.clone();
        reconciler.breaker = breaker.clone();
        reconciler.compositions = Some(Arc::clone(&self.index));
        reconciler.authorizer = settings.user.clone().map(|user| Authorizer { user });
        let users = Arc::new(Users { layout, gvk: gvk.clone(), by_composition: Mutex::default() });
        let composite = Composite {
            reconciler,
            tracker,
            breaker,
            users: Arc::clone(&users),
            timeline: shared.timeline.clone(),
            quiet: Arc::clone(&self.quiet),
            perform: self.perform.clone(),
        };
        let mut own = Watch::own("CompositeResource", gvk);
        own.mapping = Arc::new(OfXr(Arc::clone(&users)));
        let (index, of) = (Arc::clone(&self.index), Arc::clone(&users));
        let mut compositions = Watch::observed("Composition", composition_kind(), |_| {});
        compositions.mapping = Arc::new(OfComposition { index, users: of });
        let index = Arc::clone(&self.index);
        let mut revisions = Watch::observed("CompositionRevision", revision_kind(), |_| {});
        revisions.mapping = Arc::new(OfRevision { index, users });
        Controller {
            name,
            reconciler: Arc::new(composite),
            watches: vec![own, compositions, revisions],
            reconciles_gone: false,
            limits: Limits { concurrent: settings.concurrent, longest_back_off: LONGEST_BACK_OFF },
        }
    }
}

/// Reconciles the composite resources of one kind.
struct Composite {
    reconciler: Reconciler,
    tracker: Arc<Tracker>,
    breaker: Arc<Breaker>,
    users: Arc<Users>,
    timeline: Timeline,
    quiet: Arc<Quiet>,
    perform: Option<Arc<dyn Perform>>,
}

#[async_trait]
impl Reconcile for Composite {
    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        match &self.perform {
            Some(performer) => performer.perform(&self.reconciler, key).await,
            None => self.reconciler.reconcile(&key.namespace, &key.name).await,
        }
    }

    fn expect(&self, xr: &Object) {
        let composed = self.composed(xr);
        if !composed.is_empty() {
            self.tracker.expect(&xr.id(), Tracked { composed, requirements: Vec::new() });
        }
    }

    /// Watches the kinds of all composed resources, so that the first reconciles read none of them
    /// from the server.
    async fn warm_up(&self) {
        self.tracker.watch_all().await;
    }

    async fn ended(&self, _key: &Key, seen: &Seen) {
        if seen.has_read_secrets() {
            self.tracker.watch_secrets().await;
        }
    }

    fn gone(&self, last: &Object) {
        self.tracker.forget(&last.id());
        self.users.forget(&Key::from(&last.id()));
        self.quiet.forget(last.uid());
        self.reconciler.context.events.forget(last.uid());
    }

    fn tidy(&self) {
        self.tracker.tidy();
        self.breaker.tidy(self.timeline.now());
    }

    fn breaker(&self) -> Option<&Breaker> {
        Some(&self.breaker)
    }

    fn dependencies(&self, key: &Key) -> usize {
        self.tracker.count(key)
    }
}

impl Composite {
    fn composed(&self, xr: &Object) -> Vec<ObjectId> {
        let layout = self.reconciler.behaviour.layout;
        let references = layout.resources(xr).into_iter().filter(|r| !r.name.is_empty());
        references
            .map(|reference| {
                let namespace =
                    if xr.namespace().is_empty() { &reference.namespace } else { xr.namespace() };
                let gvk = Gvk::new(&reference.api_version, &reference.kind);
                ObjectId::new(gvk, namespace, &reference.name)
            })
            .collect()
    }
}

/// Which composite resources use a Composition.
struct Users {
    layout: Layout,
    gvk: Gvk,
    by_composition: Mutex<UsersByComposition>,
}

#[derive(Default)]
struct UsersByComposition {
    compositions: BTreeMap<Key, String>,
    /// Those that have no Composition yet are listed under the empty name.
    users: BTreeMap<String, BTreeSet<Key>>,
}

impl Users {
    fn lock(&self) -> MutexGuard<'_, UsersByComposition> {
        self.by_composition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &Key) {
        let mut all = self.lock();
        let Some(composition) = all.compositions.remove(key) else { return };
        if let Some(users) = all.users.get_mut(&composition) {
            users.remove(key);
            if users.is_empty() {
                all.users.remove(&composition);
            }
        }
    }

    fn remember(&self, xr: &Object) {
        let key = Key::from(&xr.id());
        if self.layout.update_policy(xr) == "Manual" {
            self.forget(&key);
            return;
        }
        let composition = self.layout.composition(xr).unwrap_or_default().name;
        if self.lock().compositions.get(&key) == Some(&composition) {
            return;
        }
        self.forget(&key);
        let mut all = self.lock();
        all.users.entry(composition.clone()).or_default().insert(key.clone());
        all.compositions.insert(key, composition);
    }

    /// Whether a Composition, or a revision of one, is for this kind.
    fn are_composed_by(&self, composition: &Object) -> bool {
        let at = |field| composition.str_at(&["spec", "compositeTypeRef", field]);
        Gvk::new(at("apiVersion"), at("kind")) == self.gvk
    }

    /// The composite resources that use a Composition by this name. The empty one stands for those
    /// that wait for one.
    fn of(&self, composition: &str) -> Vec<Key> {
        self.lock().users.get(composition).into_iter().flatten().cloned().collect()
    }
}

/// Maps a change of a Composition to the composite resources that wait for one.
struct OfComposition {
    index: Arc<CompositionIndex>,
    users: Arc<Users>,
}

impl Mapping for OfComposition {
    fn keys(&self, change: &Change) -> BTreeSet<Key> {
        // Whether all is there is for the controller that keeps the index to say.
        if !matches!(change, Change::Synced | Change::Missed) {
            self.index.composition_changed(change);
        }
        let fits = states(change).any(|composition| self.users.are_composed_by(composition));
        if fits { self.users.of("").into_iter().collect() } else { BTreeSet::new() }
    }
}

/// Maps a change of a revision to the composite resources that may use it.
struct OfRevision {
    index: Arc<CompositionIndex>,
    users: Arc<Users>,
}

impl Mapping for OfRevision {
    fn keys(&self, change: &Change) -> BTreeSet<Key> {
        // Whether all is there is for the controller that keeps the index to say.
        if !matches!(change, Change::Synced | Change::Missed) {
            self.index.revision_changed(change);
        }
        // Its status decides nothing about composite resources.
        if let Change::Changed { object, before: Some(before) } = change
            && object.generation() == before.generation()
            && object.at(&["metadata", "labels"]) == before.at(&["metadata", "labels"])
        {
            return BTreeSet::new();
        }
        states(change)
            .filter(|revision| self.users.are_composed_by(revision))
            .map(|revision| revision.label(labels::COMPOSITION_NAME))
            .filter(|composition| !composition.is_empty())
            // One without a Composition may be waiting for this one.
            .flat_map(|composition| [composition, ""])
            .flat_map(|name| self.users.of(name))
            .collect()
    }
}

/// Maps a change of a composite resource to itself.
struct OfXr(Arc<Users>);

impl Mapping for OfXr {
    fn keys(&self, change: &Change) -> BTreeSet<Key> {
        let Change::Changed { object, .. } = change else { return BTreeSet::new() };
        self.0.remember(object);
        [Key::from(&object.id())].into()
    }
}

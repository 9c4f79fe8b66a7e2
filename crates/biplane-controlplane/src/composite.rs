//! The controllers of composite resources: assembles the engine's reconciler for one kind, and maps
//! changes to composite resources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::{Change, Quiet};
use biplane_engine::composite::dependencies::{Dependencies as _, Tracked};
use biplane_engine::composite::{Authorizer, Behaviour, Layout, Reconciler};
use biplane_engine::{Context, ReconcileError, Requeue};
use biplane_model::{Gvk, Object, ObjectId, labels};

use crate::breaker::{Breaker, Limits as BreakerLimits};
use crate::controller::{Controller, Mapping, Reconcile, Watch};
use crate::dependencies::Tracker;
use crate::queue::{Key, Limits};
use crate::registry::{Registry, StartError, Started};
use crate::seen::Seen;
use crate::timeline::Timeline;

/// The longest back-off of composite resources.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);

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
#[derive(Clone, Debug)]
pub struct Composites {
    /// Where they run.
    pub registry: Registry,
    /// What their reconcilers work with.
    pub context: Context,
    /// The cluster that does not send what changes nothing. It forgets what does not exist.
    pub quiet: Arc<Quiet>,
    /// How they behave.
    pub settings: Settings,
}

impl Composites {
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
        reconciler.authorizer = settings.user.clone().map(|user| Authorizer { user });
        let users = Arc::new(Users { layout, gvk: gvk.clone(), by_composition: Mutex::default() });
        let composite = Composite {
            reconciler,
            tracker,
            breaker,
            users: Arc::clone(&users),
            timeline: shared.timeline.clone(),
            quiet: Arc::clone(&self.quiet),
        };
        let mut own = Watch::own("CompositeResource", gvk);
        own.mapping = Arc::new(OfXr(Arc::clone(&users)));
        let kind = Gvk::new("apiextensions.crossplane.io/v1", "CompositionRevision");
        let revisions =
            Watch::mapped("CompositionRevision", kind, move |revision| users.of_revision(revision));
        Controller {
            name,
            reconciler: Arc::new(composite),
            watches: vec![own, revisions],
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
}

#[async_trait]
impl Reconcile for Composite {
    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        self.reconciler.reconcile(&key.namespace, &key.name).await
    }

    /// Watches the kinds of all composed resources, so that the first reconciles read none of them
    /// from the server.
    async fn warm_up(&self, objects: &[Object]) {
        for xr in objects {
            let composed = self.composed(xr);
            if composed.is_empty() {
                continue;
            }
            let tracked = Tracked { composed, requirements: Vec::new() };
            if let Err(error) = self.tracker.track(&xr.id(), tracked).await {
                // Its reconcile will say so.
                tracing::debug!(xr = %xr.id(), %error, "cannot watch composed resources yet");
            }
        }
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

    /// The composite resources that may use a revision of a Composition.
    fn of_revision(&self, revision: &Object) -> Vec<Key> {
        let composition = revision.label(labels::COMPOSITION_NAME);
        let at = |field| revision.str_at(&["spec", "compositeTypeRef", field]);
        if composition.is_empty() || Gvk::new(at("apiVersion"), at("kind")) != self.gvk {
            return Vec::new();
        }
        let all = self.lock();
        // One without a Composition may be waiting for this one.
        let names = [composition, ""];
        names.iter().filter_map(|name| all.users.get(*name)).flatten().cloned().collect()
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

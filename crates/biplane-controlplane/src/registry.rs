//! The running controllers by name: starts, stops and replaces them, with their watches.
//!
//! A controller that starts subscribes to everything that it watches, lets its reconciler prepare
//! for the objects that exist, and only then opens its queue. A controller that stops drops its
//! watches and its queue, and waits for its running reconciles.

pub(crate) mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use biplane_cluster::{Change, Cluster, ReadError, Subscribe, Subscription};
use biplane_model::Object;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::controller::{Controller, Watch};
use crate::metrics::PlaneMetrics;
use crate::queue::Key;
use crate::timeline::Timeline;
use state::{Fresh, State, StreamId};

/// How long the first list of a watch may take.
const SYNC: Duration = Duration::from_mins(1);
/// How long a reconciler may prepare before the queue opens anyway.
const WARM_UP: Duration = Duration::from_secs(10);
/// How many changed objects wait for the dispatcher.
const CAPACITY: usize = 4096;

/// Whether a controller was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It did not run before.
    New,
    /// It ran with another specification, and was replaced.
    Replaced,
    /// It runs already.
    Running,
}

/// Why a controller could not be started: something could not be watched.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot watch {kind}: {source}")]
pub struct StartError {
    /// The kind.
    pub kind: String,
    /// The reason.
    pub source: ReadError,
}

/// The running controllers. Clones share them.
#[derive(Clone)]
pub struct Registry(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) metrics: PlaneMetrics,
    pub(crate) timeline: Timeline,
    state: Mutex<State>,
    /// Wakes the dispatcher.
    pub(crate) changed: Notify,
    /// Wakes those who wait for reconciles to end.
    pub(crate) ended: Notify,
    /// Watches that nobody wants any more. Whoever drops a handle may hold the state.
    dropped: Mutex<Vec<StreamId>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("controllers", &self.names()).finish_non_exhaustive()
    }
}

impl Shared {
    // Nothing in here panics between two changes that belong together.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the watches that nobody wants any more.
    pub(crate) fn end_dropped(&self) {
        let dropped = {
            let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *dropped)
        };
        for id in dropped {
            let detached = self.state().detach(id);
            if let Some(stream) = detached {
                self.metrics.watch_stopped(&stream.controller, stream.watch.r#type);
            }
        }
    }
}

/// A subscription that nobody has read yet.
struct Opened {
    watch: Watch,
    subscription: Subscription,
}

impl Registry {
    /// No controllers yet. They watch `cluster`.
    pub fn new(cluster: Arc<dyn Cluster>, metrics: PlaneMetrics, timeline: Timeline) -> Self {
        Self(Arc::new(Shared {
            cluster,
            metrics,
            timeline,
            state: Mutex::default(),
            changed: Notify::new(),
            ended: Notify::new(),
            dropped: Mutex::default(),
        }))
    }

    /// Looks at every object once in an interval, although nothing happened to it.
    #[must_use]
    pub fn sync_every(self, interval: Option<Duration>) -> Self {
        self.0.state().sync_interval = interval.filter(|interval| !interval.is_zero());
        self
    }

    /// A reference for parts of controllers, which the registry itself holds.
    pub fn downgrade(&self) -> WeakRegistry {
        WeakRegistry(Arc::downgrade(&self.0))
    }

    /// The names of the running controllers, in order.
    pub fn names(&self) -> Vec<String> {
        self.0.state().names()
    }

    /// Whether a controller runs.
    pub fn is_running(&self, name: &str) -> bool {
        self.0.state().is_running(name)
    }

    /// Whether a controller runs with a specification.
    pub fn runs(&self, name: &str, specification: &str) -> bool {
        self.0.state().specification(name).is_some_and(|running| running == specification)
    }

    /// Starts a controller unless it runs already. One that runs with another specification, given
    /// as text, is stopped first.
    pub async fn ensure(
        &self,
        specification: &str,
        controller: Controller,
    ) -> Result<Started, StartError> {
        let running = self.0.state().specification(&controller.name);
        let started = match running {
            Some(running) if running == specification => return Ok(Started::Running),
            Some(_) => {
                self.stop(&controller.name).await;
                Started::Replaced
            }
            None => Started::New,
        };
        self.start(specification, controller).await?;
        Ok(started)
    }

    async fn start(&self, specification: &str, controller: Controller) -> Result<(), StartError> {
        let mut opened = Vec::new();
        for watch in &controller.watches {
            opened.push(self.open(watch.clone()).await?);
        }
        let name = controller.name.clone();
        {
            // What the reconciler watches while it prepares already belongs to the controller.
            let mut state = self.0.state();
            if !state.insert(specification, controller.clone()) {
                return Ok(());
            }
        }
        self.0.metrics.controller_started(&name);
        for opened in opened {
            let own = opened.watch.own;
            self.attach(&name, opened, |object| {
                if own {
                    controller.reconciler.expect(object);
                }
            });
        }
        if tokio::time::timeout(WARM_UP, controller.reconciler.warm_up()).await.is_err() {
            tracing::warn!(controller = name, "not everything is watched yet");
        }
        self.0.state().open(&name);
        self.0.changed.notify_one();
        tracing::debug!(controller = name, "controller started");
        Ok(())
    }

    /// Subscribes to what a watch wants, and waits for the first list.
    async fn open(&self, watch: Watch) -> Result<Opened, StartError> {
        let failed = |source| StartError { kind: watch.gvk.group_kind(), source };
        let how = Subscribe { form: watch.form, capacity: CAPACITY };
        let by = Instant::now() + SYNC;
        let cluster = &self.0.cluster;
        let subscribed = cluster.subscribe(&watch.gvk, &watch.query, &how, by).await;
        let subscription = subscribed.map_err(failed)?;
        Ok(Opened { watch, subscription })
    }

    /// Lets a controller watch something more. The changes are judged like all others.
    pub async fn watch(&self, controller: &str, watch: Watch) -> Result<WatchHandle, ReadError> {
        let opened = self.open(watch).await.map_err(|error| error.source)?;
        let id = self.attach(controller, opened, |_| {});
        self.0.changed.notify_one();
        Ok(WatchHandle { id, registry: Arc::downgrade(&self.0) })
    }

    /// Adds a watch to a controller and handles what exists. Objects are read one by one: all of them
    /// at once would take many times the memory of the cache that they come from.
    fn attach(&self, controller: &str, opened: Opened, each: impl Fn(&Object)) -> Option<StreamId> {
        let now = self.0.timeline.now();
        let Opened { watch, mut subscription } = opened;
        let r#type = watch.r#type;
        let (id, abort) = self.0.state().attach(controller, watch)?;
        while let Some(change) = subscription.try_next() {
            if let Change::Changed { object, .. } = &change {
                each(object);
            }
            self.0.state().change(id, &change, now);
            if matches!(change, Change::Synced) {
                break;
            }
        }
        self.0.state().read(Fresh { id, subscription, abort });
        self.0.metrics.watch_started(controller, r#type);
        Some(id)
    }

    /// Wants an object reconciled now.
    pub fn wake(&self, controller: &str, key: &Key) {
        let now = self.0.timeline.now();
        self.0.state().wake(controller, key, now);
        self.0.changed.notify_one();
    }

    /// Stops a controller: it starts no reconciles, and those that run end. Nothing happens if it
    /// does not run.
    pub async fn stop(&self, name: &str) {
        let stopped = self.0.state().stop(name);
        let Some(streams) = stopped else { return };
        self.0.changed.notify_one();
        loop {
            let ended = self.0.ended.notified();
            tokio::pin!(ended);
            // From here on no end is missed.
            ended.as_mut().enable();
            let removed = self.0.state().remove_if_idle(name);
            if removed {
                break;
            }
            ended.await;
        }
        for stream in &streams {
            self.0.metrics.watch_stopped(name, stream.watch.r#type);
        }
        self.0.metrics.controller_stopped(name);
        tracing::debug!(controller = name, "controller stopped");
    }

    /// Starts a controller as soon as everything that it watches can be watched.
    pub async fn ensure_eventually(&self, specification: &str, controller: Controller) {
        let mut pause = RETRY;
        loop {
            match self.ensure(specification, controller.clone()).await {
                Ok(_) => return,
                Err(error) => {
                    tracing::info!(controller = controller.name, %error, "cannot start yet");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_RETRY);
        }
    }

    /// Watches again what ended by itself, until that works or the controller stops.
    pub(crate) async fn watch_again(&self, controller: &str, watch: Watch) {
        let mut pause = RETRY;
        loop {
            tokio::time::sleep(pause).await;
            if !self.is_running(controller) {
                return;
            }
            match self.watch(controller, watch.clone()).await {
                Ok(handle) => {
                    handle.keep();
                    return;
                }
                Err(error) => tracing::debug!(controller, %error, "cannot watch again yet"),
            }
            pause = (pause * 2).min(LONGEST_RETRY);
        }
    }
}

/// The running controllers, without keeping them alive.
#[derive(Clone)]
pub struct WeakRegistry(std::sync::Weak<Shared>);

impl std::fmt::Debug for WeakRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WeakRegistry")
    }
}

impl WeakRegistry {
    /// The running controllers, if there are any.
    pub fn upgrade(&self) -> Option<Registry> {
        self.0.upgrade().map(Registry)
    }
}

/// The first and the longest pause between attempts to watch.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// A watch that ends when this is dropped.
pub struct WatchHandle {
    id: Option<StreamId>,
    registry: std::sync::Weak<Shared>,
}

impl std::fmt::Debug for WatchHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

impl WatchHandle {
    /// Watches until the controller stops.
    pub fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        let (Some(id), Some(shared)) = (self.id, self.registry.upgrade()) else { return };
        shared.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        shared.changed.notify_one();
    }
}

//! The state of all running controllers: their queues, their watches, and what the last reconcile of
//! each object has seen. Plain data: whoever holds it waits for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use biplane_cluster::{Change, Subscription};
use biplane_model::{Gvk, Object, ObjectId};
use futures_util::stream::{AbortHandle, AbortRegistration};
use tokio::time::Instant;

use crate::breaker::{Event, Verdict};
use crate::controller::{Controller, Watch, states};
use crate::queue::{Key, Outcome, Pause, Queue, Why};
use crate::seen::{Seen, Version};

/// Identifies a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId(u64);

/// A watch that the dispatcher reads. Dropping it ends the watch.
pub(crate) struct Stream {
    pub(crate) controller: String,
    pub(crate) watch: Watch,
    /// Whether changes were missed and are being told now.
    catching_up: bool,
    abort: AbortHandle,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// A subscription that the dispatcher does not read yet.
pub(crate) struct Fresh {
    pub(crate) id: StreamId,
    pub(crate) subscription: Subscription,
    pub(crate) abort: AbortRegistration,
}

/// All running controllers.
#[derive(Default)]
pub(crate) struct State {
    controllers: BTreeMap<String, Running>,
    streams: BTreeMap<StreamId, Stream>,
    fresh: Vec<Fresh>,
    streams_made: u64,
    pub(crate) pause: Pause,
    /// How often objects are looked at although nothing happened.
    pub(crate) sync_interval: Option<Duration>,
}

/// How busy a controller is.
pub(crate) struct Load {
    pub(crate) controller: String,
    /// The number of keys that are due and have not started.
    pub(crate) due: usize,
    /// The number of running reconciles.
    pub(crate) running: usize,
}

/// A running controller.
struct Running {
    specification: String,
    controller: Controller,
    /// The kind of the objects that it reconciles.
    kind: Option<Gvk>,
    queue: Queue,
    known: BTreeMap<Key, Known>,
    /// Whether reconciles may start.
    open: bool,
}

/// What is known about one object.
#[derive(Default)]
struct Known {
    /// What its last reconcile has seen.
    seen: Option<Seen>,
    /// Changes that arrived while its reconcile was running, by object.
    held: BTreeMap<ObjectId, Evidence>,
    /// The objects whose changes were counted since its last reconcile began.
    counted: BTreeSet<ObjectId>,
}

/// A change that may be a reason to reconcile.
#[derive(Clone)]
struct Evidence {
    version: Version,
    before: Option<Object>,
    object: Object,
    cost: f64,
    /// Whether it is about the object that is reconciled itself.
    own: bool,
}

impl Evidence {
    fn new(change: &Change, free: bool, own: bool) -> Option<(ObjectId, Self)> {
        let object = states(change).last()?.clone();
        let (version, before) = match change {
            Change::Changed { object, before } => (Version::of(object), before.clone()),
            _ => (Version::Absent, None),
        };
        // A change of an object is mapped before and after it.
        let cost = match (free, &before) {
            (true, _) => 0.0,
            (false, None) => 1.0,
            (false, Some(_)) => 2.0,
        };
        Some((object.id(), Self { version, before, object, cost, own }))
    }
}

/// A key to reconcile now.
pub(crate) struct Due {
    pub(crate) controller: Controller,
    pub(crate) key: Key,
}

impl State {
    pub(crate) fn names(&self) -> Vec<String> {
        self.controllers.keys().cloned().collect()
    }

    pub(crate) fn is_running(&self, name: &str) -> bool {
        self.controllers.contains_key(name)
    }

    pub(crate) fn specification(&self, name: &str) -> Option<String> {
        self.controllers.get(name).map(|running| running.specification.clone())
    }

    /// Adds a controller whose queue is closed. Returns whether there was none of that name.
    pub(crate) fn insert(&mut self, specification: &str, controller: Controller) -> bool {
        if self.controllers.contains_key(&controller.name) {
            return false;
        }
        let kind = controller.watches.iter().find(|watch| watch.own).map(|w| w.gvk.clone());
        let queue = Queue::new(controller.limits);
        let running = Running {
            specification: specification.to_owned(),
            kind,
            queue,
            known: BTreeMap::new(),
            open: false,
            controller,
        };
        self.controllers.insert(running.controller.name.clone(), running);
        true
    }

    /// Opens the queue of a controller.
    pub(crate) fn open(&mut self, name: &str) {
        if let Some(running) = self.controllers.get_mut(name) {
            running.open = true;
        }
    }

    /// Closes the queue of a controller and ends its watches, which are returned.
    pub(crate) fn stop(&mut self, name: &str) -> Option<Vec<Stream>> {
        let running = self.controllers.get_mut(name)?;
        running.open = false;
        running.queue.clear();
        let ids: Vec<_> =
            self.streams.iter().filter(|(_, s)| s.controller == name).map(|(id, _)| *id).collect();
        Some(ids.into_iter().filter_map(|id| self.streams.remove(&id)).collect())
    }

    /// Removes a controller without running reconciles. Returns whether it is gone.
    pub(crate) fn remove_if_idle(&mut self, name: &str) -> bool {
        if self.controllers.get(name).is_some_and(|running| running.queue.running() > 0) {
            return false;
        }
        self.controllers.remove(name);
        true
    }

    /// Adds a watch to a controller. What exists is told next.
    pub(crate) fn attach(
        &mut self,
        controller: &str,
        watch: Watch,
    ) -> Option<(StreamId, AbortRegistration)> {
        if !self.controllers.contains_key(controller) {
            return None;
        }
        self.streams_made += 1;
        let id = StreamId(self.streams_made);
        let (handle, abort) = AbortHandle::new_pair();
        let controller = controller.to_owned();
        self.streams.insert(id, Stream { controller, watch, catching_up: true, abort: handle });
        Some((id, abort))
    }

    /// Lets the dispatcher read a watch.
    pub(crate) fn read(&mut self, fresh: Fresh) {
        self.fresh.push(fresh);
    }

    /// Removes a watch.
    pub(crate) fn detach(&mut self, id: StreamId) -> Option<Stream> {
        self.streams.remove(&id)
    }

    /// The subscriptions that the dispatcher does not read yet.
    pub(crate) fn fresh(&mut self) -> Vec<Fresh> {
        std::mem::take(&mut self.fresh)
    }

    /// Wants an object reconciled now.
    pub(crate) fn wake(&mut self, controller: &str, key: &Key, now: Instant) {
        if let Some(running) = self.controllers.get_mut(controller) {
            running.queue.add(key, now, Why::Change, now);
        }
    }

    /// Handles a change that a watch reports.
    pub(crate) fn change(&mut self, id: StreamId, change: &Change, now: Instant) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let keys = stream.watch.mapping.keys(change);
        match change {
            Change::Synced => stream.catching_up = false,
            Change::Missed => stream.catching_up = true,
            Change::Changed { .. } | Change::Gone { .. } => {
                let Some(running) = self.controllers.get_mut(&stream.controller) else { return };
                if stream.watch.own && !running.identify(change, now) {
                    return;
                }
                let (free, own) = (stream.catching_up, stream.watch.own);
                let Some((id, evidence)) = Evidence::new(change, free, own) else { return };
                for key in keys {
                    running.consider(&key, &id, &evidence, now);
                }
            }
        }
    }

    /// Takes the next keys to reconcile, at most so many. Controllers take turns.
    pub(crate) fn take(&mut self, mut most: usize, now: Instant) -> Vec<Due> {
        let mut due = Vec::new();
        if self.pause.until(now).is_some() {
            return due;
        }
        loop {
            let before = due.len();
            for running in self.controllers.values_mut().filter(|running| running.open) {
                if most == 0 {
                    return due;
                }
                if let Some(key) = running.start(now) {
                    due.push(Due { controller: running.controller.clone(), key });
                    most -= 1;
                }
            }
            if due.len() == before {
                return due;
            }
        }
    }

    /// The keys that are due, by the names of their controllers.
    pub(crate) fn ready(&mut self, now: Instant) -> Vec<(String, Key)> {
        let open = self.controllers.iter_mut().filter(|(_, running)| running.open);
        open.flat_map(|(name, running)| {
            let ready = running.queue.ready(now);
            ready.into_iter().map(|key| (name.clone(), key))
        })
        .collect()
    }

    /// Takes this key of this controller to reconcile it, if it is due.
    pub(crate) fn take_key(&mut self, controller: &str, key: &Key, now: Instant) -> Option<Due> {
        let running = self.controllers.get_mut(controller).filter(|running| running.open)?;
        if !running.queue.take_key(key, now) {
            return None;
        }
        running.started(key, now);
        Some(Due { controller: running.controller.clone(), key: key.clone() })
    }

    /// A reconcile has ended. `seen` is what it saw: everything, or as far as it came.
    pub(crate) fn done(
        &mut self,
        controller: &str,
        key: &Key,
        outcome: Outcome,
        seen: Seen,
        now: Instant,
    ) {
        let Some(running) = self.controllers.get_mut(controller) else { return };
        let exists = running.done(key, outcome, seen, now);
        if let (true, Outcome::Done, Some(interval)) = (exists, outcome, self.sync_interval) {
            running.queue.add(key, now + spread(interval, key), Why::Poll, now);
        }
    }

    /// When something will be due, after everything that is due now has been taken.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        let open = || self.controllers.values().filter(|running| running.open);
        if let Some(until) = self.pause.until(now) {
            return Some(until);
        }
        open().filter_map(|running| running.queue.next()).min()
    }

    /// What will be due first for another reason than to look at it regularly.
    pub(crate) fn next_but_polls(&self, now: Instant) -> Option<(Instant, String, Key)> {
        let open = self.controllers.iter().filter(|(_, running)| running.open);
        let paused = self.pause.until(now);
        let next = open.filter_map(|(name, running)| {
            let (at, key) = match running.queue.next_but_polls() {
                Some((at, key)) => (at, key.clone()),
                // Only a pause keeps what is due from being taken.
                None => (now, running.queue.first_ready()?.clone()),
            };
            let at = paused.map_or(at, |until| at.max(until));
            Some((at, name.clone(), key))
        });
        next.min()
    }

    /// How busy each controller is.
    pub(crate) fn loads(&self) -> Vec<Load> {
        let load = |(name, running): (&String, &Running)| Load {
            controller: name.clone(),
            due: running.queue.depth(),
            running: running.queue.running(),
        };
        self.controllers.iter().map(load).collect()
    }

    /// The reconcilers of all controllers.
    pub(crate) fn controllers(&self) -> Vec<Controller> {
        self.controllers.values().map(|running| running.controller.clone()).collect()
    }
}

impl Running {
    /// Takes notice of a change of an object that is reconciled. Returns whether it still exists.
    fn identify(&mut self, change: &Change, now: Instant) -> bool {
        let breaker = self.controller.reconciler.breaker();
        match change {
            Change::Gone { last } => {
                let key = Key::from(&last.id());
                self.queue.forget(&key);
                self.known.remove(&key);
                if let Some(breaker) = breaker {
                    breaker.forget(&key);
                }
                self.controller.reconciler.gone(last);
                if self.controller.reconciles_gone {
                    self.queue.add(&key, now, Why::Change, now);
                }
                false
            }
            Change::Changed { object, .. } => {
                if let Some(breaker) = breaker {
                    breaker.identify(&Key::from(&object.id()), object);
                }
                true
            }
            Change::Synced | Change::Missed => true,
        }
    }

    fn consider(&mut self, key: &Key, id: &ObjectId, evidence: &Evidence, now: Instant) {
        if self.queue.is_running(key) {
            // Only after the reconcile is it known what it has seen.
            if let Some(known) = self.known.get_mut(key) {
                known.held.insert(id.clone(), evidence.clone());
            }
            return;
        }
        self.judge(key, id, evidence, now);
    }

    /// Wants a key if a change is news and the breaker lets it pass.
    fn judge(&mut self, key: &Key, id: &ObjectId, evidence: &Evidence, now: Instant) {
        let seen = self.known.get(key).and_then(|known| known.seen.as_ref());
        if seen.is_some_and(|seen| !seen.is_news(id, &evidence.version)) {
            return;
        }
        let (mut at, mut why) = (now, Why::Change);
        let reconciler = &self.controller.reconciler;
        if let Some(breaker) = reconciler.breaker() {
            let first = evidence.cost <= 0.0
                || self.known.entry(key.clone()).or_default().counted.insert(id.clone());
            // A change of yet another object costs nothing if a reconcile is due anyway.
            let free = first && self.queue.is_ready(key);
            let event = Event {
                before: evidence.before.as_ref(),
                object: &evidence.object,
                cost: if free { 0.0 } else { evidence.cost },
            };
            let uid = if evidence.own { evidence.object.uid() } else { "" };
            let dependencies = reconciler.dependencies(key);
            if let Verdict::Hold(until) = breaker.admit(key, uid, dependencies, &event, now) {
                (at, why) = (until, Why::Held);
            }
        }
        self.queue.add(key, at, why, now);
    }

    fn start(&mut self, now: Instant) -> Option<Key> {
        let key = self.queue.take(now)?;
        self.started(&key, now);
        Some(key)
    }

    /// Takes notice that the reconcile of a key begins.
    fn started(&mut self, key: &Key, now: Instant) {
        let known = self.known.entry(key.clone()).or_default();
        known.held.clear();
        known.counted.clear();
        if let Some(breaker) = self.controller.reconciler.breaker() {
            breaker.started(key, now);
        }
    }

    /// Takes the end of a reconcile. Returns whether its object exists.
    fn done(&mut self, key: &Key, outcome: Outcome, seen: Seen, now: Instant) -> bool {
        self.queue.done(key, outcome, now);
        // An object that went meanwhile is not known any more.
        let Some(known) = self.known.get_mut(key) else { return false };
        let complete = matches!(outcome, Outcome::Done | Outcome::After(_) | Outcome::Again);
        match &mut known.seen {
            Some(earlier) if !complete => earlier.extend(seen),
            seen_before => *seen_before = Some(seen),
        }
        for (id, evidence) in std::mem::take(&mut known.held) {
            self.judge(key, &id, &evidence, now);
        }
        if let Some(at) = self.controller.reconciler.breaker().and_then(|b| b.next(key)) {
            self.queue.add(key, at, Why::Held, now);
        }
        !self.forget_absent(key, outcome)
    }

    /// Forgets an object that its reconcile did not find. Returns whether there was none.
    fn forget_absent(&mut self, key: &Key, outcome: Outcome) -> bool {
        let (Some(kind), Outcome::Done) = (&self.kind, outcome) else { return false };
        let id = ObjectId::new(kind.clone(), &key.namespace, &key.name);
        let seen = self.known.get(key).and_then(|known| known.seen.as_ref());
        let absent = seen.is_some_and(|seen| !seen.is_news(&id, &Version::Absent));
        if absent && !self.queue.is_ready(key) {
            self.known.remove(key);
        }
        absent
    }
}

/// An interval that is up to a tenth longer, by the key, so that not all are due at once.
fn spread(interval: Duration, key: &Key) -> Duration {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let thousandths = u32::try_from(hasher.finish() % 100).unwrap_or_default();
    interval + interval / 1000 * thousandths
}

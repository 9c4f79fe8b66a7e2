//! The dispatcher: reads all watches, starts the reconciles that are due, and waits for the next
//! thing to happen.
//!
//! [`Dispatcher::run`] waits in real time. [`Dispatcher::run_until_stable`] runs one reconcile at a
//! time and jumps to what is due next, so the same input gives the same result.
//!
//! Whoever wants to watch it happen runs in steps: [`Dispatcher::due`] says which objects of some
//! controllers are due, and [`Dispatcher::step`] reconciles one of them. A round is what was due when
//! it began. Whatever else is due, of all other controllers, is reconciled in between and at once.

use std::collections::BTreeMap;
use std::time::Duration;

use biplane_cluster::Change;
use biplane_engine::failure::Class;
use biplane_engine::{ReconcileError, Requeue};
use futures_util::stream::{self, Abortable, BoxStream, SelectAll};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::controller::Controller;
use crate::queue::{Key, Outcome};
use crate::registry::Registry;
use crate::registry::state::{Due, Fresh, StreamId};
use crate::seen::{Notes, Seen};

/// How long running reconciles may take when the control plane ends.
pub const GRACE: Duration = Duration::from_secs(10);
/// How often controllers drop what they do not need any more.
const TIDY: Duration = Duration::from_mins(1);
/// How many changes are handled before reconciles are started.
const BATCH: usize = 256;

/// A report of a watch. No change means that the watch has ended by itself.
type Report = (StreamId, Option<Change>);
/// The result of a reconcile and what it has seen.
type Ended = (Result<Requeue, ReconcileError>, Seen);

/// A running reconcile.
#[derive(Debug)]
struct Reconciling {
    controller: String,
    key: Key,
    /// When it began, on the timeline.
    began: Instant,
    since: Instant,
}

/// Runs the controllers of a registry.
pub struct Dispatcher {
    registry: Registry,
    streams: SelectAll<BoxStream<'static, Report>>,
    tasks: JoinSet<Ended>,
    reconciling: BTreeMap<tokio::task::Id, Reconciling>,
    reconciles: usize,
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").field("reconciling", &self.reconciling).finish_non_exhaustive()
    }
}

/// When a run until stable gives up.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The number of reconciles.
    pub reconciles: usize,
    /// The time that passes on the timeline.
    pub time: Duration,
}

/// How a run until stable ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Nothing is due, except objects that are looked at regularly.
    Stable,
    /// This was due when the limit was reached.
    StillDue {
        /// The controller.
        controller: String,
        /// The object.
        key: Key,
    },
}

/// What the dispatcher was waiting for.
enum Woken {
    End,
    Ended(Result<(tokio::task::Id, Ended), JoinError>),
    Report(Report),
    Nothing,
}

impl Dispatcher {
    /// Runs the controllers of a registry.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            streams: SelectAll::new(),
            tasks: JoinSet::new(),
            reconciling: BTreeMap::new(),
            reconciles: 0,
        }
    }

    /// The number of reconciles that were started.
    pub fn reconciles(&self) -> usize {
        self.reconciles
    }

    /// Runs until `shutdown` is ready. Then nothing is started any more, and running reconciles get
    /// a few seconds to end.
    pub async fn run(&mut self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        let timeline = self.registry.0.timeline.clone();
        let mut tidy = timeline.now() + TIDY;
        loop {
            self.absorb();
            self.drain(BATCH);
            self.start(usize::MAX);
            let now = timeline.now();
            if now >= tidy {
                self.tidy();
                tidy = now + TIDY;
            }
            let next = self.registry.0.state().next(now).map_or(tidy, |at| at.min(tidy));
            let wait = next.saturating_duration_since(now);
            let woken = tokio::select! {
                biased;
                () = &mut shutdown => Woken::End,
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    Woken::Ended(ended)
                }
                Some(report) = self.streams.next(), if !self.streams.is_empty() => {
                    Woken::Report(report)
                }
                () = self.registry.0.changed.notified() => Woken::Nothing,
                () = tokio::time::sleep(wait) => Woken::Nothing,
            };
            match woken {
                Woken::End => break,
                Woken::Ended(ended) => self.ended(ended),
                Woken::Report(report) => self.report(report),
                Woken::Nothing => {}
            }
        }
        self.finish().await;
    }

    /// Waits for running reconciles, and cuts off those that take too long.
    async fn finish(&mut self) {
        let all = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                self.ended(ended);
            }
        };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            tracing::warn!(reconciles = self.tasks.len(), "cutting off running reconciles");
            self.tasks.shutdown().await;
        }
    }

    /// Runs one reconcile at a time until nothing is due, except objects that are looked at
    /// regularly. Time passes in jumps.
    pub async fn run_until_stable(&mut self, limit: &Limit) -> Stability {
        let timeline = self.registry.0.timeline.clone();
        let (end, most) = (timeline.now() + limit.time, self.reconciles + limit.reconciles);
        loop {
            self.absorb();
            while self.drain(BATCH) {
                self.absorb();
            }
            if self.tasks.is_empty() && self.reconciles < most {
                self.start(1);
            }
            if let Some(ended) = self.tasks.join_next_with_id().await {
                self.ended(ended);
                continue;
            }
            let now = timeline.now();
            let next = self.registry.0.state().next_but_polls(now);
            match next {
                None => return Stability::Stable,
                Some((at, controller, key)) if at > end || self.reconciles >= most => {
                    return Stability::StillDue { controller, key };
                }
                Some((at, _, _)) => timeline.jump_to(at),
            }
        }
    }

    /// The objects of the controllers that `counts` knows by their names that are due. Time jumps to
    /// the next ones if nothing is due now, but no further than `patience`. Nothing is due if all is
    /// stable, or if what comes next comes too late.
    pub async fn due(
        &mut self,
        counts: &(dyn Fn(&str) -> bool + Sync),
        patience: Duration,
    ) -> Vec<(String, Key)> {
        let timeline = self.registry.0.timeline.clone();
        let end = timeline.now() + patience;
        loop {
            self.run_others(counts).await;
            let now = timeline.now();
            let mut ready = self.registry.0.state().ready(now);
            ready.retain(|(controller, _)| counts(controller));
            if !ready.is_empty() {
                return ready;
            }
            let next = self.registry.0.state().next_but_polls(now);
            match next {
                Some((at, _, _)) if at <= end => timeline.jump_to(at),
                _ => return Vec::new(),
            }
        }
    }

    /// Reconciles an object if it is still due, and then everything that is due of the controllers
    /// that `counts` does not know. Returns whether it was due.
    pub async fn step(
        &mut self,
        controller: &str,
        key: &Key,
        counts: &(dyn Fn(&str) -> bool + Sync),
    ) -> bool {
        let now = self.registry.0.timeline.now();
        let due = self.registry.0.state().take_key(controller, key, now);
        let Some(due) = due else { return false };
        self.perform(due).await;
        self.run_others(counts).await;
        true
    }

    /// Reconciles what is due now of the controllers that `counts` does not know, one after the
    /// other, until nothing is.
    async fn run_others(&mut self, counts: &(dyn Fn(&str) -> bool + Sync)) {
        loop {
            self.absorb();
            while self.drain(BATCH) {
                self.absorb();
            }
            let now = self.registry.0.timeline.now();
            let due = {
                let mut state = self.registry.0.state();
                let ready = state.ready(now);
                let other = ready.into_iter().find(|(controller, _)| !counts(controller));
                other.and_then(|(controller, key)| state.take_key(&controller, &key, now))
            };
            let Some(due) = due else { return };
            self.perform(due).await;
        }
    }

    /// Runs a reconcile here and now.
    async fn perform(&mut self, Due { controller, key }: Due) {
        let reconciling = Reconciling {
            controller: controller.name.clone(),
            key: key.clone(),
            began: self.registry.0.timeline.now(),
            since: Instant::now(),
        };
        self.reconciles += 1;
        let ended = reconcile(controller, key).await;
        self.finished(&reconciling, Some(ended));
    }

    /// Takes over new watches and ends those that nobody wants any more.
    fn absorb(&mut self) {
        self.registry.0.end_dropped();
        let fresh = self.registry.0.state().fresh();
        for Fresh { id, subscription, abort } in fresh {
            let reports = stream::unfold(Some(subscription), move |subscription| async move {
                let mut subscription = subscription?;
                match subscription.next().await {
                    Some(change) => Some(((id, Some(change)), Some(subscription))),
                    None => Some(((id, None), None)),
                }
            });
            self.streams.push(Abortable::new(reports, abort).boxed());
        }
    }

    /// Handles changes that are there already. Returns whether there may be more.
    fn drain(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let next = tokio::task::unconstrained(self.streams.next()).now_or_never();
            match next.flatten() {
                Some(report) => self.report(report),
                None => return false,
            }
        }
        true
    }

    fn report(&mut self, (id, change): Report) {
        let shared = &self.registry.0;
        let now = shared.timeline.now();
        if let Some(change) = change {
            shared.state().change(id, &change, now);
            return;
        }
        let detached = shared.state().detach(id);
        let Some(stream) = detached else { return };
        let (controller, watch) = (stream.controller.clone(), stream.watch.clone());
        shared.metrics.watch_stopped(&controller, watch.r#type);
        tracing::debug!(controller, kind = watch.gvk.kind, "a watch has ended");
        match watch.mapping.ended() {
            Ok(()) => {
                let registry = self.registry.clone();
                tokio::spawn(async move { registry.watch_again(&controller, watch).await });
            }
            Err(keys) => {
                let mut state = shared.state();
                for key in keys {
                    state.wake(&controller, &key, now);
                }
            }
        }
    }

    /// Starts reconciles that are due.
    fn start(&mut self, most: usize) {
        let began = self.registry.0.timeline.now();
        let due = self.registry.0.state().take(most, began);
        for Due { controller, key } in due {
            let reconciling = Reconciling {
                controller: controller.name.clone(),
                key: key.clone(),
                began,
                since: Instant::now(),
            };
            let task = self.tasks.spawn(reconcile(controller, key));
            self.reconciling.insert(task.id(), reconciling);
            self.reconciles += 1;
        }
    }

    fn ended(&mut self, ended: Result<(tokio::task::Id, Ended), JoinError>) {
        let (id, answer) = match ended {
            Ok((id, answer)) => (id, Some(answer)),
            Err(error) => (error.id(), None),
        };
        if let Some(reconciling) = self.reconciling.remove(&id) {
            self.finished(&reconciling, answer);
        }
    }

    fn finished(&self, reconciling: &Reconciling, answer: Option<Ended>) {
        let Reconciling { controller, key, began, since } = reconciling;
        let shared = &self.registry.0;
        let now = shared.timeline.now();
        let (result, seen) = match answer {
            Some((result, seen)) => (Some(result), seen),
            None => (None, Seen::default()),
        };
        let (outcome, label, asked) = outcome(result.as_ref());
        match &result {
            Some(Err(error)) => tracing::info!(controller, %key, %error, "cannot reconcile"),
            None => tracing::error!(controller, %key, "a reconcile ended unexpectedly"),
            Some(Ok(_)) => {}
        }
        shared.metrics.reconciled(controller, label, since.elapsed());
        {
            let mut state = shared.state();
            if outcome == Outcome::NotItsFault {
                let paused = state.pause.until(now);
                state.pause.trouble(*began, asked, now);
                if paused.is_none() {
                    shared.metrics.paused(controller);
                }
            } else {
                state.pause.no_trouble(*began);
            }
            state.done(controller, key, outcome, seen, now);
        }
        shared.ended.notify_waiters();
    }

    fn tidy(&self) {
        let controllers = self.registry.0.state().controllers();
        for controller in controllers {
            controller.reconciler.tidy();
        }
    }
}

/// Reconciles an object, and notes what that sees.
async fn reconcile(controller: Controller, key: Key) -> Ended {
    let (notes, reconciler) = (Notes::default(), &controller.reconciler);
    let result = notes.scope(reconciler.reconcile(&key)).await;
    let seen = notes.take();
    reconciler.ended(&key, &seen).await;
    (result, seen)
}

/// What the result of a reconcile means for the queue and in metrics, and how long the server asks
/// to wait.
fn outcome(result: Option<&Result<Requeue, ReconcileError>>) -> (Outcome, &'static str, Duration) {
    let (outcome, label) = match result {
        Some(Ok(Requeue::No)) => (Outcome::Done, "success"),
        Some(Ok(Requeue::After(delay))) => (Outcome::After(*delay), "requeue_after"),
        Some(Ok(Requeue::Again)) => (Outcome::Again, "requeue"),
        Some(Ok(Requeue::Now)) => (Outcome::Retry, "requeue"),
        Some(Err(error)) => match error.class {
            Class::Unavailable => (Outcome::NotItsFault, "error"),
            Class::Throttled(asked) => return (Outcome::NotItsFault, "error", asked),
            _ => (Outcome::Retry, "error"),
        },
        None => (Outcome::Retry, "error"),
    };
    (outcome, label, Duration::ZERO)
}

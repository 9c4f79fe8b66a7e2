//! The composite resource reconciler. Each reconcile brings one composite resource closer to the
//! desired state of its Composition.

pub mod breaker;
pub mod compose;
mod configure;
pub mod desired;
mod finalizer;
pub mod observe;
pub mod outcome;
pub mod publish;
pub mod report;
pub mod select;
pub mod tracker;
pub mod upgrade;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::cluster::Optional;
use biplane_cluster::{Event, EventType, Source};
use biplane_model::condition::{
    Condition, RESPONSIVE, SYSTEM_TYPES, condition, conditions, replace_conditions, set_conditions,
};
use biplane_model::pipeline::CompositionSpec;
use biplane_model::{Gvk, Object, ObjectId, Value};
use tokio::time::Instant;

use crate::failure::{Attempted, Class, Failure, join};
use crate::pipeline::{Ports, RECONCILE_TIMEOUT};
use crate::sources::{Clock, Ids};
use biplane_go::fmt::quote;
pub use biplane_model::layout::Layout;
use compose::Outcome;
pub use finalizer::{Finalizer, NoFinalizer, RealFinalizer};
use outcome::{ComposeError, Fatal};
pub use write::composed_manager;

const PAUSED_ANNOTATION: &str = "crossplane.io/paused";
const POLL_ANNOTATION: &str = "crossplane.io/poll-interval";
const REQUEST_ANNOTATION: &str = "crossplane.io/reconcile-requested-at";
const HANDLED_REQUEST: [&str; 2] = ["status", "lastHandledReconcileAt"];

/// Checks permissions after a failed write.
#[async_trait]
pub trait Authorize: Send + Sync {
    /// Returns an error if the current user may not control objects of a kind in a namespace.
    async fn check(&self, gvk: &Gvk, namespace: &str) -> Result<(), String>;
}

/// Starts watches of the dependencies of composite resources.
#[async_trait]
pub trait WatchDependencies: Send + Sync {
    /// Starts the watches that are missing.
    async fn start(&self) -> Result<(), Failure>;
}

/// The dependencies of the reconciler, for one kind of composite resource.
#[derive(Clone)]
#[allow(missing_debug_implementations)] // trait objects without Debug
pub struct Deps {
    /// The cluster, the functions and their requirements.
    pub ports: Ports,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of unique ids.
    pub ids: Arc<dyn Ids>,
    /// The kind.
    pub gvk: Gvk,
    /// Where the kind stores Crossplane's fields.
    pub layout: Layout,
    /// The controller name on every event.
    pub controller: String,
    /// Adds and removes the finalizer of composite resources.
    pub finalizer: Arc<dyn Finalizer>,
    /// Selects a Composition.
    pub compositions: Arc<dyn select::Select>,
    /// Selects a selector of revisions.
    pub revision_selector: Arc<dyn select::Select>,
    /// Fetches the revision.
    pub revisions: Arc<dyn select::Revisions>,
    /// Publishes connection details.
    pub publisher: Arc<dyn publish::Publish>,
    /// Moves composed resources to server-side apply.
    pub upgrade: Arc<dyn upgrade::Upgrade>,
    /// Remembers the dependencies of composite resources.
    pub tracker: Arc<dyn tracker::Tracker>,
    /// Detects composite resources that receive too many events.
    pub breaker: Arc<dyn breaker::Breaker>,
    /// Starts watches of the dependencies.
    pub watches: Option<Arc<dyn WatchDependencies>>,
    /// Explains refused writes.
    pub authorizer: Option<Arc<dyn Authorize>>,
    /// Whether the status keeps the token of a handled reconcile request. Otherwise composing drops
    /// it, and every reconcile treats the request as new.
    pub notes_requests: bool,
    /// Whether dependencies are watched, so that polling is not needed.
    pub realtime: bool,
    /// The interval between reconciles without a trigger. Zero means never.
    pub poll_interval: Duration,
    /// The shortest interval that an annotation can request.
    pub min_poll_interval: Duration,
    /// The time limit of one reconcile.
    pub timeout: Duration,
}

impl Deps {
    /// The default time limit of one reconcile.
    pub const TIMEOUT: Duration = RECONCILE_TIMEOUT;
}

/// When to reconcile again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Only after a change.
    No,
    /// As soon as the queue allows.
    Now,
    /// After this duration.
    After(Duration),
}

/// Why a reconcile failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ReconcileError {
    /// The error message with all causes.
    pub text: String,
    /// The class of the error.
    pub class: Class,
    /// The fatal result that caused the error.
    pub fatal: Option<Fatal>,
}

impl From<Failure> for ReconcileError {
    fn from(Failure { text, class }: Failure) -> Self {
        Self { text, class, fatal: None }
    }
}

/// A composite resource during a reconcile.
///
/// Changes to its references and labels are collected here. They are written once, before composing
/// or after a failure.
#[derive(Clone, Debug)]
#[allow(clippy::upper_case_acronyms)] // the usual name in Crossplane
pub struct XR {
    /// The object, with changes that are not written yet.
    pub object: Object,
    unwritten: bool,
}

impl XR {
    /// Wraps an object as it was read.
    pub fn new(object: Object) -> Self {
        Self { object, unwritten: false }
    }

    /// Marks the object as different from the stored one.
    pub fn changed(&mut self) {
        self.unwritten = true;
    }

    /// Writes the changes. Keeps the pending conditions, because the response has only the stored
    /// ones.
    async fn write(&mut self, deps: &Deps) -> Result<(), Failure> {
        if !std::mem::take(&mut self.unwritten) {
            return Ok(());
        }
        let pending = conditions(&self.object);
        let token = self.object.at(&HANDLED_REQUEST).cloned();
        let written = deps.ports.cluster.update(&self.object).await;
        self.object = written.attempted("cannot update composite resource")?;
        if conditions(&self.object) != pending {
            replace_conditions(&mut self.object, &pending);
        }
        if let Some(token) = token {
            self.object.set_at(&HANDLED_REQUEST, token);
        }
        Ok(())
    }
}

/// Brings one composite resource closer to the desired state of its Composition.
///
/// A conflict is not a failure, wherever it happens. The next reconcile sees the other write.
pub async fn reconcile(
    deps: &Deps,
    namespace: &str,
    name: &str,
) -> Result<Requeue, ReconcileError> {
    match attempt(deps, namespace, name).await {
        Err(error) if error.class == Class::Conflict => {
            tracing::debug!(namespace, name, %error, "trying again");
            Ok(Requeue::Now)
        }
        answer => answer,
    }
}

async fn attempt(deps: &Deps, namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
    let cluster = &deps.ports.cluster;
    let deadline = Instant::now() + deps.timeout.min(Deps::TIMEOUT);
    let id = ObjectId::new(deps.gvk.clone(), namespace, name);
    let found = cluster.get(&id, Source::Cache).await.optional();
    let Some(object) = found.attempted("cannot get composite resource")? else {
        deps.tracker.forget(&id);
        return Ok(Requeue::No);
    };
    observe::has_kind(&object).attempted("cannot get composite resource")?;
    let before = object.get("status").cloned();
    let mut xr = XR::new(object);
    mark(deps, &mut xr, [responsiveness(deps, &id)]);

    if xr.object.annotation(PAUSED_ANNOTATION) == "true" {
        let text = "Reconciliation is paused via the pause annotation";
        event(deps, &xr, EventType::Normal, "ReconciliationPaused", text).await;
        let text = "Reconciliation (including deletion) is paused via the pause annotation";
        mark(deps, &mut xr, [Condition::reconcile_paused().with_message(text)]);
        return write_status(deps, &xr).await.map(|()| Requeue::No);
    }
    let request = note_request(deps, &mut xr).await;
    if xr.object.is_being_deleted() {
        return finalize(deps, xr).await;
    }
    let revision = match prepare(deps, &mut xr).await {
        Ok(revision) => revision,
        Err(problem) => return give_up(deps, xr, problem).await,
    };
    let composition = match compose::compose(deps, &mut xr.object, &revision, deadline).await {
        Ok(composition) => composition,
        Err(error) => return composing_failed(deps, xr, error).await,
    };
    if deps.notes_requests && !request.is_empty() {
        xr.object.set_at(&HANDLED_REQUEST, request);
    }
    settle(deps, xr, before.as_ref(), composition).await
}

/// A failure before or after composing, and how to report it.
struct Problem {
    failure: Failure,
    reason: &'static str,
    /// Whether a conflict is not reported.
    quiet_conflict: bool,
}

impl Problem {
    fn new(reason: &'static str, attempted: &str, failure: Failure) -> Self {
        Self { failure: failure.wrap(attempted), reason, quiet_conflict: true }
    }
}

/// Prepares everything that composing needs: finalizer, Composition, revision, labels.
async fn prepare(deps: &Deps, xr: &mut XR) -> Result<Arc<CompositionSpec>, Problem> {
    const RESOLVE: &str = "SelectComposition";
    const COMPOSE: &str = "ComposeResources";
    let layout = deps.layout;
    deps.finalizer.add(xr);
    let finalizer_added = xr.unwritten;

    let earlier = layout.composition(&xr.object);
    let selected = deps.compositions.select(xr).await;
    selected.map_err(|f| Problem::new(RESOLVE, "cannot select Composition", f))?;
    if let Some(reference) = layout.composition(&xr.object).filter(|r| Some(r) != earlier.as_ref())
    {
        let text = format!("Successfully selected composition: {}", reference.name);
        event(deps, xr, EventType::Normal, RESOLVE, &text).await;
    }
    let selected = deps.revision_selector.select(xr).await;
    selected.map_err(|f| Problem::new(RESOLVE, "cannot select CompositionRevision", f))?;

    let earlier = layout.revision(&xr.object);
    let fetched = deps.revisions.fetch(xr).await;
    let revision = fetched.map_err(|f| Problem::new(COMPOSE, "cannot fetch Composition", f))?;
    if let Some(reference) = layout.revision(&xr.object).filter(|r| Some(r) != earlier.as_ref()) {
        let text = format!("Selected composition revision: {}", reference.name);
        event(deps, xr, EventType::Normal, RESOLVE, &text).await;
    }
    let select::Revision { object: revision, spec } = revision;
    let valid = condition(&revision, "ValidPipeline");
    if valid.status != "True" {
        let why = if valid.message.is_empty() { "pipeline status unknown" } else { &valid.message };
        let failure = Failure::new(format!(
            "selected CompositionRevision {} does not have a valid function pipeline: {why}",
            revision.name()
        ));
        return Err(Problem { failure, reason: COMPOSE, quiet_conflict: false });
    }
    let configured = configure::configure(layout, xr, &spec);
    configured.map_err(|f| Problem::new(COMPOSE, "cannot configure composite resource", f))?;
    xr.write(deps).await.map_err(|failure| {
        if finalizer_added {
            let what = "cannot add composite resource finalizer";
            Problem::new("InitializeCompositeResource", what, failure)
        } else {
            Problem::new(COMPOSE, "cannot configure composite resource", failure)
        }
    })?;
    Ok(spec)
}

/// Reports a failure, writes pending changes if possible, and returns the error.
async fn give_up(deps: &Deps, mut xr: XR, problem: Problem) -> Result<Requeue, ReconcileError> {
    let Problem { failure, reason, quiet_conflict } = problem;
    if failure.class == Class::Conflict && quiet_conflict {
        return Ok(Requeue::Now);
    }
    event(deps, &xr, EventType::Warning, reason, &failure.text).await;
    mark(deps, &mut xr, [Condition::reconcile_error(&failure.text)]);
    // Decisions that were made before the failure are still written if possible.
    if let Err(error) = xr.write(deps).await {
        tracing::debug!(xr = %xr.object.id(), %error, "cannot write composite resource");
    }
    write_status_if_possible(deps, &xr).await;
    Err(failure.into())
}

async fn composing_failed(
    deps: &Deps,
    mut xr: XR,
    error: ComposeError,
) -> Result<Requeue, ReconcileError> {
    const WHAT: &str = "cannot compose resources";
    let ComposeError { failure, fatal, resource, report } = error;
    if failure.class == Class::Conflict {
        return Ok(Requeue::Now);
    }
    let class = failure.class;
    let mut text = failure.wrap(WHAT).text;
    event(deps, &xr, EventType::Warning, "ComposeResources", &text).await;
    let mut blamed = resource;
    if class == Class::Invalid {
        // The message of the API server can change from call to call. A condition should not.
        text = format!("{WHAT}: some resources were invalid, check events");
        blamed = None;
    }
    if let (Some(authorizer), Some((gvk, namespace))) = (&deps.authorizer, blamed)
        && let Err(why) = authorizer.check(&gvk, &namespace).await
    {
        event(deps, &xr, EventType::Warning, "RoleBasedAccessControl", &why).await;
        text = join(&[text, why]);
    }
    mark(deps, &mut xr, [Condition::reconcile_error(&text)]);
    let seen = deliver(deps, &mut xr, &report).await;
    let generation = xr.object.generation();
    let unknown: Vec<_> = conditions(&xr.object)
        .into_iter()
        .filter(|c| !SYSTEM_TYPES.contains(&c.r#type.as_str()) && !seen.contains(&c.r#type))
        .map(|c| Condition {
            status: "Unknown".into(),
            reason: "FatalError".into(),
            message:
                "A fatal error occurred before the status of this condition could be determined."
                    .into(),
            observed_generation: generation,
            ..c
        })
        .collect();
    set_conditions(&mut xr.object, unknown);
    write_status_if_possible(deps, &xr).await;
    Err(ReconcileError { text, class, fatal })
}

const PUBLISH: &str = "PublishConnectionSecret";

/// Publishes connection details, reports the result, and decides when to reconcile again.
async fn settle(
    deps: &Deps,
    mut xr: XR,
    before: Option<&Value>,
    outcome: Outcome,
) -> Result<Requeue, ReconcileError> {
    if let Some(watches) = &deps.watches
        && let Err(failure) = watches.start().await
    {
        let mut problem =
            Problem::new("WatchComposedResources", "cannot watch resource for changes", failure);
        problem.quiet_conflict = false;
        return give_up(deps, xr, problem).await;
    }
    match deps.publisher.publish(&xr.object, &outcome.details).await {
        Ok(false) => {}
        Ok(true) => {
            let now = biplane_model::condition::seconds(deps.clock.now());
            if deps.layout == Layout::Legacy {
                xr.object.set_at(&["status", "connectionDetails", "lastPublishedTime"], now);
            }
            let text = "Successfully published connection details";
            event(deps, &xr, EventType::Normal, PUBLISH, text).await;
        }
        Err(failure) => {
            let problem = Problem::new(PUBLISH, "cannot publish connection details", failure);
            return give_up(deps, xr, problem).await;
        }
    }
    deliver(deps, &mut xr, &outcome.report).await;

    let (mut unsynced, mut unready) = (Vec::new(), Vec::new());
    for (index, composed) in outcome.composed.iter().enumerate() {
        let id = if composed.name.is_empty() { index.to_string() } else { composed.name.clone() };
        for (fine, what, list) in
            [(composed.synced, "valid", &mut unsynced), (composed.ready, "ready", &mut unready)]
        {
            if !fine {
                let text = format!("Composed resource {} is not yet {what}", quote(&id));
                event(deps, &xr, EventType::Normal, "ComposeResources", &text).await;
                list.push(id.clone());
            }
        }
    }
    let synced = if unsynced.is_empty() {
        Condition::reconcile_success()
    } else {
        Condition::reconcile_error(format!("Unsynced resources: {}", report::some_of(&unsynced)))
    };
    let ready = match outcome.ready {
        Some(true) => Condition::available(),
        Some(false) => Condition::creating(),
        None if unready.is_empty() => Condition::available(),
        None => Condition::creating()
            .with_message(format!("Unready resources: {}", report::some_of(&unready))),
    };
    mark(deps, &mut xr, [synced, ready]);

    let waiting = !unsynced.is_empty() || !unready.is_empty();
    let requeue = match deps.realtime {
        false if waiting => Requeue::Now,
        true if !outcome.ttl.is_zero() => after(deps, outcome.ttl),
        _ => after(deps, poll_interval(deps, &xr.object)),
    };
    // A null status is the same as no status.
    let status = |status: Option<&Value>| status.filter(|status| !status.is_null()).cloned();
    if status(xr.object.get("status")) != status(before) {
        write_status(deps, &xr).await?;
    }
    Ok(requeue)
}

/// Removes the finalizer. Composed resources are deleted with their owner.
async fn finalize(deps: &Deps, mut xr: XR) -> Result<Requeue, ReconcileError> {
    mark(deps, &mut xr, [Condition::deleting()]);
    let pending = conditions(&xr.object);
    match deps.finalizer.remove(&xr.object).await {
        Ok(None) => {}
        Ok(Some(object)) => {
            xr.object = object;
            set_conditions(&mut xr.object, pending);
        }
        Err(failure) => {
            let what = "cannot remove composite resource finalizer";
            return give_up(deps, xr, Problem::new("DeleteCompositeResource", what, failure)).await;
        }
    }
    deps.tracker.forget(&xr.object.id());
    mark(deps, &mut xr, [Condition::reconcile_success()]);
    write_status(deps, &xr).await.map(|()| Requeue::No)
}

fn responsiveness(deps: &Deps, id: &ObjectId) -> Condition {
    match deps.breaker.triggered_by(id) {
        None => Condition::new(RESPONSIVE, "True", "WatchCircuitClosed"),
        Some(source) => Condition::new(RESPONSIVE, "False", "WatchCircuitOpen").with_message(
            format!("Too many watch events from {source}. Allowing events periodically."),
        ),
    }
}

/// Records a reconcile request and returns its token, if there is one.
async fn note_request(deps: &Deps, xr: &mut XR) -> String {
    let token = xr.object.annotation(REQUEST_ANNOTATION).to_owned();
    if token.is_empty() || xr.object.str_at(&HANDLED_REQUEST) == token {
        return token;
    }
    let mut annotations = annotations(deps);
    annotations.insert("token".into(), token.clone());
    let event = Event {
        regarding: xr.object.id(),
        r#type: EventType::Normal,
        reason: "ReconcileRequestHandled".into(),
        message: "Handling reconcile request".into(),
        annotations,
    };
    deps.ports.cluster.record(event).await;
    xr.object.set_at(&HANDLED_REQUEST, token.clone());
    token
}

/// Sets the reconciler's own conditions, with time and generation.
fn mark(deps: &Deps, xr: &mut XR, new: impl IntoIterator<Item = Condition>) {
    let (now, generation) = (deps.clock.now(), xr.object.generation());
    let new: Vec<_> = new.into_iter().map(|c| c.at(now).observed(generation)).collect();
    set_conditions(&mut xr.object, new);
}

fn annotations(deps: &Deps) -> BTreeMap<String, String> {
    [("controller".to_owned(), deps.controller.clone())].into()
}

async fn event(deps: &Deps, xr: &XR, r#type: EventType, reason: &str, message: &str) {
    let event = Event {
        regarding: xr.object.id(),
        r#type,
        reason: reason.into(),
        message: message.into(),
        annotations: annotations(deps),
    };
    deps.ports.cluster.record(event).await;
}

async fn deliver(deps: &Deps, xr: &mut XR, report: &report::Report) -> BTreeSet<String> {
    let cluster = &*deps.ports.cluster;
    report::deliver(cluster, deps.layout, &annotations(deps), &mut xr.object, report).await
}

async fn write_status(deps: &Deps, xr: &XR) -> Result<(), ReconcileError> {
    match deps.ports.cluster.update_status(&xr.object).await {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(Failure::from(error).wrap("cannot update composite resource status").into())
        }
    }
}

/// Writes the status and ignores errors: the failure that is being reported matters more.
async fn write_status_if_possible(deps: &Deps, xr: &XR) {
    if let Err(error) = deps.ports.cluster.update_status(&xr.object).await {
        tracing::debug!(xr = %xr.object.id(), %error, "cannot update composite resource status");
    }
}

/// Requeues after a duration with a jitter of ten percent, or never if it is zero.
fn after(deps: &Deps, interval: Duration) -> Requeue {
    if interval.is_zero() {
        return Requeue::No;
    }
    let fraction = deps.ids.number() as f64 / u64::MAX as f64;
    Requeue::After(interval.mul_f64(0.9 + 0.2 * fraction))
}

fn poll_interval(deps: &Deps, xr: &Object) -> Duration {
    match crate::sources::parse_duration(xr.annotation(POLL_ANNOTATION)) {
        Some(asked) if !asked.is_zero() => asked.max(deps.min_poll_interval),
        _ => deps.poll_interval,
    }
}

//! The composite resource reconciler. Each reconcile brings one composite resource closer to the
//! desired state of its Composition.

mod authorize;
pub mod behaviour;
pub mod breaker;
mod compose;
mod configure;
pub mod dependencies;
pub mod desired;
pub(crate) mod environment;
pub mod index;
mod observe;
mod outcome;
mod pass;
mod persist;
mod publish;
pub mod report;
pub mod revision;
mod select;
mod templates;
mod v1_spec;
mod write;

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{EventType, Optional, Source};
use biplane_model::condition::{
    Condition, RESPONSIVE, SYSTEM_TYPES, condition, conditions, set_conditions,
};
pub use biplane_model::layout::Layout;
use biplane_model::{Object, ObjectId, Value, labels};
use tokio::time::Instant;

use crate::context::Context;
use crate::failure::{Attempted, Class, Failure, join};
use crate::pipeline_check::VALID_PIPELINE;
use crate::reconcile::{GRACE, ReconcileError, Requeue, TIMEOUT};
pub use authorize::Authorizer;
pub use behaviour::{Behaviour, Release, Selection, Writing};
use breaker::{AlwaysClosed, Breaker};
use compose::Outcome;
use dependencies::{Dependencies, Untracked};
pub use index::CompositionIndex;
use outcome::ComposeError;
use pass::{Pass, XR};
pub use persist::COMPOSITE_MANAGER;
use report::{Missing, NotYet};
pub use write::composed_manager;

const POLL_ANNOTATION: &str = "crossplane.io/poll-interval";
const REQUEST_ANNOTATION: &str = "crossplane.io/reconcile-requested-at";
const HANDLED_REQUEST: [&str; 2] = ["status", "lastHandledReconcileAt"];

/// Reconciles composite resources of one kind.
pub struct Reconciler {
    /// What it works with.
    pub context: Context,
    /// How it behaves.
    pub behaviour: Behaviour,
    /// Remembers and watches the dependencies of composite resources.
    pub dependencies: Arc<dyn Dependencies>,
    /// Detects composite resources that receive too many events.
    pub breaker: Arc<dyn Breaker>,
    /// Explains refused writes.
    pub authorizer: Option<Authorizer>,
    /// Knows Compositions and revisions. Without it, they are read from the cluster.
    pub compositions: Option<Arc<CompositionIndex>>,
    specs: revision::Specs,
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("behaviour", &self.behaviour).finish_non_exhaustive()
    }
}

impl Reconciler {
    /// A reconciler without a memory of dependencies, a breaker or an authorizer.
    pub fn new(context: Context, behaviour: Behaviour) -> Self {
        Self {
            context,
            behaviour,
            dependencies: Arc::new(Untracked),
            breaker: Arc::new(AlwaysClosed),
            authorizer: None,
            compositions: None,
            specs: revision::Specs::default(),
        }
    }

    /// Brings one composite resource closer to the desired state of its Composition.
    ///
    /// A conflict is not a failure, wherever it happens. The next reconcile sees the other write.
    pub async fn reconcile(&self, namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
        let by = Instant::now() + self.behaviour.timeout.min(TIMEOUT);
        let pass = Pass { reconciler: self, by, status_by: by + GRACE };
        match attempt(&pass, namespace, name).await {
            Err(error) if error.class == Class::Conflict => {
                tracing::debug!(namespace, name, %error, "trying again");
                Ok(Requeue::Now)
            }
            answer => answer,
        }
    }
}

async fn attempt(pass: &Pass<'_>, namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
    let behaviour = pass.behaviour();
    let id = ObjectId::new(behaviour.gvk.clone(), namespace, name);
    let found = pass.cluster().get(&id, Source::Cache, pass.by).await.optional();
    let Some(object) = found.attempted("cannot get composite resource")? else {
        pass.reconciler.dependencies.forget(&id);
        return Ok(Requeue::No);
    };
    observe::has_kind(&object).attempted("cannot get composite resource")?;
    let before = object.clone();
    let mut xr = XR::new(object);
    mark_responsive(pass, &mut xr, &id);

    if xr.object.annotation(labels::PAUSED) == "true" {
        let text = "Reconciliation is paused via the pause annotation";
        pass.event(&xr, EventType::Normal, "ReconciliationPaused", text);
        let text = "Reconciliation (including deletion) is paused via the pause annotation";
        pass.mark(&mut xr, [Condition::reconcile_paused().with_message(text)]);
        persist::write_status(pass, &mut xr).await?;
        return Ok(Requeue::No);
    }
    let request = note_request(pass, &mut xr);
    if xr.object.is_being_deleted() {
        return finalize(pass, xr).await;
    }
    let (revision, environment) = match prepare(pass, &mut xr).await {
        Ok(prepared) => prepared,
        Err(problem) => return give_up(pass, xr, problem).await,
    };
    let composed = if behaviour.resources_mode && revision.spec.has_templates() {
        templates::compose(pass, &mut xr, &revision, environment).await
    } else {
        compose::compose(pass, &mut xr, &revision, environment).await
    };
    let mut outcome = match composed {
        Ok(outcome) => outcome,
        Err(error) => return composing_failed(pass, xr, error).await,
    };
    if behaviour.environments {
        let configuration = revision.spec.environment.as_ref();
        let configs = environment::dependencies(pass, &xr.object, configuration);
        outcome.tracked.requirements.extend(configs);
    }
    if behaviour.keeps_token() && !request.is_empty() {
        xr.object.set_at_or_ignore(&HANDLED_REQUEST, request);
    }
    settle(pass, xr, before.get("status"), outcome).await
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

/// Prepares everything that composing needs: finalizer, Composition, revision, labels, environment.
async fn prepare(
    pass: &Pass<'_>,
    xr: &mut XR,
) -> Result<(revision::Revision, Option<Object>), Problem> {
    const INITIALIZE: &str = "InitializeCompositeResource";
    const ADD_FINALIZER: &str = "cannot add composite resource finalizer";
    const RESOLVE: &str = "SelectComposition";
    let layout = pass.layout();
    let added = persist::add_finalizer(pass, xr);
    added.map_err(|f| Problem::new(INITIALIZE, ADD_FINALIZER, f))?;
    let finalizer_added = xr.unwritten;

    let unselected = |f| Problem::new(RESOLVE, "cannot select Composition", f);
    let definition = select::definition(pass).await.map_err(unselected)?;
    let earlier = layout.composition(&xr.object);
    select::composition(pass, xr, definition.as_ref()).await.map_err(unselected)?;
    if let Some(reference) = layout.composition(&xr.object).filter(|r| Some(r) != earlier.as_ref())
    {
        let text = format!("Successfully selected composition: {}", reference.name);
        pass.event(xr, EventType::Normal, RESOLVE, &text);
    }
    let selected = select::revision_defaults(pass, xr, definition.as_ref());
    selected.map_err(|f| Problem::new(RESOLVE, "cannot select CompositionRevision", f))?;

    let earlier = layout.revision(&xr.object);
    let fetched = select::revision(pass, xr).await;
    let revision = fetched.map_err(|f| Problem::new(COMPOSE, "cannot fetch Composition", f))?;
    if let Some(reference) = layout.revision(&xr.object).filter(|r| Some(r) != earlier.as_ref()) {
        let text = format!("Selected composition revision: {}", reference.name);
        pass.event(xr, EventType::Normal, RESOLVE, &text);
    }
    let revision::Revision { object: revision, spec } = revision;
    let valid = condition(&revision, VALID_PIPELINE);
    if valid.status != "True" {
        let why = if valid.message.is_empty() { "pipeline status unknown" } else { &valid.message };
        let failure = Failure::new(format!(
            "selected CompositionRevision {} does not have a valid function pipeline: {why}",
            revision.name()
        ));
        return Err(Problem { failure, reason: COMPOSE, quiet_conflict: false });
    }
    if let Some(findings) = refused(pass, &spec) {
        let failure = Failure::new(findings).wrap("refusing to use invalid Composition");
        return Err(Problem { failure, reason: COMPOSE, quiet_conflict: false });
    }
    let configured = configure::configure(layout, xr, &spec);
    configured.map_err(|f| Problem::new(COMPOSE, "cannot configure composite resource", f))?;
    if pass.behaviour().writing == Writing::Stepwise {
        persist::write(pass, xr, pass.by).await.map_err(|failure| {
            if finalizer_added {
                Problem::new(INITIALIZE, ADD_FINALIZER, failure)
            } else {
                Problem::new(COMPOSE, "cannot configure composite resource", failure)
            }
        })?;
    }
    let mut environment = None;
    if pass.behaviour().environments {
        let problem = |what: &'static str| {
            move |f: Failure| Problem {
                failure: f.wrap(what),
                reason: COMPOSE,
                quiet_conflict: false,
            }
        };
        let configuration = spec.environment.as_ref();
        let selected = environment::select(pass, xr, configuration).await;
        selected.map_err(problem("cannot select environment"))?;
        let fetched = environment::fetch(pass, &xr.object, configuration).await;
        environment = Some(fetched.map_err(problem("cannot fetch environment"))?);
    }
    Ok((revision::Revision { object: revision, spec }, environment))
}

/// What the integrity rules find wrong with a Composition, if they apply to it: those of v2 are the
/// API server's.
fn refused(pass: &Pass<'_>, spec: &revision::Spec) -> Option<String> {
    let behaviour = pass.behaviour();
    let applies = behaviour.release.is_v1()
        || (behaviour.resources_mode && spec.has_templates())
        || (behaviour.environments && spec.environment.is_some());
    biplane_model::integrity::summary(&spec.findings).filter(|_| applies)
}

/// Reports a failure, writes pending changes if possible, and returns the error.
async fn give_up(pass: &Pass<'_>, mut xr: XR, problem: Problem) -> Result<Requeue, ReconcileError> {
    let Problem { failure, reason, quiet_conflict } = problem;
    if failure.class() == Class::Conflict && quiet_conflict {
        return Ok(Requeue::Now);
    }
    let text = failure.to_string();
    pass.event(&xr, EventType::Warning, reason, &text);
    write_decisions(pass, &mut xr).await;
    pass.mark(&mut xr, [Condition::reconcile_error(&text)]);
    write_status_if_possible(pass, &mut xr).await;
    Err(failure.into())
}

/// Writes what was decided before a failure, if possible.
async fn write_decisions(pass: &Pass<'_>, xr: &mut XR) {
    // The time of the reconcile may be used up.
    if let Err(error) = persist::write(pass, xr, pass.status_by).await {
        tracing::debug!(xr = %xr.object.id(), %error, "cannot write composite resource");
    }
}

async fn composing_failed(
    pass: &Pass<'_>,
    mut xr: XR,
    error: ComposeError,
) -> Result<Requeue, ReconcileError> {
    const WHAT: &str = "cannot compose resources";
    let ComposeError { failure, resource, report } = error;
    let class = failure.class();
    if class == Class::Conflict {
        return Ok(Requeue::Now);
    }
    let fatal = failure.fatal().cloned();
    let mut text = failure.wrap(WHAT).to_string();
    pass.event(&xr, EventType::Warning, "ComposeResources", &text);
    let mut blamed = resource;
    if class == Class::Invalid {
        // The message of the API server can change from call to call. A condition should not.
        text = format!("{WHAT}: some resources were invalid, check events");
        blamed = None;
    }
    if let (Some(authorizer), Some((gvk, namespace))) = (&pass.reconciler.authorizer, blamed)
        && let Some(why) = authorizer.refusal(pass.cluster(), &gvk, &namespace, pass.by).await
    {
        pass.event(&xr, EventType::Warning, "RoleBasedAccessControl", &why);
        text = join(&[text, why]);
    }
    write_decisions(pass, &mut xr).await;
    pass.mark(&mut xr, [Condition::reconcile_error(&text)]);
    let seen = report::deliver(pass, &mut xr, &report).await;
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
    write_status_if_possible(pass, &mut xr).await;
    Err(ReconcileError { text, class, fatal })
}

const PUBLISH: &str = "PublishConnectionSecret";
const COMPOSE: &str = "ComposeResources";

/// Publishes connection details, reports the result, and decides when to reconcile again.
async fn settle(
    pass: &Pass<'_>,
    mut xr: XR,
    before: Option<&Value>,
    outcome: Outcome,
) -> Result<Requeue, ReconcileError> {
    let tracked = pass.reconciler.dependencies.track(&xr.object.id(), outcome.tracked).await;
    if let Err(failure) = tracked {
        let mut problem =
            Problem::new("WatchComposedResources", "cannot watch resource for changes", failure);
        problem.quiet_conflict = false;
        return give_up(pass, xr, problem).await;
    }
    match publish::publish(pass, &xr.object, &outcome.details).await {
        Ok(false) => {}
        Ok(true) => {
            let now = biplane_model::condition::seconds(pass.context().clock.now());
            if pass.layout() == Layout::Legacy {
                let path = ["status", "connectionDetails", "lastPublishedTime"];
                xr.object.set_at_or_ignore(&path, now);
            }
            let text = "Successfully published connection details";
            pass.event(&xr, EventType::Normal, PUBLISH, text);
        }
        Err(failure) => {
            let problem = Problem::new(PUBLISH, "cannot publish connection details", failure);
            return give_up(pass, xr, problem).await;
        }
    }
    report::deliver(pass, &mut xr, &outcome.report).await;
    let release = pass.behaviour().release;
    let warned = outcome.report.events.iter().any(|event| event.r#type == EventType::Warning);
    if release == Release::V1_17 && !warned {
        pass.event(&xr, EventType::Normal, COMPOSE, "Successfully composed resources");
    }

    let (mut unsynced, mut unready) = (Vec::new(), Vec::new());
    for (index, composed) in outcome.composed.iter().enumerate() {
        let id = if composed.name.is_empty() { index.to_string() } else { composed.name.clone() };
        for (fine, missing, list) in [
            (composed.synced, Missing::Valid, &mut unsynced),
            (composed.ready, Missing::Ready, &mut unready),
        ] {
            if !fine {
                let text = NotYet { resource: id.clone(), missing }.to_string();
                pass.event(&xr, EventType::Normal, "ComposeResources", &text);
                list.push(id.clone());
            }
        }
    }
    let synced = if !unsynced.is_empty() {
        let what = if release == Release::V1_17 { "Invalid" } else { "Unsynced" };
        Condition::reconcile_error(format!("{what} resources: {}", report::some_of(&unsynced)))
    } else if !outcome.undeclared.is_empty() {
        Condition::reconcile_error(compose::undeclared(&outcome.undeclared))
    } else {
        Condition::reconcile_success()
    };
    let ready = match outcome.ready {
        Some(true) => Condition::available(),
        Some(false) => Condition::creating(),
        None if unready.is_empty() => Condition::available(),
        None => Condition::creating()
            .with_message(format!("Unready resources: {}", report::some_of(&unready))),
    };
    pass.mark(&mut xr, [synced, ready]);

    let waiting = !unsynced.is_empty() || !unready.is_empty();
    let requeue = match pass.behaviour().realtime {
        // What was just written has not been observed yet.
        _ if outcome.wrote && pass.behaviour().writing != Writing::Stepwise => Requeue::Again,
        false if waiting => Requeue::Now,
        true => after(pass, earlier(outcome.ttl, poll_interval(pass, &xr.object))),
        false => after(pass, poll_interval(pass, &xr.object)),
    };
    // A null status is the same as no status.
    let is_new = || {
        let status = xr.object.get("status").filter(|status| !status.is_null());
        status != before.filter(|status| !status.is_null())
    };
    if pass.behaviour().writing != Writing::Stepwise || release.is_v1() || is_new() {
        match persist::write_status(pass, &mut xr).await {
            Ok(()) => {}
            Err(failure) if xr.whole_status && failure.is_refusal() => {
                persist::without_desired_status(&mut xr);
                let what = "cannot apply composite resource status";
                return give_up(pass, xr, Problem::new(COMPOSE, what, failure)).await;
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    let at_once = pass.behaviour().writing != Writing::Stepwise;
    if at_once && tells_functions_more(before, xr.stored.get("status")) {
        return Ok(Requeue::Again);
    }
    Ok(requeue)
}

/// Whether functions see something new in the stored status: they read it too, and may desire
/// something else because of it. What the reconciler itself keeps there does not count.
fn tells_functions_more(before: Option<&Value>, stored: Option<&Value>) -> bool {
    fields_of_functions(before).ne(fields_of_functions(stored))
}

/// The fields of a status but those that the reconciler keeps there.
fn fields_of_functions(status: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    const OWN: [&str; 3] = ["conditions", "claimConditionTypes", HANDLED_REQUEST[1]];
    let fields = status.and_then(Value::as_object).into_iter().flatten();
    fields.filter(|(field, _)| !OWN.contains(&field.as_str()))
}

/// Removes the finalizer. Composed resources are deleted with their owner.
async fn finalize(pass: &Pass<'_>, mut xr: XR) -> Result<Requeue, ReconcileError> {
    pass.mark(&mut xr, [Condition::deleting()]);
    let gone = match persist::remove_finalizer(pass, &mut xr).await {
        Ok(gone) => gone,
        Err(failure) => {
            let what = "cannot remove composite resource finalizer";
            return give_up(pass, xr, Problem::new("DeleteCompositeResource", what, failure)).await;
        }
    };
    pass.reconciler.dependencies.forget(&xr.object.id());
    if gone {
        pass.context().events.forget(xr.object.uid());
        return Ok(Requeue::No);
    }
    pass.mark(&mut xr, [Condition::reconcile_success()]);
    persist::write_status(pass, &mut xr).await?;
    Ok(Requeue::No)
}

/// Says whether the composite resource still responds to events, as releases from v2 on do.
fn mark_responsive(pass: &Pass<'_>, xr: &mut XR, id: &ObjectId) {
    if !pass.behaviour().release.is_v1() {
        pass.mark(xr, [responsiveness(pass, id)]);
    }
}

fn responsiveness(pass: &Pass<'_>, id: &ObjectId) -> Condition {
    match pass.reconciler.breaker.triggered_by(id) {
        None => Condition::new(RESPONSIVE, "True", "WatchCircuitClosed"),
        Some(source) => {
            let mut text =
                format!("Too many watch events from {source}. Allowing events periodically.");
            if let Some(more) = pass.reconciler.breaker.explanation(id) {
                text = format!("{text} {more}");
            }
            Condition::new(RESPONSIVE, "False", "WatchCircuitOpen").with_message(text)
        }
    }
}

/// Records a reconcile request and returns its token, if there is one.
fn note_request(pass: &Pass<'_>, xr: &mut XR) -> String {
    let token = xr.object.annotation(REQUEST_ANNOTATION).to_owned();
    if token.is_empty() || xr.object.str_at(&HANDLED_REQUEST) == token {
        return token;
    }
    let mut annotations = pass.annotations();
    annotations.insert("token".into(), token.clone());
    let (reason, message) = ("ReconcileRequestHandled", "Handling reconcile request");
    pass.event_with(xr, EventType::Normal, reason, message, annotations);
    let behaviour = pass.behaviour();
    // Stepwise, composing decides whether it is kept.
    if behaviour.writing == Writing::Stepwise || behaviour.keeps_token() {
        xr.object.set_at_or_ignore(&HANDLED_REQUEST, token.clone());
    }
    token
}

/// Writes the status and ignores errors: the failure that is being reported matters more.
async fn write_status_if_possible(pass: &Pass<'_>, xr: &mut XR) {
    if let Err(error) = persist::write_status(pass, xr).await {
        tracing::debug!(xr = %xr.object.id(), %error, "cannot update composite resource status");
    }
}

/// Requeues after a duration with a jitter of ten percent, or never if it is zero.
fn after(pass: &Pass<'_>, interval: Duration) -> Requeue {
    if interval.is_zero() {
        return Requeue::No;
    }
    let fraction = pass.context().ids.number() as f64 / u64::MAX as f64;
    Requeue::After(interval.mul_f64(0.9 + 0.2 * fraction))
}

/// The earlier of two times, of which zero is never.
fn earlier(a: Duration, b: Duration) -> Duration {
    match (a.is_zero(), b.is_zero()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.min(b),
    }
}

fn poll_interval(pass: &Pass<'_>, xr: &Object) -> Duration {
    match crate::sources::parse_duration(xr.annotation(POLL_ANNOTATION)) {
        Some(asked) if !asked.is_zero() => asked.max(pass.behaviour().min_poll_interval),
        _ => pass.behaviour().poll_interval,
    }
}

//! The claim reconciler. Each reconcile binds a claim to a composite resource of its own and keeps
//! the two in sync.
//!
//! A claim refers to its composite resource before that exists, so that a crash leaks nothing.

mod connection;
mod sync;

use std::collections::BTreeMap;
use std::time::Duration;

use biplane_cluster::{
    Cluster, Delete, Deleted, EventType, Optional, Precondition, Propagation, ReadError, Source,
};
use biplane_go::fmt::quote;
use biplane_go::time::{Instant as GoInstant, instant};
use biplane_model::claim::{bound_to, claim_of, is_enforced, reference};
use biplane_model::composition::API_VERSION;
use biplane_model::condition::{Condition, READY, SYNCED, condition, set_conditions};
use biplane_model::labels::{EXTERNAL_NAME, PAUSED};
use biplane_model::{Gvk, Object, ObjectId, Value};
use tokio::time::Instant;

use crate::context::{Context, Reporter};
use crate::draft::{Draft, add_finalizer, finalizers, remove_finalizer};
use crate::failure::{Attempted, Class, Failure};
use crate::managed_fields;
use crate::reconcile::{GRACE, ReconcileError, Requeue};
use connection::Propagated;

const COMPONENT: &str = "offered/compositeresourcedefinition.apiextensions.crossplane.io";
const FINALIZER: &str = "finalizer.apiextensions.crossplane.io";
const BIND: &str = "BindCompositeResource";
const DELETE: &str = "DeleteCompositeResource";
const PROPAGATE: &str = "PropagateConnectionSecret";
const WAITING: &str = "Waiting";

/// How a claim reconciler behaves for one kind of claim.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// The kind of claim.
    pub claim: Gvk,
    /// The kind of composite resource.
    pub xr: Gvk,
    /// The name of the definition (XRD) that defines both.
    pub xrd: String,
    /// The controller name on every event.
    pub controller: String,
    /// How composite resources are written.
    pub syncing: Syncing,
    /// How long a new composite resource has time to become ready before what it is on the way is
    /// shown on the claim. Most are ready sooner, and their claims are written once.
    pub settling: Duration,
    /// The time limit of one reconcile.
    pub timeout: Duration,
}

/// How a claim is synced with its composite resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncing {
    /// With server-side apply: fields that are removed from one are removed from the other.
    ServerSide,
    /// With patches: removed fields stay, and the claim gets fields of the composite resource that
    /// it does not have.
    ClientSide,
}

impl Behaviour {
    /// The behaviour of a live control plane with Crossplane's defaults.
    pub fn live(claim: Gvk, xr: Gvk, xrd: &str) -> Self {
        Self {
            claim,
            xr,
            xrd: xrd.to_owned(),
            controller: format!("claim/{xrd}"),
            syncing: Syncing::ServerSide,
            settling: Duration::from_secs(2),
            timeout: Duration::from_mins(1),
        }
    }
}

/// Reconciles claims of one kind.
#[derive(Clone, Debug)]
pub struct Reconciler {
    /// What it works with.
    pub context: Context,
    /// How it behaves.
    pub behaviour: Behaviour,
}

impl Reconciler {
    /// Syncs one claim with its composite resource. It is to be called when one of the two has
    /// changed: see [`claim_of`].
    ///
    /// A conflict is not a failure, wherever it happens. The next reconcile sees the other write.
    pub async fn reconcile(&self, namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
        match attempt(self, namespace, name).await {
            Err(failure) if failure.class() == Class::Conflict => {
                tracing::debug!(namespace, name, %failure, "trying again");
                Ok(Requeue::Now)
            }
            Err(failure) => Err(failure.into()),
            Ok(requeue) => Ok(requeue),
        }
    }
}

/// One pass over one claim.
struct Pass<'a> {
    reconciler: &'a Reconciler,
    /// Reports events with the annotations of the claim as it was read.
    reporter: Reporter,
    /// The deadline of everything but the status.
    by: Instant,
    /// The deadline of the status.
    status_by: Instant,
}

impl<'a> Pass<'a> {
    fn behaviour(&self) -> &'a Behaviour {
        &self.reconciler.behaviour
    }

    fn cluster(&self) -> &'a dyn Cluster {
        &*self.reconciler.context.cluster
    }

    fn mark(&self, claim: &mut Draft, new: impl IntoIterator<Item = Condition>) {
        claim.mark(self.reconciler.context.clock.now(), new);
    }

    fn event(&self, claim: &Draft, r#type: EventType, reason: &str, message: &str) {
        let context = &self.reconciler.context;
        context.event(&self.reporter, &claim.object, r#type, reason, message);
    }

    async fn write_status(&self, claim: &mut Draft) -> Result<(), Failure> {
        let written = claim.write_status(self.cluster(), self.status_by).await;
        written.attempted("cannot update claim status")
    }
}

/// The annotations of events about a claim.
fn annotations(behaviour: &Behaviour, claim: &Object) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::from([("controller".to_owned(), behaviour.controller.clone())]);
    if claim.annotation(PAUSED) == "true" {
        return annotations;
    }
    annotations.insert("external-name".into(), claim.annotation(EXTERNAL_NAME).to_owned());
    if !bound_to(claim).is_empty() {
        annotations.insert("composite-name".into(), bound_to(claim).to_owned());
    }
    annotations
}

/// A failure, and how to report it.
struct Problem {
    failure: Failure,
    reason: &'static str,
    /// Whether only a change of the claim can help.
    needs_change: bool,
}

impl Problem {
    fn new(reason: &'static str, failure: Failure) -> Self {
        Self { failure, reason, needs_change: false }
    }
}

/// Failures of writing the claim's own status are not reported in its status.
enum Stop {
    Reported(Problem),
    Unreported(Failure),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Reported(problem)
    }
}

async fn attempt(reconciler: &Reconciler, namespace: &str, name: &str) -> Result<Requeue, Failure> {
    let Reconciler { context, behaviour } = reconciler;
    let by = Instant::now() + behaviour.timeout;
    let id = ObjectId::new(behaviour.claim.clone(), namespace, name);
    let found = context.cluster.get(&id, Source::Cache, by).await.optional();
    let Some(object) = found.attempted("cannot get claim")? else { return Ok(Requeue::No) };
    let annotations = annotations(behaviour, &object);
    let reporter = Reporter { component: COMPONENT.to_owned(), annotations };
    let pass = Pass { reconciler, reporter, by, status_by: by + GRACE };
    let mut claim = Draft::new(object);
    if claim.object.annotation(PAUSED) == "true" {
        return pause(&pass, claim).await;
    }
    match proceed(&pass, &mut claim).await {
        Ok(requeue) => Ok(requeue),
        Err(Stop::Unreported(failure)) => Err(failure),
        Err(Stop::Reported(problem)) => give_up(&pass, claim, problem).await,
    }
}

async fn pause(pass: &Pass<'_>, mut claim: Draft) -> Result<Requeue, Failure> {
    const TEXT: &str = "Reconciliation (including deletion) is paused via the pause annotation";
    let paused = Condition::reconcile_paused().with_message(TEXT);
    if condition(&claim.object, &paused.r#type).reason != paused.reason {
        pass.event(&claim, EventType::Normal, "ReconciliationPaused", TEXT);
    }
    pass.mark(&mut claim, [paused]);
    pass.write_status(&mut claim).await?;
    Ok(Requeue::No)
}

/// Reports a failure in an event and in the status, and returns it.
async fn give_up(pass: &Pass<'_>, mut claim: Draft, problem: Problem) -> Result<Requeue, Failure> {
    let Problem { failure, reason, needs_change } = problem;
    if failure.class() == Class::Conflict {
        return Err(failure);
    }
    let text = failure.to_string();
    pass.event(&claim, EventType::Warning, reason, &text);
    pass.mark(&mut claim, [Condition::reconcile_error(&text)]);
    if let Err(error) = pass.write_status(&mut claim).await {
        // The failure that is being reported matters more.
        tracing::debug!(claim = %claim.object.id(), %error, "cannot update claim status");
    }
    if needs_change { Ok(Requeue::No) } else { Err(failure) }
}

async fn proceed(pass: &Pass<'_>, claim: &mut Draft) -> Result<Requeue, Stop> {
    let mut xr = composite(pass, claim).await?;
    let mut upgraded = None;
    if let (Some(xr), Syncing::ServerSide) = (&xr, pass.behaviour().syncing) {
        const WHAT: &str = "cannot upgrade composite resource's managed fields from client-side to server-side apply";
        let is_ours = |manager: &str| manager == sync::MANAGER;
        let answer = managed_fields::upgrade(pass.cluster(), xr, is_ours, pass.by).await;
        upgraded = answer.attempted(WHAT).map_err(|f| Problem::new(BIND, f))?;
    }
    let was_upgraded = upgraded.is_some();
    xr = upgraded.or(xr);
    if claim.object.is_being_deleted() {
        return delete(pass, claim, xr.as_ref()).await;
    }
    if let Some(rest) = xr.as_ref().and_then(|xr| settling(pass, claim, xr)) {
        return Ok(Requeue::After(rest));
    }
    let synced = bind(pass, claim, xr.as_ref()).await?;
    report(pass, claim, &synced).await?;
    // The second step of the migration follows what the first one left behind.
    Ok(if was_upgraded { Requeue::Again } else { Requeue::No })
}

/// Finds the composite resource that the claim is bound to, and refuses one of another claim.
async fn composite(pass: &Pass<'_>, claim: &Draft) -> Result<Option<Object>, Problem> {
    let name = bound_to(&claim.object);
    if name.is_empty() {
        return Ok(None);
    }
    let id = ObjectId::new(pass.behaviour().xr.clone(), "", name);
    let failed = |error| {
        Problem::new(BIND, Failure::from(error).wrap("cannot get bound composite resource"))
    };
    let get = |source| pass.cluster().get(&id, source, pass.by);
    let mut found = get(Source::Cache).await.optional();
    if claim.object.is_being_deleted() {
        // Without its finalizer the claim is gone, and nothing else knows the composite resource.
        if let Ok(None) = found {
            found = get(Source::Live).await.optional();
        }
        if let Err(ReadError::UnknownKind(_)) = found
            && !is_defined(pass).await.map_err(failed)?
        {
            found = Ok(None);
        }
    }
    let xr = found.map_err(failed)?;
    let other = xr.as_ref().and_then(claim_of).filter(|other| *other != reference(&claim.object));
    match other {
        None => Ok(xr),
        Some(other) => Err(Problem {
            failure: Failure::new(format!(
                "refusing to operate on composite resource {} that is not bound to this claim: bound to claim {}",
                quote(name),
                quote(&other.name)
            )),
            reason: BIND,
            needs_change: true,
        }),
    }
}

/// Whether the server has a definition of the kind of composite resource.
async fn is_defined(pass: &Pass<'_>) -> Result<bool, ReadError> {
    let kind = Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let id = ObjectId::new(kind, "", &pass.behaviour().xrd);
    Ok(pass.cluster().get(&id, Source::Live, pass.by).await.optional()?.is_some())
}

/// How much longer a new composite resource may take until the claim shows how it is.
fn settling(pass: &Pass<'_>, claim: &Draft, xr: &Object) -> Option<Duration> {
    let shown = condition(&claim.object, READY);
    let is_shown = shown.reason == WAITING
        && shown.observed_generation == claim.object.generation()
        && condition(&claim.object, SYNCED).status == "True";
    if !is_shown || is_ready(xr) || claim_of(xr).is_none() {
        return None;
    }
    let created = xr.str_at(&["metadata", "creationTimestamp"]);
    let created = instant(created).and_then(GoInstant::timestamp)?;
    let age = pass.reconciler.context.clock.now().duration_since(created);
    // A clock that is behind the server's would make it wait for long.
    let age = Duration::try_from(age).ok()?;
    pass.behaviour().settling.checked_sub(age).filter(|rest| !rest.is_zero())
}

fn is_ready(xr: &Object) -> bool {
    condition(xr, READY).status == "True"
}

/// Writes the claim and then its composite resource. Returns the composite resource as it is now.
async fn bind(pass: &Pass<'_>, claim: &mut Draft, xr: Option<&Object>) -> Result<Object, Problem> {
    const WHAT: &str = "cannot bind and sync claim with composite resource";
    let failed = |failure: Failure| Problem::new(BIND, failure.wrap(WHAT));
    let finalizer_added = add_finalizer(&mut claim.object, FINALIZER);
    let enforced = enforced(pass).await.map_err(failed)?;
    let name = sync::name(pass, &claim.object).await.map_err(failed)?;
    let intent = sync::prepare(pass, claim, xr, &name, enforced).map_err(failed)?;
    claim.write(pass.cluster(), pass.by).await.map_err(|error| {
        if finalizer_added {
            let failure = Failure::from(error).wrap("cannot update object");
            Problem::new(BIND, failure.wrap("cannot add finalizer to claim"))
        } else {
            failed(Failure::from(error).wrap("cannot update claim"))
        }
    })?;
    let synced = sync::apply(pass, &intent, xr).await.map_err(failed)?;
    sync::follow(pass, claim, &synced, enforced).map_err(failed)?;
    let written = claim.write(pass.cluster(), pass.by).await;
    written.attempted("cannot update claim").map_err(failed)?;
    let reference = Some(reference(&claim.object));
    if xr.and_then(claim_of) != reference && claim_of(&synced) == reference {
        pass.event(claim, EventType::Normal, BIND, "Successfully bound composite resource");
    }
    Ok(synced)
}

/// Whether the definition says which Composition to use.
async fn enforced(pass: &Pass<'_>) -> Result<bool, Failure> {
    let kind = Gvk::new(API_VERSION, "CompositeResourceDefinition");
    let id = ObjectId::new(kind, "", &pass.behaviour().xrd);
    let found = pass.cluster().get(&id, Source::Cache, pass.by).await.optional();
    let definition = found.attempted("cannot get composite resource definition")?;
    Ok(definition.is_some_and(|definition| is_enforced(&definition)))
}

/// Shows on the claim how its composite resource is, and propagates connection details once that is
/// ready.
async fn report(pass: &Pass<'_>, claim: &mut Draft, xr: &Object) -> Result<(), Stop> {
    pass.mark(claim, [Condition::reconcile_success()]);
    let shared = xr.at(&["status", "claimConditionTypes"]).and_then(Value::as_array);
    for r#type in shared.into_iter().flatten().filter_map(Value::as_str) {
        let shared = condition(xr, r#type);
        match shared.last_transition_time {
            Some(_) => {
                let shared = shared.observed(claim.object.generation());
                set_conditions(&mut claim.object, [shared]);
            }
            None => pass.mark(claim, [shared]),
        }
    }
    if is_ready(xr) {
        publish(pass, claim, xr).await?;
        pass.mark(claim, [Condition::available()]);
    } else {
        if condition(&claim.stored, READY).reason != WAITING {
            pass.event(claim, EventType::Normal, BIND, "Composite resource is not yet ready");
        }
        let text = "Claim is waiting for composite resource to become Ready";
        pass.mark(claim, [Condition::new(READY, "False", WAITING).with_message(text)]);
    }
    pass.write_status(claim).await.map_err(Stop::Unreported)
}

/// Propagates connection details, and notes when.
async fn publish(pass: &Pass<'_>, claim: &mut Draft, xr: &Object) -> Result<(), Problem> {
    const PUBLISHED: [&str; 3] = ["status", "connectionDetails", "lastPublishedTime"];
    let propagated = connection::propagate(pass, &claim.object, xr).await;
    let propagated = propagated
        .attempted("cannot propagate connection details from composite resource")
        .map_err(|failure| Problem::new(PROPAGATE, failure))?;
    let is_news = match propagated {
        Propagated::Nothing => false,
        Propagated::Written => true,
        // An earlier reconcile wrote the Secret and ended before it could say so.
        Propagated::Already => claim.object.at(&PUBLISHED).is_none(),
    };
    if is_news {
        let now = biplane_model::condition::seconds(pass.reconciler.context.clock.now());
        claim.object.set_at_or_ignore(&PUBLISHED, now);
        let text = "Successfully propagated connection details from composite resource";
        pass.event(claim, EventType::Normal, PROPAGATE, text);
    }
    Ok(())
}

/// Deletes the composite resource, and lets the claim go. With the policy `Foreground` the composite
/// resource goes first.
async fn delete(pass: &Pass<'_>, claim: &mut Draft, xr: Option<&Object>) -> Result<Requeue, Stop> {
    pass.mark(claim, [Condition::deleting()]);
    if let Some(xr) = xr {
        let foreground = claim.object.str_at(&["spec", "compositeDeletePolicy"]) == "Foreground";
        let gone = delete_composite(pass, xr, foreground).await?;
        if foreground && !gone {
            pass.write_status(claim).await.map_err(Stop::Unreported)?;
            return Ok(Requeue::Now);
        }
    }
    if remove_finalizer(&mut claim.object, FINALIZER) {
        pass.event(claim, EventType::Normal, DELETE, "Successfully deleted composite resource");
        match claim.write(pass.cluster(), pass.by).await.map(|()| finalizers(&claim.object)) {
            Ok(others) if !others.is_empty() => {}
            Err(error) if !error.is_not_found() => {
                let failure = Failure::from(error).wrap("cannot update object");
                let failure = failure.wrap("cannot remove finalizer from claim");
                return Err(Problem::new(DELETE, failure).into());
            }
            _ => {
                pass.reconciler.context.events.forget(claim.object.uid());
                return Ok(Requeue::No);
            }
        }
    }
    pass.mark(claim, [Condition::reconcile_success()]);
    pass.write_status(claim).await.map_err(Stop::Unreported)?;
    Ok(Requeue::No)
}

/// Deletes the very composite resource that was read. Returns whether it is gone.
async fn delete_composite(pass: &Pass<'_>, xr: &Object, foreground: bool) -> Result<bool, Problem> {
    if xr.is_being_deleted() {
        return Ok(false);
    }
    let propagation = if foreground { Propagation::Foreground } else { Propagation::Background };
    let how = Delete { only_if: Precondition::same(xr), ..Delete::with(propagation) };
    let deleted = pass.cluster().delete(&xr.id(), &how, pass.by).await.optional();
    let deleted = deleted
        .attempted("cannot delete bound composite resource")
        .map_err(|failure| Problem::new(DELETE, failure))?;
    Ok(deleted != Some(Deleted::Terminating))
}

//! Keeps a CompositionRevision for every state of a Composition. The newest one has the highest
//! number; a state that comes back gets a new number and not a second revision.

mod history;

use std::time::Duration;

use biplane_cluster::{EventType, List, Optional, Query, Source, Write};
use biplane_model::composition::{self, API_VERSION, is_revision_of, label_of, number};
use biplane_model::owner::set_controller;
use biplane_model::{Gvk, Object, ObjectId, labels};
use tokio::time::Instant;

use crate::context::{Context, Reporter};
use crate::draft::{Draft, MANAGER};
use crate::failure::{Attempted, Class, Failure};
use crate::reconcile::{ReconcileError, Requeue, TIMEOUT};

/// The name of the controller of Compositions, on every event of it.
pub const CONTROLLER: &str = "revisions/composition.apiextensions.crossplane.io";
const CREATE: &str = "CreateRevision";
const UPDATE: &str = "UpdateRevision";

/// Reconciles Compositions.
#[derive(Clone, Debug)]
pub struct Reconciler {
    /// What it works with.
    pub context: Context,
    /// How many revisions that nothing uses are kept besides the newest one. Zero keeps all.
    pub history_limit: usize,
    /// The time limit of one reconcile.
    pub timeout: Duration,
}

/// One pass over one Composition.
#[derive(Clone, Copy)]
struct Pass<'a> {
    context: &'a Context,
    history_limit: usize,
    by: Instant,
}

impl Reconciler {
    /// A reconciler that keeps all revisions.
    pub fn new(context: Context) -> Self {
        Self { context, history_limit: 0, timeout: TIMEOUT }
    }

    /// Makes the current state of a Composition its newest revision. It is to be called when a
    /// Composition or one of its revisions has changed.
    ///
    /// A conflict is not a failure. The next reconcile sees the other write.
    pub async fn reconcile(&self, _namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
        let by = Instant::now() + self.timeout;
        let pass = Pass { context: &self.context, history_limit: self.history_limit, by };
        match attempt(&pass, name).await {
            Err(failure) if failure.class() == Class::Conflict => Ok(Requeue::Now),
            Err(failure) => Err(failure.into()),
            Ok(requeue) => Ok(requeue),
        }
    }
}

impl Pass<'_> {
    fn event(&self, about: &Object, r#type: EventType, reason: &str, message: &str) {
        let from = Reporter { component: CONTROLLER.to_owned(), ..Reporter::default() };
        self.context.event(&from, about, r#type, reason, message);
    }

    /// Reports a failure to users, unless it is a conflict. The event does not say what was
    /// attempted, because its reason does.
    fn failed(&self, composition: &Object, reason: &str, what: &str, failure: Failure) -> Failure {
        if failure.class() != Class::Conflict {
            self.event(composition, EventType::Warning, reason, &failure.to_string());
        }
        failure.wrap(what)
    }
}

async fn attempt(pass: &Pass<'_>, name: &str) -> Result<Requeue, Failure> {
    let cluster = &*pass.context.cluster;
    let id = ObjectId::new(Gvk::new(API_VERSION, "Composition"), "", name);
    let found = cluster.get(&id, Source::Cache, pass.by).await.optional();
    let Some(composition) = found.attempted("cannot get Composition")? else {
        return Ok(Requeue::No);
    };
    if composition.is_being_deleted() {
        return Ok(Requeue::No);
    }
    let mut revisions = list(pass, &composition).await?;
    for revision in &mut revisions {
        adopt(pass, &composition, revision).await?;
    }
    let latest = revisions.iter().map(|r| number(&r.object)).max().unwrap_or_default();
    let hash = composition::hash(&composition);
    let current = revisions
        .iter_mut()
        .filter(|r| r.object.label(labels::COMPOSITION_HASH) == label_of(&hash))
        .max_by_key(|r| number(&r.object))
        .filter(|r| number(&r.object) > 0);
    let created = match current {
        Some(revision) => {
            renumber(pass, &composition, revision, latest).await?;
            None
        }
        None => Some(create(pass, &composition, &hash, latest + 1).await?),
    };
    let all: Vec<_> = revisions.into_iter().map(|r| r.object).chain(created).collect();
    history::trim(pass, &composition, all).await
}

/// The revisions that say that they are of this Composition.
async fn list(pass: &Pass<'_>, composition: &Object) -> Result<Vec<Draft>, Failure> {
    const WHAT: &str = "cannot list CompositionRevisions";
    let kind = Gvk::new(API_VERSION, "CompositionRevision");
    let label = (labels::COMPOSITION_NAME.to_owned(), composition.name().to_owned());
    let query = Query::labels([label].into());
    let listed = pass.context.cluster.list(&kind, &query, &List::cached(), pass.by).await;
    let listed = listed.attempted(WHAT).inspect_err(|failure| {
        pass.event(composition, EventType::Warning, CREATE, &failure.to_string());
    })?;
    Ok(listed.objects.into_iter().map(Draft::new).collect())
}

/// Makes the Composition the owner of a revision. A restored backup has revisions without owners.
async fn adopt(pass: &Pass<'_>, composition: &Object, revision: &mut Draft) -> Result<(), Failure> {
    const WHAT: &str = "cannot own CompositionRevision";
    if is_revision_of(&revision.object, composition.uid()) {
        return Ok(());
    }
    let owned = set_controller(&mut revision.object, composition::owner(composition));
    let written = match owned {
        Ok(()) => revision.write(&*pass.context.cluster, pass.by).await.map_err(Failure::from),
        Err(error) => Err(Failure::new(error.to_string())),
    };
    written.map_err(|failure| pass.failed(composition, UPDATE, WHAT, failure))
}

/// Gives a revision the highest number, if another one has it.
async fn renumber(
    pass: &Pass<'_>,
    composition: &Object,
    revision: &mut Draft,
    latest: i64,
) -> Result<(), Failure> {
    const WHAT: &str = "cannot update CompositionRevision spec";
    if number(&revision.object) == latest {
        return Ok(());
    }
    revision.object.set_at_or_ignore(&["spec", "revision"], latest + 1);
    let written = revision.write(&*pass.context.cluster, pass.by).await;
    written.map_err(|error| pass.failed(composition, UPDATE, WHAT, error.into()))
}

async fn create(
    pass: &Pass<'_>,
    composition: &Object,
    hash: &str,
    number: i64,
) -> Result<Object, Failure> {
    const WHAT: &str = "cannot create CompositionRevision";
    let revision = composition::revision(composition, hash, number);
    let created = pass.context.cluster.create(revision, &Write::by(MANAGER), pass.by).await;
    let created = created.map_err(|error| pass.failed(composition, CREATE, WHAT, error.into()))?;
    // The number makes every creation an event of its own.
    let annotations = [("revision".to_owned(), number.to_string())].into();
    let from = Reporter { component: CONTROLLER.to_owned(), annotations };
    let (r#type, text) = (EventType::Normal, "Created new revision");
    pass.context.event(&from, composition, r#type, CREATE, text);
    Ok(created)
}

//! What the two reconcilers of definitions (XRDs) share. Both bring a CRD and a controller into
//! being, and take them away with the definition: one for composite resources, one for claims.

mod crd;
mod pass;
mod terminate;

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{EventType, Optional, Patch, ReadError, Source};
use biplane_model::condition::{Condition, condition};
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_schema::crd::is_established;
use biplane_schema::xcrd::{self, Kind};
use serde_json::json;
use tokio::time::Instant;

use crate::context::Context;
use crate::controllers::{ClaimController, CompositeController, Controller, Controllers};
use crate::failure::{Attempted, Class, Failure};
use crate::reconcile::{GRACE, ReconcileError, Requeue};
use pass::{Pass, Problem, failed_controller};

/// The controller that establishes composite resources.
pub(crate) const DEFINED: &str = "defined/compositeresourcedefinition.apiextensions.crossplane.io";
/// The controller that offers claims.
pub(crate) const OFFERED: &str = "offered/compositeresourcedefinition.apiextensions.crossplane.io";

const RENDER: &str = "RenderCRD";
const RESTART: &str = "RestartComposite";

/// Reconciles definitions, for one of the two kinds.
pub(crate) struct Defining {
    kind: Kind,
    context: Context,
    controllers: Arc<dyn Controllers>,
    pub(crate) timeout: Duration,
    /// Whether composite resources have environments.
    pub(crate) environments: bool,
    written: crd::Written,
}

impl std::fmt::Debug for Defining {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Defining").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Defining {
    pub(crate) fn new(
        kind: Kind,
        context: Context,
        controllers: Arc<dyn Controllers>,
        timeout: Duration,
    ) -> Self {
        let written = crd::Written::default();
        Self { kind, context, controllers, timeout, environments: false, written }
    }

    pub(crate) async fn reconcile(&self, name: &str) -> Result<Requeue, ReconcileError> {
        let by = Instant::now() + self.timeout;
        let pass = Pass { defining: self, by, status_by: by + GRACE };
        let id = ObjectId::new(Gvk::new(xcrd::API_VERSION, xcrd::KIND), "", name);
        let found = self.context.cluster.get(&id, Source::Cache, by).await.optional();
        let found = found.attempted("cannot get CompositeResourceDefinition")?;
        let Some(mut definition) = found else {
            // Whoever removed the finalizer by hand left the controller running.
            let stopped = self.controllers.stop(&pass.words().controller(name)).await;
            stopped.map_err(|error| failed_controller(pass.words(), &error))?;
            return Ok(Requeue::No);
        };
        match attempt(&pass, &mut definition).await {
            Ok(requeue) => Ok(requeue),
            Err(Problem { failure, .. }) if failure.class() == Class::Conflict => {
                tracing::debug!(name, error = %failure, "trying again");
                Ok(Requeue::Now)
            }
            Err(Problem { failure, reason }) => {
                if let Some(reason) = reason {
                    pass.event(&definition, EventType::Warning, reason, &failure.to_string());
                }
                Err(failure.into())
            }
        }
    }
}

async fn attempt(pass: &Pass<'_>, definition: &mut Object) -> Result<Requeue, Problem> {
    let (words, kind) = (pass.words(), pass.defining.kind);
    if definition.is_being_deleted() {
        return terminate::terminate(pass, definition).await;
    }
    if kind == Kind::Claim && !xcrd::offers_claim(definition) {
        return Ok(Requeue::No);
    }
    let rendered = match kind {
        Kind::Composite => xcrd::composite(definition),
        Kind::Claim => xcrd::claim(definition),
    };
    let mut rendered = rendered.map_err(|error| {
        let what = format!("cannot render {} CustomResourceDefinition", words.what);
        Problem::told(RENDER, Failure::new(error.to_string()).wrap(what))
    })?;

    if pass.defining.environments && kind == Kind::Composite {
        xcrd::add_environments(&mut rendered, definition);
    }
    add_finalizer(pass, definition).await.map_err(|failure| {
        let what = format!("cannot add {} finalizer", words.what);
        Problem::told(words.establish, failure.wrap(what))
    })?;
    let applied = crd::apply(pass, definition, rendered).await.map_err(|failure| {
        let what = format!("cannot apply rendered {} CustomResourceDefinition", words.what);
        Problem::told(words.establish, failure.wrap(what))
    })?;
    let Some(crd::Applied { crd, changed }) = applied else { return Ok(Requeue::Now) };
    if changed {
        let text = format!("Applied {} CustomResourceDefinition: {}", words.what, crd.name());
        pass.event(definition, EventType::Normal, words.establish, &text);
    }
    if !is_established(&crd) || crd.is_being_deleted() || !is_served(pass, definition).await? {
        let text = format!("waiting for {} CustomResourceDefinition to be established", words.what);
        pass.event(definition, EventType::Normal, words.establish, &text);
        return Ok(Requeue::Now);
    }

    let controller = match kind {
        Kind::Composite => {
            if needs_restart(definition, words.watching) {
                let text = "XRD specification changed; restarting controller to apply updates";
                pass.event(definition, EventType::Normal, RESTART, text);
            }
            let controller = CompositeController::of(definition).map_err(|error| {
                let what = format!("cannot start {} controller", words.what);
                Problem::told(words.establish, Failure::new(error.to_string()).wrap(what))
            })?;
            Controller::Composite(controller)
        }
        Kind::Claim => Controller::Claim(ClaimController::of(definition)),
    };
    let running = pass.defining.controllers.ensure(controller).await;
    running.map_err(|error| Problem::told(words.establish, failed_controller(words, &error)))?;

    let stored = definition.get("status").cloned();
    let (gvk, field) = match kind {
        Kind::Composite => (xcrd::composite_gvk(definition), "compositeResourceType"),
        Kind::Claim => (xcrd::claim_gvk(definition), "compositeResourceClaimType"),
    };
    let r#type = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind});
    definition.set_at_or_ignore(&["status", "controllers", field], r#type);
    pass.mark(definition, Condition::new(words.condition, "True", words.watching));
    pass.write_status(definition, stored.as_ref()).await.map_err(Problem::untold)?;
    Ok(Requeue::No)
}

/// Whether the API server serves the kinds that the controller watches. It takes a moment after
/// the CRD is established.
async fn is_served(pass: &Pass<'_>, definition: &Object) -> Result<bool, Problem> {
    let mut kinds = vec![xcrd::composite_gvk(definition)];
    if pass.defining.kind == Kind::Claim {
        kinds.push(xcrd::claim_gvk(definition));
    }
    for gvk in kinds {
        match pass.cluster().is_namespaced(&gvk, pass.by).await {
            Ok(_) => {}
            Err(ReadError::UnknownKind(_)) => return Ok(false),
            Err(error) => {
                let what = format!("cannot start {} controller watches", pass.words().what);
                let failure = Failure::from(error).wrap(what);
                return Err(Problem::told(pass.words().establish, failure));
            }
        }
    }
    Ok(true)
}

/// Whether the definition has changed since its controller was started.
fn needs_restart(definition: &Object, watching: &str) -> bool {
    let established = condition(definition, pass::ESTABLISHED);
    established.reason == watching
        && established.observed_generation != 0
        && established.observed_generation != definition.generation()
}

fn finalizers(definition: &Object) -> Vec<Value> {
    let all = definition.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    all.cloned().unwrap_or_default()
}

fn has_finalizer(definition: &Object, finalizer: &str) -> bool {
    finalizers(definition).iter().any(|f| f == finalizer)
}

async fn add_finalizer(pass: &Pass<'_>, definition: &mut Object) -> Result<(), Failure> {
    let finalizer = pass.words().finalizer;
    if has_finalizer(definition, finalizer) {
        return Ok(());
    }
    let mut all = finalizers(definition);
    all.push(finalizer.into());
    let mut metadata = json!({"finalizers": all});
    // Crossplane also gives a definition with labels the labels that it has for its CRDs.
    if definition.at(&["metadata", "labels"]).is_some_and(|labels| labels != &json!({}))
        && let Some(labels) = definition.at(&["spec", "metadata", "labels"])
    {
        metadata["labels"] = labels.clone();
    }
    let patch = Patch::Merge(json!({"metadata": metadata}));
    *definition = pass.patch(definition, &patch).await.attempted("cannot update object")?;
    Ok(())
}

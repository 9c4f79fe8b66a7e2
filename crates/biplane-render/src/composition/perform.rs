//! Performs the reconciles of composite resources for a render until stable, and notes what came of
//! them.
//!
//! The built-in engine reconciles as a live control plane does. Two things differ: the rendered
//! composite resource has the Composition that the user gave, and events are not deduplicated. Another
//! engine is asked for the outcome of one reconcile, which is then written.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Error, Result, anyhow};
use async_trait::async_trait;
use biplane_cluster::{Event, Events, Optional as _, Source};
use biplane_console::Deadline;
use biplane_controlplane::{Key, Perform};
use biplane_engine::composite::{Behaviour, Reconciler, Selection};
use biplane_engine::failure::Class;
use biplane_engine::{FixedClock, ReconcileError, Requeue, render};
use biplane_manifest::{Line, fit};
use biplane_model::{Object, ObjectId};
use biplane_proto::render::v1alpha1;
use biplane_runner::{ContextHelper, stack};
use biplane_runtime::{Engine, Runners, Subject};
use tokio::time::Instant;

use super::cluster::{RenderCluster, State};
use super::{CompositionRender, Inputs, rendered_output};
use crate::{RENDER_TIME, engine, summary};

/// The event about a revision that was selected. The revisions of a render are its own.
const SELECTED_REVISION: &str = "Selected composition revision: ";

/// What came of a reconcile.
#[derive(Debug)]
pub(super) struct Performed {
    pub(super) id: ObjectId,
    pub(super) events: Vec<v1alpha1::Event>,
    /// The final context of the pipeline, if it was captured.
    pub(super) context: Option<Object>,
    /// The duration of each call, if requested.
    pub(super) timing: Vec<String>,
}

/// Performs the reconciles of a render.
pub(super) struct Performer {
    pub(super) render: CompositionRender,
    pub(super) inputs: Inputs,
    pub(super) runners: Runners,
    pub(super) deadline: Deadline,
    pub(super) cluster: Arc<RenderCluster>,
    /// Captures the context of pipelines that the built-in engine runs.
    pub(super) context: Option<Arc<ContextHelper>>,
    pub(super) performed: Mutex<Vec<Performed>>,
}

/// Keeps events as they are told.
#[derive(Default)]
struct Told(Mutex<Vec<v1alpha1::Event>>);

impl Events for Told {
    fn record(&self, event: Event) {
        if event.message.starts_with(SELECTED_REVISION) {
            return;
        }
        let event = v1alpha1::Event {
            r#type: event.r#type.as_str().into(),
            reason: event.reason,
            message: event.message,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

#[async_trait]
impl Perform for Performer {
    async fn perform(&self, reconciler: &Reconciler, key: &Key) -> Result<Requeue, ReconcileError> {
        let id = ObjectId::new(reconciler.behaviour.gvk.clone(), &key.namespace, &key.name);
        let nested = id != self.cluster.root;
        let _waiting = self.inputs.progress.wait(|| format!("{id} to be rendered"));
        let performed = self.reconcile(reconciler, &id).await;
        performed.map_err(|error| {
            let error =
                if nested { error.context(format!("cannot render nested {id}")) } else { error };
            let text = format!("{error:#}");
            self.cluster.fail(error);
            ReconcileError { text, class: Class::Other, fatal: None }
        })
    }
}

impl Performer {
    /// What came of the reconciles since the last call.
    pub(super) fn take(&self) -> Vec<Performed> {
        std::mem::take(&mut *self.performed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, performed: Performed) {
        self.performed.lock().unwrap_or_else(PoisonError::into_inner).push(performed);
    }

    async fn reconcile(&self, reconciler: &Reconciler, id: &ObjectId) -> Result<Requeue> {
        let state = self.cluster.state();
        // Others of the kind are only there because functions require them.
        if !self.cluster.composites(&state)?.contains(id) {
            return Ok(Requeue::No);
        }
        let Some(inputs) = self.inputs_of(&state, id)? else { return Ok(Requeue::No) };
        if matches!(self.render.engine, Engine::BuiltIn) {
            return self.built_in(reconciler, id, &inputs).await;
        }
        let cluster = &reconciler.context.cluster;
        let by = Instant::now() + self.deadline.remaining();
        let found = cluster.get(id, Source::Cache, by).await.optional();
        let Some(xr) = found.map_err(|error| anyhow!(error.to_string()))? else {
            return Ok(Requeue::No);
        };
        let composition = inputs.composition.name().to_owned();
        let (timing, answer) = self.render.reconcile(inputs, &self.runners, self.deadline).await;
        let (events, context, answer) = match answer {
            Ok(answer) => (answer.output.events.clone(), answer.context.clone(), Ok(answer)),
            Err(error) => (Vec::new(), None, Err(error)),
        };
        self.note(Performed { id: id.clone(), events, context, timing });
        let output = answer?.output;
        rendered_output::write(reconciler, &xr, &composition, output, by).await
    }

    /// The inputs of the reconcile of a composite resource: what a single render of it would be given.
    fn inputs_of(&self, state: &State, id: &ObjectId) -> Result<Option<Inputs>> {
        let Some(composite) = state.objects.get(id) else { return Ok(None) };
        let mut inputs = self.inputs.of(composite.clone());
        if *id != self.cluster.root {
            let composition = inputs.nested.composition(composite)?.cloned();
            let Some(composition) = composition else { return Ok(None) };
            fit::check(composite, &composition, Line::V2)?;
            inputs.composition = composition;
            inputs.origin = None;
            inputs.definition = inputs.nested.definition(&id.gvk).cloned();
        }
        inputs.observed = state.composed(id);
        // Functions may require any existing object, in its current state.
        inputs.required.extend(state.others(id).cloned());
        Ok(Some(inputs))
    }

    /// Reconciles as a control plane does.
    async fn built_in(
        &self,
        reconciler: &Reconciler,
        id: &ObjectId,
        inputs: &Inputs,
    ) -> Result<Requeue> {
        let attempted = Subject::Composite.attempted();
        self.deadline.check().context(attempted)?;
        let (told, timing) =
            (Arc::new(Told::default()), summary::Timing::new(self.render.output.timing));
        let inspection = self.render.function.inspection.as_ref();
        let mut context = reconciler.context.clone();
        let functions = timing.runner(self.runners.named());
        context.runner =
            stack::of_inspected_reconciler(functions, context.requirements.clone(), inspection);
        context.events = told.clone();
        context.clock = Arc::new(FixedClock(RENDER_TIME.parse()?));
        context.ids = engine::ids(inspection);
        let manner = self.render.manner(&inputs.composition);
        let mut behaviour = Behaviour {
            timeout: self.deadline.remaining(),
            release: manner.release,
            resources_mode: manner.resources_mode,
            environments: manner.environments,
            // The server keeps what it does not declare, too.
            schema: None,
            ..reconciler.behaviour.clone()
        };
        if *id == self.cluster.root {
            behaviour.selection = self.given_composition()?;
        }
        let mut own = Reconciler::new(context, behaviour);
        own.dependencies = Arc::clone(&reconciler.dependencies);
        own.compositions.clone_from(&reconciler.compositions);
        let reconciled = own.reconcile(&id.namespace, &id.name).await;
        let events = std::mem::take(&mut *told.0.lock().unwrap_or_else(PoisonError::into_inner));
        let context = self.context.as_ref().and_then(|helper| helper.captured());
        self.note(Performed { id: id.clone(), events, context, timing: timing.report() });
        reconciled.map_err(|error| {
            let error = match &error.fatal {
                Some(_) => anyhow!("{attempted}: {error}"),
                None => anyhow!("{attempted}: reconcile failed: {error}"),
            };
            self.render.explain_failure(error, inputs)
        })
    }

    /// The Composition that the user gave, whatever the composite resource selects.
    fn given_composition(&self) -> Result<Selection> {
        let mut composition = self.inputs.composition.clone();
        let name = composition.name().to_owned();
        if let Some(helper) = &self.context {
            helper.wrap(&mut composition, self.render.output.context);
        }
        let release = self.render.manner(&composition).release;
        let revision = render::revision(composition, release).map_err(|error| -> Error {
            anyhow!("cannot convert composition from protobuf: {error}")
                .context(Subject::Composite.attempted())
        })?;
        Ok(Selection::Given { composition: name, revision: Box::new(revision) })
    }
}

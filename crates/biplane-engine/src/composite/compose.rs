//! Composes resources: observe, run the pipeline, apply the desired state. An error before the
//! first write leaves the cluster unchanged.

use std::time::Duration;

use biplane_model::Object;
use biplane_model::pipeline::{CompositionSpec, Step};
use biplane_proto::function::v1::{Ready, ResourceSelector, RunFunctionRequest, State};
use tokio::time::Instant;

use super::outcome::{ComposeError, Composed};
use super::report::Report;
use super::tracker::{Requirement, Tracked};
use super::{Deps, desired, observe, write};
use crate::failure::{Attempted, Failure};
use crate::pipeline::{self, Flow, Run};
use crate::requirements::selector;
use biplane_go::fmt::quote;

/// The result of composing.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) composed: Vec<Composed>,
    pub(super) details: observe::Details,
    /// Whether the composite resource is ready, if the pipeline decided that.
    pub(super) ready: Option<bool>,
    /// How long the result is valid. Zero if no function set a TTL.
    pub(super) ttl: Duration,
    pub(super) report: Report,
}

/// Composes. Afterwards `xr` is the stored object.
pub(super) async fn compose(
    deps: &Deps,
    xr: &mut Object,
    revision: &CompositionSpec,
    deadline: Instant,
) -> Result<Outcome, ComposeError> {
    let cluster = &*deps.ports.cluster;
    let observed = observe::composed(cluster, deps.layout, xr)
        .await
        .attempted("cannot get existing composed resources")?;
    let details = match deps.layout {
        super::Layout::Legacy => observe::details(cluster, xr)
            .await
            .attempted("cannot fetch composite resource connection details")?,
        super::Layout::Modern => observe::Details::new(),
    };
    let state = observe::state(xr, details, &observed);

    let mut outcome = Outcome::default();
    let run = Run { trace: deps.ids.uuid(), deadline };
    let (mut flow, requirements) =
        run_pipeline(deps, xr, revision, &run, &state, &mut outcome).await?;

    // The resources are moved, not copied. They are applied as the functions returned them.
    let resources = flow.desired.as_mut().map(|state| std::mem::take(&mut state.resources));
    let resources = resources.unwrap_or_default();
    let desired =
        desired::load(cluster, &*deps.ids, xr, resources, &observed, &mut outcome.report).await?;
    let wanted = flow.desired.as_ref();
    write::collect_garbage(cluster, xr, &observed, &desired)
        .await
        .attempted("cannot garbage collect composed resources that are no longer desired")?;
    write::apply_references(cluster, deps.layout, xr, &desired)
        .await
        .attempted("cannot update composed resource references")?;
    for existing in observed.values() {
        deps.upgrade.upgrade(&existing.object).await.attempted(
            "cannot upgrade composed resource's managed fields from client-side to server-side apply",
        )?;
    }
    outcome.composed = write::apply_composed(cluster, xr, &desired, &mut outcome.report).await?;
    let stored = write::apply_status(cluster, xr, wanted)
        .await
        .attempted("cannot apply composite resource status")?;
    let composed = desired.values().map(|d| d.object.id()).collect();
    deps.tracker.track(&xr.id(), Tracked { composed, requirements });
    *xr = stored;

    let composite = wanted.and_then(|state| state.composite.as_ref());
    outcome.ready = composite.and_then(|composite| match composite.ready() {
        Ready::True => Some(true),
        Ready::False => Some(false),
        Ready::Unspecified => None,
    });
    outcome.details = composite.map(|c| c.connection_details.clone()).unwrap_or_default();
    Ok(outcome)
}

async fn run_pipeline(
    deps: &Deps,
    xr: &Object,
    revision: &CompositionSpec,
    run: &Run,
    observed: &State,
    outcome: &mut Outcome,
) -> Result<(Flow, Vec<Requirement>), ComposeError> {
    let mut flow = Flow::default();
    let mut requirements = Vec::new();
    for (index, step) in revision.pipeline.iter().enumerate() {
        let request = request(deps, xr, step, observed, flow, &mut requirements).await?;
        let response = pipeline::call(&deps.ports, run, index, step, request).await.attempted(
            format_args!("cannot run Composition pipeline step {}", quote(&step.step)),
        )?;
        if let Some(required) = &response.requirements {
            #[allow(deprecated)] // existing functions still use it
            let all = required.resources.iter().chain(&required.extra_resources);
            requirements.extend(all.map(|(name, selector)| Requirement {
                step: step.step.clone(),
                name: name.clone(),
                selector: selector.clone(),
            }));
        }
        let ttl = response.meta.as_ref().and_then(|meta| meta.ttl);
        if let Some(ttl) = ttl.and_then(|ttl| Duration::try_from(ttl).ok()).filter(|t| !t.is_zero())
            && (outcome.ttl.is_zero() || ttl < outcome.ttl)
        {
            outcome.ttl = ttl;
        }
        flow = Flow { desired: response.desired, context: response.context };
        outcome.report.conditions(&response.conditions, deps.clock.now());
        if let Err(message) = outcome.report.results(&step.step, &response.results) {
            let report = std::mem::take(&mut outcome.report);
            return Err(ComposeError::fatal(&step.step, message, report));
        }
    }
    Ok((flow, requirements))
}

async fn request(
    deps: &Deps,
    xr: &Object,
    step: &Step,
    observed: &State,
    flow: Flow,
    requirements: &mut Vec<Requirement>,
) -> Result<RunFunctionRequest, Failure> {
    let input = pipeline::input(step).attempted(format_args!(
        "cannot unmarshal input for Composition pipeline step {}",
        quote(&step.step)
    ))?;
    let credentials = pipeline::credentials(&deps.ports, step, "Composition").await?;
    let mut required_resources = pipeline::bootstrap_resources(&deps.ports, step).await?;
    for required in step.requirements.iter().flat_map(|r| &r.required_resources) {
        requirements.push(Requirement {
            step: step.step.clone(),
            name: required.requirement_name.clone(),
            selector: selector(required),
        });
    }
    let required_schemas = pipeline::bootstrap_schemas(&deps.ports, step).await?;
    // The step will most likely require the same resources as last time.
    for (name, selector) in deps.tracker.requirements(&xr.id(), &step.step) {
        if required_resources.contains_key(&name) {
            continue;
        }
        if let Ok(found) = deps.ports.requirements.resources(&seed(selector)).await {
            required_resources.insert(name, found.unwrap_or_default());
        }
    }
    Ok(RunFunctionRequest {
        observed: Some(observed.clone()),
        desired: flow.desired,
        context: flow.context,
        input,
        credentials,
        required_resources,
        required_schemas,
        ..RunFunctionRequest::default()
    })
}

/// A remembered selector that matches nothing is requested with an empty set of labels.
fn seed(mut selector: ResourceSelector) -> ResourceSelector {
    use biplane_proto::function::v1::resource_selector::Match;
    selector.r#match.get_or_insert_with(|| {
        Match::MatchLabels(biplane_proto::function::v1::MatchLabels::default())
    });
    selector
}

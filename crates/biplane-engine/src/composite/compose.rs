//! Composes resources: observe, run the pipeline, apply the desired state. An error before the
//! first write leaves the cluster unchanged.

use std::time::Duration;

use biplane_cluster::{Apply, Part, ReadError};
use biplane_function::resource::ENVIRONMENT_CONTEXT_KEY;
use biplane_go::fmt::quote;
use biplane_model::pipeline::Step;
use biplane_model::{Object, labels};
use biplane_proto::function::v1::{Ready, ResourceSelector, RunFunctionRequest, State};
use biplane_runner::Subject;
use biplane_runner::notes::RunMemory;

use super::behaviour::Writing;
use super::dependencies::{Requirement, Tracked};
use super::outcome::{ComposeError, Composed};
use super::pass::{Pass, XR};
use super::persist::COMPOSITE_MANAGER;
use super::report::Report;
use super::revision::Revision;
use super::{Layout, desired, observe, write};
use crate::failure::{Attempted, Failure};
use crate::managed_fields;
use crate::pipeline::{self, Flow, Run};
use crate::requirements::selector;

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
    pub(super) tracked: Tracked,
    /// Paths of status fields that the definition does not declare.
    pub(super) undeclared: Vec<String>,
    /// Whether composed resources were created, changed or deleted.
    pub(super) wrote: bool,
}

/// Composes. Afterwards the status of `xr` is what the functions desire, with the conditions so
/// far.
pub(super) async fn compose(
    pass: &Pass<'_>,
    xr: &mut XR,
    revision: &Revision,
    environment: Option<Object>,
) -> Result<Outcome, ComposeError> {
    let observed = observe::composed(pass, &xr.object)
        .await
        .attempted("cannot get existing composed resources")?;
    let details = match pass.layout() {
        Layout::Legacy => observe::details(pass, &xr.object)
            .await
            .attempted("cannot fetch composite resource connection details")?,
        Layout::Modern => observe::Details::new(),
    };
    let state = observe::state(&xr.object, details, &observed);

    let mut outcome = Outcome::default();
    let mut flow = Flow::default();
    if let (Some(environment), Some(context)) = (environment, &mut flow.context) {
        context.make_mut().insert(ENVIRONMENT_CONTEXT_KEY.to_owned(), environment.into_value());
    }
    let mut flow = run_pipeline(pass, &xr.object, revision, &state, flow, &mut outcome).await?;
    drop(state);

    // The resources are moved, not copied. They are applied as the functions returned them.
    let resources = flow.desired.as_mut().map(|state| std::mem::take(&mut state.resources));
    let resources = resources.unwrap_or_default();
    let desired =
        desired::load(pass, &xr.object, resources, &observed, &mut outcome.report).await?;
    let wanted = flow.desired.as_ref();
    outcome.wrote = write::collect_garbage(pass, &xr.object, &observed, &desired)
        .await
        .attempted("cannot garbage collect composed resources that are no longer desired")?;
    write::write_references(pass, xr, &desired)
        .await
        .attempted("cannot update composed resource references")?;
    if pass.behaviour().upgrade {
        for existing in observed.values() {
            let is_ours = |manager: &str| manager.starts_with(write::COMPOSED_MANAGER);
            let object = &existing.object;
            managed_fields::upgrade(pass.cluster(), object, is_ours, pass.by).await.attempted(
                "cannot upgrade composed resource's managed fields from client-side to server-side apply",
            )?;
        }
    }
    let report = &mut outcome.report;
    let (composed, news) =
        write::apply_composed(pass, &xr.object, &observed, &desired, report).await?;
    outcome.composed = composed;
    outcome.wrote |= news;
    set_status(pass, xr, wanted, &mut outcome).await?;
    outcome.tracked.composed = desired.values().map(|d| d.object.id()).collect();

    let composite = wanted.and_then(|state| state.composite.as_ref());
    outcome.ready = composite.and_then(|composite| match composite.ready() {
        Ready::True => Some(true),
        Ready::False => Some(false),
        Ready::Unspecified => None,
    });
    outcome.details = composite.map(|c| c.connection_details.clone()).unwrap_or_default();
    Ok(outcome)
}

/// Status fields of the control plane, which composing keeps. In the modern layout, most of them
/// belong to users.
fn kept(pass: &Pass<'_>) -> Vec<&'static [&'static str]> {
    let mut kept: Vec<&[&str]> = Vec::new();
    if pass.layout() == Layout::Legacy {
        kept.push(&["status", "claimConditionTypes"]);
        kept.push(&["status", "connectionDetails", "lastPublishedTime"]);
    }
    if pass.behaviour().keeps_token() {
        kept.push(&super::HANDLED_REQUEST);
    }
    kept
}

/// Sets the status that the functions desire. Stepwise, it is also applied.
async fn set_status(
    pass: &Pass<'_>,
    xr: &mut XR,
    wanted: Option<&State>,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let mut intent = write::status_intent(&xr.object, wanted);
    match pass.behaviour().writing {
        Writing::Stepwise => {
            let how = Apply::forced(COMPOSITE_MANAGER);
            let applied = pass.cluster().apply(&intent, Part::Status, None, &how, pass.by).await;
            xr.object = applied.attempted("cannot apply composite resource status")?.object;
        }
        Writing::AtOnce { .. } => {
            if let Some(schema) = &pass.behaviour().schema {
                outcome.undeclared = schema.prune_status(&mut intent);
                if !outcome.undeclared.is_empty() {
                    outcome.report.warn("ComposeResources", undeclared(&outcome.undeclared));
                }
            }
            for path in kept(pass) {
                if let Some(kept) = xr.object.at(path).cloned() {
                    intent.set_at_or_ignore(path, kept);
                }
            }
            let status = intent.into_map().remove("status");
            // Most often it is the same, and then the object is not copied.
            if xr.object.get("status") != status.as_ref() {
                let object = xr.object.make_mut();
                match status {
                    Some(status) => object.insert("status".into(), status),
                    None => object.remove("status"),
                };
            }
            xr.whole_status = true;
        }
    }
    Ok(())
}

/// Says which fields of the status cannot be stored.
pub(super) fn undeclared(paths: &[String]) -> String {
    format!(
        "status fields that the CompositeResourceDefinition does not declare were left out: {}",
        paths.join(", ")
    )
}

async fn run_pipeline(
    pass: &Pass<'_>,
    xr: &Object,
    revision: &Revision,
    observed: &State,
    mut flow: Flow,
    outcome: &mut Outcome,
) -> Result<Flow, ComposeError> {
    let context = pass.context();
    let step_timeout = pass.behaviour().step_timeout;
    let name = revision.object.str_at(&["metadata", "labels", labels::COMPOSITION_NAME]);
    let run = Run {
        trace: context.ids.uuid(),
        deadline: pass.by,
        step_timeout,
        subject: Subject::Composition { name: name.to_owned() },
        memory: RunMemory::default(),
    };
    for (index, step) in revision.spec.pipeline.iter().enumerate() {
        let requirements = &mut outcome.tracked.requirements;
        let request = request(pass, xr, step, observed, flow, requirements).await?;
        let response = pipeline::call(context, &run, index, step, request).await.attempted(
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
        if let Some(ttl) = ttl.and_then(|ttl| Duration::try_from(ttl).ok()) {
            outcome.ttl = super::earlier(outcome.ttl, ttl);
        }
        flow = Flow { desired: response.desired, context: response.context };
        outcome.report.conditions(&response.conditions, context.clock.now());
        if let Err(message) = outcome.report.results(&step.step, &response.results) {
            let report = std::mem::take(&mut outcome.report);
            return Err(ComposeError::fatal(&step.step, message, report));
        }
    }
    Ok(flow)
}

async fn request(
    pass: &Pass<'_>,
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
    let credentials = pipeline::credentials(pass.context(), step, "Composition", pass.by).await?;
    let (mut required_resources, mut required_schemas) = Default::default();
    if step.requirements.is_some() {
        let resources = pipeline::bootstrap_resources(pass.context(), step);
        required_resources = in_time(pass, resources).await?;
        required_schemas = in_time(pass, pipeline::bootstrap_schemas(pass.context(), step)).await?;
    }
    for required in step.requirements.iter().flat_map(|r| &r.required_resources) {
        requirements.push(Requirement {
            step: step.step.clone(),
            name: required.requirement_name.clone(),
            selector: selector(required),
        });
    }
    // The step will most likely require the same resources as last time.
    for (name, selector) in pass.reconciler.dependencies.requirements(&xr.id(), &step.step) {
        if required_resources.contains_key(&name) {
            continue;
        }
        if let Ok(found) = pass.context().requirements.resources(&seed(selector)).await {
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

/// Waits no longer than the reconcile may take.
async fn in_time<T>(
    pass: &Pass<'_>,
    answer: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let late = |_| ReadError::TimedOut("context deadline exceeded".to_owned());
    tokio::time::timeout_at(pass.by, answer).await.map_err(late)?
}

/// A remembered selector that matches nothing is requested with an empty set of labels.
fn seed(mut selector: ResourceSelector) -> ResourceSelector {
    use biplane_proto::function::v1::resource_selector::Match;
    selector.r#match.get_or_insert_with(|| {
        Match::MatchLabels(biplane_proto::function::v1::MatchLabels::default())
    });
    selector
}

//! The parts of a pipeline run that composition and Operations share: building the request of a
//! step, with its credentials and required resources.

use std::collections::BTreeMap;
use std::time::Duration;

use biplane_cluster::{Cluster, Source};
use biplane_go::json;
use biplane_model::pipeline::{Input, SecretReference, Step};
use biplane_model::typed::{self, tables};
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_proto::Struct;
use biplane_proto::deterministic;
use biplane_proto::function::v1::{
    Capability, CredentialData, Credentials, RequestMeta, Resources, RunFunctionRequest,
    RunFunctionResponse, Schema, State, credentials,
};
use biplane_runner::notes::{Notes, RunMemory};
use biplane_runner::{Call, Subject};
use tokio::time::Instant;

use crate::context::Context;
use crate::failure::{Attempted, Failure};
use crate::requirements::{schema_selector, selector};
use biplane_go::fmt::quote;

/// The capabilities that requests advertise to functions.
const CAPABILITIES: [Capability; 5] = [
    Capability::Capabilities,
    Capability::RequiredResources,
    Capability::Credentials,
    Capability::Conditions,
    Capability::RequiredSchemas,
];

/// The desired state and context that steps pass on.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The desired state of the steps so far. Absent if a step returned none.
    pub desired: Option<State>,
    /// The context. Absent if a step returned none.
    pub context: Option<Struct>,
}

impl Default for Flow {
    fn default() -> Self {
        Self { desired: Some(State::default()), context: Some(Struct::default()) }
    }
}

/// Returns the input of a step as functions receive it.
pub fn input(step: &Step) -> Result<Option<Struct>, Failure> {
    match &step.input {
        None => Ok(None),
        Some(Input::Object(object)) => Ok(Some(object.clone().into())),
        Some(Input::Other(other)) => {
            let token = if other.is_array() {
                "[".to_owned()
            } else {
                json::to_string_with(other, json::Style::PROTOJSON)
            };
            Err(Failure::new(format!("proto: syntax error (line 1:1): unexpected token {token}")))
        }
    }
}

/// Returns the credentials of a step. Entries that are not from a Secret are skipped. `whose` is
/// the name of the pipeline in error messages.
pub async fn credentials(
    context: &Context,
    step: &Step,
    whose: &str,
    by: Instant,
) -> Result<BTreeMap<String, Credentials>, Failure> {
    let mut all = BTreeMap::new();
    for credential in &step.credentials {
        let (Some(reference), "Secret") = (&credential.secret_ref, credential.source.as_str())
        else {
            continue;
        };
        let data = secret(&*context.cluster, reference, by).await.attempted(format_args!(
            "cannot get {whose} pipeline step {} credential {} from Secret",
            quote(&step.step),
            quote(&credential.name)
        ))?;
        let source = Some(credentials::Source::CredentialData(CredentialData { data }));
        all.insert(credential.name.clone(), Credentials { source });
    }
    Ok(all)
}

async fn secret(
    cluster: &dyn Cluster,
    reference: &SecretReference,
    by: Instant,
) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let id = ObjectId::new(Gvk::new("v1", "Secret"), &reference.namespace, &reference.name);
    secret_data(&cluster.get(&id, Source::Cache, by).await?)
}

/// Decodes the `data` of a Secret. An error message never contains a value.
pub fn secret_data(secret: &Object) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    typed::restored(secret, tables::SECRET).map_err(Failure::new)?;
    let data = secret.get("data").and_then(Value::as_object);
    data.into_iter()
        .flatten()
        .map(|(key, value)| {
            let bytes = typed::bytes(value.as_str().unwrap_or_default()).map_err(Failure::new)?;
            Ok((key.clone(), bytes))
        })
        .collect()
}

/// Fetches the resources that a step requires up front. A missing named resource is an empty entry.
pub async fn bootstrap_resources(
    context: &Context,
    step: &Step,
) -> Result<BTreeMap<String, Resources>, Failure> {
    let mut all = BTreeMap::new();
    for required in step.requirements.iter().flat_map(|r| &r.required_resources) {
        let found = context.requirements.resources(&selector(required)).await.map_err(|e| {
            Failure::from(e).wrap(format_args!(
                "cannot fetch bootstrap required resources for requirement {}",
                quote(&required.requirement_name)
            ))
        })?;
        all.insert(required.requirement_name.clone(), found.unwrap_or_default());
    }
    Ok(all)
}

/// Fetches the schemas that a step requires up front.
pub async fn bootstrap_schemas(
    context: &Context,
    step: &Step,
) -> Result<BTreeMap<String, Schema>, Failure> {
    let mut all = BTreeMap::new();
    for required in step.requirements.iter().flat_map(|r| &r.required_schemas) {
        let schema =
            context.requirements.schema(&schema_selector(required)).await.map_err(|e| {
                Failure::from(e).wrap(format_args!(
                    "cannot fetch bootstrap required schema for requirement {}",
                    quote(&required.requirement_name)
                ))
            })?;
        all.insert(required.requirement_name.clone(), schema);
    }
    Ok(all)
}

/// One run of a pipeline.
#[derive(Debug)]
pub struct Run {
    /// The trace id of all calls.
    pub trace: String,
    /// The deadline.
    pub deadline: Instant,
    /// The time limit of one step.
    pub step_timeout: Option<Duration>,
    /// What the pipeline belongs to.
    pub subject: Subject,
    /// What wrappers around the functions remember.
    pub memory: RunMemory,
}

/// Sets the tag of the request and calls the function of the step.
pub async fn call(
    context: &Context,
    run: &Run,
    index: usize,
    step: &Step,
    mut request: RunFunctionRequest,
) -> Result<RunFunctionResponse, Failure> {
    request.meta = None;
    let tag = deterministic::tag(&request);
    let capabilities = CAPABILITIES.map(i32::from).to_vec();
    request.meta = Some(RequestMeta { tag, capabilities });
    let limit = run.step_timeout.map(|limit| Instant::now() + limit);
    let call = Call {
        function: step.function_ref.name.clone(),
        step: step.step.clone(),
        index,
        trace: run.trace.clone(),
        iteration: 0,
        deadline: Some(limit.map_or(run.deadline, |limit| limit.min(run.deadline))),
        subject: Some(run.subject.clone()),
        memory: run.memory.clone(),
        notes: Notes::default(),
    };
    Ok(context.runner.run(&call, request).await?)
}

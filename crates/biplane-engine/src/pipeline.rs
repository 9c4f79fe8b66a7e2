//! What composition and Operations share of running a pipeline: the request of a step, and the
//! secrets and objects that go with it.

use std::collections::BTreeMap;
use std::sync::Arc;
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
use biplane_runner::{Call, FunctionRunner, Requirements};
use tokio::time::Instant;

use crate::failure::{Attempted, Failure, quoted};
use crate::requirements::{schema_selector, selector};

/// What we tell functions that we understand.
const CAPABILITIES: [Capability; 5] = [
    Capability::Capabilities,
    Capability::RequiredResources,
    Capability::Credentials,
    Capability::Conditions,
    Capability::RequiredSchemas,
];

/// How long one reconcile may take.
pub const RECONCILE_TIMEOUT: Duration = Duration::from_mins(2);

/// The ports that a pipeline needs.
#[derive(Clone)]
pub struct Ports {
    /// Where secrets are.
    pub cluster: Arc<dyn Cluster>,
    /// Runs functions: the whole chain of wrappers.
    pub runner: Arc<dyn FunctionRunner>,
    /// Gets what steps ask for up front.
    pub requirements: Arc<dyn Requirements>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ports")
    }
}

/// Desired state and context on their way through a pipeline.
#[derive(Clone, Debug)]
pub struct Flow {
    /// What steps so far want to exist; absent when a step returned none.
    pub desired: Option<State>,
    /// What steps hand to each other; absent when a step returned none.
    pub context: Option<Struct>,
}

impl Default for Flow {
    fn default() -> Self {
        Self { desired: Some(State::default()), context: Some(Struct::default()) }
    }
}

/// The step's input as functions get it.
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

/// The step's secrets; entries that do not come from a Secret are passed over.
/// `whose` is what the failure calls the pipeline.
pub async fn credentials(
    ports: &Ports,
    step: &Step,
    whose: &str,
) -> Result<BTreeMap<String, Credentials>, Failure> {
    let mut all = BTreeMap::new();
    for credential in &step.credentials {
        let (Some(reference), "Secret") = (&credential.secret_ref, credential.source.as_str())
        else {
            continue;
        };
        let data = secret(&*ports.cluster, reference).await.attempted(format_args!(
            "cannot get {whose} pipeline step {} credential {} from Secret",
            quoted(&step.step),
            quoted(&credential.name)
        ))?;
        let source = Some(credentials::Source::CredentialData(CredentialData { data }));
        all.insert(credential.name.clone(), Credentials { source });
    }
    Ok(all)
}

async fn secret(
    cluster: &dyn Cluster,
    reference: &SecretReference,
) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let id = ObjectId::new(Gvk::new("v1", "Secret"), &reference.namespace, &reference.name);
    secret_data(&cluster.get(&id, Source::Live).await?)
}

/// The decoded `data` of a Secret. The text of a failure never holds a value.
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

/// The resources that a step asks for up front. One that is named and missing is an empty entry.
pub async fn bootstrap_resources(
    ports: &Ports,
    step: &Step,
) -> Result<BTreeMap<String, Resources>, Failure> {
    let mut all = BTreeMap::new();
    for required in step.requirements.iter().flat_map(|r| &r.required_resources) {
        let found = ports.requirements.resources(&selector(required)).await.map_err(|e| {
            Failure::new(e.to_string()).wrap(format_args!(
                "cannot fetch bootstrap required resources for requirement {}",
                quoted(&required.requirement_name)
            ))
        })?;
        all.insert(required.requirement_name.clone(), found.unwrap_or_default());
    }
    Ok(all)
}

/// The schemas that a step asks for up front.
pub async fn bootstrap_schemas(
    ports: &Ports,
    step: &Step,
) -> Result<BTreeMap<String, Schema>, Failure> {
    let mut all = BTreeMap::new();
    for required in step.requirements.iter().flat_map(|r| &r.required_schemas) {
        let schema = ports.requirements.schema(&schema_selector(required)).await.map_err(|e| {
            Failure::new(e.to_string()).wrap(format_args!(
                "cannot fetch bootstrap required schema for requirement {}",
                quoted(&required.requirement_name)
            ))
        })?;
        all.insert(required.requirement_name.clone(), schema);
    }
    Ok(all)
}

/// One run of a pipeline.
#[derive(Debug)]
pub struct Run {
    /// Shared by all its calls.
    pub trace: String,
    /// When it must be over.
    pub deadline: Instant,
}

/// Tags the request and calls the step's function.
pub async fn call(
    ports: &Ports,
    run: &Run,
    index: usize,
    step: &Step,
    mut request: RunFunctionRequest,
) -> Result<RunFunctionResponse, Failure> {
    request.meta = None;
    let tag = deterministic::tag(&request);
    let capabilities = CAPABILITIES.map(i32::from).to_vec();
    request.meta = Some(RequestMeta { tag, capabilities });
    let call = Call {
        function: step.function_ref.name.clone(),
        step: step.step.clone(),
        index,
        trace: run.trace.clone(),
        iteration: 0,
        deadline: Some(run.deadline),
    };
    ports.runner.run(&call, request).await.map_err(|e| Failure::new(e.to_string()))
}

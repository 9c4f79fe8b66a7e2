//! `function-environment-configs`: merges EnvironmentConfigs into the environment of a pipeline.
//!
//! The function requires the configs that its input names or selects. Once they are fetched, it
//! merges their data into the context for the following steps. Later sources override earlier ones.

mod input;
mod merge;
mod requirements;
mod selection;

use biplane_function::{Budget, Exceeded, PureFunction, response as reply};
use biplane_model::object::overlay;
use biplane_model::{Map, Object, Value};
use biplane_proto::Struct;
use biplane_proto::function::v1::{ResponseMeta, RunFunctionRequest, RunFunctionResponse};
use tonic::Status;

/// The context key of the environment.
pub const ENVIRONMENT: &str = "apiextensions.crossplane.io/environment";

/// The function.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnvironmentConfigs;

impl PureFunction for EnvironmentConfigs {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        self.run_within(request, &Budget::default())
    }

    fn checks_budget(&self) -> bool {
        true
    }

    fn run_within(
        &self,
        request: RunFunctionRequest,
        budget: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        let RunFunctionRequest {
            meta, observed, desired, input, context, required_resources, ..
        } = request;
        let mut response = RunFunctionResponse {
            meta: Some(ResponseMeta {
                tag: meta.map(|meta| meta.tag).unwrap_or_default(),
                ttl: Some(biplane_proto::Duration { seconds: 60, nanos: 0 }),
            }),
            desired,
            context,
            ..RunFunctionResponse::default()
        };
        let composite = observed.and_then(|state| state.composite);
        let composite = composite.and_then(|composite| composite.resource).unwrap_or_default();
        let answered = answer(input, composite.object(), required_resources, &mut response, budget);
        if let Some(status) = budget.exceeded().and_then(Exceeded::status) {
            return Err(status);
        }
        if let Err(error) = answered {
            reply::fatal(&mut response, error);
        }
        Ok(response)
    }
}

/// Why the function fails.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot get Function input from *v1.RunFunctionRequest: {0}")]
    Input(#[from] input::InputError),
    #[error("cannot build requirements: {0}")]
    Requirements(#[from] requirements::RequirementsError),
    #[error("cannot get selected environment configs: {0}")]
    Selection(#[from] selection::SelectionError),
    #[error("cannot merge environment data: {0}")]
    Merge(#[from] merge::MergeError),
}

fn answer(
    input: Option<Struct>,
    composite: &Object,
    found: std::collections::BTreeMap<String, biplane_proto::function::v1::Resources>,
    response: &mut RunFunctionResponse,
    budget: &Budget,
) -> Result<(), Error> {
    let Some(input) = input::Input::read(input)? else { return Ok(()) };
    response.requirements = Some(requirements::of(&input, composite)?);
    if found.is_empty() {
        // This is the first call. The next call has the required configs.
        return Ok(());
    }
    let selected = selection::select(&input, found)?;
    let mut environment = merge::configs(selected, budget)?;
    if let Some(given) = response.context.as_ref().and_then(|context| context.get(ENVIRONMENT)) {
        let given = given.as_object().cloned().unwrap_or_default();
        environment = overlay(given, environment);
    }
    environment = overlay(input.default_data, environment);
    mark(&mut environment);
    let environment = Struct::from(environment).into_object().into_value();
    response.context.get_or_insert_default().make_mut().insert(ENVIRONMENT.to_owned(), environment);
    Ok(())
}

/// Sets the version and kind of an environment, unless its data already has them.
fn mark(environment: &mut Map<String, Value>) {
    let text = |key| environment.get(key).and_then(Value::as_str).unwrap_or_default();
    let known = match text("apiVersion") {
        "" | "/" => !text("kind").is_empty(),
        // Go cannot parse such a version and treats it as absent.
        version => version.matches('/').count() <= 1,
    };
    if !known {
        environment.insert("apiVersion".to_owned(), "internal.crossplane.io/v1alpha1".into());
        environment.insert("kind".to_owned(), "Environment".into());
    }
}

#[cfg(test)]
mod tests;

//! `function-auto-ready`: derives the readiness of composed resources from their observed state.
//!
//! The first of three checks that gives a result decides: the user's rule, the health check of the
//! kind, and the `Ready` condition. Readiness that an earlier function set is kept.

mod conditions;
mod gates;
mod input;
mod kinds;
mod rules;

use std::time::Duration;

use biplane_function::{Budget, Exceeded, PureFunction, response as reply};
use biplane_go::fmt::quote;
use biplane_proto::function::v1::{
    Ready, Resource, ResponseMeta, RunFunctionRequest, RunFunctionResponse,
};
use tonic::Status;

pub use biplane_go::time::{DurationError, GoDuration};
pub use gates::GateError;

/// The function. [`Default`] is its configuration without flags.
#[derive(Debug)]
pub struct AutoReady {
    ttl: GoDuration,
    gates: gates::Gates,
    rules: rules::Rules,
}

impl Default for AutoReady {
    fn default() -> Self {
        Self {
            ttl: Duration::from_mins(1).into(),
            gates: gates::Gates::default(),
            rules: rules::Rules::default(),
        }
    }
}

impl AutoReady {
    /// Sets how long responses may be cached if the input does not set it.
    #[must_use]
    pub fn with_ttl(mut self, ttl: GoDuration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Enables and disables features: `Name=true,Other=false`.
    pub fn with_feature_gates(mut self, gates: &str) -> Result<Self, GateError> {
        self.gates.set(gates)?;
        Ok(self)
    }
}

impl PureFunction for AutoReady {
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
        let input = input::Input::read(request.input.as_ref());
        let RunFunctionRequest { meta, observed, desired, context, .. } = request;
        let mut response = RunFunctionResponse {
            meta: Some(ResponseMeta {
                tag: meta.map(|meta| meta.tag).unwrap_or_default(),
                ttl: Some(seconds(self.ttl)),
            }),
            desired,
            context,
            ..RunFunctionResponse::default()
        };
        let input = match input {
            Ok(input) => input,
            Err(error) => {
                let text =
                    format!("cannot get Function input from *v1.RunFunctionRequest: {error}");
                reply::fatal(&mut response, text);
                return Ok(response);
            }
        };
        if let Some(text) = &input.ttl {
            match text.parse() {
                Ok(ttl) => {
                    if let Some(meta) = &mut response.meta {
                        meta.ttl = Some(seconds(ttl));
                    }
                }
                Err(error) => {
                    reply::fatal(&mut response, format!("cannot set ttl: {error}"));
                    return Ok(response);
                }
            }
        }

        let observed = observed.unwrap_or_default();
        let mut desired = response.desired.take().unwrap_or_default();
        let mut undecided: Vec<(&String, &mut Resource, Option<&Resource>)> = Vec::new();
        for (name, resource) in &mut desired.resources {
            // Decoding and encoding a resource keeps only the object and its readiness.
            resource.connection_details.clear();
            resource.resource.get_or_insert_default();
            match Ready::try_from(resource.ready) {
                Ok(Ready::Unspecified) => {
                    let observed = observed.resources.get(name);
                    if observed.is_some() {
                        undecided.push((name, resource, observed));
                    }
                }
                Ok(_) => {}
                // A value unknown to this version counts as set, but cannot be passed on.
                Err(_) => resource.ready = Ready::Unspecified.into(),
            }
        }

        let mut rules = self.gates.cel_customizations().then(|| {
            let rules = input.rules(response.context.as_ref());
            rules::Asked::new(rules, &self.rules, budget)
        });
        let mut failure = None;
        for (name, resource, observed) in undecided {
            let nothing = biplane_model::Object::new();
            let object = observed
                .and_then(|observed| observed.resource.as_ref())
                .map_or(&nothing, |object| object.object());
            let (ready, warning) = match readiness(object, rules.as_mut(), budget) {
                Ok(ready) => ready,
                Err(reason) => {
                    let name = quote(name);
                    failure = Some(format!(
                        "cannot determine readiness of composed resource {name}: {reason}"
                    ));
                    break;
                }
            };
            if let Some(warning) = warning {
                reply::warning(&mut response, warning);
            }
            resource.ready = ready.into();
        }
        response.desired = Some(desired);
        if let Some(status) = budget.exceeded().and_then(Exceeded::status) {
            return Err(status);
        }
        if let Some(failure) = failure {
            reply::fatal(&mut response, failure);
        }
        Ok(response)
    }
}

/// The steps for one resource, besides its rule.
const STEPS: u64 = 200;

/// Returns the readiness of a resource, and why its rule did not decide it. The error is the limit
/// that was exceeded.
fn readiness(
    object: &biplane_model::Object,
    rules: Option<&mut rules::Asked<'_>>,
    budget: &Budget,
) -> Result<(Ready, Option<String>), String> {
    budget.steps(STEPS).map_err(|exceeded| exceeded.to_string())?;
    let mut warning = None;
    match rules.map(|rules| rules.ask(object)).transpose()?.flatten() {
        Some(Ok(true)) => return Ok((Ready::True, None)),
        Some(Ok(false)) => return Ok((Ready::False, None)),
        Some(Err(error)) => {
            let text = error.to_string();
            budget.make(text.len()).map_err(|exceeded| exceeded.to_string())?;
            warning = Some(text);
        }
        None => {}
    }
    let ready = kinds::is_healthy(object) || conditions::is_ready(object);
    Ok((if ready { Ready::True } else { Ready::Unspecified }, warning))
}

fn seconds(duration: GoDuration) -> biplane_proto::Duration {
    let (seconds, nanos) = duration.parts();
    biplane_proto::Duration { seconds, nanos }
}

#[cfg(test)]
mod tests;

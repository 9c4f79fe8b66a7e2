//! `function-auto-ready`: derives the readiness of composed resources from what is observed of them.
//!
//! Three opinions are asked in turn, and the first that has one decides: a rule of the user's, what
//! is known about the kind, and the `Ready` condition. What an earlier function said stays.

mod conditions;
mod gates;
mod input;
mod kinds;
mod rules;

use std::time::Duration;

use biplane_function::{PureFunction, response as reply};
use biplane_proto::function::v1::{
    Ready, Resource, ResponseMeta, RunFunctionRequest, RunFunctionResponse,
};
use tonic::Status;

pub use biplane_go::time::{DurationError, GoDuration};
pub use gates::GateError;

/// The function. [`Default`] is how it runs without flags.
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
    /// How long answers may be cached when the input does not say.
    #[must_use]
    pub fn with_ttl(mut self, ttl: GoDuration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Turns features on and off: `Name=true,Other=false`.
    pub fn with_feature_gates(mut self, gates: &str) -> Result<Self, GateError> {
        self.gates.set(gates)?;
        Ok(self)
    }
}

impl PureFunction for AutoReady {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
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
        let mut undecided: Vec<(&mut Resource, Option<&Resource>)> = Vec::new();
        for (name, resource) in &mut desired.resources {
            // Only the object and its readiness survive being read and written again.
            resource.connection_details.clear();
            resource.resource.get_or_insert_default();
            match Ready::try_from(resource.ready) {
                Ok(Ready::Unspecified) => {
                    let observed = observed.resources.get(name);
                    if observed.is_some() {
                        undecided.push((resource, observed));
                    }
                }
                Ok(_) => {}
                // A value from the future is an opinion, but not one that can be repeated.
                Err(_) => resource.ready = Ready::Unspecified.into(),
            }
        }

        let rules = self.gates.cel_customizations().then(|| input.rules(response.context.as_ref()));
        for (resource, observed) in undecided {
            let nothing = biplane_model::Object::new();
            let object = observed
                .and_then(|observed| observed.resource.as_ref())
                .map_or(&nothing, |object| object.object());
            let by_rule = rules.as_ref().and_then(|rules| self.rules.ask(rules, object));
            let ready = match by_rule {
                Some(Ok(true)) => Ready::True,
                Some(Ok(false)) => Ready::False,
                undecided => {
                    if let Some(Err(error)) = undecided {
                        reply::warning(&mut response, error);
                    }
                    if kinds::is_healthy(object) || conditions::is_ready(object) {
                        Ready::True
                    } else {
                        Ready::Unspecified
                    }
                }
            };
            resource.ready = ready.into();
        }
        response.desired = Some(desired);
        Ok(response)
    }
}

fn seconds(duration: GoDuration) -> biplane_proto::Duration {
    let (seconds, nanos) = duration.parts();
    biplane_proto::Duration { seconds, nanos }
}

#[cfg(test)]
mod tests;

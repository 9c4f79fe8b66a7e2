//! function-patch-and-transform: composes resources from templates, and patches between them, the
//! composite resource and the environment.
//!
//! The input is decoded, validated and prepared once (`plan`), and cached for later requests with
//! the same input (`cache`). `document` implements upstream's handling of numbers.

mod cache;
mod connection;
mod document;
mod input;
mod patch;
mod plan;
mod readiness;
mod run;
mod transform;
mod validate;
mod value;

use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{PureFunction, response};
use tonic::Status;

/// The function.
#[derive(Debug, Default)]
pub struct PatchAndTransform {
    plans: cache::Plans,
}

impl PureFunction for PatchAndTransform {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut rsp = response::to(&request, response::DEFAULT_TTL);
        let plan = self.plans.get(&request.input.clone().unwrap_or_default());
        let outcome = plan.and_then(|plan| run::run(&plan, request, &mut rsp));
        if let Err(message) = outcome {
            response::fatal(&mut rsp, message);
        }
        Ok(rsp)
    }
}

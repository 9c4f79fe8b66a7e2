//! function-patch-and-transform: composes resources from templates, and patches between them, the
//! composite resource and the environment.
//!
//! The input is decoded, validated and prepared once (`plan`), and cached for later requests with
//! the same input (`cache`). Patches and transforms themselves are those of [`biplane_patch`].

mod cache;
mod connection;
mod input;
mod plan;
mod run;
mod validate;

use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Budget, Exceeded, PureFunction, response};
use biplane_patch::Dialect;
use tonic::Status;

/// The rules that patches and transforms follow here.
const DIALECT: Dialect = Dialect::FUNCTION;

/// The function.
#[derive(Debug, Default)]
pub struct PatchAndTransform {
    plans: cache::Plans,
}

impl PureFunction for PatchAndTransform {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        self.run_within(request, &Budget::default())
    }

    fn run_within(
        &self,
        request: RunFunctionRequest,
        budget: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        let mut rsp = response::to(&request, response::DEFAULT_TTL);
        let plan = self.plans.get(&request.input.clone().unwrap_or_default());
        let outcome = plan.and_then(|plan| run::run(&plan, request, &mut rsp, budget));
        if let Some(status) = budget.exceeded().and_then(Exceeded::status) {
            return Err(status);
        }
        if let Err(message) = outcome {
            response::fatal(&mut rsp, message);
        }
        Ok(rsp)
    }

    fn checks_budget(&self) -> bool {
        true
    }
}

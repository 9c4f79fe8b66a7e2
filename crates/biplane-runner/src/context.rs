//! A helper function that sets the context of a pipeline and captures it again, as two extra steps.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use biplane_function::{Map, Object, Status, Struct, Value};
use biplane_go::fmt::quote;
use serde_json::json;

use crate::runner::{Call, FunctionRunner, RunError};
use crate::v1::{ResponseMeta, RunFunctionRequest, RunFunctionResponse};

/// The function name of the helper.
pub const FUNCTION: &str = "crossplane-render-context";
const SEED_STEP: &str = "crossplane-render-inject-context";
const CAPTURE_STEP: &str = "crossplane-render-extract-context";

/// Seeds and captures the context of one pipeline.
#[derive(Debug, Default)]
pub struct ContextHelper {
    seed: Map<String, Value>,
    captured: Mutex<Option<Struct>>,
}

impl ContextHelper {
    /// Creates a helper that adds `seed` to the context.
    pub fn new(seed: Map<String, Value>) -> Self {
        Self { seed, captured: Mutex::default() }
    }

    /// Returns a helper with the same seed for another pipeline.
    #[must_use]
    pub fn afresh(&self) -> Self {
        Self { seed: self.seed.clone(), captured: Mutex::default() }
    }

    /// Returns the context after the last step.
    pub fn captured(&self) -> Option<Object> {
        let captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        captured.clone().map(Struct::into_object)
    }

    /// Adds the helper's steps before and after those of `spec.pipeline`.
    pub fn wrap(&self, object: &mut Object, capture: bool) {
        let step = |name: &str, mode: &str| json!({"step": name, "functionRef": {"name": FUNCTION}, "input": {"mode": mode}});
        let mut steps = match object.at(&["spec", "pipeline"]) {
            Some(Value::Array(steps)) => steps.clone(),
            _ => Vec::new(),
        };
        if !self.seed.is_empty() {
            steps.insert(0, step(SEED_STEP, "Seed"));
        }
        if capture {
            steps.push(step(CAPTURE_STEP, "Capture"));
        }
        object.set_at_or_ignore(&["spec", "pipeline"], steps);
    }

    fn answer(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, String> {
        let input = request.input.unwrap_or_default();
        let mut context = request.context;
        match input.str_at(&["mode"]) {
            "Seed" => {
                let mut seeded = context.take().unwrap_or_default().into_object();
                seeded.make_mut().extend(self.seed.clone());
                context = Some(Struct::from(seeded));
            }
            "Capture" => {
                let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
                *captured = context.take();
            }
            mode => return Err(format!("unsupported mode {}", quote(mode))),
        }
        let tag = request.meta.map(|meta| meta.tag).unwrap_or_default();
        Ok(RunFunctionResponse {
            meta: Some(ResponseMeta { tag, ..ResponseMeta::default() }),
            desired: request.desired,
            context,
            ..RunFunctionResponse::default()
        })
    }
}

#[async_trait]
impl FunctionRunner for ContextHelper {
    async fn run(
        &self,
        _: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        self.answer(request).map_err(|reason| RunError::Status(Status::invalid_argument(reason)))
    }
}

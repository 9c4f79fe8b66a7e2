//! The helper that puts context into a pipeline and takes it out again, as two steps of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use biplane_function::v1::{ResponseMeta, RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Call, FunctionRunner, RunError};
use biplane_model::{Map, Object, Value, gojson::quote, yaml};
use biplane_proto::Struct;
use serde_json::json;

use super::engine::check_context_support;
use super::flags::{EngineFlags, FunctionFlags, OutputFlags};
use super::load::{Loader, broken};

/// The helper's name, as a function.
pub(super) const FUNCTION: &str = "crossplane-render-context";
const SEED_STEP: &str = "crossplane-render-inject-context";
const CAPTURE_STEP: &str = "crossplane-render-extract-context";

/// Seeds and captures the context of one pipeline.
#[derive(Debug, Default)]
pub(super) struct ContextHelper {
    seed: Map<String, Value>,
    captured: Mutex<Option<Struct>>,
}

impl ContextHelper {
    /// The helper, if the flags ask for one.
    pub(super) fn from_flags(
        flags: &FunctionFlags,
        output: &OutputFlags,
        engine: &EngineFlags,
        loader: &mut Loader<'_, '_>,
    ) -> Result<Option<Arc<Self>>> {
        let given = !flags.context_files.is_empty() || !flags.context_values.is_empty();
        if !given && !output.include_context {
            return Ok(None);
        }
        check_context_support(engine)?;
        let texts = texts(flags, loader).context("cannot build context data")?;
        let seed = parse(&texts).context("cannot parse context data")?;
        Ok(Some(Arc::new(Self { seed, captured: Mutex::default() })))
    }

    /// The same for another pipeline.
    pub(super) fn afresh(&self) -> Self {
        Self { seed: self.seed.clone(), captured: Mutex::default() }
    }

    /// What the pipeline's context was in the end.
    pub(super) fn captured(&self) -> Option<Object> {
        let captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        captured.clone().map(Struct::into_object)
    }

    /// Puts the helper's steps before and after those of `spec.pipeline`.
    pub(super) fn wrap(&self, object: &mut Object, capture: bool) {
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
        object.set_at(&["spec", "pipeline"], steps);
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
        self.answer(request).map_err(|reason| {
            RunError::Failed(format!("rpc error: code = InvalidArgument desc = {reason}"))
        })
    }
}

/// A Context document.
pub(super) fn document(fields: impl Into<Value>) -> Value {
    json!({"apiVersion": super::API_VERSION, "kind": "Context", "fields": fields.into()})
}

/// The texts that the flags give or name files of, by key.
pub(super) fn texts(
    flags: &FunctionFlags,
    loader: &mut Loader<'_, '_>,
) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for (key, file) in flags.context_files() {
        let text = loader.read(Path::new(&file));
        let text =
            text.with_context(|| format!("cannot read context value for key {}", quote(&key)))?;
        texts.insert(key, text);
    }
    texts.extend(flags.context_values());
    Ok(texts)
}

fn parse(texts: &BTreeMap<String, String>) -> Result<Map<String, Value>> {
    texts
        .iter()
        .map(|(key, text)| {
            if text.trim().is_empty() {
                return Ok((key.clone(), Value::Null));
            }
            let value = yaml::parse_one(key, text).map_err(|error| broken(&error));
            let value = value.with_context(|| {
                format!("cannot unmarshal context value for key {}", quote(key))
            })?;
            Ok((key.clone(), value.value))
        })
        .collect()
}

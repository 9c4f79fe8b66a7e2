//! The helper that puts context into a pipeline and takes it out again, as two steps of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use biplane_function::v1::{ResponseMeta, RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Call, FunctionRunner, RunError};
use biplane_go::fmt::quote;
use biplane_model::{Map, Object, Value, yaml};
use biplane_proto::Struct;
use serde_json::json;

use super::engine::check_context_support;
use super::flags::{EngineFlags, FunctionFlags, OutputFlags};
use super::load::{self, Loader, broken};
use crate::cli::values;

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
        let texts = unparsed(flags, loader).context("cannot build context data")?;
        let seed = parse(texts, loader).context("cannot parse context data")?;
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
    let texts = unparsed(flags, loader)?;
    Ok(texts.into_iter().map(|(key, unparsed)| (key, unparsed.text)).collect())
}

/// A value that is yet to be parsed, and where it is from: the key itself if it was on the command
/// line.
struct Unparsed {
    from: String,
    is_file: bool,
    text: String,
}

fn unparsed(
    flags: &FunctionFlags,
    loader: &mut Loader<'_, '_>,
) -> Result<BTreeMap<String, Unparsed>> {
    let mut texts = BTreeMap::new();
    for (key, file) in flags.context_files() {
        let file = values::at_home(&file);
        let text = loader.read(&file);
        let text =
            text.with_context(|| format!("cannot read context value for key {}", quote(&key)))?;
        texts.insert(key, Unparsed { from: load::name(&file), is_file: true, text });
    }
    texts.extend(flags.context_values().into_iter().map(|(key, text)| {
        let from = key.clone();
        (key, Unparsed { from, is_file: false, text })
    }));
    Ok(texts)
}

fn parse(
    texts: BTreeMap<String, Unparsed>,
    loader: &mut Loader<'_, '_>,
) -> Result<Map<String, Value>> {
    let mut seed = Map::new();
    for (key, Unparsed { from, is_file, text }) in texts {
        if text.trim().is_empty() {
            seed.insert(key, Value::Null);
            continue;
        }
        let value = yaml::parse_one(&from, &text).map_err(|error| broken(&error));
        let value = value
            .with_context(|| format!("cannot unmarshal context value for key {}", quote(&key)))?;
        if is_file {
            loader.warn_of_more(&from, &text);
        }
        seed.insert(key, value.value);
    }
    Ok(seed)
}

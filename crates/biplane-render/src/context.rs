//! The pipeline's context: turns options into a helper function that seeds and captures it, and the
//! captured context into a document.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use biplane_go::fmt::quote;
use biplane_manifest::{Loader, loader};
use biplane_model::{Map, Object, Value, yaml};
use biplane_runner::ContextHelper;
use biplane_runner::context::FUNCTION;
use biplane_runtime::{Engine, Runners, Running};
use serde_json::json;

use crate::API_VERSION;
use crate::options::{FunctionOptions, OutputOptions};

/// The helper that seeds and captures context, if the options ask for one.
pub(crate) fn helper(
    options: &FunctionOptions,
    output: OutputOptions,
    engine: &Engine,
    loader: &mut Loader<'_, '_>,
) -> Result<Option<Arc<ContextHelper>>> {
    let given = !options.context_files.is_empty() || !options.context_values.is_empty();
    if !given && !output.context {
        return Ok(None);
    }
    engine.check_context_support(&options.runtime.docker)?;
    let texts = unparsed(options, loader).context("cannot build context data")?;
    let seed = parse(texts, loader).context("cannot parse context data")?;
    Ok(Some(Arc::new(ContextHelper::new(seed))))
}

/// Adds the helper to the pipeline of an object, and to the functions that can be called.
pub(crate) fn add(
    helper: &Arc<ContextHelper>,
    object: &mut Object,
    output: OutputOptions,
    runners: &mut Runners,
) {
    helper.wrap(object, output.context);
    runners.insert(FUNCTION.to_owned(), Running::in_process(helper.clone()));
}

/// A Context document.
pub(crate) fn document(fields: impl Into<Value>) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "Context", "fields": fields.into()})
}

/// The context values given by options or read from files, by key.
pub(crate) fn texts(
    options: &FunctionOptions,
    loader: &mut Loader<'_, '_>,
) -> Result<BTreeMap<String, String>> {
    let texts = unparsed(options, loader)?;
    Ok(texts.into_iter().map(|(key, unparsed)| (key, unparsed.text)).collect())
}

/// A value that has not been parsed yet, and its origin: a file, or the key itself.
struct Unparsed {
    from: String,
    is_file: bool,
    text: String,
}

fn unparsed(
    options: &FunctionOptions,
    loader: &mut Loader<'_, '_>,
) -> Result<BTreeMap<String, Unparsed>> {
    let mut texts = BTreeMap::new();
    for (key, file) in &options.context_files {
        let text = loader.read_secret(file);
        let text =
            text.with_context(|| format!("cannot read context value for key {}", quote(key)))?;
        let from = loader::name(file);
        texts.insert(key.clone(), Unparsed { from, is_file: true, text });
    }
    texts.extend(options.context_values.iter().map(|(key, text)| {
        let unparsed = Unparsed { from: key.clone(), is_file: false, text: text.clone() };
        (key.clone(), unparsed)
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
        // Context may hold anything, so no part of it is shown.
        let value = yaml::parse_one(&from, &text).map_err(|error| loader::without_text(&error));
        let value = value
            .with_context(|| format!("cannot unmarshal context value for key {}", quote(&key)))?;
        if is_file {
            loader.warn_of_more(&from, &text);
        }
        seed.insert(key, value.value);
    }
    Ok(seed)
}

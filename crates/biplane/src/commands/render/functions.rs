//! Makes the functions of a pipeline callable, each where it runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use async_trait::async_trait;
use biplane_function::grpc::Security;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Call, FunctionRunner, GrpcRunner, InProcess, Named, Registry, RunError};
use biplane_model::{Object, Value, gojson::quote};
use tokio::sync::watch;

use super::flags::FunctionFlags;
use super::load::{Loader, quoted};
use super::process::{self, Process};
use super::runtime::{Function, RUNTIME, Runtime, override_annotations};
use super::{project, waiting};
use crate::cli::values;
use crate::streams::Streams;

/// The functions of the input, by name.
pub(super) fn load(
    path: Option<&Path>,
    pipeline: &Object,
    flags: &FunctionFlags,
    loader: &mut Loader<'_, '_>,
) -> Result<Vec<Function>> {
    let mut functions = match path {
        Some(path) => {
            let objects = loader.functions(path)?;
            let functions = objects.iter().map(Function::from_object).collect();
            distinct(functions)
                .with_context(|| format!("cannot load functions from {}", quoted(path)))?
        }
        None => unlisted(pipeline, flags, loader.streams())?,
    };
    override_annotations(&mut functions, &values::list(&flags.function_annotations))?;
    Ok(functions)
}

/// Which of two Functions of a name is meant, nobody can tell.
fn distinct(functions: Vec<Function>) -> Result<Vec<Function>> {
    let mut by_name: BTreeMap<String, Function> = BTreeMap::new();
    let mut out = Vec::new();
    for function in functions {
        match by_name.get(&function.name) {
            None => {
                by_name.insert(function.name.clone(), function.clone());
                out.push(function);
            }
            Some(same) if *same == function => {}
            Some(_) => bail!("there are two different Functions named {}", quote(&function.name)),
        }
    }
    Ok(out)
}

/// The functions that a pipeline names when nobody lists them: those of the project, if there is
/// one, and those in the box.
fn unlisted(
    pipeline: &Object,
    flags: &FunctionFlags,
    streams: &mut Streams<'_>,
) -> Result<Vec<Function>> {
    const REQUIRED: &str = "functions argument is required when not in a project";
    let registry = flags.registry();
    let in_box = |name: &str| registry.get(name).is_some();
    let used = used(pipeline);
    let project = flags.project_file.exists().then_some(flags.project_file.as_path());
    let mut functions = match project {
        Some(path) => project::functions(path, &used, flags, in_box, streams)?,
        None => Vec::new(),
    };
    for name in used {
        if functions.iter().any(|function| function.name == name) {
            continue;
        }
        if flags.no_builtin || !in_box(&name) {
            let (quoted, names) = (quote(&name), registry.names().collect::<Vec<_>>().join(", "));
            match project {
                Some(_) => bail!(
                    "cannot load project functions: function {quoted} is neither one of the project nor one of those that run in process ({names})"
                ),
                None => bail!(
                    "{REQUIRED}: function {quoted} is not one of those that run in process ({names})"
                ),
            }
        }
        let annotation = (RUNTIME.to_owned(), "InProcess".to_owned());
        functions.push(Function { package: name.clone(), name, annotations: [annotation].into() });
    }
    if functions.is_empty() {
        bail!(REQUIRED);
    }
    Ok(functions)
}

/// The names of the functions that a pipeline calls, each once.
pub(super) fn used(pipeline: &Object) -> Vec<String> {
    let steps = pipeline.at(&["spec", "pipeline"]).and_then(Value::as_array);
    let mut names = Vec::new();
    for step in steps.into_iter().flatten() {
        let name = step.pointer("/functionRef/name").and_then(Value::as_str).unwrap_or_default();
        if !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Functions that can be called, by name.
pub(super) type Runners = BTreeMap<String, Running>;

/// A function that can be called.
#[derive(Clone)]
pub(super) struct Running {
    pub runner: Arc<dyn FunctionRunner>,
    /// The gRPC target, if it has one.
    pub target: Option<String>,
    /// Of a program: whether someone asked to stop since it was started.
    pub interrupted: Option<watch::Receiver<bool>>,
}

impl Running {
    /// Something that is called without a network.
    pub(super) fn in_process(runner: Arc<dyn FunctionRunner>) -> Self {
        Self { runner, target: None, interrupted: None }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Calls functions by name.
pub(super) fn named(runners: &Runners) -> Named {
    runners
        .iter()
        .fold(Named::default(), |named, (name, running)| named.with(name, running.runner.clone()))
}

/// Starts those functions that the pipeline calls.
pub(super) fn start(
    functions: &[Function],
    pipeline: &Object,
    flags: &FunctionFlags,
    streams: &mut Streams<'_>,
) -> Result<Runners> {
    let registry = flags.registry();
    let used = used(pipeline);
    let mut runners = Runners::new();
    for function in functions {
        let runtime = function.runtime(|name| registry.get(name).is_some(), !flags.no_builtin);
        let runtime = runtime.with_context(|| {
            format!(
                "cannot start function runtimes: cannot get runtime for Function {}",
                quote(&function.name)
            )
        })?;
        if used.contains(&function.name) {
            let running = start_one(function, runtime, &registry, flags, streams);
            let running = running.with_context(|| {
                format!(
                    "cannot start function runtimes: cannot start Function {}",
                    quote(&function.name)
                )
            })?;
            runners.insert(function.name.clone(), running);
        }
    }
    waiting::in_public(&mut runners, &streams.progress);
    Ok(runners)
}

fn start_one(
    function: &Function,
    runtime: Runtime,
    registry: &Registry,
    flags: &FunctionFlags,
    streams: &mut Streams<'_>,
) -> Result<Running> {
    match runtime {
        Runtime::InProcess(name) => {
            let fields = [("function", function.name.as_str()), ("runs", name.as_str())];
            streams.debug("Function runs in process", &fields);
            let runner = Renamed { name, inner: InProcess::new(registry.clone()) };
            Ok(Running::in_process(Arc::new(runner)))
        }
        Runtime::Development(target) => {
            let runner =
                GrpcRunner::new(&target, Security::Plaintext).map_err(|e| anyhow!("{e}"))?;
            Ok(Running { runner: Arc::new(runner), target: Some(target), interrupted: None })
        }
        Runtime::Process(_) if !flags.allow_process => bail!(
            "it is a program on this machine; pass --allow-process if you trust what the Functions file or the project runs"
        ),
        Runtime::Process(command) => {
            // Before there is anything to clean up.
            let interrupted = Some(process::interrupted()?);
            let (process, address) = Process::start(&function.name, &command)?;
            streams.debug(
                "Function runs as a program",
                &[("address", &address), ("function", &function.name)],
            );
            Ok(Running { runner: Arc::new(process), target: Some(address), interrupted })
        }
        Runtime::Docker => bail!(
            "package {} would run in Docker, which is not supported yet; start it yourself and annotate it with render.crossplane.io/runtime: Development, or with InProcess if it is a build of one of {}",
            quote(&function.package),
            registry.names().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// A function in the box under the name that the pipeline gives it.
#[derive(Debug)]
struct Renamed {
    name: String,
    inner: InProcess,
}

#[async_trait]
impl FunctionRunner for Renamed {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let call = Call { function: self.name.clone(), ..call.clone() };
        self.inner.run(&call, request).await
    }
}

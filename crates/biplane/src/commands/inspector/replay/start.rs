//! Functions that were started to be asked again.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use biplane_console::{Deadline, Streams};
use biplane_model::Object;
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_recorder::query::record::Step;
use biplane_runner::{Call, FunctionRunner as _, Named, RunError};
use biplane_runtime::{Engine, Function, Runners};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::target::Target;
use crate::environment::Environment;

/// Functions that run.
pub(super) struct Started {
    runtime: Runtime,
    runners: Runners,
    timeout: Duration,
}

/// Calls functions. Clones call the same ones.
#[derive(Clone)]
pub(super) struct Caller {
    functions: Named,
    timeout: Duration,
}

impl Caller {
    /// Asks the function of a recorded step.
    pub(super) async fn call(
        &self,
        step: &Step,
        trace: &str,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let deadline = Deadline::after(self.timeout);
        let call = Call {
            function: step.function.clone(),
            step: step.name.clone(),
            index: usize::try_from(step.index).unwrap_or_default(),
            trace: trace.to_owned(),
            deadline: deadline.at().map(Into::into),
            ..Call::default()
        };
        self.functions.run(&call, request).await
    }
}

impl Started {
    /// Starts functions. `threads` is on how many threads they are called.
    pub(super) fn new(
        functions: &[(String, Target)],
        timeout: Duration,
        threads: usize,
        environment: &Environment,
        streams: &mut Streams<'_>,
    ) -> Result<Self> {
        let step = |(name, _): &(String, Target)| json!({"functionRef": {"name": name}});
        let steps: Vec<Value> = functions.iter().map(step).collect();
        let spec = json!({"pipeline": steps});
        let pipeline = Object::from(serde_json::Map::from_iter([("spec".to_owned(), spec)]));
        let functions: Vec<Function> =
            functions.iter().map(|(name, target)| target.function(name)).collect();
        let options = biplane_runtime::Options {
            registry: biplane_functions::registry().and(&environment.own),
            builtin: false,
            allow_process: false,
            max_concurrency: functions.len().max(1),
            cache_dir: environment.package_cache(),
            project_file: PathBuf::new(),
            docker: environment.docker.clone(),
        };
        let runtime = if threads > 1 {
            tokio::runtime::Builder::new_multi_thread().enable_all().build()
        } else {
            tokio::runtime::Builder::new_current_thread().enable_all().build()
        };
        let runtime = runtime.context("cannot start the runtime")?;
        let none = Runners::none(&streams.progress)?;
        let engine = Engine::BuiltIn;
        let deadline = Deadline::after(timeout);
        let started = biplane_runtime::start(
            &functions, &pipeline, &options, &engine, deadline, none, streams,
        );
        let runners = runtime.block_on(started)?;
        Ok(Self { runtime, runners, timeout })
    }

    /// Calls the functions.
    pub(super) fn caller(&self) -> Caller {
        Caller { functions: self.runners.named(), timeout: self.timeout }
    }

    /// Does some work, unless the command is interrupted.
    pub(super) fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(self.runners.unless_interrupted(work))
    }

    /// Asks the function of a recorded step.
    pub(super) fn call(
        &self,
        step: &Step,
        trace: &str,
        request: RunFunctionRequest,
    ) -> Result<Result<RunFunctionResponse, RunError>> {
        let caller = self.caller();
        self.wait(async { Ok(caller.call(step, trace, request).await) })
    }

    /// Ends what was started.
    pub(super) fn end(self) {
        self.runtime.block_on(self.runners.end());
    }
}

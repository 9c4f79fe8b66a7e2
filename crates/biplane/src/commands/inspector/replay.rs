//! `inspector replay`: asks a function again what it was asked in a recorded step.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use biplane_console::{Deadline, Streams};
use biplane_model::Object;
use biplane_proto::function::v1::RunFunctionRequest;
use biplane_proto::json::{self, Unknown};
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::ask::find;
use biplane_recorder::query::record::{Run, Step};
use biplane_recorder::query::replay;
use biplane_runner::{Call, FunctionRunner as _};
use biplane_runtime::function::RUNTIME;
use biplane_runtime::{Engine, Function, Runners};
use clap::Args;
use serde_json::{Value, json};

use super::runs::One;
use crate::commands::records::{differs, failed, now, usage};
use crate::environment::Environment;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  # Ask the function of the box what it was asked in the second step
  biplane inspector replay 9822d93d/2 --store=recorder.db

  # Ask a function that runs on this machine, such as one under a debugger
  biplane inspector replay 9822d93d/2 --store=recorder.db --address=localhost:9443

  # Ask another version, and supply what was redacted
  biplane inspector replay 9822d93d/2 --store=recorder.db --image=example.org/function:v2 --supply=secrets.yaml";

/// Ask a function again what it was asked in a recorded step, and compare its answers
///
/// Values that were redacted are given to the function as markers, and named. --supply has them in
/// the shape of the request. Exits with code 3 if the answer differs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Replay {
    /// The step; a run alone is its last step
    #[arg(value_name = "RUN[/STEP]")]
    run: String,
    /// A function in the box, instead of the one of the step's name
    #[arg(long, value_name = "NAME", group = "target")]
    function: Option<String>,
    /// The address of a function that runs already
    #[arg(long, value_name = "HOST:PORT", group = "target")]
    address: Option<String>,
    /// The image of a function, to be run in Docker
    #[arg(long, value_name = "IMAGE", group = "target")]
    image: Option<String>,
    /// Values in the place of redacted ones, in the shape of the request, as YAML or JSON
    #[arg(long, value_name = "FILE", value_parser = values::existing_file)]
    supply: Option<PathBuf>,
    /// How long starting and calling the function may take
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::duration)]
    timeout: Duration,
    #[command(flatten)]
    one: One,
}

impl Replay {
    pub(super) fn run(self, environment: &Environment, streams: &mut Streams<'_>) -> Result<()> {
        let archive = self.one.source.archive(streams)?;
        let named = self.one.named(&self.run);
        let found = find(archive.as_ref(), &named, now()).map_err(failed)?;
        let run = archive.load(&found.head).map_err(failed)?;
        let step = found.step(&run).map_err(failed)?.or_else(|| last(&run));
        let step = step.ok_or_else(|| usage("no step of this run was recorded"))?;
        let Some(mut request) = step.request.clone() else {
            return Err(usage("the request of this step was not recorded").into());
        };
        let supplied = self.supply.as_ref().map(|file| read(file)).transpose()?;
        let supplied = supplied.unwrap_or_default();
        let (given, missing) = replay::supply(&mut request, &supplied);
        let request = json::from_value_with(request, Unknown::Discard);
        let request: RunFunctionRequest =
            request.context("the recorded request is not one of a function")?;
        let (function, target) = self.target(step, environment)?;
        let answer = self.call(function, step, &run, request, environment, streams)?;
        let mut answer = replay::compare(&run.head.trace, step, target, answer);
        (answer.supplied, answer.redacted) = (given, missing);
        let is_other = answer.differs;
        self.one.output.show(&Answer::Replay(answer), streams)?;
        differs(is_other)
    }

    /// The function as a file of functions would name it, and where that is in words.
    fn target(&self, step: &Step, environment: &Environment) -> Result<(Function, String)> {
        let annotated = |package: &str, annotations: &[(&str, &str)]| {
            let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            let annotations = annotations.iter().map(pair).collect();
            Function::new(step.function.clone(), package.to_owned(), annotations)
        };
        if let Some(address) = &self.address {
            let target = "render.crossplane.io/runtime-development-target";
            let annotations = [(RUNTIME, "Development"), (target, address.as_str())];
            return Ok((annotated(&step.function, &annotations), address.clone()));
        }
        if let Some(image) = &self.image {
            return Ok((annotated(image, &[(RUNTIME, "Docker")]), image.clone()));
        }
        let wanted = self.function.as_deref().unwrap_or(&step.function);
        let registry = biplane_functions::registry().and(&environment.own);
        // Installed functions often have the name of their organisation before their own.
        let in_box = registry.names().find(|name| {
            wanted == *name
                || wanted.strip_suffix(*name).is_some_and(|before| before.ends_with('-'))
                || name.strip_prefix("function-") == Some(wanted)
        });
        let Some(name) = in_box else {
            let text = format!(
                "{wanted:?} is not in the box: name a function of the box with --function, or use --address or --image"
            );
            return Err(usage(&text).into());
        };
        let function = annotated(name, &[(RUNTIME, "InProcess")]);
        Ok((function, format!("{name} in the box")))
    }

    fn call(
        &self,
        function: Function,
        step: &Step,
        run: &Run,
        request: RunFunctionRequest,
        environment: &Environment,
        streams: &mut Streams<'_>,
    ) -> Result<Result<Value, String>> {
        let deadline = Deadline::after(self.timeout);
        let steps = json!({"pipeline": [{"functionRef": {"name": step.function}}]});
        let pipeline = Object::from(serde_json::Map::from_iter([("spec".to_owned(), steps)]));
        let options = biplane_runtime::Options {
            registry: biplane_functions::registry().and(&environment.own),
            builtin: false,
            allow_process: false,
            max_concurrency: 1,
            cache_dir: environment.package_cache(),
            project_file: PathBuf::new(),
            docker: environment.docker.clone(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        let functions = [function];
        let none = Runners::none(&streams.progress)?;
        let started = biplane_runtime::start(
            &functions,
            &pipeline,
            &options,
            &Engine::BuiltIn,
            deadline,
            none,
            streams,
        );
        let runners = runtime.block_on(started)?;
        let call = Call {
            function: step.function.clone(),
            step: step.name.clone(),
            index: usize::try_from(step.index).unwrap_or_default(),
            trace: run.head.trace.clone(),
            deadline: deadline.at().map(Into::into),
            ..Call::default()
        };
        let answered = runtime.block_on(runners.named().run(&call, request));
        runtime.block_on(runners.end());
        Ok(match answered {
            Ok(response) => Ok(json::to_value(&response).context("the answer has no JSON form")?),
            Err(error) => Err(error.to_string()),
        })
    }
}

fn last(run: &Run) -> Option<&Step> {
    run.steps.last()
}

fn read(file: &Path) -> Result<Value> {
    let attempted = || format!("cannot read {}", file.display());
    let bytes = std::fs::read(file).with_context(attempted)?;
    let document = biplane_model::yaml::read_document(&bytes);
    document.map_err(|error| anyhow::anyhow!("{}: {error}", attempted()))
}

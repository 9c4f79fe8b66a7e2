//! `inspector replay`: asks functions again what they were asked in recorded steps.

mod pipeline;
mod start;
mod target;
mod week;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use biplane_console::Streams;
use biplane_proto::function::v1::RunFunctionRequest;
use biplane_proto::json::{self, Unknown};
use biplane_proto::redact::Mode;
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::ask::find;
use biplane_recorder::query::record::{Run, Step};
use biplane_recorder::query::replay::{self, suppose::Supposition};
use clap::{ArgAction, Args};
use serde_json::Value;

use self::start::Started;
use self::target::Targets;
pub(super) use self::target::in_box;
use super::runs::One;
use crate::commands::records::{Times, differs, failed, now, usage};
use crate::commands::sidecar;
use crate::environment::Environment;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  # Ask the function of the box what it was asked in the second step
  biplane inspector replay 9822d93d/2 --store=recorder.db

  # Ask a function that runs on this machine, such as one under a debugger
  biplane inspector replay 9822d93d/2 --store=recorder.db --with=localhost:9443

  # Ask another version, and supply what was redacted
  biplane inspector replay 9822d93d/2 --store=recorder.db --with=example.org/function:v2 --supply=secrets.yaml

  # Ask a new version everything that the function was asked in a week
  biplane inspector replay --function=function-x --since=7d --store=recorder.db --with=example.org/function:v2

  # What the pipeline would do if the composite resource were larger
  biplane inspector replay 9822d93d --store=recorder.db --set=spec.size=5";

/// Ask functions again what they were asked, and compare their answers
///
/// With RUN/STEP, asks the function of that step. With RUN and --set or --pipeline, runs all steps,
/// each with what the step before it answers now. Without RUN, asks --function every distinct
/// request of a time. Values that were redacted are given to functions as markers, and named;
/// --supply has them in the shape of the request. Exits with code 3 if an answer differs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Replay {
    /// The step; a run alone is its last step
    #[arg(value_name = "RUN[/STEP]")]
    run: Option<String>,
    /// Where the function runs: the name of one in the box, HOST:PORT, or an image for Docker; in
    /// the box unless told otherwise; FUNCTION=TARGET for one of several; repeatable
    #[arg(long, value_name = "TARGET", action = ArgAction::Append)]
    with: Vec<String>,
    /// The address of a function that runs already
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "with")]
    address: Option<String>,
    /// The image of a function, to be run in Docker
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["with", "address"])]
    image: Option<String>,
    /// Suppose that a field was different: PATH=VALUE of the composite resource, RESOURCE:PATH=VALUE
    /// of an observed composed resource, or STEP/PATH=VALUE of the input of a step; null removes
    /// it; repeatable
    #[arg(long, value_name = "PATH=VALUE", requires = "run", action = ArgAction::Append,
        value_parser = supposition)]
    set: Vec<Supposition>,
    /// Run all steps, each with what the step before it answers now
    #[arg(long, requires = "run")]
    pipeline: bool,
    /// Ask this function everything that it was asked
    #[arg(long, value_name = "NAME", conflicts_with = "run", required_unless_present = "run")]
    function: Option<String>,
    #[command(flatten)]
    times: Times,
    /// How many requests are asked at the same time
    #[arg(long, value_name = "N", default_value = "8", value_parser = values::count::<usize>)]
    max_concurrency: usize,
    /// Also write a report in the form of JUnit, with a case for each request
    #[arg(long, value_name = "FILE", conflicts_with = "run", value_parser = values::path)]
    junit: Option<PathBuf>,
    /// Values in the place of redacted ones, in the shape of the request, as YAML or JSON
    #[arg(long, value_name = "FILE", value_parser = values::existing_file)]
    supply: Option<PathBuf>,
    /// How long starting functions may take, and each call
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::duration)]
    timeout: Duration,
    #[command(flatten)]
    one: One,
}

impl Replay {
    pub(super) fn run(self, environment: &Environment, streams: &mut Streams<'_>) -> Result<()> {
        let targets = Targets::new(&self.with, self.address.as_deref(), self.image.as_deref());
        let targets = targets.with_box(environment);
        match (&self.run, &self.function) {
            (Some(run), _) if self.pipeline || !self.set.is_empty() => {
                pipeline::run(&self, run, &targets, environment, streams)
            }
            (Some(run), _) => self.step(run, &targets, environment, streams),
            (None, Some(function)) => week::run(&self, function, &targets, environment, streams),
            (None, None) => Err(usage("name a run, or a function with --function").into()),
        }
    }

    /// Asks the function of one step.
    fn step(
        &self,
        run: &str,
        targets: &Targets,
        environment: &Environment,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        let archive = self.one.source.archive(streams)?;
        let found = find(archive.as_ref(), &self.one.named(run), now()).map_err(failed)?;
        let run = archive.load(&found.head).map_err(failed)?;
        let step = found.step(&run).map_err(failed)?.or_else(|| last(&run));
        let step = step.ok_or_else(|| usage("no step of this run was recorded"))?;
        let Some(mut request) = step.request.clone() else {
            return Err(usage("the request of this step was not recorded").into());
        };
        let (given, missing) = replay::supply(&mut request, &self.supplied()?);
        let target = targets.of(&step.function)?;
        let words = target.words();
        let functions = [(step.function.clone(), target)];
        let started = Started::new(&functions, self.timeout, 1, environment, streams)?;
        let request = read_request(request)?;
        let trace = &run.head.trace;
        let answer = started.call(step, trace, request);
        started.end();
        let answer = match answer? {
            Ok(response) => {
                let redactor = sidecar::redactor(Mode::Deep);
                let answer = replay::as_recorded(&response, &redactor);
                Ok(answer.context("the answer has no JSON form")?)
            }
            Err(error) => Err(error.to_string()),
        };
        let mut answer = replay::compare(trace, step, words, answer);
        (answer.supplied, answer.redacted) = (given, missing);
        let is_other = answer.differs;
        self.one.output.show(&Answer::Replay(answer), streams)?;
        differs(is_other)
    }

    /// Values in the place of redacted ones.
    fn supplied(&self) -> Result<Value> {
        self.supply.as_ref().map(|file| read(file)).transpose().map(Option::unwrap_or_default)
    }
}

fn supposition(text: &str) -> Result<Supposition, String> {
    text.parse().map_err(|error: replay::suppose::SupposeError| error.to_string())
}

fn last(run: &Run) -> Option<&Step> {
    run.steps.last()
}

/// A request as functions take it.
fn read_request(request: Value) -> Result<RunFunctionRequest> {
    let request = json::from_value_with(request, Unknown::Discard);
    request.context("the recorded request is not one of a function")
}

fn read(file: &Path) -> Result<Value> {
    let attempted = || format!("cannot read {}", file.display());
    let bytes = std::fs::read(file).with_context(attempted)?;
    let document = biplane_model::yaml::read_document(&bytes);
    document.map_err(|error| anyhow::anyhow!("{}: {error}", attempted()))
}

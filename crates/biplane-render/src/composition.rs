//! Renders composite resources from files: shows what the control plane would do with them.

mod advice;
mod changes;
mod cluster;
mod definitions;
mod foreign_owner;
mod inputs;
mod lenient;
mod many;
mod nested;
mod ownership;
mod perform;
mod reachable;
mod reconcile;
mod rendered_output;
mod setup;
mod shown;
mod step;
mod until_stable;
mod v1_modes;
mod watched_files;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use biplane_console::{Deadline, Interrupted, Streams};
use biplane_manifest::{Line, Loader};
use biplane_model::{Object, Value};
use biplane_runtime::{Engine, Runners, Subject};
use tokio::runtime::Runtime;

use crate::options::{FunctionOptions, OutputOptions};
use crate::watch_files::{self, Repeatable as _, Watched};
use crate::{asynchronous, end_functions, print};

use inputs::Inputs;

/// The input files and the options of a render.
#[derive(Clone, Debug)]
pub struct CompositionRender {
    /// The composite resources.
    pub composites: Composites,
    /// The Composition.
    pub composition: PathBuf,
    /// The Functions; if unset, those of the project and the built-in ones.
    pub functions: Option<PathBuf>,
    /// The engine that renders.
    pub engine: Engine,
    /// The time limit for the whole render.
    pub timeout: Duration,
    /// How functions are found and started, and their input.
    pub function: FunctionOptions,
    /// Resources that functions may require, given by the old flag.
    pub extra_resources: Vec<PathBuf>,
    /// Composed resources that already exist.
    pub observed_resources: Option<PathBuf>,
    /// Definitions of composite resources.
    pub definitions: Vec<PathBuf>,
    /// Whether Compositions have environments, also if this one does not use its own.
    pub environments: bool,
    /// Render until nothing changes, instead of once.
    pub until_stable: Option<UntilStable>,
    /// What is printed, and how.
    pub output: OutputOptions,
    /// Whether the whole composite resource is printed, instead of only the changed fields.
    pub include_full_xr: bool,
    /// Whether to warn of what is odd about the Composition. If unset, only at a terminal.
    pub advice: Option<bool>,
}

/// Where the composite resources are read from.
#[derive(Clone, Debug)]
pub enum Composites {
    /// The first document of a file.
    One(PathBuf),
    /// Every document of a file or a folder.
    Many(PathBuf),
}

/// How to render until nothing changes.
#[derive(Clone, Debug)]
pub struct UntilStable {
    /// The maximum number of rounds.
    pub max_rounds: u32,
    /// Compositions and definitions of nested composite resources.
    pub compositions: Vec<PathBuf>,
}

/// Prints lines to stderr.
pub(crate) type Say<'a> = &'a mut dyn FnMut(&str);

impl CompositionRender {
    /// Renders and prints.
    pub fn run(&self, streams: &mut Streams<'_>) -> Result<()> {
        let documents = self.documents(streams)?;
        print::write(&documents, self.output.format, streams.stdout)
    }

    /// Renders. When this returns, the functions have ended.
    pub fn documents(&self, streams: &mut Streams<'_>) -> Result<Vec<Value>> {
        let deadline = Deadline::after(self.timeout);
        let mut runners = Runners::none(&streams.progress)?;
        let (mut inputs, composites) = self.load(&mut Loader::new(streams, deadline))?;
        // Functions must end before the runtime that they run on.
        let runtime = asynchronous(composites.len() > 1)?;
        let provide = |inputs: &Inputs, streams: &mut Streams<'_>| {
            runners = runtime.block_on(self.start(inputs, deadline, runners.clone(), streams))?;
            Ok(runners.clone())
        };
        let rendered =
            self.render_reachable(&runtime, &mut inputs, &composites, deadline, provide, streams);
        end_functions(&runtime, runners, rendered)
    }

    /// Renders and prints, now and whenever one of the files changes.
    pub fn watch(&self, streams: &mut Streams<'_>) -> Result<Watched> {
        watch_files::watch(self, streams)
    }

    /// Whether standard input is among the files that are read.
    pub fn reads_stdin(&self) -> bool {
        self.sources().has_stdin()
    }

    async fn start(
        &self,
        inputs: &Inputs,
        deadline: Deadline,
        up: Runners,
        streams: &mut Streams<'_>,
    ) -> Result<Runners> {
        let _waiting = streams.progress.wait(|| "functions to start".to_owned());
        let (functions, pipeline) = (&inputs.functions, &inputs.pipelines());
        let options = &self.function.runtime;
        let runners = biplane_runtime::start(
            functions,
            pipeline,
            options,
            &self.engine,
            deadline,
            up,
            streams,
        );
        runners.await.map_err(|error| match self.output.line {
            // In v1, starting functions was part of rendering.
            Line::V1 if !error.is::<Interrupted>() => error.context(Subject::Composite.attempted()),
            _ => error,
        })
    }

    /// Whether there may be several composite resources.
    fn is_many(&self) -> bool {
        matches!(self.composites, Composites::Many(_))
    }

    /// The prefix of lines about a composite resource, if there may be several.
    fn prefix(&self, composite: &Object) -> String {
        if self.is_many() { format!("{}: ", composite.id()) } else { String::new() }
    }

    /// The documents of all composite resources, in input order. The first `said` lines about a
    /// single composite resource have already been printed.
    fn render_each(
        &self,
        runtime: &Runtime,
        inputs: &Inputs,
        composites: &[Object],
        (runners, deadline): (&Runners, Deadline),
        said: &mut usize,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        match composites {
            [composite] => {
                let mut lines = 0;
                let mut say = |line: &str| {
                    lines += 1;
                    if lines > *said {
                        *said = lines;
                        streams.say(line);
                    }
                };
                let inputs = inputs.of(composite.clone());
                runtime.block_on(self.render(inputs, runners, deadline, &mut say))
            }
            _ => self.render_all(runtime, inputs, composites, (runners, deadline), streams),
        }
    }
}

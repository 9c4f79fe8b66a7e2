//! `composition render`: what the control plane would do about a composite resource.

mod changes;
mod claim;
mod inputs;
mod many;
mod nested;
mod one;
mod owned;
mod reach;
mod shares;
mod stable;
mod watch;
mod world;

use std::path::PathBuf;

use anyhow::Result;
use biplane_function::Registry;
use biplane_model::{Object, Value};
use clap::{ArgAction, Args};
use tokio::runtime::Runtime;

use super::engine::{Engine, What};
use super::flags::{EngineFlags, FunctionFlags, OutputFlags, OutputFormat};
use super::interrupt::Interrupted;
use super::load::Loader;
use super::runners::Runners;
use super::watch::{Again as _, watch as watching};
use super::{asynchronous, print, start};
use crate::cli::{Exit, USAGE_ERROR, values};
use crate::streams::Streams;
pub(super) use inputs::Inputs;

const EXAMPLES: &str = "\
Examples:
  # What a composite resource becomes
  biplane render xr.yaml composition.yaml functions.yaml

  # With resources that exist already, and what functions had to say
  biplane render xr.yaml composition.yaml functions.yaml -o observed.yaml -r

  # Many composite resources of one kind
  biplane render composition.yaml functions.yaml --xrs xrs/

  # Round after round until nothing changes, with composite resources that are composed of others
  biplane render xr.yaml composition.yaml functions.yaml --until-stable --compositions apis/

  # Again whenever one of the files changes
  biplane render xr.yaml composition.yaml functions.yaml --watch

  # What a claim becomes
  biplane render claim.yaml composition.yaml functions.yaml --xrd definition.yaml

  # Without a functions file, when every function is one that runs in process
  biplane render xr.yaml composition.yaml";

/// Show what the control plane would do about a composite resource
///
/// Prints the composite resource as it would become and the resources that it would be composed of.
/// Functions that biplane brings along run in process; no cluster and no Docker is needed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct CompositionRender {
    /// The composite resource (XR), a YAML file; or a claim, with --xrd
    #[arg(value_name = "COMPOSITE-RESOURCE", value_parser = values::existing_file)]
    composite_resource: PathBuf,
    /// The Composition, a YAML file; must be of mode Pipeline
    #[arg(value_parser = values::existing_file, required_unless_present = "xrs")]
    composition: Option<PathBuf>,
    /// The Functions, a YAML file or a directory of such; optional in a project, and
    /// when all of them run in process
    #[arg(value_parser = values::path)]
    functions: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    function: FunctionFlags,
    /// Resources that functions may require (deprecated, use --required-resources)
    #[arg(long, value_name = "PATH", action = ArgAction::Append, help_heading = "Functions")]
    extra_resources: Vec<String>,
    /// OpenAPI v3 documents that functions may require schemas of, a directory of JSON files
    #[arg(short = 's', long, value_name = "DIR", value_parser = values::path,
        help_heading = "Functions")]
    required_schemas: Option<PathBuf>,
    /// Composed resources that exist, from a file or a directory
    #[arg(short = 'o', long, value_name = "PATH", value_parser = values::path)]
    observed_resources: Option<PathBuf>,
    /// The XR's CompositeResourceDefinition: its defaults are applied, its layout is used, its
    /// claims are known; repeatable, for composite resources that are composed too
    #[arg(long, value_name = "PATH", value_parser = values::existing_file,
        action = ArgAction::Append)]
    xrd: Vec<PathBuf>,
    /// Render every XR of a file or a directory; leave out the composite resource argument
    #[arg(long, value_name = "PATH", value_parser = values::path)]
    xrs: Option<PathBuf>,
    /// Apply the result and render again until nothing changes; says on stderr what each round did
    #[arg(long, help_heading = "Rounds")]
    until_stable: bool,
    /// How many rounds it may take to settle
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until_stable",
        value_parser = values::count::<u32>, help_heading = "Rounds")]
    max_rounds: u32,
    /// Compositions, and definitions, of composite resources that are composed: a file, or a
    /// directory with everything below it; repeatable
    #[arg(long, value_name = "PATH", requires = "until_stable", value_parser = values::path,
        action = ArgAction::Append, help_heading = "Rounds")]
    compositions: Vec<PathBuf>,
    /// Render again whenever one of the files changes, until interrupted
    #[arg(long, help_heading = "Rounds")]
    watch: bool,
    #[command(flatten)]
    output: OutputFlags,
    /// Print the whole XR: what it would become over what it is
    #[arg(short = 'x', long, help_heading = "Output")]
    include_full_xr: bool,
}

/// Takes lines for stderr.
pub(super) type Say<'a> = &'a mut dyn FnMut(&str);

impl CompositionRender {
    /// Lets functions that are not in the box run in process.
    pub fn link(&mut self, own: &Registry) {
        self.function.own = own.clone();
    }

    /// Renders and prints.
    pub fn run(&self, streams: &mut Streams<'_>) -> Result<()> {
        self.check_flags()?;
        if self.watch {
            return watching(self, streams);
        }
        let mut runners = Runners::none(&streams.progress)?;
        let (mut inputs, composites) = self.load(&mut Loader::new(streams))?;
        // Functions must be gone before what they run on.
        let runtime = asynchronous(composites.len() > 1)?;
        let provide = |inputs: &Inputs, streams: &mut Streams<'_>| {
            runners = runtime.block_on(self.start(inputs, runners.clone(), streams))?;
            Ok(runners.clone())
        };
        let rendered = self.render_reached(&runtime, &mut inputs, &composites, provide, streams);
        let write = || print::write(&rendered?, self.output.output_format, streams.stdout);
        let (printed, runners) = runners.while_stuck(&runtime, write);
        runtime.block_on(runners.end());
        printed
    }

    async fn start(
        &self,
        inputs: &Inputs,
        up: Runners,
        streams: &mut Streams<'_>,
    ) -> Result<Runners> {
        let _waiting = streams.progress.wait(|| "functions to start".to_owned());
        let engine = match self.output.output_format {
            OutputFormat::V1 => Engine::BuiltIn,
            _ => Engine::of(&self.engine, What::Composite, &inputs.functions),
        };
        let (functions, pipeline) = (&inputs.functions, &inputs.pipelines());
        let time = (self.engine.timeout, inputs.spent);
        let runners = start::start(functions, pipeline, &self.function, &engine, time, up, streams);
        runners.await.map_err(|error| match self.output.output_format {
            // There, to start functions was part of it.
            OutputFormat::V1 if !error.is::<Interrupted>() => {
                error.context(What::Composite.attempted())
            }
            _ => error,
        })
    }

    /// Refuses what the parser of the command line cannot know to be wrong.
    fn check_flags(&self) -> Result<(), Exit> {
        let refuse = |text: &str| Err(Exit { code: USAGE_ERROR, text: text.to_owned() });
        if self.until_stable && self.output.output_format == OutputFormat::V1 {
            return refuse("--until-stable and --output-format=v1 can't be used together");
        }
        let engine = self.engine.chosen_with();
        if let Some(flag) = engine.filter(|_| self.output.output_format == OutputFormat::V1) {
            return refuse(&format!(
                "{flag} and --output-format=v1 can't be used together: what the v1 line printed came of no engine"
            ));
        }
        self.files()?;
        if self.watch { self.sources().check() } else { Ok(()) }
    }

    /// What a line about a composite resource begins with, where there may be several.
    fn whose(&self, composite: &Object) -> String {
        if self.xrs.is_some() { format!("{}: ", composite.id()) } else { String::new() }
    }

    /// The documents of all composite resources, in their order. Of what is said about one alone,
    /// the first lines have been said before.
    fn render_each(
        &self,
        runtime: &Runtime,
        inputs: &Inputs,
        composites: &[Object],
        runners: &Runners,
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
                runtime.block_on(self.render(inputs.of(composite.clone()), runners, &mut say))
            }
            _ => self.render_all(runtime, inputs, composites, runners, streams),
        }
    }
}

//! `composition render`: shows what the control plane would do with a composite resource.

use std::path::PathBuf;

use anyhow::Result;
use biplane_console::Streams;
use biplane_manifest::Line;
use biplane_render::composition::{self, Composites, UntilStable};
use biplane_render::{Format, OutputOptions};
use biplane_runtime::Subject;
use clap::{ArgAction, Args, ValueEnum};

use super::flags::{EngineFlags, FunctionFlags, OutputFlags};
use super::{check_inspect, check_watch, end_of_watch, refuse, report_emissions};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::values::{self, Locations};

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
#[allow(clippy::struct_excessive_bools)] // one for each flag
pub struct CompositionRender {
    /// The composite resource (XR), a YAML file; or a claim, with --xrd
    #[arg(value_name = "COMPOSITE-RESOURCE", value_parser = values::existing_file)]
    composite_resource: PathBuf,
    /// The Composition, a YAML file; must be of mode Pipeline, or with --output-format=v1 also of
    /// mode Resources, which is deprecated
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
    /// Give Compositions an environment from EnvironmentConfigs among the required resources, as
    /// v1.17 did; on by itself if the Composition has `spec.environment`
    #[arg(long)]
    enable_environment_configs: bool,
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
    /// How to print documents: v2 as YAML, v1 as the v1 line printed them, json one per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::V2,
        help_heading = "Output")]
    output_format: OutputFormat,
    /// Print the whole XR: what it would become over what it is
    #[arg(short = 'x', long, help_heading = "Output")]
    include_full_xr: bool,
    /// When to warn on stderr of mistakes in the inputs of functions, with their place in the Composition:
    /// always, never, or by default if it is a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Locations::Auto,
        hide_possible_values = true, help_heading = "Output")]
    locations: Locations,
}

/// Which documents are printed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// YAML, the documents of the current line.
    V2,
    /// YAML, the documents that the v1 line printed.
    V1,
    /// One line of JSON per document.
    Json,
}

impl OutputFormat {
    fn line_and_format(self) -> (Line, Format) {
        match self {
            Self::V2 => (Line::V2, Format::Yaml),
            Self::V1 => (Line::V1, Format::Yaml),
            Self::Json => (Line::V2, Format::Json),
        }
    }
}

impl CompositionRender {
    /// Renders and prints.
    pub fn run(&self, environment: &Environment, streams: &mut Streams<'_>) -> Result<()> {
        let render = self.plan(environment)?;
        if !self.watch {
            let rendered = render.run(streams);
            report_emissions(render.function.inspection.as_ref(), streams);
            return rendered;
        }
        check_watch(render.reads_stdin())?;
        Ok(end_of_watch(render.watch(streams)?)?)
    }

    /// Turns the flags into a render in an environment.
    fn plan(&self, environment: &Environment) -> Result<composition::CompositionRender, Exit> {
        let (line, format) = self.output_format.line_and_format();
        if line == Line::V1 {
            self.check_v1()?;
        }
        // Without a composite resource argument, the other arguments move up by one.
        let (composites, composition, functions) = match (&self.xrs, &self.composition) {
            (None, Some(composition)) => {
                let composite = self.composite_resource.clone();
                (Composites::One(composite), composition, self.functions.clone())
            }
            (Some(xrs), functions) if self.functions.is_none() => {
                (Composites::Many(xrs.clone()), &self.composite_resource, functions.clone())
            }
            _ => return refuse("--xrs takes the place of the composite resource argument"),
        };
        check_inspect(&self.function, &self.engine)?;
        if let (true, Some(flag)) = (self.enable_environment_configs, self.engine.chosen_with()) {
            return refuse(format!(
                "--enable-environment-configs and {flag} can't be used together"
            ));
        }
        let until_stable = self.until_stable.then(|| UntilStable {
            max_rounds: self.max_rounds,
            compositions: self.compositions.clone(),
        });
        Ok(composition::CompositionRender {
            composites,
            composition: composition.clone(),
            functions,
            engine: self.engine.engine(Subject::Composite),
            timeout: self.engine.timeout,
            function: self.function.options(self.required_schemas.as_ref(), environment),
            extra_resources: values::paths(&self.extra_resources),
            observed_resources: self.observed_resources.clone(),
            definitions: self.xrd.clone(),
            environments: self.enable_environment_configs,
            until_stable,
            output: OutputOptions { line, format, ..self.output.options() },
            include_full_xr: self.include_full_xr,
            advice: self.locations.wanted(),
        })
    }

    /// Rejects flags that Crossplane v1 does not support.
    fn check_v1(&self) -> Result<(), Exit> {
        if self.until_stable {
            return refuse("--until-stable and --output-format=v1 can't be used together");
        }
        if self.function.inspect.is_some() {
            return refuse("--inspect and --output-format=v1 can't be used together");
        }
        match self.engine.chosen_with() {
            Some(flag) => refuse(format!(
                "{flag} and --output-format=v1 can't be used together: what the v1 line printed came of no engine"
            )),
            None => Ok(()),
        }
    }
}

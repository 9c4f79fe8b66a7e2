//! `operation render`: shows what the control plane would do with an Operation.

use std::path::PathBuf;

use anyhow::Result;
use biplane_console::Streams;
use biplane_render::{Format, OutputOptions, operation};
use biplane_runtime::Subject;
use clap::{Args, ValueEnum};

use super::flags::{EngineFlags, FunctionFlags, OutputFlags};
use super::{check_inspect, check_watch, end_of_watch, report_emissions};
use crate::environment::Environment;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  # What an Operation would do
  biplane operation render operation.yaml functions.yaml

  # What a WatchOperation would do about an object
  biplane operation render watchoperation.yaml functions.yaml -w object.yaml

  # Again whenever one of the files changes
  biplane operation render operation.yaml functions.yaml --watch";

/// Show what the control plane would do about an Operation
///
/// Prints the Operation as it would become and the resources that it would apply. A CronOperation
/// or WatchOperation is rendered as the Operation that it would make.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct OperationRender {
    /// The Operation, CronOperation or WatchOperation, a YAML file
    #[arg(value_parser = values::existing_file)]
    operation: PathBuf,
    /// The Functions, a YAML file or a directory of such; optional in a project, and
    /// when all of them run in process
    #[arg(value_parser = values::path)]
    functions: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    function: FunctionFlags,
    /// OpenAPI v3 documents that functions may require schemas of, a directory of JSON files
    #[arg(long, value_name = "DIR", value_parser = values::path, help_heading = "Functions")]
    required_schemas: Option<PathBuf>,
    /// The object that a WatchOperation has seen change, a YAML file
    #[arg(short = 'w', long, value_name = "PATH", value_parser = values::existing_file)]
    watched_resource: Option<PathBuf>,
    /// Render again whenever one of the files changes, until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    output: OutputFlags,
    /// How to print documents: v2 as YAML, json one per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::V2,
        help_heading = "Output")]
    output_format: OutputFormat,
    /// Print the spec as it was given
    #[arg(short = 'o', long, help_heading = "Output")]
    include_full_operation: bool,
}

/// How documents are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// YAML.
    V2,
    /// One line of JSON per document.
    Json,
}

impl OperationRender {
    /// Renders and prints.
    pub fn run(&self, environment: &Environment, streams: &mut Streams<'_>) -> Result<()> {
        check_inspect(&self.function, &self.engine)?;
        let render = self.plan(environment);
        if !self.watch {
            let rendered = render.run(streams);
            report_emissions(render.function.inspection.as_ref(), streams);
            return rendered;
        }
        check_watch(render.reads_stdin())?;
        Ok(end_of_watch(render.watch(streams)?)?)
    }

    /// Turns the flags into a render in an environment.
    fn plan(&self, environment: &Environment) -> operation::OperationRender {
        let format = match self.output_format {
            OutputFormat::V2 => Format::Yaml,
            OutputFormat::Json => Format::Json,
        };
        operation::OperationRender {
            operation: self.operation.clone(),
            functions: self.functions.clone(),
            engine: self.engine.engine(Subject::Operation),
            timeout: self.engine.timeout,
            function: self.function.options(self.required_schemas.as_ref(), environment),
            watched_resource: self.watched_resource.clone(),
            output: OutputOptions { format, ..self.output.options() },
            include_full_operation: self.include_full_operation,
        }
    }
}

//! `convert`: converts objects to newer kinds and features.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use biplane_console::{Deadline, Streams, files};
use biplane_convert::{ENVIRONMENT_CONFIGS, Functions, PATCH_AND_TRANSFORM};
use biplane_engine::{Clock as _, SystemClock};
use clap::{Args, Subcommand};

use crate::values::{self, STDIN, reason};

pub const EXAMPLES: &str = "\
Examples:
  # From resources and patches to a pipeline
  biplane convert pipeline-composition composition.yaml -o pipeline-composition.yaml

  # From the environment of a Composition to a function
  biplane convert composition-environment composition.yaml -o composition-environment.yaml

  # From a ControllerConfig to a DeploymentRuntimeConfig
  biplane convert deployment-runtime cc.yaml -o drc.yaml";
pub const COMPOSITION_EXAMPLES: &str = "\
Examples:
  # From the environment of a Composition to a function
  biplane composition convert composition-environment composition.yaml";
const ENVIRONMENT_EXAMPLES: &str = "\
Examples:
  # To another file
  biplane convert composition-environment composition.yaml -o composition-environment.yaml

  # Call a Function that has another name
  biplane convert composition-environment composition.yaml --function-environment-configs-ref=my-environments

  # From standard input to standard output
  cat composition.yaml | biplane convert composition-environment";
const PIPELINE_EXAMPLES: &str = "\
Examples:
  # To another file
  biplane convert pipeline-composition composition.yaml -o pipeline-composition.yaml

  # Call a Function that has another name
  biplane convert pipeline-composition composition.yaml --function-patch-and-transform-ref=my-patches

  # From standard input to standard output
  cat composition.yaml | biplane convert pipeline-composition";
const RUNTIME_EXAMPLES: &str = "\
Examples:
  # To another file
  biplane convert deployment-runtime cc.yaml -o drc.yaml

  # From standard input to standard output
  cat cc.yaml | biplane convert deployment-runtime";

/// Convert objects to newer kinds and features
#[derive(Debug, Subcommand)]
pub enum Convert {
    DeploymentRuntime(DeploymentRuntime),
    PipelineComposition(PipelineComposition),
    CompositionEnvironment(CompositionEnvironment),
}

/// Convert Compositions to newer features
#[derive(Debug, Subcommand)]
pub enum ConvertComposition {
    CompositionEnvironment(CompositionEnvironment),
    // Crossplane has it under `beta convert` alone.
    #[command(hide = true)]
    PipelineComposition(PipelineComposition),
}

/// Convert the environment of a Composition to a step that calls function-environment-configs
///
/// The Composition must have a pipeline. The new step comes first. If there is nothing to convert, nothing is written. If the
/// file has comments, they are kept, with the order of what does not change.
#[derive(Debug, Args)]
#[command(after_help = ENVIRONMENT_EXAMPLES)]
pub struct CompositionEnvironment {
    #[command(flatten)]
    files: Files,
    /// The name of the Function that reads environments
    #[arg(long, value_name = "NAME", default_value = ENVIRONMENT_CONFIGS)]
    function_environment_configs_ref: String,
}

/// Convert a Composition with resources and patches to one with a pipeline
///
/// The pipeline calls function-patch-and-transform, and function-environment-configs if the Composition has an environment.
/// If it has a pipeline already, nothing is written. If the file has comments, they are kept, with the order of what does not
/// change.
#[derive(Debug, Args)]
#[command(after_help = PIPELINE_EXAMPLES)]
pub struct PipelineComposition {
    #[command(flatten)]
    files: Files,
    /// The name of the Function that patches and transforms
    #[arg(long, value_name = "NAME", default_value = PATCH_AND_TRANSFORM)]
    function_patch_and_transform_ref: String,
    /// The name of the Function that reads environments
    #[arg(long, value_name = "NAME", default_value = ENVIRONMENT_CONFIGS)]
    function_environment_configs_ref: String,
}

/// Convert a ControllerConfig to a DeploymentRuntimeConfig
#[derive(Debug, Args)]
#[command(after_help = RUNTIME_EXAMPLES)]
pub struct DeploymentRuntime {
    #[command(flatten)]
    files: Files,
}

#[derive(Debug, Args)]
struct Files {
    /// The file to convert; without it or with -, standard input
    #[arg(default_value = STDIN, value_parser = values::path)]
    input_file: PathBuf,
    /// The file to write, instead of standard output
    #[arg(long, short, value_name = "PATH", value_parser = values::path)]
    output_file: Option<PathBuf>,
}

impl From<ConvertComposition> for Convert {
    fn from(convert: ConvertComposition) -> Self {
        match convert {
            ConvertComposition::CompositionEnvironment(convert) => {
                Self::CompositionEnvironment(convert)
            }
            ConvertComposition::PipelineComposition(convert) => Self::PipelineComposition(convert),
        }
    }
}

impl Convert {
    /// Converts one object.
    pub fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        match self {
            Self::CompositionEnvironment(CompositionEnvironment {
                files,
                function_environment_configs_ref: function,
            }) => files
                .convert(streams, |text| biplane_convert::composition_environment(text, &function)),
            Self::DeploymentRuntime(DeploymentRuntime { files }) => {
                let now = biplane_model::condition::seconds(SystemClock.now());
                files.convert(streams, |text| {
                    biplane_convert::deployment_runtime(text, &now).map(Some)
                })
            }
            Self::PipelineComposition(PipelineComposition {
                files,
                function_patch_and_transform_ref: patch_and_transform,
                function_environment_configs_ref: environment_configs,
            }) => files.convert(streams, |text| {
                let functions = Functions {
                    patch_and_transform: &patch_and_transform,
                    environment_configs: &environment_configs,
                };
                biplane_convert::pipeline_composition(text, functions)
            }),
        }
    }
}

impl Files {
    /// Reads the input, and writes what it becomes unless that is nothing.
    fn convert(
        &self,
        streams: &mut Streams<'_>,
        convert: impl FnOnce(&[u8]) -> Result<Option<String>>,
    ) -> Result<()> {
        let text = self.read(streams).context("Unable to read inputFile")?;
        let Some(converted) = convert(&text)? else {
            streams.say("No changes needed.");
            return Ok(());
        };
        match &self.output_file {
            Some(path) => write(path, &converted),
            None => streams
                .stdout
                .write_all(converted.as_bytes())
                .and_then(|()| streams.stdout.flush())
                .context("Writing YAML file content"),
        }
    }

    fn read(&self, streams: &mut Streams<'_>) -> Result<Vec<u8>> {
        let never = Deadline::after(Duration::MAX);
        if self.input_file == Path::new(STDIN) {
            let stdin = std::mem::replace(&mut streams.stdin, Box::new(io::empty()));
            return files::read_stream(stdin, never).context("read standard input");
        }
        files::read_named(&self.input_file, never).map_err(|error| {
            let attempted = if self.input_file.is_dir() { "read" } else { "open" };
            anyhow!("{attempted} {}: {}", self.input_file.display(), reason(&error))
        })
    }
}

/// Replaces the content of a file.
fn write(path: &Path, text: &str) -> Result<()> {
    let failed =
        |attempted: &str, error| anyhow!("{attempted} {}: {}", path.display(), reason(&error));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(|error| failed("open", error).context("Unable to open output file"))?;
    file.write_all(text.as_bytes())
        .map_err(|error| failed("write", error).context("Writing YAML file content"))
}

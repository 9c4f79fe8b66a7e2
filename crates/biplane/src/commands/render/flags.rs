//! Flags that both render commands share.

use std::path::PathBuf;
use std::time::Duration;

use biplane_render::{FunctionOptions, OutputOptions};
use biplane_runtime::docker::PullPolicy;
use biplane_runtime::{Engine, EngineOptions, Subject};
use clap::{ArgAction, Args, ValueEnum};

use crate::environment::Environment;
use crate::inspection;
use crate::values;

/// When to pull an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(super) enum Pull {
    /// Whether it is there or not
    Always,
    /// Not even if it is missing
    Never,
    /// If it is missing
    IfNotPresent,
}

/// Which engine renders.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(super) struct EngineFlags {
    /// Render with the engine of this release, from its image
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["crossplane_image", "crossplane_binary"])]
    pub crossplane_version: Option<String>,
    /// Render with the engine of this image
    #[arg(long, value_name = "IMAGE", conflicts_with = "crossplane_binary")]
    pub crossplane_image: Option<String>,
    /// Render with this binary, which must know `internal render`, instead of the engine built in
    #[arg(long, visible_alias = "engine", value_name = "PATH", value_parser = values::existing_file)]
    pub crossplane_binary: Option<PathBuf>,
    /// Docker network of the engine's container
    #[arg(long, value_name = "NAME", conflicts_with = "crossplane_binary")]
    pub crossplane_docker_network: Option<String>,
    /// When to pull the engine's image: Always, Never, or by default IfNotPresent
    #[arg(
        long,
        value_name = "POLICY",
        value_enum,
        hide_possible_values = true,
        conflicts_with = "crossplane_binary"
    )]
    pub crossplane_pull_policy: Option<Pull>,
    /// How long to run before timing out, everything included
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::duration)]
    pub timeout: Duration,
}

impl EngineFlags {
    /// The flag, if any, that selects another engine than the built-in one.
    pub(super) fn chosen_with(&self) -> Option<&'static str> {
        let flags = [
            (self.crossplane_version.is_some(), "--crossplane-version"),
            (self.crossplane_image.is_some(), "--crossplane-image"),
            (self.crossplane_binary.is_some(), "--crossplane-binary"),
            (self.crossplane_docker_network.is_some(), "--crossplane-docker-network"),
            (self.crossplane_pull_policy.is_some(), "--crossplane-pull-policy"),
        ];
        flags.into_iter().find_map(|(is_set, flag)| is_set.then_some(flag))
    }

    /// The engine that the flags select.
    pub(super) fn engine(&self, subject: Subject) -> Engine {
        let pull = self.crossplane_pull_policy.map(|policy| match policy {
            Pull::Always => PullPolicy::Always,
            Pull::Never => PullPolicy::Never,
            Pull::IfNotPresent => PullPolicy::IfNotPresent,
        });
        let options = EngineOptions {
            version: self.crossplane_version.clone(),
            image: self.crossplane_image.clone(),
            binary: self.crossplane_binary.clone(),
            network: self.crossplane_docker_network.clone(),
            pull,
        };
        Engine::choose(&options, subject)
    }
}

/// What functions are, where they run and what they are given.
#[derive(Debug, Args)]
#[command(next_help_heading = "Functions")]
pub(super) struct FunctionFlags {
    /// Context for the pipeline: KEY=FILE pairs separated by semicolons, files of YAML or JSON
    #[arg(long, value_name = "KEY=FILE", action = ArgAction::Append, value_parser = values::pairs)]
    pub context_files: Vec<String>,
    /// Context for the pipeline: KEY=VALUE pairs separated by semicolons, values in YAML or JSON;
    /// these win over --context-files
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append, value_parser = values::pairs)]
    pub context_values: Vec<String>,
    /// Secrets that pipeline steps name, from a file or a directory
    #[arg(long, value_name = "PATH", value_parser = values::path)]
    pub function_credentials: Option<PathBuf>,
    /// Set an annotation on every function; repeatable
    #[arg(short = 'a', long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub function_annotations: Vec<String>,
    /// Never run a function in process that does not ask for it
    #[arg(long)]
    pub no_builtin: bool,
    /// Allow functions to be programs on this machine (render.crossplane.io/runtime: Process)
    #[arg(long)]
    pub allow_process: bool,
    /// Resources that functions may require, from a file or a directory; repeatable
    #[arg(short = 'e', long, value_name = "PATH", action = ArgAction::Append)]
    pub required_resources: Vec<String>,
    /// Where to keep what registries say about a project's packages, for some minutes
    #[arg(long, value_name = "DIR", env = "CROSSPLANE_XPKG_CACHE", hide_env_values = true)]
    pub cache_dir: Option<String>,
    /// How many registries are asked, and how many functions started, at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = values::count::<usize>)]
    pub max_concurrency: usize,
    /// The project that functions are taken from when there is no functions argument
    #[arg(short = 'f', long, value_name = "PATH", default_value = "crossplane-project.yaml",
        value_parser = values::path)]
    pub project_file: PathBuf,
    /// Emit what functions are given and what they answer to the Pipeline Inspector at a socket,
    /// without secrets
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true,
        default_missing_value = "", hide_default_value = true)]
    pub inspect: Option<String>,
}

impl FunctionFlags {
    /// Turns the flags into options in an environment. `required_schemas` is a flag of each
    /// command.
    pub(super) fn options(
        &self,
        required_schemas: Option<&PathBuf>,
        environment: &Environment,
    ) -> FunctionOptions {
        let context_files = values::map(&self.context_files).unwrap_or_default();
        let context_files =
            context_files.into_iter().map(|(key, file)| (key, values::at_home(&file))).collect();
        let cache_dir = self.cache_dir.as_ref().filter(|folder| !folder.is_empty());
        FunctionOptions {
            runtime: biplane_runtime::Options {
                registry: biplane_functions::registry().and(&environment.own),
                builtin: !self.no_builtin,
                allow_process: self.allow_process,
                max_concurrency: self.max_concurrency,
                cache_dir: cache_dir.map(PathBuf::from).or_else(|| environment.package_cache()),
                project_file: self.project_file.clone(),
                docker: environment.docker.clone(),
            },
            annotations: values::list(&self.function_annotations),
            context_files,
            context_values: values::map(&self.context_values).unwrap_or_default(),
            credentials: self.function_credentials.clone(),
            required_resources: values::paths(&self.required_resources),
            required_schemas: required_schemas.cloned(),
            inspection: self.inspect.as_ref().map(|socket| {
                let given = Some(socket).filter(|socket| !socket.is_empty());
                let given = given.map(|socket| values::at_home(socket));
                inspection::to_socket(given.or_else(|| environment.inspector_socket.clone()))
            }),
        }
    }
}

/// What is printed, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
#[allow(clippy::struct_excessive_bools)] // each is a flag
pub(super) struct OutputFlags {
    /// Also print the pipeline's context, as a document of kind Context
    #[arg(short = 'c', long)]
    pub include_context: bool,
    /// Also print what functions had to say, as documents of kind Result
    #[arg(short = 'r', long)]
    pub include_function_results: bool,
    /// Say on stderr what would be created, updated and deleted, and what is not ready
    #[arg(long)]
    pub summary: bool,
    /// Say on stderr how long each call of a function took
    #[arg(long)]
    pub timing: bool,
}

impl OutputFlags {
    /// Turns the flags into options. The format is a flag of each command.
    pub(super) fn options(&self) -> OutputOptions {
        OutputOptions {
            context: self.include_context,
            results: self.include_function_results,
            summary: self.summary,
            timing: self.timing,
            ..OutputOptions::default()
        }
    }
}

//! The command tree, and how a command line is parsed, run and turned into an exit code.

mod absent;
mod booleans;
mod maturity;
pub mod usage;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use biplane_console::error::{INTERRUPTED, error_line, error_text};
use biplane_console::streams::PipeWatch;
use biplane_console::{Interrupted, Progress, Stderr, Streams};
use biplane_function::Registry;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::changelogs::ChangeLogs;
use crate::commands::completions::Completions;
use crate::commands::config::ConfigCommand;
use crate::commands::convert::{self, Convert, ConvertComposition};
use crate::commands::core::Core;
use crate::commands::dev::Dev;
use crate::commands::function::{self, Function};
use crate::commands::inspector::Inspector;
use crate::commands::internal::Internal;
use crate::commands::man::Man;
use crate::commands::recorder::RecorderCommand;
use crate::commands::render::{CompositionRender, OperationRender};
use crate::commands::validate::Validate;
use crate::commands::version::Version;
use crate::commands::why::Why;
use crate::config::{self, Config, ConfigError, Features};
use crate::environment::Environment;
use crate::exit::{Exit, USAGE_ERROR};
use biplane_console::Log;

const EXAMPLES: &str = "\
Examples:
  # What a composite resource becomes
  biplane render xr.yaml composition.yaml functions.yaml

  # All about a command
  biplane render --help";
const CHANGE_LOGS_EXAMPLES: &str = "\
Examples:
  # Print what a provider did, as its sidecar
  biplane changelogs serve

  # What failed in the last hour, from a store
  biplane changelogs list --store=recorder.db --failed --since=1h";
const COMPOSITION_EXAMPLES: &str = "\
Examples:
  # What a composite resource becomes
  biplane composition render xr.yaml composition.yaml functions.yaml

  # From the environment of a Composition to a function
  biplane composition convert composition-environment composition.yaml";
const CORE_EXAMPLES: &str = "\
Examples:
  # Prepare a cluster for the control plane
  biplane core init

  # Run the control plane, with the functions in the box in the same process
  biplane core start --package-runtime=Function=InProcess";
const FUNCTION_EXAMPLES: &str = "\
Examples:
  # Serve a function of the box to whoever asks at port 9443
  biplane function serve patch-and-transform --insecure";
const INSPECTOR_EXAMPLES: &str = "\
Examples:
  # Print what pipelines emit, as the sidecar of a control plane
  biplane inspector serve

  # Which runs failed in the last hour, from a store
  biplane inspector runs --store=recorder.db --failed --since=1h

  # Which step set each field of a composed resource
  biplane inspector blame --store=recorder.db Store/north:bucket";
const RECORDER_EXAMPLES: &str = "\
Examples:
  # Store what pipelines emit, as the sidecar of a control plane
  biplane recorder serve --store=/data/recorder.db \\
    --inspector-socket=/var/run/pipeline-inspector/socket";
const OPERATION_EXAMPLES: &str = "\
Examples:
  # What an Operation would do
  biplane operation render operation.yaml functions.yaml";

const RESOURCE_EXAMPLES: &str = "\
Examples:
  # Check resources against the schemas of definitions and packages
  biplane resource validate extensions.yaml resources.yaml";

/// The composition control plane of the Crossplane world.
#[derive(Debug, Parser)]
#[command(name = "biplane", version, args_override_self = true, disable_help_subcommand = true,
    after_help = EXAMPLES)]
struct Cli {
    /// The configuration file, instead of what CROSSPLANE_CONFIG names or the one in the home folder
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Log what is being done to stderr
    #[arg(long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Work with what providers did to the outside world
    #[command(name = "changelogs", subcommand, after_help = CHANGE_LOGS_EXAMPLES)]
    ChangeLogs(ChangeLogs),
    Completions(Completions),
    /// Work with Compositions
    #[command(subcommand, after_help = COMPOSITION_EXAMPLES)]
    Composition(Composition),
    Config(ConfigCommand),
    /// Convert objects to newer kinds and features
    #[command(subcommand, after_help = convert::EXAMPLES)]
    Convert(Convert),
    /// Work with the control plane
    #[command(subcommand, after_help = CORE_EXAMPLES)]
    Core(Core),
    Dev(Dev),
    /// Work with the functions in the box
    #[command(subcommand, after_help = FUNCTION_EXAMPLES)]
    Function(Function),
    /// Work with what pipelines emit
    #[command(subcommand, after_help = INSPECTOR_EXAMPLES)]
    Inspector(Inspector),
    Man(Man),
    /// Work with Operations
    #[command(subcommand, after_help = OPERATION_EXAMPLES)]
    Operation(Operation),
    /// Record what pipelines emit and what providers did
    #[command(subcommand, after_help = RECORDER_EXAMPLES)]
    Recorder(RecorderCommand),
    Render(Box<CompositionRender>),
    /// Work with resources
    #[command(subcommand, after_help = RESOURCE_EXAMPLES)]
    Resource(Resource),
    Validate(Box<Validate>),
    Version(Version),
    Why(Why),
    #[command(subcommand, hide = true)]
    Alpha(Alpha),
    #[command(subcommand, hide = true)]
    Beta(Beta),
    #[command(subcommand, hide = true)]
    Internal(Internal),
}

/// A command that is run in loops, without the others: to build the whole tree takes longer than to
/// render a little.
#[derive(Debug, Parser)]
#[command(name = "biplane", version, args_override_self = true, disable_help_subcommand = true)]
struct SingleCommand<C: Subcommand> {
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[arg(long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: C,
}

#[derive(Debug, Subcommand)]
enum Rendering {
    Render(Box<CompositionRender>),
}

#[derive(Debug, Subcommand)]
enum InternalCommands {
    #[command(subcommand)]
    Internal(Internal),
}

impl From<Rendering> for Command {
    fn from(Rendering::Render(render): Rendering) -> Self {
        Self::Render(render)
    }
}

impl From<InternalCommands> for Command {
    fn from(InternalCommands::Internal(internal): InternalCommands) -> Self {
        Self::Internal(internal)
    }
}

impl<C: Subcommand + Into<Command>> SingleCommand<C> {
    /// Returns `None` if the arguments cannot be parsed. Only the whole tree can report the error.
    fn parse_line(arguments: &[OsString]) -> Option<Cli> {
        let matches = booleans::with_values(Self::command()).try_get_matches_from(arguments);
        let Self { config, verbose, command } = Self::from_arg_matches(&matches.ok()?).ok()?;
        Some(Cli { config, verbose, command: command.into() })
    }
}

#[derive(Debug, Subcommand)]
enum Composition {
    /// Convert Compositions to newer features
    #[command(subcommand, after_help = convert::COMPOSITION_EXAMPLES)]
    Convert(ConvertComposition),
    Render(Box<CompositionRender>),
}

#[derive(Debug, Subcommand)]
enum Operation {
    Render(Box<OperationRender>),
}

#[derive(Debug, Subcommand)]
enum Resource {
    Validate(Box<Validate>),
}

/// Where commands lived before they were promoted.
#[derive(Debug, Subcommand)]
enum Alpha {
    #[command(subcommand)]
    Render(AlphaRender),
}

#[derive(Debug, Subcommand)]
enum AlphaRender {
    Xr(Box<CompositionRender>),
    Op(Box<OperationRender>),
}

/// Where commands lived before they were promoted.
#[derive(Debug, Subcommand)]
enum Beta {
    #[command(subcommand)]
    Convert(Convert),
    Render(Box<CompositionRender>),
    Validate(Box<Validate>),
}

/// The command tree as data, for completions and manual pages. It includes hidden commands and says
/// how stable each command is.
pub fn command() -> clap::Command {
    whole(&Registry::default())
}

/// The same with the user's own functions.
fn whole(own: &Registry) -> clap::Command {
    let all = Features { enable_alpha: true, ..Features::default() };
    maturity::apply(tree(own), all)
}

/// The command tree that help shows.
fn shown(features: Features, own: &Registry) -> clap::Command {
    maturity::apply(tree(own), features)
        .after_help(format!("{EXAMPLES}\n\n{}", maturity::note(features)))
}

fn tree(own: &Registry) -> clap::Command {
    Cli::command().mut_subcommands(|group| match group.get_name() {
        "function" => function::with_own(group, own),
        _ => group,
    })
}

/// The whole program, with the user's own functions in addition to the built-in ones.
pub fn main(own: Registry) -> ExitCode {
    let mut streams = Streams {
        stdin: Box::new(std::io::stdin()),
        stdout: &mut std::io::stdout(),
        stderr: Stderr::of_process(),
        verbose: false,
        progress: Progress::on_terminal(),
    };
    let environment = Environment { own, ..Environment::of_process() };
    ExitCode::from(run_in(std::env::args_os(), &environment, &mut streams))
}

/// Runs one command line, program name first, and returns its exit code.
pub fn run<I, T>(arguments: I, streams: &mut Streams<'_>) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    run_in(arguments, &Environment::of_process(), streams)
}

/// The same in another environment than that of the process.
pub fn run_in<I, T>(arguments: I, environment: &Environment, streams: &mut Streams<'_>) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    crate::values::with_home(environment.home.clone(), || {
        run_line(&arguments, environment, streams)
    })
}

fn run_line(arguments: &[OsString], environment: &Environment, streams: &mut Streams<'_>) -> u8 {
    let (config_file, features) = match configuration(arguments, environment) {
        Ok(found) => found,
        Err(error) => {
            streams.say(&format!("biplane: {error}"));
            return 1;
        }
    };
    let cli = match parse(arguments, features, &environment.own) {
        Ok(cli) => cli,
        Err(error) => return explain(error, arguments, features, &environment.own, streams),
    };
    let log = cli.command.log(cli.verbose);
    let mut stdout = PipeWatch::new(&mut *streams.stdout);
    let mut inner = Streams {
        stdin: std::mem::replace(&mut streams.stdin, Box::new(std::io::empty())),
        stdout: &mut stdout,
        stderr: streams.stderr.clone(),
        verbose: log.is_debug(),
        progress: streams.progress.clone(),
    };
    let ran = log.during(&streams.stderr, &streams.progress, || {
        dispatch(cli.command, config_file.as_deref(), environment, &mut inner)
    });
    match ran {
        Ok(()) => 0,
        // The reader of stdout has closed the pipe.
        Err(_) if stdout.closed => 0,
        Err(error) => {
            if !error.to_string().is_empty() {
                streams.say(&error_text(&error));
            }
            match error.downcast_ref::<Exit>() {
                Some(exit) => exit.code,
                None if error.is::<Interrupted>() => INTERRUPTED,
                None => 1,
            }
        }
    }
}

impl Command {
    /// The log settings of the command.
    fn log(&self, verbose: bool) -> Log {
        match self {
            Self::ChangeLogs(change_logs) => change_logs.log(verbose),
            Self::Core(core) => core.log(verbose),
            Self::Dev(dev) => dev.log(verbose),
            Self::Function(function) => function.log(verbose),
            Self::Inspector(inspector) => inspector.log(verbose),
            Self::Internal(internal) => internal.log(verbose),
            Self::Recorder(recorder) => recorder.log(verbose),
            _ => Log::when_asked(verbose),
        }
    }
}

fn parse(arguments: &[OsString], features: Features, own: &Registry) -> Result<Cli, clap::Error> {
    let alone = match arguments.get(1).and_then(|first| first.to_str()) {
        Some("render") => SingleCommand::<Rendering>::parse_line(arguments),
        Some("internal") => SingleCommand::<InternalCommands>::parse_line(arguments),
        _ => None,
    };
    if let Some(cli) = alone {
        return Ok(cli);
    }
    let matches = booleans::with_values(shown(features, own)).try_get_matches_from(arguments)?;
    Cli::from_arg_matches(&matches)
}

/// The path of the configuration and the features that it enables. Internal commands have no
/// configuration, because a user's display settings must not affect them.
fn configuration(
    arguments: &[OsString],
    environment: &Environment,
) -> Result<(Option<PathBuf>, Features), ConfigError> {
    if arguments.get(1).is_some_and(|first| first == "internal") {
        return Ok((None, Features::default()));
    }
    let path = config::path(config::flag(arguments)?, environment);
    let features = Config::load(path.as_deref())?.features;
    Ok((path, features))
}

fn dispatch(
    command: Command,
    config_file: Option<&Path>,
    environment: &Environment,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    match command {
        Command::Completions(completions) => {
            completions.run(&whole(&environment.own), environment.shell.as_deref(), streams)
        }
        Command::Config(config) => config.run(config_file, streams),
        Command::Convert(convert) | Command::Beta(Beta::Convert(convert)) => convert.run(streams),
        Command::Composition(Composition::Convert(convert)) => Convert::from(convert).run(streams),
        Command::Core(core) => core.run(&environment.own),
        Command::Dev(dev) => dev.run(&environment.own, streams),
        Command::Render(render)
        | Command::Composition(Composition::Render(render))
        | Command::Alpha(Alpha::Render(AlphaRender::Xr(render)))
        | Command::Beta(Beta::Render(render)) => render.run(environment, streams),
        Command::ChangeLogs(change_logs) => change_logs.run(streams),
        Command::Function(function) => function.run(&environment.own),
        Command::Inspector(inspector) => inspector.run(environment, streams),
        Command::Internal(internal) => internal.run(streams),
        Command::Recorder(recorder) => recorder.run(),
        Command::Man(man) => man.run(whole(&environment.own), streams),
        Command::Operation(Operation::Render(render))
        | Command::Alpha(Alpha::Render(AlphaRender::Op(render))) => {
            render.run(environment, streams)
        }
        Command::Validate(validate)
        | Command::Resource(Resource::Validate(validate))
        | Command::Beta(Beta::Validate(validate)) => validate.run(environment, streams),
        Command::Version(version) => version.run(streams),
        Command::Why(why) => why.run(streams),
    }
}

fn explain(
    error: clap::Error,
    arguments: &[OsString],
    features: Features,
    own: &Registry,
    streams: &mut Streams<'_>,
) -> u8 {
    if !error.use_stderr() {
        let help = help(error, arguments, features, own).render();
        let written = write!(streams.stdout, "{help}").and_then(|()| streams.stdout.flush());
        return match written {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                streams.say(&error_line(&format!("cannot write help: {error}")));
                1
            }
            _ => 0,
        };
    }
    if let Some(text) = absent::message(&error, arguments) {
        streams.say(&error_line(&text));
        return USAGE_ERROR;
    }
    let mut tree = shown(features, own);
    tree.build();
    streams.say(&error_line(&usage::message(&error, &tree, arguments)));
    if let Some(usage) = usage::usage(&error, &tree) {
        streams.say(&usage);
    }
    USAGE_ERROR
}

/// The requested help, from the tree whose flags are shown to users.
fn help(
    parsed: clap::Error,
    arguments: &[OsString],
    features: Features,
    own: &Registry,
) -> clap::Error {
    match shown(features, own).try_get_matches_from(arguments) {
        Err(help) if help.kind() == ErrorKind::DisplayHelp => help,
        _ => parsed,
    }
}

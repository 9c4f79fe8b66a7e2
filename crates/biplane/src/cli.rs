//! The command tree, and how a command line becomes an exit code.

pub mod usage;
pub mod values;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::function::Function;
use crate::commands::internal::Internal;
use crate::commands::render::{CompositionRender, Interrupted, OperationRender};
use crate::streams::Streams;

/// Exit code of a mistake on the command line.
pub const USAGE_ERROR: u8 = 80;
/// Exit code of a command that someone stopped.
const INTERRUPTED: u8 = 130;
const PREFIX: &str = "biplane: error: ";

/// The composition control plane of the Crossplane world.
#[derive(Debug, Parser)]
#[command(name = "biplane", version, args_override_self = true, disable_help_subcommand = true)]
struct Cli {
    /// Log what is being done to stderr
    #[arg(long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Work with Compositions
    #[command(subcommand)]
    Composition(Composition),
    /// Work with the functions in the box
    #[command(subcommand)]
    Function(Function),
    /// Work with Operations
    #[command(subcommand)]
    Operation(Operation),
    /// Show what the control plane would do about a composite resource
    Render(Box<CompositionRender>),
    #[command(subcommand, hide = true)]
    Alpha(Alpha),
    #[command(subcommand, hide = true)]
    Beta(Beta),
    #[command(subcommand, hide = true)]
    Internal(Internal),
}

#[derive(Debug, Subcommand)]
enum Composition {
    /// Show what the control plane would do about a composite resource
    Render(Box<CompositionRender>),
}

#[derive(Debug, Subcommand)]
enum Operation {
    /// Show what the control plane would do about an Operation
    Render(Box<OperationRender>),
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
    Render(Box<CompositionRender>),
}

/// A failure that other programs tell by its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Exit {
    /// The exit code.
    pub code: u8,
    /// For people.
    pub text: String,
}

/// The command tree as data: for help, completions and manual pages.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs one command line, program name first, and returns its exit code.
pub fn run<I, T>(arguments: I, streams: &mut Streams<'_>) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let parsed = command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return explain(&error, streams),
    };
    streams.verbose = cli.verbose;
    match dispatch(cli.command, streams) {
        Ok(()) => 0,
        Err(error) => {
            streams.say(&error_line(format!("{error:#}").trim_end_matches('\n')));
            match error.downcast_ref::<Exit>() {
                Some(exit) => exit.code,
                None if error.is::<Interrupted>() => INTERRUPTED,
                None => 1,
            }
        }
    }
}

fn dispatch(command: Command, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    match command {
        Command::Render(render)
        | Command::Composition(Composition::Render(render))
        | Command::Alpha(Alpha::Render(AlphaRender::Xr(render)))
        | Command::Beta(Beta::Render(render)) => render.run(streams),
        Command::Function(function) => function.run(),
        Command::Internal(internal) => internal.run(streams),
        Command::Operation(Operation::Render(render))
        | Command::Alpha(Alpha::Render(AlphaRender::Op(render))) => render.run(streams),
    }
}

fn explain(error: &clap::Error, streams: &mut Streams<'_>) -> u8 {
    if !error.use_stderr() {
        // Help was asked for.
        let _ = write!(streams.stdout, "{}", error.render());
        return 0;
    }
    streams.say(&error_line(&usage::message(error)));
    if let Some(usage) = usage::usage(error) {
        streams.say(&usage);
    }
    USAGE_ERROR
}

/// Later lines stand below the first.
fn error_line(message: &str) -> String {
    let indent = format!("\n{}", " ".repeat(PREFIX.len()));
    format!("{PREFIX}{}", message.replace('\n', &indent))
}

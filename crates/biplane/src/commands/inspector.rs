//! `inspector`: receives what pipelines emit, and answers questions about it.

mod at;
mod compare;
mod export;
mod import;
mod replay;
mod runs;
mod serve;
mod warnings;

use anyhow::Result;
use biplane_console::{Log, Streams};
use clap::Subcommand;

use crate::environment::Environment;

pub(super) use self::import::ImportFlags;
pub(super) use self::runs::{One, PERIOD};

/// Work with what pipelines emit
#[derive(Debug, Subcommand)]
pub enum Inspector {
    At(at::At),
    Blame(compare::Blame),
    Compare(compare::Compare),
    Diff(compare::Diff),
    Export(export::Export),
    Import(import::Import),
    Replay(replay::Replay),
    Run(runs::Run),
    Runs(runs::Runs),
    Serve(serve::Serve),
    Steps(runs::Steps),
    Warnings(warnings::Warnings),
}

impl Inspector {
    /// The log settings of the command.
    pub fn log(&self, verbose: bool) -> Log {
        match self {
            Self::Serve(serve) => serve.log(verbose),
            _ => Log::when_asked(verbose),
        }
    }

    /// Runs the command.
    pub fn run(self, environment: &Environment, streams: &mut Streams<'_>) -> Result<()> {
        match self {
            Self::At(at) => at.run(streams),
            Self::Blame(blame) => blame.run(streams),
            Self::Compare(compare) => compare.run(streams),
            Self::Diff(diff) => diff.run(streams),
            Self::Export(export) => export.run(environment, streams),
            Self::Import(import) => import.run(streams),
            Self::Replay(replay) => replay.run(environment, streams),
            Self::Run(run) => run.run(streams),
            Self::Runs(runs) => runs.run(streams),
            Self::Serve(serve) => serve.run(),
            Self::Steps(steps) => steps.run(streams),
            Self::Warnings(warnings) => warnings.run(streams),
        }
    }
}

//! `changelogs`: receives what providers did, and answers questions about it.

mod import;
mod list;
mod serve;

use anyhow::Result;
use biplane_console::{Log, Streams};
use clap::Subcommand;

/// Work with what providers did to the outside world
#[derive(Debug, Subcommand)]
pub enum ChangeLogs {
    Follow(list::Follow),
    Import(import::Import),
    List(list::List),
    Serve(serve::Serve),
    Show(list::Show),
    Verify(list::Verify),
}

impl ChangeLogs {
    /// The log settings of the command.
    pub fn log(&self, verbose: bool) -> Log {
        match self {
            Self::Serve(serve) => serve.log(verbose),
            _ => Log::when_asked(verbose),
        }
    }

    /// Runs the command.
    pub fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        match self {
            Self::Follow(follow) => follow.run(streams),
            Self::Import(import) => import.run(streams),
            Self::List(list) => list.run(streams),
            Self::Serve(serve) => serve.run(),
            Self::Show(show) => show.run(streams),
            Self::Verify(verify) => verify.run(streams),
        }
    }
}

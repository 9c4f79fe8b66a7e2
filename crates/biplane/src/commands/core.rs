//! `core`: the control plane on a Kubernetes cluster.

mod flags;
mod hooks;
pub mod init;
mod runtime;
pub mod start;

use biplane_console::Log;
use biplane_console::logging::Format;
use biplane_function::Registry;
use clap::Subcommand;
use tracing_subscriber::filter::LevelFilter;

use init::Init;
use start::Start;

/// Work with the control plane
#[derive(Debug, Subcommand)]
pub enum Core {
    Init(Box<Init>),
    Start(Box<Start>),
}

impl Core {
    /// The log settings of the command. Debug logs are human-readable lines; otherwise lines are
    /// JSON.
    pub fn log(&self, verbose: bool) -> Log {
        let debug = match self {
            Self::Init(init) => init.debug,
            Self::Start(start) => start.debug,
        };
        if verbose || debug {
            Log { level: LevelFilter::DEBUG, format: Format::Text }
        } else {
            Log { level: LevelFilter::INFO, format: Format::Json }
        }
    }

    /// Runs the command.
    pub fn run(self, own: &Registry) -> anyhow::Result<()> {
        match self {
            Self::Init(init) => init.run(),
            Self::Start(start) => start.run(own),
        }
    }
}

//! `core`: the control plane on a Kubernetes cluster.

pub mod init;

use biplane_console::Log;
use biplane_console::logging::Format;
use clap::Subcommand;
use tracing_subscriber::filter::LevelFilter;

use init::Init;

/// Work with the control plane
#[derive(Debug, Subcommand)]
pub enum Core {
    Init(Box<Init>),
}

impl Core {
    /// The log settings of the command. Debug logs are human-readable lines; otherwise lines are
    /// JSON.
    pub fn log(&self, verbose: bool) -> Log {
        let debug = match self {
            Self::Init(init) => init.debug,
        };
        if verbose || debug {
            Log { level: LevelFilter::DEBUG, format: Format::Text }
        } else {
            Log { level: LevelFilter::INFO, format: Format::Json }
        }
    }

    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Init(init) => init.run(),
        }
    }
}

//! `core`: the control plane on a cluster.

mod flags;
mod runtime;
mod start;

use biplane_console::Log;
use biplane_function::Registry;
use clap::Subcommand;

/// Run a control plane on Kubernetes
#[derive(Debug, Subcommand)]
pub enum Core {
    /// Run the control plane
    Start(Box<start::Start>),
}

impl Core {
    /// The log settings of the command.
    pub fn log(&self, verbose: bool) -> Log {
        let Self::Start(start) = self;
        start.log(verbose)
    }

    /// Runs the command.
    pub fn run(self, own: &Registry) -> anyhow::Result<()> {
        let Self::Start(start) = self;
        start.run(own)
    }
}

//! `version`: which release this is.

use anyhow::{Context as _, Result, bail};
use clap::Args;

use biplane_console::Streams;

const EXAMPLES: &str = "\
Examples:
  # Which release this program is
  biplane version --client";

/// Print the version of this program
///
/// The version of the control plane in a cluster cannot be asked for yet: without --client the
/// command prints what it knows and fails.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Version {
    /// Print the version of this program only, which needs no cluster
    #[arg(long)]
    client: bool,
}

impl Version {
    /// Prints.
    pub fn run(&self, streams: &mut Streams<'_>) -> Result<()> {
        writeln!(streams.stdout, "Client Version: v{}", env!("CARGO_PKG_VERSION"))
            .context("cannot write version")?;
        if self.client {
            return Ok(());
        }
        bail!(
            "unable to get crossplane version: clusters cannot be asked yet; pass --client for the version of this program"
        )
    }
}

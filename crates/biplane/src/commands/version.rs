//! `version`: prints the version, and the Crossplane releases that it is compatible with.

use anyhow::{Context as _, Result, bail};
use clap::Args;

use biplane_console::Streams;

const EXAMPLES: &str = "\
Examples:
  # Which release this program is
  biplane version --client";

/// The Crossplane releases whose behaviour is recorded in `tests/conformance` and compared with.
pub const COMPATIBLE_WITH: [(&str, &str); 3] =
    [("Crossplane", "v2.4"), ("its command line", "v2.6"), ("render of the v1 line", "v1.20")];

/// Print the version of this program
///
/// The releases of Crossplane that it is compatible with are printed to stderr, so that scripts find on stdout
/// what they know from upstream. The version of the control plane in a cluster cannot be asked for yet: without
/// --client the command prints what it knows and fails.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Version {
    /// Print the version of this program only, which needs no cluster
    #[arg(long)]
    client: bool,
}

impl Version {
    /// Prints the version.
    pub fn run(&self, streams: &mut Streams<'_>) -> Result<()> {
        writeln!(streams.stdout, "Client Version: v{}", env!("CARGO_PKG_VERSION"))
            .and_then(|()| streams.stdout.flush())
            .context("cannot write version")?;
        streams.say(&compatible_with());
        if self.client {
            return Ok(());
        }
        bail!(
            "unable to get crossplane version: clusters cannot be asked yet; pass --client for the version of this program"
        )
    }
}

/// The line about compatible releases.
pub fn compatible_with() -> String {
    let all: Vec<_> =
        COMPATIBLE_WITH.iter().map(|(what, version)| format!("{what} {version}")).collect();
    format!("Compatible with: {}", all.join(", "))
}

//! `changelogs import`: stores what the sidecars of providers printed.

use anyhow::Result;
use biplane_console::Streams;
use clap::Args;

use crate::commands::inspector::ImportFlags;

const EXAMPLES: &str = "\
Examples:
  # What the sidecar of a provider printed
  kubectl -n crossplane-system logs deploy/provider-sql -c changelogs-sidecar > changes.log
  biplane changelogs import changes.log --store=recorder.db";

/// Store change log entries that a sidecar printed
///
/// Reads the lines of `changelogs serve` and of the reference sidecar. Values of Secrets in snapshots
/// are redacted before anything is stored. An entry that is in the store already is not stored again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    #[command(flatten)]
    flags: ImportFlags,
}

impl Import {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        self.flags.run(streams)
    }
}

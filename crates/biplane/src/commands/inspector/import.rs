//! `inspector import`: stores what sidecars printed.

use std::path::PathBuf;

use anyhow::Result;
use biplane_console::Streams;
use biplane_proto::redact::Mode;
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::stored::{self, ImportOptions};
use clap::Args;

use crate::commands::records::{Output, Source, failed, now, read_files, usage};
use crate::commands::sidecar;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  # What the reference sidecar printed, as JSON or text
  kubectl -n crossplane-system logs deploy/crossplane -c inspector-sidecar > emissions.log
  biplane inspector import emissions.log --store=recorder.db";

/// Store what a sidecar printed
///
/// Reads the lines of `inspector serve` and of the reference sidecar, in both formats. Secrets are
/// redacted before anything is stored.
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

/// What is imported, and where to.
#[derive(Debug, Args)]
pub(in crate::commands) struct ImportFlags {
    /// The files; - is standard input
    #[arg(value_name = "FILE", required = true, value_parser = values::path)]
    files: Vec<PathBuf>,
    /// The cluster that they are about, if the store has several
    #[arg(long, value_name = "NAME", default_value = "")]
    cluster: String,
    /// The name under which they are stored
    #[arg(long, value_name = "NAME", default_value = "import")]
    source_name: String,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    output: Output,
}

impl ImportFlags {
    /// Stores what was printed, of either sidecar.
    pub(in crate::commands) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let store = self.source.store()?;
        if self.source_name.is_empty() {
            return Err(usage("the name of the source is empty").into());
        }
        let readings = read_files(&self.files, streams)?;
        let options = ImportOptions {
            store,
            id: random_id(),
            cluster: self.cluster,
            source: self.source_name,
            now: now(),
        };
        let redactor = sidecar::redactor(Mode::Deep);
        let done = stored::import(readings, &redactor, &options).map_err(failed)?;
        self.output.show(&Answer::Import(done), streams)
    }
}

#[allow(clippy::disallowed_methods)] // this is where random numbers come in
fn random_id() -> [u8; 16] {
    *uuid::Uuid::new_v4().as_bytes()
}

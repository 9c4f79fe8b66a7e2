//! `why`: the cause of something that was recorded, with its evidence.

use anyhow::Result;
use biplane_console::Streams;
use biplane_recorder::query::answer::Verb;
use biplane_recorder::query::ask::Question;
use clap::Args;

use super::inspector::One;

const EXAMPLES: &str = "\
Examples:
  # Why a composed resource is gone
  biplane why deleted Bucket/north-7f3 -n team-a --store=recorder.db

  # Which step changed a field, and because of what
  biplane why changed Store/north:bucket spec.forProvider.region --store=recorder.db

  # Why a composite resource is not ready, and why its last failure happened
  biplane why not-ready Store/north --store=recorder.db
  biplane why failed Store/north --store=recorder.db

  # Why a run took so long
  biplane why slow 9822d93d --store=recorder.db";

/// Say why something was deleted, created or changed, is not ready, failed or is slow
///
/// Compares the run in which it happened with the run before, and names the step that decided it and
/// what differs in what the step was given. Where nothing differs, it says so.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Why {
    /// What is asked: deleted, created, changed, not-ready, failed or slow
    #[arg(value_name = "WHAT")]
    verb: Verb,
    /// The resource: KIND/NAME, KIND/NAME:RESOURCE or RUN:RESOURCE; or the run
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// The field that changed, such as spec.forProvider.region
    #[arg(value_name = "FIELD")]
    field: Option<String>,
    #[command(flatten)]
    one: One,
}

impl Why {
    /// Runs the command.
    pub fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let of = self.one.named(&self.resource);
        let question = Question::Why { verb: self.verb, of, field: self.field.clone() };
        self.one.ask(&question, streams).map(drop)
    }
}

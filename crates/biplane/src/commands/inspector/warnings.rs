//! `inspector warnings`: what was found in runs.

use anyhow::Result;
use biplane_console::Streams;
use biplane_recorder::query::archive::WarningFilter;
use biplane_recorder::query::ask::{LIMIT, Question};
use clap::Args;

use crate::commands::records::{Output, Source};
use crate::values;

const EXAMPLES: &str = "\
Examples:
  # What was found, the last seen first
  biplane inspector warnings --store=recorder.db

  # All about one of them
  biplane inspector warnings 7 --store=recorder.db

  # Fields that the pipelines of one kind and somebody else fight over
  biplane inspector warnings --of=Store --found=flapping --store=recorder.db";

/// List what was found in runs that somebody should look at, or show one of them
///
/// flapping: a field goes back and forth between what is desired and what somebody else sets.
/// same-input: a function was given the same and answered something else.
/// unstable-requirements: a function asks for other resources each time.
/// slow-step: a step takes much longer than it did.
/// size: a message or a resource is near its limit.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, verbatim_doc_comment)]
pub struct Warnings {
    /// The id of a warning, to show all about it
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Only of this composite resource or Operation, or of this kind: KIND, KIND.GROUP or KIND/NAME
    #[arg(long, value_name = "OWNER")]
    of: Option<String>,
    /// Only of owners in this namespace
    #[arg(long, short)]
    namespace: Option<String>,
    /// Only what was found of this kind
    #[arg(long, value_name = "WHAT")]
    found: Option<String>,
    /// Only what goes on
    #[arg(long)]
    open: bool,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = LIMIT, value_parser = values::count::<usize>)]
    limit: usize,
    /// Where an earlier list ended
    #[arg(long, value_name = "PLACE")]
    r#continue: Option<String>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    output: Output,
}

impl Warnings {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let question = match &self.id {
            Some(id) => Question::Warning(id.clone()),
            None => Question::Warnings {
                filter: self.filter(),
                limit: self.limit,
                after: self.r#continue.clone(),
            },
        };
        let answer = self.source.open(streams)?.ask(&question)?;
        self.output.show(&answer, streams)
    }

    fn filter(&self) -> WarningFilter {
        let (kind, name) = match self.of.as_deref().map(|owner| owner.split_once('/')) {
            None => (None, None),
            Some(None) => (self.of.clone(), None),
            Some(Some((kind, name))) => (Some(kind.to_owned()), Some(name.to_owned())),
        };
        WarningFilter {
            found: self.found.clone(),
            kind,
            name,
            namespace: self.namespace.clone(),
            open: self.open,
        }
    }
}

//! `inspector diff`, `blame` and `compare`: what differs, and who set what.

use anyhow::Result;
use biplane_console::Streams;
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::ask::Question;
use clap::{ArgAction, Args};

use super::at::point;
use super::runs::One;
use crate::commands::records::{differs, usage};

const DIFF_EXAMPLES: &str = "\
Examples:
  # What a run desired, compared with the last run before it that got to its end
  biplane inspector diff 9822d93d --store=recorder.db

  # What the second step changed
  biplane inspector diff 9822d93d/2 --store=recorder.db

  # One composed resource, now and three runs ago
  biplane inspector diff Store/north@{3}:bucket Store/north:bucket --store=recorder.db

  # What a composite resource composed at two times
  biplane inspector diff --at=13:00 --at=14:00 Store/north --store=recorder.db";

/// Show what differs between runs, steps or resources
///
/// Documents are compared by structure: items of lists by their name, type, key, id or uid, and
/// moved items are named. Exits with code 3 if anything differs.
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct Diff {
    /// RUN, RUN/STEP or RUN:RESOURCE; with --at, a composite resource: KIND/NAME
    #[arg(value_name = "A")]
    before: String,
    /// The same, to compare A with; without it, a run is compared with the one before, and a step
    /// with what it was given
    #[arg(value_name = "B")]
    after: Option<String>,
    /// Compare what was observed, not what was desired
    #[arg(long)]
    observed: bool,
    /// Compare what was the case at this time; once for each of two times
    #[arg(long, value_name = "TIME", action = ArgAction::Append, conflicts_with = "after")]
    at: Vec<String>,
    #[command(flatten)]
    one: One,
}

impl Diff {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let (before, observed) = (self.one.named(&self.before), self.observed);
        let question = match self.at.as_slice() {
            [] => Question::Diff { before, after: self.after.clone(), observed },
            [from, to] => {
                Question::DiffAt { of: before, from: point(from)?, to: point(to)?, observed }
            }
            _ => return Err(usage("--at is needed twice, once for each time").into()),
        };
        match self.one.ask(&question, streams)? {
            Answer::Diff(diff) => differs(diff.differs),
            _ => Ok(()),
        }
    }
}

const BLAME_EXAMPLES: &str = "\
Examples:
  # Which step set each field of a composed resource, and since when
  biplane inspector blame Store/north:bucket --store=recorder.db

  # Of all resources of a run
  biplane inspector blame 9822d93d --store=recorder.db";

/// Show which step set each field, and which created or removed a resource
#[derive(Debug, Args)]
#[command(after_help = BLAME_EXAMPLES)]
pub struct Blame {
    /// The run, or one resource of it; RUN: with nothing after it is the composite resource
    #[arg(value_name = "RUN[:RESOURCE]")]
    run: String,
    #[command(flatten)]
    one: One,
}

impl Blame {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let question = Question::Blame(self.one.named(&self.run));
        self.one.ask(&question, streams).map(drop)
    }
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  # Why a run did something else than the one before it
  biplane inspector compare 9822d93d --store=recorder.db

  # Two runs, step by step
  biplane inspector compare 6a3ac86e 9822d93d --store=recorder.db";

/// Show two runs side by side, and the first difference in the order of cause
///
/// Exits with code 3 if anything differs.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct Compare {
    /// The first run; the only one is compared with the run before it
    #[arg(value_name = "A")]
    before: String,
    /// The second run
    #[arg(value_name = "B")]
    after: Option<String>,
    #[command(flatten)]
    one: One,
}

impl Compare {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let before = self.one.named(&self.before);
        let question = Question::Compare { before, after: self.after.clone() };
        match self.one.ask(&question, streams)? {
            Answer::Compare(compare) => differs(compare.differs),
            _ => Ok(()),
        }
    }
}

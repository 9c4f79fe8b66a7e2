//! `inspector at`: what was the case at a time.

use anyhow::Result;
use biplane_console::Streams;
use biplane_recorder::query::ask::Question;
use biplane_recorder::query::time;
use clap::Args;
use jiff::Timestamp;

use super::runs::One;
use crate::commands::records::{now, usage};

const EXAMPLES: &str = "\
Examples:
  # A composite resource and its composed resources as they were, UTC
  biplane inspector at 14:00 Store/north --store=recorder.db

  # With the resources themselves
  biplane inspector at 2026-11-16T14:00:00Z Store/north --store=recorder.db -o yaml

  # What changed until then
  biplane inspector diff --at=13:00 --at=14:00 Store/north --store=recorder.db";

/// Show a composite resource and its composed resources as they were at a time
///
/// What was observed is what the last run before was told. What was desired is what the last run
/// before that got to its end desired. -o wide, json and yaml show the resources themselves.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct At {
    /// The time: RFC 3339, a date, or 14:00; UTC without an offset
    #[arg(value_name = "TIME")]
    time: String,
    /// The composite resource or Operation: KIND/NAME
    #[arg(value_name = "OWNER")]
    owner: String,
    #[command(flatten)]
    one: One,
}

/// Reads a time that the user wrote.
pub(super) fn point(text: &str) -> Result<Timestamp> {
    Ok(time::point(text, now()).map_err(|error| usage(&error.to_string()))?)
}

impl At {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let at = point(&self.time)?;
        let question = Question::At { of: self.one.named(&self.owner), at };
        self.one.ask(&question, streams).map(drop)
    }
}

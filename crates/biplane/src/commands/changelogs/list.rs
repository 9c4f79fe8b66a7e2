//! `changelogs list`, `show`, `follow` and `verify`: what providers did.

use anyhow::Result;
use biplane_console::Streams;
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::ChangeFilter;
use biplane_recorder::query::ask::{LIMIT, Question};
use clap::Args;

use crate::commands::inspector::PERIOD;
use crate::commands::records::{Output, Source, Times};
use crate::exit::Exit;
use crate::values;

/// Which changes.
#[derive(Debug, Args)]
struct Which {
    /// Only of this resource, or of this kind: KIND, KIND.GROUP or KIND/NAME
    #[arg(value_name = "RESOURCE")]
    resource: Option<String>,
    /// Only in this namespace
    #[arg(long, short)]
    namespace: Option<String>,
    /// In all namespaces, which is the default
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only of this provider, with or without its version
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Only this operation: create, update or delete
    #[arg(long, value_name = "OPERATION", value_parser = ["create", "update", "delete"],
        hide_possible_values = true)]
    operation: Option<String>,
    /// Only with this cause: create, recreate, spec-change, drift, retry or resume
    #[arg(long, value_name = "CAUSE")]
    cause: Option<String>,
    /// Only changes that failed
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    times: Times,
}

impl Which {
    fn filter(&self) -> Result<ChangeFilter> {
        let (since, until) = self.times.range()?;
        let (kind, name) = match self.resource.as_deref().map(|text| text.split_once('/')) {
            None => (None, None),
            Some(None) => (self.resource.clone(), None),
            Some(Some((kind, name))) => (Some(kind.to_owned()), Some(name.to_owned())),
        };
        Ok(ChangeFilter {
            kind,
            name,
            namespace: self.namespace.clone(),
            provider: self.provider.clone(),
            operation: self.operation.clone(),
            cause: self.cause.clone(),
            failed: self.failed,
            since,
            until,
            newer_than: None,
        })
    }
}

const LIST_EXAMPLES: &str = "\
Examples:
  # What failed in the last hour
  biplane changelogs list --store=recorder.db --failed --since=1h

  # What was put back because somebody changed it outside
  biplane changelogs list --store=recorder.db --cause=drift

  # What the sidecar of a provider printed, without a store
  kubectl -n crossplane-system logs deploy/provider-sql -c changelogs-sidecar | biplane changelogs list --from=-";

/// List what providers did, the newest first
///
/// RUN is the run that decided it, and LINK how certain that is: certain if the provider names the
/// run, likely if the run changed what is desired just before, and enforces if the provider put back
/// what the run had decided.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    #[command(flatten)]
    which: Which,
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

impl List {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let filter = self.which.filter()?;
        let question = Question::Changes { filter, limit: self.limit, after: self.r#continue };
        let answer = self.source.open(streams)?.ask(&question)?;
        self.output.show(&answer, streams)
    }
}

const SHOW_EXAMPLES: &str = "\
Examples:
  # All about a change of the list, with the resource as it was
  biplane changelogs show 12 --store=recorder.db";

/// Show all about a change
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct Show {
    /// The id of the change, as lists show it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    output: Output,
}

impl Show {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let answer = self.source.open(streams)?.ask(&Question::Change(self.id))?;
        self.output.show(&answer, streams)
    }
}

const FOLLOW_EXAMPLES: &str = "\
Examples:
  # Changes as they arrive
  biplane changelogs follow --store=recorder.db

  # Only failures, for another program
  biplane changelogs follow --store=recorder.db --failed -o json";

/// Show changes as they arrive, until interrupted
#[derive(Debug, Args)]
#[command(after_help = FOLLOW_EXAMPLES)]
pub struct Follow {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    output: Output,
}

impl Follow {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let filter = self.which.filter()?;
        let records = self.source.open(streams)?;
        // Without a time, only what is new.
        let newest = Question::Changes { filter: ChangeFilter::default(), limit: 1, after: None };
        let mut seen = match (filter.since, records.ask(&newest)?) {
            (None, Answer::Changes(list)) => list.changes.first().and_then(|c| c.id.parse().ok()),
            _ => None,
        }
        .unwrap_or(0);
        loop {
            let filter = ChangeFilter { newer_than: Some(seen), ..filter.clone() };
            let question = Question::Changes { filter, limit: 500, after: None };
            let Answer::Changes(mut list) = records.ask(&question)? else { return Ok(()) };
            let is_more = list.more.take().is_some();
            let last = list.changes.iter().filter_map(|change| change.id.parse().ok()).max();
            seen = last.unwrap_or(seen).max(seen);
            if !list.changes.is_empty() {
                self.output.show(&Answer::Changes(list), streams)?;
            }
            if !is_more {
                std::thread::sleep(PERIOD);
            }
        }
    }
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  # Whether anybody changed an entry after it was received
  biplane changelogs verify --store=recorder.db";

/// Check that no entry was changed or removed after it was received
///
/// Each entry has a hash that covers the entry before it. Exits with code 1 if a chain is broken.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct Verify {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    output: Output,
}

impl Verify {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let answer = self.source.open(streams)?.ask(&Question::Verify)?;
        self.output.show(&answer, streams)?;
        match answer {
            Answer::Verify(verify) if !verify.whole => {
                Err(Exit { code: 1, text: String::new() }.into())
            }
            _ => Ok(()),
        }
    }
}

//! `inspector runs`, `run` and `steps`: what happened.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use biplane_console::Streams;
use biplane_recorder::query::answer::{Answer, RunList};
use biplane_recorder::query::archive::RunFilter;
use biplane_recorder::query::ask::{LIMIT, Named, Question};
use biplane_recorder::query::record::Outcome;
use clap::{ArgAction, Args};

use crate::commands::records::{Output, Records, Source, Times, usage};
use crate::values;

const RUNS_EXAMPLES: &str = "\
Examples:
  # What failed in the last hour
  biplane inspector runs --store=recorder.db --failed --since=1h

  # The runs of one composite resource that changed something
  biplane inspector runs Store/north -n team-a --store=recorder.db --changed

  # What the sidecar of a control plane printed, without a store
  kubectl -n crossplane-system logs deploy/crossplane -c inspector-sidecar | biplane inspector runs --from=-";

/// List runs of pipelines, the newest first
///
/// A run is what all functions of a pipeline were given and what they answered, once. Times are UTC.
#[derive(Debug, Args)]
#[command(after_help = RUNS_EXAMPLES)]
#[allow(clippy::struct_excessive_bools)] // each is a flag
pub struct Runs {
    /// Only of this composite resource or Operation, or of this kind: KIND, KIND.GROUP or KIND/NAME
    #[arg(value_name = "OWNER")]
    owner: Option<String>,
    /// Only in this namespace
    #[arg(long, short)]
    namespace: Option<String>,
    /// In all namespaces, which is the default
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only of owners with this label; repeatable
    #[arg(long, short = 'l', value_name = "KEY=VALUE", action = ArgAction::Append)]
    selector: Vec<String>,
    /// Only of this Composition
    #[arg(long, value_name = "NAME")]
    composition: Option<String>,
    /// Only of pipelines that call this function
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Only with this outcome: ok, warning, fatal, error or incomplete; repeatable
    #[arg(long, value_name = "OUTCOME", value_parser = outcome, action = ArgAction::Append)]
    outcome: Vec<Outcome>,
    /// Only runs that did not get to their end
    #[arg(long, conflicts_with = "outcome")]
    failed: bool,
    /// Only runs that did not do the same as the run before
    #[arg(long)]
    changed: bool,
    #[command(flatten)]
    times: Times,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = LIMIT, value_parser = values::count::<usize>)]
    limit: usize,
    /// Where an earlier list ended
    #[arg(long, value_name = "PLACE")]
    r#continue: Option<String>,
    /// Go on and show new runs, until interrupted
    #[arg(long, short)]
    watch: bool,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    output: Output,
}

fn outcome(text: &str) -> Result<Outcome, String> {
    let wrong = || format!("expected ok, warning, fatal, error or incomplete but got {text:?}");
    Outcome::of_name(text).ok_or_else(wrong)
}

/// How often new records are looked for.
pub(in crate::commands) const PERIOD: Duration = Duration::from_secs(1);

impl Runs {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let filter = self.filter()?;
        let records = self.source.open(streams)?;
        let question = Question::Runs {
            filter: filter.clone(),
            limit: self.limit,
            after: self.r#continue.clone(),
        };
        let answer = records.ask(&question)?;
        self.output.show(&answer, streams)?;
        match answer {
            Answer::Runs(list) if self.watch => self.watch(&records, filter, &list, streams),
            _ => Ok(()),
        }
    }

    fn filter(&self) -> Result<RunFilter> {
        let (since, until) = self.times.range()?;
        let (kind, name) = match self.owner.as_deref().map(|owner| owner.split_once('/')) {
            None => (None, None),
            Some(None) => (self.owner.clone(), None),
            Some(Some((kind, name))) => (Some(kind.to_owned()), Some(name.to_owned())),
        };
        let label = |text: &String| {
            let wrong = || usage(&format!("expected a label such as key=value but got {text:?}"));
            let (key, value) = text.split_once('=').ok_or_else(wrong)?;
            Ok((key.to_owned(), value.trim_start_matches('=').to_owned()))
        };
        let labels = values::list(&self.selector).iter().map(label).collect::<Result<_>>()?;
        let failures = Outcome::ALL.into_iter().filter(|outcome| outcome.is_failure());
        Ok(RunFilter {
            kind,
            name,
            namespace: self.namespace.clone(),
            composition: self.composition.clone(),
            function: self.function.clone(),
            outcomes: if self.failed { failures.collect() } else { self.outcome.clone() },
            labels,
            since,
            until,
            changed: self.changed,
        })
    }

    /// Shows runs that begin after the newest of a list. A run is shown once it has ended.
    fn watch(
        &self,
        records: &Records,
        filter: RunFilter,
        list: &RunList,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        let mut shown: BTreeSet<String> = list.runs.iter().map(|run| run.run.clone()).collect();
        let newest =
            |list: &RunList| list.runs.iter().filter_map(|run| run.started.parse().ok()).max();
        let mut filter = RunFilter { since: newest(list).or(filter.since), ..filter };
        loop {
            std::thread::sleep(PERIOD);
            let question = Question::Runs { filter: filter.clone(), limit: 500, after: None };
            let Answer::Runs(mut list) = records.ask(&question)? else { return Ok(()) };
            list.runs.retain(|run| !run.open && shown.insert(run.run.clone()));
            list.more = None;
            list.losses.clear();
            if !list.runs.is_empty() {
                // A run that is still open must be found again.
                filter.since = filter.since.or(newest(&list));
                self.output.show(&Answer::Runs(list), streams)?;
            }
        }
    }
}

/// What one address needs.
#[derive(Debug, Args)]
pub(in crate::commands) struct One {
    /// The namespace of the owner, if the run is named by it
    #[arg(long, short)]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub output: Output,
}

impl One {
    pub(in crate::commands) fn named(&self, address: &str) -> Named {
        Named { address: address.to_owned(), namespace: self.namespace.clone() }
    }

    pub(in crate::commands) fn ask(
        &self,
        question: &Question,
        streams: &mut Streams<'_>,
    ) -> Result<Answer> {
        let answer = self.source.open(streams)?.ask(question)?;
        self.output.show(&answer, streams)?;
        Ok(answer)
    }
}

const RUN_EXAMPLES: &str = "\
Examples:
  # What happened in a run
  biplane inspector run 9822d93d --store=recorder.db

  # In the last run of a composite resource, and in the one before it
  biplane inspector run Store/north --store=recorder.db
  biplane inspector run Store/north@{1} --store=recorder.db

  # In the last run before a time, UTC
  biplane inspector run Store/north@14:00 --store=recorder.db";

/// Show what happened in a run
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    /// The run: the beginning of its trace, or KIND/NAME, KIND/NAME@{N} or KIND/NAME@TIME
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    one: One,
}

impl Run {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let question = Question::Run(self.one.named(&self.run));
        self.one.ask(&question, streams).map(drop)
    }
}

const STEPS_EXAMPLES: &str = "\
Examples:
  # The steps of a run
  biplane inspector steps 9822d93d --store=recorder.db

  # What the second step was given and what it answered
  biplane inspector steps 9822d93d/2 --store=recorder.db

  # The request alone, as JSON
  biplane inspector steps 9822d93d/2 --store=recorder.db -o json | jq '.steps[0].request'";

/// Show the steps of a run, or what one step was given and what it answered
#[derive(Debug, Args)]
#[command(after_help = STEPS_EXAMPLES)]
pub struct Steps {
    /// RUN, RUN/STEP or RUN/STEP.CALL; steps and calls are numbered from one, and steps have names
    #[arg(value_name = "RUN[/STEP]")]
    run: String,
    #[command(flatten)]
    one: One,
}

impl Steps {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let question = Question::Steps(self.one.named(&self.run));
        self.one.ask(&question, streams).map(drop)
    }
}

//! Questions, and how they are answered from an archive.
//!
//! A question has the form of a path of `/api/v1`, so that the command line, the server and other
//! programs ask the same.

mod at;
mod changes;
mod details;
mod differences;
mod find;
mod uri;
mod warnings;
mod why;

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;

use super::answer::{Answer, RunItem, RunList, StepItem, StepList, StepRef, Verb};
use super::archive::{After, Archive, ChangeFilter, Error, RunFilter, Scope, WarningFilter};
use super::compare::step_ref;
use super::difference::NODES;
use super::outline::Bodies;
use super::record::{Head, Run, Side, Step};
use super::state::{self, SlotChange};
use super::time;
use crate::query::sentence;

pub use self::at::at;
pub use self::changes::{change_items, linked};
pub use self::details::blame_first;
pub use self::differences::changed_by;
pub use self::find::{Found, find};

/// How many records a list has unless told otherwise.
pub const LIMIT: usize = 20;
/// How many records a list has at most.
pub const MOST: usize = 500;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Which runs there were.
    Runs {
        /// Which.
        filter: RunFilter,
        /// How many.
        limit: usize,
        /// Where a list before ended.
        after: Option<String>,
    },
    /// What happened in a run.
    Run(Named),
    /// The calls of a run, or one with its payloads.
    Steps(Named),
    /// What differs.
    Diff {
        /// The first, or the only one.
        before: Named,
        /// The second.
        after: Option<String>,
        /// Compare what was observed, not what was desired.
        observed: bool,
    },
    /// Who set what.
    Blame(Named),
    /// Two runs side by side. Without the second, the run before.
    Compare {
        /// The first, or the only one.
        before: Named,
        /// The second.
        after: Option<String>,
    },
    /// What providers did.
    Changes {
        /// Which.
        filter: ChangeFilter,
        /// How many.
        limit: usize,
        /// Where a list before ended.
        after: Option<String>,
    },
    /// One change.
    Change(String),
    /// Whether the chains of change logs are whole.
    Verify,
    /// Why something is so.
    Why {
        /// What.
        verb: Verb,
        /// The resource.
        of: Named,
        /// A field of it.
        field: Option<String>,
    },
    /// What was the case at a time.
    At {
        /// The composite resource.
        of: Named,
        /// When.
        at: Timestamp,
    },
    /// What differs between two times.
    DiffAt {
        /// The composite resource.
        of: Named,
        /// The first time.
        from: Timestamp,
        /// The second time.
        to: Timestamp,
        /// Compare what was observed, not what was desired.
        observed: bool,
    },
    /// What was found in runs.
    Warnings {
        /// Which.
        filter: WarningFilter,
        /// How many.
        limit: usize,
        /// Where a list before ended.
        after: Option<String>,
    },
    /// One of those.
    Warning(String),
}

/// An address, and the namespace of its owner if it names one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The address as the user typed it.
    pub address: String,
    /// The namespace.
    pub namespace: Option<String>,
}

/// Answers a question.
pub fn answer(archive: &dyn Archive, question: &Question, now: Timestamp) -> Result<Answer, Error> {
    match question {
        Question::Runs { filter, limit, after } => {
            runs(archive, filter, *limit, after.as_deref()).map(Answer::Runs)
        }
        Question::Run(named) => {
            let found = find(archive, named, now)?;
            details::run(archive, &found.head).map(|run| Answer::Run(Box::new(run)))
        }
        Question::Steps(named) => steps(archive, &find(archive, named, now)?).map(Answer::Steps),
        Question::Diff { before, after, observed } => {
            differences::diff(archive, before, after.as_deref(), *observed, now).map(Answer::Diff)
        }
        Question::Blame(named) => {
            details::blame(archive, &find(archive, named, now)?).map(Answer::Blame)
        }
        Question::Compare { before, after } => {
            let compared = differences::compare(archive, before, after.as_deref(), now)?;
            Ok(Answer::Compare(Box::new(compared)))
        }
        Question::Changes { filter, limit, after } => {
            changes::list(archive, filter, *limit, after.as_deref()).map(Answer::Changes)
        }
        Question::Change(id) => {
            changes::one(archive, id).map(|change| Answer::Change(Box::new(change)))
        }
        Question::Why { verb, of, field } => why::why(archive, *verb, of, field.as_deref(), now)
            .map(|why| Answer::Why(Box::new(why))),
        Question::At { of, at } => {
            at::at(archive, of, *at, now, 0..usize::MAX).map(|at| Answer::At(Box::new(at)))
        }
        Question::DiffAt { of, from, to, observed } => {
            at::diff_at(archive, of, (*from, *to), *observed, now).map(Answer::Diff)
        }
        Question::Warnings { filter, limit, after } => {
            warnings::list(archive, filter, *limit, after.as_deref()).map(Answer::Warnings)
        }
        Question::Warning(id) => {
            warnings::one(archive, id).map(|warning| Answer::Warning(Box::new(warning)))
        }
        Question::Verify => {
            let sources = archive.verify()?;
            let whole = sources.iter().all(|source| source.broken.is_empty());
            Ok(Answer::Verify(super::answer::Verify { whole, sources }))
        }
    }
}

fn runs(
    archive: &dyn Archive,
    filter: &RunFilter,
    limit: usize,
    after: Option<&str>,
) -> Result<RunList, Error> {
    let limit = limit.clamp(1, MOST);
    let mut heads = archive.runs(filter, limit + 1, cursor(after)?)?;
    let is_more = heads.len() > limit;
    heads.truncate(limit);
    let last = heads.last().filter(|_| is_more);
    let more = last.map(|head| mark(head.started.as_microsecond(), head.key));
    let since = if is_more { heads.last().map(|head| head.started) } else { filter.since };
    let losses = archive.losses(since, filter.until)?;
    let mut loaded = Loaded { archive, runs: BTreeMap::new() };
    let bodies = Bodies::new(archive);
    let mut items = Vec::with_capacity(heads.len());
    for head in &heads {
        let before = success_before(archive, head)?;
        if head.same && !head.open && !head.outcome.is_failure() {
            // The payloads would say nothing new.
            items.push(item(head, head.steps.len(), before.as_ref(), "nothing changed".to_owned()));
            continue;
        }
        let run = loaded.get(head)?;
        let is_complete = !run.head.outcome.is_failure();
        let changed = match &before {
            Some(before) if is_complete => {
                Some(details::changed(&bodies, loaded.get(before)?.as_ref(), &run, SUMMED)?)
            }
            _ => None,
        };
        let summary = sentence::summary(&run, changed.as_deref());
        // How a run that goes on looks so far is only known together with its steps.
        items.push(item(&run.head, run.last_calls().len(), before.as_ref(), summary));
    }
    Ok(RunList { runs: items, losses, more })
}

/// How many resources that differ are compared field by field for a list, which names three.
const SUMMED: usize = 20;

/// Outlines of runs that were loaded. The runs of a list are also those that others are compared with.
struct Loaded<'a> {
    archive: &'a dyn Archive,
    runs: BTreeMap<i64, Rc<Run>>,
}

impl Loaded<'_> {
    fn get(&mut self, head: &Head) -> Result<Rc<Run>, Error> {
        if let Some(run) = self.runs.get(&head.key) {
            return Ok(Rc::clone(run));
        }
        let run = Rc::new(self.archive.outline(head, Scope::Desired)?);
        self.runs.insert(head.key, Rc::clone(&run));
        Ok(run)
    }
}

/// What a list says of a run. `before` is the last run before it that got to its end.
fn item(head: &Head, reached: usize, before: Option<&Head>, summary: String) -> RunItem {
    RunItem {
        run: head.trace.clone(),
        owner: head.owner.clone(),
        composition: head.composition.clone(),
        started: time::rfc3339(head.started),
        took_micros: head.took,
        outcome: head.outcome,
        open: head.open,
        same: head.same,
        pipeline: pipeline(whole_pipeline(head, before)),
        reached,
        summary,
    }
}

/// The same of a run that was loaded, as its last run before that got to its end was.
fn item_of(bodies: &Bodies<'_>, run: &Run, before: Option<&Run>) -> Result<RunItem, Error> {
    let changed = before.map(|before| details::changed(bodies, before, run, SUMMED));
    let summary = sentence::summary(run, changed.transpose()?.as_deref());
    Ok(item(&run.head, run.last_calls().len(), before.map(|before| &before.head), summary))
}

/// The steps of a pipeline as far as they are known. What a failed run did not reach, the last run
/// that got to its end tells.
fn whole_pipeline<'a>(head: &'a Head, before: Option<&'a Head>) -> &'a [(i32, String, String)] {
    match before {
        Some(before) if before.steps.starts_with(&head.steps) => &before.steps,
        _ => &head.steps,
    }
}

fn pipeline(steps: &[(i32, String, String)]) -> Vec<StepRef> {
    let step = |(index, name, function): &(i32, String, String)| StepRef {
        number: i64::from(*index) + 1,
        name: name.clone(),
        function: function.clone(),
    };
    steps.iter().map(step).collect()
}

/// How many runs are looked at for one that got to its end.
const PATIENCE: usize = 50;

/// The owner's last run before another that got to its end.
pub fn success_before(archive: &dyn Archive, head: &Head) -> Result<Option<Head>, Error> {
    let mut at = head.clone();
    for _ in 0..PATIENCE {
        match archive.run_before(&at)? {
            Some(before) if before.outcome.is_failure() => at = before,
            before => return Ok(before),
        }
    }
    Ok(None)
}

fn steps(archive: &dyn Archive, found: &Found) -> Result<StepList, Error> {
    let run = archive.outline(&found.head, Scope::Messages)?;
    let trace = found.head.trace.clone();
    match found.step(&run)? {
        None => Ok(StepList {
            run: trace,
            sentence: None,
            steps: run.steps.iter().map(|step| step_item(step, false)).collect(),
        }),
        Some(step) => {
            let mut step = step.clone();
            Bodies::new(archive).step(&mut step)?;
            let item = step_item(&step, true);
            let sentence = Some(step_sentence(&item, &step));
            Ok(StepList { run: trace, sentence, steps: vec![item] })
        }
    }
}

/// A call. With its payloads if one was asked for.
fn step_item(step: &Step, with_payloads: bool) -> StepItem {
    let mut nodes = NODES;
    let slots = match step.response {
        Some(_) => {
            state::compare(step.desired(Side::Before), step.desired(Side::After), &mut nodes)
        }
        None => Vec::new(),
    };
    let count = |change| slots.iter().filter(|slot| slot.change == change).count();
    let redacted = || {
        let halves = [("request", &step.request), ("response", &step.response)];
        let paths = halves.into_iter().filter_map(|(half, payload)| {
            let paths = super::replay::redacted(payload.as_ref()?);
            Some(paths.into_iter().map(move |path| format!("{half}.{path}")))
        });
        paths.flatten().collect()
    };
    StepItem {
        step: step_ref(Some(step)),
        call: i64::from(step.iteration) + 1,
        span: step.span.clone(),
        started: time::rfc3339(step.started),
        took_micros: step.took,
        outcome: step.outcome(),
        cached: step.cached,
        revision: step.revision.clone(),
        added: count(SlotChange::Added),
        changed: count(SlotChange::Changed),
        removed: count(SlotChange::Removed),
        results: step.results(),
        error: step.error.clone(),
        request: step.request.clone().filter(|_| with_payloads),
        response: step.response.clone().filter(|_| with_payloads),
        redacted: if with_payloads { redacted() } else { Vec::new() },
    }
}

/// What lists say of a call, and a sentence about it. The bodies of its resources do not matter.
pub fn step_summary(step: &Step) -> (StepItem, String) {
    let item = step_item(step, false);
    let sentence = step_sentence(&item, step);
    (item, sentence)
}

fn step_sentence(item: &StepItem, step: &Step) -> String {
    let label = item.step.label();
    if let Some(error) = &step.error {
        return format!("Step {label} could not be called: {error}");
    }
    if !step.answered {
        return format!("Step {label} was asked; no answer was recorded.");
    }
    let took = item.took_micros.map(|took| format!(" after {}", time::took(took)));
    let took = took.unwrap_or_default();
    let what = match (item.added, item.changed, item.removed) {
        (0, 0, 0) => "desired what it was given".to_owned(),
        (added, changed, removed) => {
            let part = |count: usize, verb: &str| {
                (count > 0).then(|| format!("{verb} {}", sentence::counted(count, "resource")))
            };
            let parts = [part(added, "added"), part(changed, "changed"), part(removed, "removed")];
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    };
    format!("Step {label} answered{took}: it {what}.")
}

/// A place in a list as text.
fn mark(at: i64, key: i64) -> String {
    format!("{at}.{key}")
}

fn cursor(text: Option<&str>) -> Result<Option<After>, Error> {
    let Some(text) = text else { return Ok(None) };
    let parsed = || {
        let (at, key) = text.split_once('.')?;
        Some(After { at: at.parse().ok()?, key: key.parse().ok()? })
    };
    let wrong = || Error::Usage(format!("{text:?} is no place in a list"));
    parsed().map(Some).ok_or_else(wrong)
}

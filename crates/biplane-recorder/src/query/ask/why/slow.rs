//! Why a run took so long.

use std::collections::BTreeMap;

use super::super::super::answer::{Evidence, EvidenceKind, Reason, StepRef, Why};
use super::super::super::archive::{Error, Timing};
use super::super::super::compare;
use super::super::super::difference::NODES;
use super::super::super::record::{Head, Run};
use super::super::super::time;
use super::{Asking, run_evidence, run_words, words};

/// How many runs are looked at to know what is usual.
const RUNS: usize = 50;
/// A step is slow if it takes so many times as long as usual.
const SLOWER: i64 = 2;

/// How long each step of a run took, all of its calls together.
fn by_step(timings: &[Timing]) -> BTreeMap<i32, (StepRef, i64, bool, usize)> {
    let mut found: BTreeMap<i32, (StepRef, i64, bool, usize)> = BTreeMap::new();
    for timing in timings {
        let Some(took) = timing.took else { continue };
        let step = StepRef {
            number: i64::from(timing.index) + 1,
            name: timing.name.clone(),
            function: timing.function.clone(),
        };
        let entry = found.entry(timing.index).or_insert((step, 0, true, 0));
        entry.1 += took;
        entry.2 &= timing.cached == Some(true);
        entry.3 += 1;
    }
    found
}

fn median(mut of: Vec<i64>) -> Option<i64> {
    of.sort_unstable();
    of.get(of.len() / 2).copied()
}

pub(super) fn slow(asking: &Asking<'_>) -> Result<Why, Error> {
    let archive = asking.archive;
    let mut heads: Vec<Head> = vec![asking.head.clone()];
    while heads.len() < RUNS {
        let Some(last) = heads.last() else { break };
        let Some(before) = archive.run_before(last)? else { break };
        heads.push(before);
    }
    // Without a run that the user named, the slowest is meant.
    let at = if asking.is_named {
        0
    } else {
        let slowest = heads
            .iter()
            .enumerate()
            .max_by_key(|(at, head)| (head.took.unwrap_or_default(), std::cmp::Reverse(*at)));
        slowest.map_or(0, |(at, _)| at)
    };
    let head = heads.remove(at);
    let run = asking.load(&head)?;
    let own = by_step(&archive.timings(&head)?);
    let mut usual: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut whole = Vec::new();
    for other in &heads {
        for (step, took, is_cached, _) in by_step(&archive.timings(other)?).into_values() {
            if !is_cached {
                usual.entry(step.label()).or_default().push(took);
            }
        }
        whole.extend(other.took);
    }
    let subject = words(&asking.head.owner);
    let Some((_, longest)) = own.iter().max_by_key(|(index, entry)| (entry.1, -**index)) else {
        let sentence = format!(
            "How long the steps of {} took is not known: lines that sidecars printed do not tell.",
            run_words(&run)
        );
        return Ok(asking.answer(Reason::Unknown, Some(&run), sentence));
    };
    let medians: BTreeMap<String, Option<i64>> =
        usual.into_iter().map(|(step, took)| (step, median(took))).collect();
    let median_of = |step: &StepRef| medians.get(&step.label()).copied().flatten();
    // The step that took most longer than it usually does, else the one that took longest.
    let slower = own.values().filter_map(|entry| {
        let usual = median_of(&entry.0)?;
        (entry.1 > usual.saturating_mul(SLOWER)).then_some((entry.1 - usual, entry))
    });
    let slower = slower.max_by_key(|(longer, entry)| (*longer, -entry.0.number));
    let all: i64 = own.values().map(|entry| entry.1).sum();
    let took = head.took.unwrap_or(all).max(all);
    let between = took - all;
    let is_between = between > all && slower.is_none();
    let (reason, entry) = match slower {
        Some((_, entry)) => (Reason::SlowStep, entry),
        None if is_between => (Reason::BetweenSteps, longest),
        None => (Reason::AlwaysSlow, longest),
    };
    let (step, step_took, _, calls) = entry;
    let name = super::super::super::cause::step_words(step);
    let usually = median_of(step);
    let mut sentence = format!("{subject}: {} took {}.", run_words(&run), time::took(took));
    let counted = heads.len();
    let said = match (reason, usually) {
        (Reason::SlowStep, Some(usual)) => format!(
            "{} took {} of it; its median in {counted} other runs is {}.",
            super::super::super::cause::capital(&name),
            time::took(*step_took),
            time::took(usual)
        ),
        (Reason::BetweenSteps, _) => format!(
            "Its steps took {} together: {} went by between them.",
            time::took(all),
            time::took(between)
        ),
        (_, Some(usual)) => format!(
            "{} took {} of it, which is usual: its median in {counted} other runs is {}.",
            super::super::super::cause::capital(&name),
            time::took(*step_took),
            time::took(usual)
        ),
        (_, None) => format!(
            "{} took {} of it; no other run tells what is usual.",
            super::super::super::cause::capital(&name),
            time::took(*step_took)
        ),
    };
    sentence = format!("{sentence} {said}");
    if *calls > 1 {
        sentence = format!("{sentence} It was called {calls} times, as its requirements changed.");
    }
    if reason == Reason::SlowStep
        && let Some(words) = compared(asking, &run, step)?
    {
        sentence = format!("{sentence} {words}");
    }
    let mut why = asking.answer(reason, Some(&run), sentence);
    why.step = (reason != Reason::BetweenSteps).then(|| step.clone());
    for (step, took, is_cached, _) in own.values() {
        let usual = median_of(step);
        let usually = usual.map(|usual| format!(", median {}", time::took(usual)));
        let cached = if *is_cached { ", cached" } else { "" };
        let text = format!("{}{cached}{}", time::took(*took), usually.unwrap_or_default());
        why.evidence.push(Evidence {
            run: Some(run.head.trace.clone()),
            step: Some(step.clone()),
            took_micros: Some(*took),
            median_micros: usual,
            ..Evidence::new(EvidenceKind::Duration, text)
        });
    }
    if let Some(usual) = median(whole) {
        why.evidence.push(Evidence {
            took_micros: Some(took),
            median_micros: Some(usual),
            ..run_evidence(&run, &format!("{}, median {}", time::took(took), time::took(usual)))
        });
    }
    Ok(why)
}

/// Whether the step was given something else than in the run before.
fn compared(asking: &Asking<'_>, run: &Run, step: &StepRef) -> Result<Option<String>, Error> {
    let Some(before) = asking.archive.run_before(&run.head)? else { return Ok(None) };
    let mut before = asking.load(&before)?;
    let mut run = run.clone();
    asking.pair(&mut before, &mut run)?;
    let (was, is) = (before.last_calls(), run.last_calls());
    let pairs = compare::aligned(&was, &is);
    let pair = pairs.into_iter().find_map(|pair| match pair {
        (Some(was), Some(is)) if i64::from(is.index) + 1 == step.number => Some((was, is)),
        _ => None,
    });
    let Some((was, is)) = pair else { return Ok(None) };
    let mut nodes = NODES;
    let given = compare::given(was, is, &mut nodes);
    Ok(Some(match given.first() {
        None => {
            "It was given the same as in the run before: same input, other duration.".to_owned()
        }
        Some(first) => format!(
            "It was given something else than in the run before: {}.",
            crate::query::sentence::cause(first)
        ),
    }))
}

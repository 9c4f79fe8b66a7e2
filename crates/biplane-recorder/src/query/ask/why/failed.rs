//! Why a run or a resource failed.

use super::super::super::answer::{Evidence, EvidenceKind, Reason, Why};
use super::super::super::archive::{Archive, Error, RunFilter, kind_and_group};
use super::super::super::record::{Head, Outcome, Run, Step};
use super::super::super::state;
use super::super::{success_before, whole_pipeline};
use super::{Asking, change_evidence, named_step, one_line, run_evidence, run_words, short, words};
use crate::query::sentence;

/// How many failures in a row are counted.
const COUNTED: usize = 100;

/// What a call says that did not end in time.
const TIMEOUTS: [&str; 4] =
    ["DeadlineExceeded", "deadline exceeded", "timed out", "did not answer within"];

pub(super) fn failed(asking: &Asking<'_>) -> Result<Why, Error> {
    if !asking.slot.is_empty() {
        return of_resource(asking);
    }
    let run = asking.load(&asking.head)?;
    if run.head.outcome.is_failure() {
        return of_run(asking, &run);
    }
    if !asking.is_named {
        let owner = &asking.head.owner;
        let filter = RunFilter {
            kind: Some(kind_and_group(owner)),
            name: Some(owner.name.clone()),
            namespace: (!owner.namespace.is_empty()).then(|| owner.namespace.clone()),
            outcomes: Outcome::ALL.into_iter().filter(|outcome| outcome.is_failure()).collect(),
            ..RunFilter::default()
        };
        let is_over = |head: &&Head| !head.open && head.owner.is_same(owner);
        let heads = asking.archive.runs(&filter, 5, None)?;
        if let Some(head) = heads.iter().find(is_over) {
            let mut why = of_run(asking, &asking.load(head)?)?;
            why.sentence = format!("{} Since {}, it succeeds.", why.sentence, run_words(&run));
            why.evidence.push(run_evidence(&run, "the last run, which succeeded"));
            return Ok(why);
        }
    }
    let subject = words(&asking.head.owner);
    let sentence = format!("No failure of {subject} is known: {} got to its end.", run_words(&run));
    let mut why = asking.answer(Reason::NotSo, Some(&run), sentence);
    why.evidence.push(run_evidence(&run, "got to its end"));
    Ok(why)
}

/// Why a run failed.
pub(super) fn of_run(asking: &Asking<'_>, run: &Run) -> Result<Why, Error> {
    let success = success_before(asking.archive, &run.head)?;
    let calls = run.last_calls();
    let step = calls.iter().find(|step| step.outcome().is_failure()).copied();
    let reason = step.map_or(Reason::NoAnswer, reason);
    let context = sentence::Context {
        pipeline: whole_pipeline(&run.head, success.as_ref()),
        ..sentence::Context::default()
    };
    let mut sentences = vec![sentence::run(run, &context)];
    let mut why = asking.answer(reason, Some(run), String::new());
    why.step = named_step(step);
    if let Some(step) = step {
        let text = match step.outcome() {
            Outcome::Error => step.error.clone().unwrap_or_default(),
            Outcome::Fatal => {
                let fatal = step.results().into_iter().find(|result| result.severity == "fatal");
                fatal.map(|result| result.message).unwrap_or_default()
            }
            _ => "no answer was recorded".to_owned(),
        };
        why.evidence.push(Evidence {
            run: Some(run.head.trace.clone()),
            step: named_step(Some(step)),
            took_micros: step.took,
            ..Evidence::new(EvidenceKind::Result, one_line(&text))
        });
    }
    let (first, count) = streak(asking.archive, &run.head, success.as_ref())?;
    if count > 1 {
        let first = Run { head: first, steps: Vec::new() };
        sentences.push(format!("It is failure {count} in a row, since {}.", run_words(&first)));
        why.evidence.push(run_evidence(&first, "the first of the failures"));
    }
    match success.map(|head| asking.load(&head)).transpose()? {
        Some(mut before) => {
            let mut run = run.clone();
            asking.pair(&mut before, &mut run)?;
            let run = &run;
            let root = super::root(&before, run, step, None);
            sentences.push(format!("Run {} succeeded before. {}", short(&before), root.words()));
            why.evidence.extend(root.evidence(&before, run));
            why.run_before = Some(before.head.trace.clone());
        }
        None => sentences.push("No run before it is known to have succeeded.".to_owned()),
    }
    why.sentence = sentences.join(" ");
    Ok(why)
}

fn reason(step: &Step) -> Reason {
    match step.outcome() {
        Outcome::Fatal => Reason::FatalResult,
        Outcome::Error => {
            let error = step.error.as_deref().unwrap_or_default();
            let is_late = TIMEOUTS.iter().any(|text| error.contains(text));
            if is_late { Reason::Timeout } else { Reason::CallFailed }
        }
        _ => Reason::NoAnswer,
    }
}

/// The first of the failures in a row up to a run, and how many there are.
fn streak(
    archive: &dyn Archive,
    head: &Head,
    success: Option<&Head>,
) -> Result<(Head, usize), Error> {
    let mut first = head.clone();
    for count in 1..=COUNTED {
        match archive.run_before(&first)? {
            Some(before) if success.is_none_or(|success| success.key != before.key) => {
                first = before;
            }
            _ => return Ok((first, count)),
        }
    }
    Ok((first, COUNTED))
}

/// Why a provider failed with a composed resource.
fn of_resource(asking: &Asking<'_>) -> Result<Why, Error> {
    let run = asking.load(&asking.head)?;
    let object = asking.object_in(&run);
    let subject = asking.subject(&object);
    let failures = asking.changes(&object, None, None, true)?;
    if let Some(change) = failures.first() {
        let later = asking.changes(&object, None, None, false)?;
        let is_over = later.first().is_some_and(|last| last.error.is_none());
        let error = change.error.as_deref().map(one_line).unwrap_or_default();
        let who = if change.provider.is_empty() { "A provider" } else { change.provider.as_str() };
        let at = change.at.parse().map_or_else(|_| change.at.clone(), super::time::date);
        let mut sentence =
            format!("{who} failed to {} {subject} at {at}: {error}.", change.operation);
        if let Some(link) = &change.link {
            let run: String = link.run.chars().take(8).collect();
            let how = match link.certainty.as_str() {
                "certain" => "It carried out",
                "enforces" => "It put back",
                _ => "It likely carried out",
            };
            sentence = format!("{sentence} {how} what run {run} had decided.");
        }
        if is_over {
            sentence = format!("{sentence} Since then, it succeeded.");
        }
        let mut why = asking.answer(Reason::ProviderFailed, Some(&run), sentence);
        why.object = object;
        why.at = Some(change.at.clone());
        why.run = change.link.as_ref().map(|link| link.run.clone());
        why.evidence = failures.into_iter().map(change_evidence).collect();
        why.evidence.extend(later.into_iter().take(1).filter(|_| is_over).map(change_evidence));
        return Ok(why);
    }
    // Without change logs, the resource itself may tell.
    let synced = state::slot(run.observed(), &asking.slot).map(state::body).and_then(|body| {
        let list = body.pointer("/status/conditions")?.as_array()?;
        let text = |c: &serde_json::Value, field: &str| {
            c.get(field).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
        };
        let synced =
            list.iter().find(|c| text(c, "type") == "Synced" && text(c, "status") == "False")?;
        Some((text(synced, "reason"), one_line(&text(synced, "message"))))
    });
    if let Some((reason, message)) = synced {
        let text = format!("Synced is False, {reason}: {message}");
        let sentence = format!("{subject} was not synced in {}: {text}.", run_words(&run));
        let mut why = asking.answer(Reason::Condition, Some(&run), sentence);
        why.evidence.push(Evidence {
            run: Some(run.head.trace.clone()),
            resource: Some(asking.slot.clone()),
            ..Evidence::new(EvidenceKind::Condition, text)
        });
        return Ok(why);
    }
    if run.head.outcome.is_failure() {
        return of_run(asking, &run);
    }
    let sentence = format!(
        "No failure of {subject} is known: no provider reported one, and {} got to its end.",
        run_words(&run)
    );
    Ok(asking.answer(Reason::NotSo, Some(&run), sentence))
}

//! Why a resource is not ready.

use serde_json::Value;

use super::super::super::answer::{Evidence, EvidenceKind, Reason, Why};
use super::super::super::archive::Error;
use super::super::super::cause::{capital, step_words};
use super::super::super::compare::step_ref;
use super::super::super::outline::Bodies;
use super::super::super::record::{ObjectRef, Run, Side, Step};
use super::super::super::state;
use super::{Asking, change_evidence, named_step, one_line, run_words, words};
use crate::query::sentence;

/// How many resources a sentence names.
const NAMED: usize = 3;

pub(super) fn not_ready(asking: &Asking<'_>) -> Result<Why, Error> {
    let mut run = asking.load(&asking.head)?;
    if run.head.outcome.is_failure() {
        let mut why = super::failed::of_run(asking, &run)?;
        why.sentence = format!(
            "The last run did not get to its end, so nothing is said to be ready. {}",
            why.sentence
        );
        why.reason = Reason::RunFailed;
        return Ok(why);
    }
    if asking.slot.is_empty() {
        // What is said of resources that are not ready is in what was observed of them.
        let unready: Vec<String> = state::slots(run.desired())
            .into_iter()
            .filter(|(_, slot)| state::ready(slot) != "true")
            .map(|(name, _)| name.to_owned())
            .collect();
        let bodies = Bodies::new(asking.archive);
        for name in &unready {
            bodies.everywhere(&mut run, name)?;
        }
        return Ok(composite(asking, &run));
    }
    let object = asking.object_in(&run);
    let subject = asking.subject(&object);
    let Some(found) = unready(&run, &asking.slot) else {
        let desired = state::slot(run.desired(), &asking.slot);
        let (reason, sentence) = match (desired, who_said(&run, &asking.slot)) {
            (None, _) => {
                (Reason::NotSo, format!("{subject} is not desired in {}.", run_words(&run)))
            }
            (Some(_), Some(step)) => (
                Reason::NotSo,
                format!("{subject} is ready: {} said so.", step_words(&step_ref(Some(step)))),
            ),
            (Some(_), None) => (Reason::NotSo, format!("{subject} is ready.")),
        };
        let mut why = asking.answer(reason, Some(&run), sentence);
        why.step = named_step(who_said(&run, &asking.slot));
        return Ok(why);
    };
    let mut why = asking.answer(found.reason, Some(&run), String::new());
    why.step = named_step(found.step);
    why.evidence = found.evidence(&run);
    let changes = asking.changes(&object, None, None, true)?;
    let mut sentence = format!("{subject} is not ready in {}: {}.", run_words(&run), found.words);
    if let Some(change) = changes.first()
        && let Some(error) = &change.error
    {
        let who = if change.provider.is_empty() { "A provider" } else { change.provider.as_str() };
        sentence = format!(
            "{sentence} {} failed to {} it: {}.",
            capital(who),
            change.operation,
            one_line(error)
        );
    }
    why.evidence.extend(changes.into_iter().map(change_evidence));
    why.sentence = sentence;
    Ok(why)
}

/// Why a slot is not ready.
struct Unready<'a> {
    slot: String,
    object: ObjectRef,
    reason: Reason,
    words: String,
    /// The step that said whether it is ready.
    step: Option<&'a Step>,
    said: &'static str,
    conditions: Vec<String>,
}

impl Unready<'_> {
    fn evidence(&self, run: &Run) -> Vec<Evidence> {
        let of = |kind, text: String| Evidence {
            run: Some(run.head.trace.clone()),
            resource: Some(self.slot.clone()),
            ..Evidence::new(kind, text)
        };
        let said = of(EvidenceKind::Readiness, self.said.to_owned());
        let mut found = vec![Evidence { step: named_step(self.step), ..said }];
        found.extend(self.conditions.iter().map(|text| of(EvidenceKind::Condition, text.clone())));
        found
    }
}

/// The step that last said whether a slot is ready.
fn who_said<'a>(run: &'a Run, slot: &str) -> Option<&'a Step> {
    let ready = |state: Option<&Value>| {
        state::slot(state, slot).map_or("unspecified", state::ready).to_owned()
    };
    let calls = run.last_calls();
    let last = ready(run.desired());
    if last == "unspecified" {
        return None;
    }
    let said = |step: &&&Step| {
        let (before, after) = (ready(step.desired(Side::Before)), ready(step.desired(Side::After)));
        step.response.is_some() && after == last && before != after
    };
    calls.iter().rev().find(said).copied()
}

/// Why a slot is not ready. `None` if it is, or is not desired.
fn unready<'a>(run: &'a Run, slot: &str) -> Option<Unready<'a>> {
    let desired = state::slot(run.desired(), slot)?;
    let ready = state::ready(desired);
    if ready == "true" {
        return None;
    }
    let step = who_said(run, slot);
    let observed = state::slot(run.observed(), slot).map(state::body);
    let object = ObjectRef::of_object(observed.unwrap_or_else(|| state::body(desired)));
    let said = if ready == "false" {
        "said that it is not ready"
    } else {
        "no step said whether it is ready"
    };
    let conditions = observed.map(untrue).unwrap_or_default();
    let (reason, words) = match (observed, conditions.first(), step) {
        (None, ..) => (Reason::NotCreated, "it does not exist yet".to_owned()),
        (Some(_), Some(_), _) => (Reason::Condition, conditions.join("; ")),
        (Some(_), None, Some(step)) => {
            (Reason::StepSaysNotReady, format!("{} said so", step_words(&step_ref(Some(step)))))
        }
        (Some(_), None, None) => (Reason::NobodySaysReady, said.to_owned()),
    };
    Some(Unready { slot: slot.to_owned(), object, reason, words, step, said, conditions })
}

/// The conditions of an object that are not true, in words. What is not synced comes first: it is
/// why something is not ready.
fn untrue(body: &Value) -> Vec<String> {
    let list = body.pointer("/status/conditions").and_then(Value::as_array);
    let text = |condition: &Value, field: &str| {
        condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut found: Vec<(bool, String)> = Vec::new();
    for condition in list.into_iter().flatten() {
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        if status == "True" || status.is_empty() {
            continue;
        }
        let (reason, message) = (text(condition, "reason"), text(condition, "message"));
        let mut words = format!("{kind} is {status}");
        if !reason.is_empty() {
            words = format!("{words}, {reason}");
        }
        if !message.is_empty() {
            words = format!("{words}: {}", one_line(&message));
        }
        found.push((kind != "Synced", words));
    }
    found.sort_by_key(|(is_later, _)| *is_later);
    found.into_iter().map(|(_, words)| words).collect()
}

/// Why a composite resource is not ready.
fn composite(asking: &Asking<'_>, run: &Run) -> Why {
    let subject = words(&asking.head.owner);
    let names: Vec<String> = state::slots(run.desired())
        .into_iter()
        .map(|(name, _)| name.to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    let unready: Vec<Unready<'_>> =
        names.iter().filter_map(|name| self::unready(run, name)).collect();
    let own = state::slot(run.desired(), state::COMPOSITE).map(state::ready);
    if own == Some("false") {
        let step = who_said(run, state::COMPOSITE);
        let who = step.map_or_else(String::new, |step| {
            format!(": {} said so", step_words(&step_ref(Some(step))))
        });
        let sentence = format!("{subject} is not ready in {}{who}.", run_words(run));
        let mut why = asking.answer(Reason::StepSaysNotReady, Some(run), sentence);
        why.step = named_step(step);
        why.evidence.push(Evidence {
            run: Some(run.head.trace.clone()),
            step: named_step(step),
            resource: Some(String::new()),
            ..Evidence::new(EvidenceKind::Readiness, "said that it is not ready")
        });
        return why;
    }
    if unready.is_empty() || own == Some("true") {
        let what = match own {
            Some("true") => "a step said so".to_owned(),
            _ => format!("all of its {} are", sentence::counted(names.len(), "composed resource")),
        };
        let sentence = format!("{subject} is ready in {}: {what}.", run_words(run));
        return asking.answer(Reason::NotSo, Some(run), sentence);
    }
    let named = unready.iter().take(NAMED).map(|found| format!("{}: {}", found.slot, found.words));
    let named: Vec<String> = named.collect();
    let more = unready.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let which = match (unready.len(), names.len()) {
        (1, 1) => "its only composed resource is not".to_owned(),
        (1, all) => format!("1 of {all} composed resources is not"),
        (some, all) => format!("{some} of {all} composed resources are not"),
    };
    let sentence = format!(
        "{subject} is not ready in {}: {which}. {}{more}.",
        run_words(run),
        named.join("; ")
    );
    let mut why = asking.answer(Reason::ResourcesNotReady, Some(run), sentence);
    for found in &unready {
        why.evidence.push(Evidence {
            run: Some(run.head.trace.clone()),
            resource: Some(found.slot.clone()),
            ..Evidence::new(
                EvidenceKind::Resource,
                format!("{}: {}", words(&found.object), found.words),
            )
        });
    }
    why
}

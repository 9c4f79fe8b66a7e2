//! Sentences about what happened, made from values.

pub mod lists;

use crate::query::answer::{Cause, FieldItem, Sign, SlotItem};
use crate::query::record::{Outcome, Run, Step};
use crate::query::time;
use serde_json::Value;

/// The most of a message that a sentence quotes.
const LONGEST: usize = 300;

/// What is known of a run beside itself.
#[derive(Clone, Debug, Default)]
pub struct Context<'a> {
    /// The names and functions of all steps of the pipeline, as far as they are known.
    pub pipeline: &'a [(i32, String, String)],
    /// What the run desired, compared with the run before. `None` if there is none.
    pub changed: Option<&'a [SlotItem]>,
    /// How many runs before it did the same.
    pub same_runs: usize,
    /// How the run before ended, with the first difference and the number of inputs that differ.
    pub before: Option<(Outcome, Option<&'a Cause>, usize)>,
}

/// What happened in a run.
pub fn run(run: &Run, context: &Context<'_>) -> String {
    let calls = run.last_calls();
    let Some(last) = calls.last() else { return "No step of this run was recorded.".to_owned() };
    let total = context.pipeline.len().max(usize::try_from(last.index).unwrap_or(0) + 1);
    let mut sentences = Vec::new();
    let failed = calls.iter().find(|step| step.outcome().is_failure());
    if let Some(step) = failed {
        sentences.push(format!("{} {}", place(step, total), failure(step)));
        sentences.extend(not_reached(context.pipeline, last.index));
        sentences.extend(context.before.as_ref().map(beside));
    } else {
        let took = run.head.took.map(|took| format!(" in {}", time::took(took)));
        let took = took.unwrap_or_default();
        let steps = match calls.len() {
            1 => "The only step".to_owned(),
            2 => "Both steps".to_owned(),
            count => format!("All {count} steps"),
        };
        let same = match context.same_runs {
            0 => String::new(),
            1 => ", with the same result as the run before".to_owned(),
            count => format!(", with the same result as the {count} runs before"),
        };
        sentences.push(format!("{steps} answered{took}{same}."));
        if same.is_empty() {
            sentences.extend(context.changed.map(|changed| format!("{}.", changes(changed))));
        }
        sentences.extend(warnings(&calls));
    }
    sentences.extend(lost(run));
    sentences.join(" ")
}

/// The same in a few words, for a list.
pub fn summary(run: &Run, changed: Option<&[SlotItem]>) -> String {
    let calls = run.last_calls();
    let Some(failed) = calls.iter().find(|step| step.outcome().is_failure()) else {
        return match changed {
            _ if run.head.same => "nothing changed".to_owned(),
            Some(changed) if changed.iter().any(SlotItem::differs) => changes(changed),
            Some(_) => "same result, other input".to_owned(),
            None => {
                let count = crate::query::state::slots(run.desired())
                    .iter()
                    .filter(|(name, _)| !name.is_empty())
                    .count();
                format!("first run, {}", counted(count, "resource"))
            }
        };
    };
    let label = format!("{} {}", failed.index + 1, name(failed));
    let what = match failed.outcome() {
        Outcome::Error => failed.error.clone().unwrap_or_default(),
        Outcome::Fatal => fatal_message(failed),
        _ => "no answer was recorded".to_owned(),
    };
    format!("{label}: {}", first_line(&what))
}

fn name(step: &Step) -> &str {
    if step.name.is_empty() { &step.function } else { &step.name }
}

pub(crate) fn place(step: &Step, total: usize) -> String {
    format!("Step {} of {total}, {},", step.index + 1, name(step))
}

fn fatal_message(step: &Step) -> String {
    let mut results = step.results().into_iter();
    results.find(|result| result.severity == "fatal").map(|r| r.message).unwrap_or_default()
}

pub(crate) fn failure(step: &Step) -> String {
    match step.outcome() {
        Outcome::Error => {
            let error = step.error.as_deref().unwrap_or_default();
            format!("could not be called: {}.", quote(error).trim_end_matches('.'))
        }
        Outcome::Fatal => {
            let took = step.took.map(|took| format!(" after {}", time::took(took)));
            let message = quote(&fatal_message(step));
            format!("returned a fatal result{}: \"{message}\".", took.unwrap_or_default())
        }
        _ => format!("was asked at {}; no answer was recorded.", time::clock(step.started)),
    }
}

fn not_reached(pipeline: &[(i32, String, String)], last: i32) -> Option<String> {
    let missed: Vec<_> = pipeline.iter().filter(|(index, ..)| *index > last).collect();
    match missed.as_slice() {
        [] => None,
        [(index, name, function)] => {
            let name = if name.is_empty() { function } else { name };
            Some(format!("Step {}, {name}, was not reached.", index + 1))
        }
        [(first, ..), .., (last, ..)] => {
            Some(format!("Steps {} to {} were not reached.", first + 1, last + 1))
        }
    }
}

/// What the run before says about a failure.
fn beside((outcome, first, inputs): &(Outcome, Option<&Cause>, usize)) -> String {
    if outcome.is_failure() {
        return "The run before failed too.".to_owned();
    }
    let Some(first) = first else {
        return "The run before succeeded, and nothing differs.".to_owned();
    };
    let which = match inputs {
        0 => {
            let words = "The run before succeeded; no input differs: same input, different output.";
            return words.to_owned();
        }
        1 => "one input differs".to_owned(),
        count => format!("{count} inputs differ, the first"),
    };
    format!("The run before succeeded; {which}: {}.", cause(first))
}

/// The first difference of two runs.
pub fn cause(cause: &Cause) -> String {
    let of = match cause.resource.as_deref() {
        Some("") => format!("{} composite", cause.part),
        Some(name) => format!("{} {name}", cause.part),
        None => cause.part.clone(),
    };
    match &cause.field {
        Some(field) => format!("{of} {}", field_words(field)),
        None => of,
    }
}

/// A field with its values.
pub fn field_words(field: &FieldItem) -> String {
    let path = &field.path;
    let value = |value: &Option<Value>| value.as_ref().map(short).unwrap_or_default();
    match field.change {
        Sign::Added if path == "." => "(added)".to_owned(),
        Sign::Removed if path == "." => "(removed)".to_owned(),
        Sign::Added => format!("{path} {} (added)", value(&field.after)),
        Sign::Removed => format!("{path} {} (removed)", value(&field.before)),
        Sign::Moved => format!("{path} (moved)"),
        _ => format!("{path} {} -> {}", value(&field.before), value(&field.after)),
    }
}

/// A value on one line, not longer than people read.
pub fn short(value: &Value) -> String {
    if crate::query::difference::is_redacted(value) {
        return "(redacted)".to_owned();
    }
    let text = match value {
        Value::String(text) if !text.is_empty() && !text.contains(char::is_control) => text.clone(),
        value => biplane_go::json::to_string(value),
    };
    cut(&text, 80)
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most - 1).collect();
    format!("{start}…")
}

pub(crate) fn first_line(text: &str) -> String {
    cut(text.lines().next().unwrap_or_default(), 100)
}

fn quote(text: &str) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST)
}

/// What differs between two states: `Changed bucket (2 fields), added role`.
pub fn changes(slots: &[SlotItem]) -> String {
    let mut parts = Vec::new();
    for (sign, word) in
        [(Sign::Changed, "changed"), (Sign::Added, "added"), (Sign::Removed, "removed")]
    {
        let of_sign: Vec<&SlotItem> =
            slots.iter().filter(|slot| slot.change == sign && slot.differs()).collect();
        if of_sign.is_empty() {
            continue;
        }
        let label = |slot: &&SlotItem| {
            let fields = slot.own_fields().count();
            match (sign, fields) {
                (Sign::Changed, 1..) => format!("{} ({})", slot.label(), counted(fields, "field")),
                (Sign::Changed, 0) if slot.ready.is_some() => {
                    format!("{} (readiness)", slot.label())
                }
                _ => slot.label().to_owned(),
            }
        };
        let named: Vec<String> = of_sign.iter().take(3).map(label).collect();
        let more = of_sign.len().saturating_sub(3);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("{word} {}{more}", named.join(", ")));
    }
    if parts.is_empty() {
        return "The result is the same as before".to_owned();
    }
    capital(&parts.join(", "))
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// A number with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn warnings(calls: &[&Step]) -> Option<String> {
    let count = calls
        .iter()
        .flat_map(|step| step.results())
        .filter(|result| result.severity == "warning")
        .count();
    (count > 0).then(|| format!("Functions gave {}.", counted(count, "warning")))
}

/// How much of a run is missing.
fn lost(run: &Run) -> Option<String> {
    let calls = run.last_calls();
    let last = calls.last()?.index;
    let steps = usize::try_from(last).ok()? + 1;
    let extra = run.steps.len().saturating_sub(calls.len());
    let all = 2 * (steps + extra);
    let received: usize =
        run.steps.iter().map(|step| usize::from(step.asked) + usize::from(step.answered)).sum();
    let missing = all.checked_sub(received).filter(|missing| *missing > 0)?;
    // An answer that never came is said by the sentence about its step.
    let only_the_answer = missing == 1 && calls.last().is_some_and(|step| !step.answered);
    (!only_the_answer).then(|| {
        let were = if missing == 1 { "was" } else { "were" };
        format!("{missing} of {all} emissions of this run {were} lost.")
    })
}

#[cfg(test)]
mod tests;

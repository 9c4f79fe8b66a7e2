//! Why a resource, or a field of it, is not as it was.

use serde_json::Value;

use super::super::super::answer::{Evidence, EvidenceKind, FieldItem, Reason, Sign, Why};
use super::super::super::archive::Error;
use super::super::super::blame::{self, Stamp, leaves};
use super::super::super::cause::{Values, is_below, step_words};
use super::super::super::compare::step_ref;
use super::super::super::record::{Run, Step};
use super::super::super::state;
use super::{
    Asking, Edge, change_evidence, counterpart, edge, named_step, run_evidence, run_words,
    slot_difference, step_of,
};
use crate::query::sentence::{self, short};
use crate::store::rows::Side;

/// How many fields are shown as evidence.
const SHOWN: usize = 5;

/// The plain values of a body at or below a field, with their paths.
fn view(body: Option<&Value>, field: Option<&str>) -> Vec<(String, Value)> {
    let Some(body) = body else { return Vec::new() };
    let all = leaves(body).into_iter().filter(|(path, _)| !path.is_bookkeeping());
    let all = all.map(|(path, value)| (path.to_string(), value.clone()));
    all.filter(|(path, _)| field.is_none_or(|field| is_below(path, field))).collect()
}

pub(super) fn changed(asking: &Asking<'_>) -> Result<Why, Error> {
    let run = asking.success()?;
    let field = asking.field.as_deref();
    let found = edge(asking, run, Side::Desired, |body| view(body, field))?;
    if found.before.is_some() {
        return by_a_step(asking, found);
    }
    // No step ever set it, or it has had its value from the first run on.
    let run = asking.success()?;
    let body = state::slot(run.desired(), &asking.slot).map(state::body);
    let is_ours = !view(body, field).is_empty();
    let seen = edge(asking, run, Side::Observed, |body| view(body, field))?;
    match seen {
        Edge { run, before: Some(before), .. } if !is_ours => {
            by_somebody_else(asking, &before, &run)
        }
        _ if is_ours => Ok(unchanged(asking, &found)),
        _ => {
            let what = field.map_or_else(|| format!("resource {:?}", asking.slot), str::to_owned);
            let owner = super::words(&asking.head.owner);
            Err(Error::NotFound(format!("no kept run of {owner} has another value of {what}")))
        }
    }
}

fn unchanged(asking: &Asking<'_>, found: &Edge) -> Why {
    let run = &found.run;
    let subject = asking.subject(&asking.object_in(run));
    let what = match asking.field.as_deref() {
        Some(field) => format!("{field} of {subject}"),
        None => subject,
    };
    let kept = if found.is_cut { "that was looked at" } else { "that is kept" };
    let sentence =
        format!("{what} has not changed since {}, the first run {kept}.", run_words(run));
    let mut why = asking.answer(Reason::FirstRun, Some(run), sentence);
    why.evidence.push(run_evidence(run, "the first run that is known"));
    let step = field_step(run, &asking.slot, asking.field.as_deref());
    why.evidence.extend(step.map(|step| super::step_evidence(run, step, "set it")));
    why.step = named_step(step);
    why
}

/// The step that last set a field, or created the resource.
fn field_step<'a>(run: &'a Run, slot: &str, field: Option<&str>) -> Option<&'a Step> {
    let blamed = blame::of(run, &|name| name == slot).pop()?;
    let stamps = blamed.fields.iter().filter(|(path, ..)| {
        let path = path.to_string();
        field.is_some_and(|field| is_below(&path, field) || is_below(field, &path))
    });
    // Of several, the last step decided.
    let last: Option<Stamp> = stamps.map(|(.., stamp)| *stamp).max();
    step_of(run, if field.is_some() { last? } else { blamed.created? })
}

/// The differences that were asked for.
fn fields_of(asking: &Asking<'_>, before: &Run, run: &Run, observed: bool) -> Vec<FieldItem> {
    let slot = slot_difference(before, run, &asking.slot, observed);
    let is_meant = |item: &&FieldItem| {
        asking
            .field
            .as_deref()
            .is_none_or(|field| is_below(&item.path, field) || is_below(field, &item.path))
    };
    slot.own_fields().filter(is_meant).cloned().collect()
}

fn by_a_step(asking: &Asking<'_>, found: Edge) -> Result<Why, Error> {
    let Edge { run, before, .. } = found;
    let Some(before) = before else { return Ok(Why::default()) };
    let slot = &asking.slot;
    let object = asking.object_in(&run);
    let subject = asking.subject(&object);
    let mut fields = fields_of(asking, &before, &run, false);
    // What was moved was not set.
    fields.sort_by_key(|item| item.change == Sign::Moved);
    let first = fields.first().cloned();
    let is_there = |run: &Run| state::slot(run.desired(), slot).is_some();
    let what = match (is_there(&before), is_there(&run), &first) {
        (false, true, _) => {
            format!("{subject} is desired since {}, and was not before.", run_words(&run))
        }
        (true, false, _) => format!("{subject} is not desired since {}.", run_words(&run)),
        (_, _, Some(first)) if asking.field.is_some() && fields.len() == 1 => {
            format!("{} since {}.", field_words(first, &subject), run_words(&run))
        }
        (_, _, Some(first)) => format!(
            "{subject} is desired otherwise since {}: {} differ{}, the first: {}.",
            run_words(&run),
            sentence::counted(fields.len(), "field"),
            if fields.len() == 1 { "s" } else { "" },
            sentence::field_words(first)
        )
        .replace("1 field differs, the first:", "1 field differs:"),
        (_, _, None) => format!("{subject} is desired otherwise since {}.", run_words(&run)),
    };
    let path = first.as_ref().map(|first| first.path.clone());
    let step = field_step(&run, slot, path.as_deref()).or_else(|| {
        // It is gone: whoever had set it did not do so again.
        counterpart(&before, &run, field_step(&before, slot, path.as_deref())?)
    });
    let values: Values<'_> =
        first.as_ref().map(|first| (first.before.as_ref(), first.after.as_ref()));
    let root = super::root(&before, &run, step, values);
    let gone = first.as_ref().is_some_and(|first| first.change == Sign::Removed);
    let did = if gone { "no longer set it" } else { "set it" };
    let who = step.map_or_else(String::new, |step| {
        format!(
            " {} {did}.",
            super::super::super::cause::capital(&step_words(&step_ref(Some(step))))
        )
    });
    let mut why = asking.answer(root.reason, Some(&run), String::new());
    why.object = object;
    why.step = named_step(step);
    why.run_before = Some(before.head.trace.clone());
    why.sentence = format!("{what}{who} {}", root.words());
    for item in fields.iter().take(SHOWN) {
        let same = step.and_then(|step| same_value(step, item.after.as_ref()?));
        let mut text = sentence::field_words(item);
        if let Some(same) = &same {
            text = format!("{text}, same value: {same}");
        }
        why.evidence.push(Evidence {
            run: Some(run.head.trace.clone()),
            step: named_step(step),
            part: Some("desired".to_owned()),
            resource: Some(slot.clone()),
            field: Some(item.clone()),
            same_value: same,
            ..Evidence::new(EvidenceKind::Output, text)
        });
    }
    why.evidence.extend(root.evidence(&before, &run));
    let changes = asking.changes(&why.object, Some(run.head.started), Some("update"), false)?;
    let is_its = |change: &super::ChangeItem| {
        change.link.as_ref().is_some_and(|link| link.run == run.head.trace)
    };
    why.evidence.extend(changes.into_iter().filter(is_its).map(change_evidence));
    Ok(why)
}

fn field_words(field: &FieldItem, subject: &str) -> String {
    let value = |value: &Option<Value>| value.as_ref().map(short).unwrap_or_default();
    let path = &field.path;
    match field.change {
        Sign::Added => format!("{path} of {subject} is set, to {},", value(&field.after)),
        Sign::Removed => {
            format!("{path} of {subject}, {} before, is not set", value(&field.before))
        }
        _ => {
            let (before, after) = (value(&field.before), value(&field.after));
            format!("{path} of {subject} is {after} instead of {before}")
        }
    }
}

/// Where a value stands in what a step was given. Values that are everywhere say nothing.
fn same_value(step: &Step, value: &Value) -> Option<String> {
    let says_something = match value {
        Value::String(text) => text.len() >= 2,
        Value::Number(_) => true,
        _ => false,
    };
    if !says_something || crate::query::difference::is_redacted(value) {
        return None;
    }
    let request = step.request.as_ref()?;
    let find = |document: Option<&Value>, below: Option<&str>| {
        let all = leaves(document?);
        let found = all.into_iter().find(|(path, own)| {
            *own == value && below.is_none_or(|below| is_below(&path.to_string(), below))
        });
        found.map(|(path, _)| path.to_string())
    };
    let composite = state::slot(request.get("observed"), state::COMPOSITE).map(state::body);
    let in_composite = ["spec", "metadata", "status"].iter().find_map(|below| {
        find(composite, Some(*below)).map(|path| format!("observed composite {path}"))
    });
    in_composite.or_else(|| {
        let parts = ["requiredResources", "extraResources", "context", "input"];
        parts
            .iter()
            .find_map(|part| find(request.get(*part), None).map(|path| format!("{part} {path}")))
    })
}

/// A field that no step sets.
fn by_somebody_else(asking: &Asking<'_>, before: &Run, run: &Run) -> Result<Why, Error> {
    let object = asking.object_in(run);
    let subject = asking.subject(&object);
    let fields = fields_of(asking, before, run, true);
    let what = match fields.first() {
        Some(first) => sentence::field_words(first),
        None => "it came or went".to_owned(),
    };
    let body = state::slot(run.observed(), &asking.slot).map(state::body);
    let path = asking.field.as_deref().or(fields.first().map(|first| first.path.as_str()));
    let managers = match (body, path) {
        (Some(body), Some(path)) => crate::store::managers_of(body, path),
        _ => Vec::new(),
    };
    let who = if managers.is_empty() {
        "no step of the pipeline sets it, so somebody else did".to_owned()
    } else {
        format!("no step of the pipeline sets it; its manager is {}", managers.join(", "))
    };
    let sentence =
        format!("{subject} was observed otherwise in {}: {what}; {who}.", run_words(run));
    let mut why = asking.answer(Reason::SomebodyElse, Some(run), sentence);
    why.object = object;
    why.run_before = Some(before.head.trace.clone());
    for item in fields.iter().take(SHOWN) {
        why.evidence.push(Evidence {
            run: Some(run.head.trace.clone()),
            part: Some("observed".to_owned()),
            resource: Some(asking.slot.clone()),
            field: Some(item.clone()),
            ..Evidence::new(EvidenceKind::Input, sentence::field_words(item))
        });
    }
    for manager in managers {
        why.evidence.push(Evidence {
            run: Some(run.head.trace.clone()),
            resource: Some(asking.slot.clone()),
            ..Evidence::new(EvidenceKind::Manager, manager)
        });
    }
    why.evidence.push(run_evidence(before, "the run that it was compared with"));
    let since = Some(before.head.started);
    let changes = asking.changes(&why.object, since, None, false)?;
    why.evidence.extend(changes.into_iter().map(change_evidence));
    Ok(why)
}

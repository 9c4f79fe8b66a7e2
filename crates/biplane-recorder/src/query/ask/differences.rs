//! What differs between two runs, steps or resources.

use jiff::Timestamp;
use serde_json::Value;

use super::super::address::Part;
use super::super::answer::{Compare, Diff, FieldItem, SlotItem};
use super::super::archive::{Archive, Error, Scope};
use super::super::outline::Bodies;
use super::super::record::{Run, Side, Step};
use super::super::{compare as runs, difference, state};
use super::{Found, Named, find, item_of, success_before};
use crate::query::sentence;

/// One side of a comparison.
#[derive(Default)]
pub(super) struct View {
    pub(super) label: String,
    pub(super) state: Option<Value>,
    pub(super) context: Option<Value>,
    /// Only this slot is compared.
    pub(super) slot: Option<String>,
    /// Whether something may be redacted.
    pub(super) is_redacted: bool,
}

pub(super) fn diff(
    archive: &dyn Archive,
    before: &Named,
    after: Option<&str>,
    observed: bool,
    now: Timestamp,
) -> Result<Diff, Error> {
    let first = find(archive, before, now)?;
    let (mut was, mut is) = match after {
        Some(after) => {
            let address = after.to_owned();
            let second =
                find(archive, &Named { address, namespace: before.namespace.clone() }, now)?;
            (view(archive, &first, observed)?, view(archive, &second, observed)?)
        }
        None => alone(archive, &first, observed)?,
    };
    compared(archive, &mut was, &mut is)
}

/// What a run changed, with the states before and after it. What differs in them is read.
pub fn changed_by(
    archive: &dyn Archive,
    run: &Named,
    now: Timestamp,
) -> Result<(Diff, Option<Value>, Option<Value>), Error> {
    let (mut was, mut is) = alone(archive, &find(archive, run, now)?, false)?;
    let diff = compared(archive, &mut was, &mut is)?;
    Ok((diff, was.state, is.state))
}

/// What differs between two views. Their states are read as far as that takes.
pub(super) fn compared(
    archive: &dyn Archive,
    was: &mut View,
    is: &mut View,
) -> Result<Diff, Error> {
    let bodies = Bodies::new(archive);
    if let (Some(was_slot), Some(is_slot)) = (&was.slot, &is.slot) {
        bodies.slot(was.state.as_mut(), was_slot)?;
        bodies.slot(is.state.as_mut(), is_slot)?;
    } else {
        bodies.differing(was.state.as_mut(), is.state.as_mut(), usize::MAX)?;
        let is_redacted = was.is_redacted && is.is_redacted;
        bodies.common(was.state.as_mut(), is.state.as_mut(), 0, is_redacted)?;
    }
    let mut nodes = difference::NODES;
    let slots = match (&was.slot, &is.slot) {
        (Some(was_slot), Some(is_slot)) => {
            let body = |view: &View, slot: &str| state::slot(view.state.as_ref(), slot).cloned();
            let (a, b) = (body(was, was_slot), body(is, is_slot));
            if a.is_none() && b.is_none() {
                return Err(Error::NotFound(format!("neither run has a resource {is_slot:?}")));
            }
            vec![state::one(is_slot, a.as_ref(), b.as_ref(), &mut nodes)]
        }
        (None, None) => state::compare(was.state.as_ref(), is.state.as_ref(), &mut nodes),
        _ => {
            let reason =
                "a resource can only be compared with a resource: RUN:RESOURCE RUN:RESOURCE";
            return Err(Error::Usage(reason.to_owned()));
        }
    };
    let items: Vec<SlotItem> = slots.iter().map(SlotItem::from).collect();
    let context = match (&was.context, &is.context) {
        (None, None) => Vec::new(),
        (was, is) => {
            let none = Value::Object(serde_json::Map::new());
            let (was, is) = (was.as_ref().unwrap_or(&none), is.as_ref().unwrap_or(&none));
            let found = difference::within(was, is, &mut nodes);
            found.changes.iter().map(FieldItem::from).collect()
        }
    };
    let differs = items.iter().any(SlotItem::differs) || !context.is_empty();
    let sentence = if differs && items.iter().any(SlotItem::differs) {
        format!("{}.", sentence::changes(&items))
    } else if differs {
        format!("Only the context differs: {}.", sentence::counted(context.len(), "field"))
    } else {
        "Nothing differs.".to_owned()
    };
    let is_shown = |slot: &SlotItem| {
        slot.change != super::super::answer::Sign::Unchanged || !slot.unknown.is_empty()
    };
    let (resources, same): (Vec<_>, Vec<_>) = items.into_iter().partition(is_shown);
    Ok(Diff {
        before: was.label.clone(),
        after: is.label.clone(),
        sentence,
        differs,
        unchanged: same.len(),
        resources,
        context,
    })
}

/// What an address alone is compared with: a run with the one before, a step with what it was given.
fn alone(archive: &dyn Archive, found: &Found, observed: bool) -> Result<(View, View), Error> {
    if let Part::Step(_) = found.part {
        let run = archive.outline(&found.head, Scope::Messages)?;
        let Some(step) = found.step(&run)? else { return Ok((View::default(), View::default())) };
        if step.response.is_none() {
            let reason = format!("step {} of this run has no answer", step.index + 1);
            return Err(Error::NotFound(reason));
        }
        return Ok((of_step(found, step, Side::Before), of_step(found, step, Side::After)));
    }
    let is = view(archive, found, observed)?;
    let was = match success_before(archive, &found.head)? {
        Some(head) => view(archive, &Found { head, part: found.part.clone() }, observed)?,
        None => View { label: "nothing".to_owned(), slot: is.slot.clone(), ..View::default() },
    };
    Ok((was, is))
}

fn view(archive: &dyn Archive, found: &Found, observed: bool) -> Result<View, Error> {
    let scope = match &found.part {
        Part::Step(_) => Scope::Messages,
        _ if observed => Scope::States,
        _ => Scope::Desired,
    };
    let run = archive.outline(&found.head, scope)?;
    if let Some(step) = found.step(&run)? {
        return Ok(of_step(found, step, Side::After));
    }
    if !observed && run.head.outcome.is_failure() {
        let trace = short(&run);
        let reason = format!(
            "run {trace} did not get to its end, so what it desired is not known; compare it with the run before"
        );
        return Err(Error::NotFound(reason));
    }
    let state = if observed { run.observed() } else { run.desired() }.cloned();
    let label = short(&run);
    let is_redacted = archive.is_redacted(&found.head)?;
    Ok(match &found.part {
        Part::Slot(slot) => View {
            label: format!("{label}:{slot}"),
            state,
            context: None,
            slot: Some(slot.clone()),
            is_redacted,
        },
        _ => View { label, state, context: None, slot: None, is_redacted },
    })
}

fn of_step(found: &Found, step: &Step, side: Side) -> View {
    let (message, word) = match side {
        Side::Before => (&step.request, "given"),
        Side::After => (&step.response, "answered"),
    };
    let part = |name: &str| message.as_ref().and_then(|message| message.get(name)).cloned();
    let trace: String = found.head.trace.chars().take(8).collect();
    View {
        label: format!("{trace}/{} {word}", step.index + 1),
        state: part("desired"),
        context: part("context"),
        slot: None,
        is_redacted: true,
    }
}

fn short(run: &Run) -> String {
    run.head.trace.chars().take(8).collect()
}

pub(super) fn compare(
    archive: &dyn Archive,
    before: &Named,
    after: Option<&str>,
    now: Timestamp,
) -> Result<Compare, Error> {
    let first = find(archive, before, now)?.head;
    let (was, is) = if let Some(after) = after {
        let named = Named { address: after.to_owned(), namespace: before.namespace.clone() };
        (first, find(archive, &named, now)?.head)
    } else {
        let none = || Error::NotFound(format!("no run before {} is kept", first.trace));
        (archive.run_before(&first)?.ok_or_else(none)?, first)
    };
    let bodies = Bodies::new(archive);
    let mut was = archive.outline(&was, Scope::Messages)?;
    let mut is = archive.outline(&is, Scope::Messages)?;
    bodies.runs(&mut was, &mut is)?;
    let found = runs::compare(&was, &is);
    let sentence = match (&found.first, found.inputs) {
        (None, _) => "Both runs were given the same and answered the same.".to_owned(),
        (Some(first), _) if first.part == "step" => {
            format!("The pipelines differ, first in step {}.", first.step.label())
        }
        (Some(first), 0) if first.half == "answered" => {
            let step = first.step.label();
            let what = sentence::cause(first);
            format!("Step {step} was given the same and answered something else: {what}.")
        }
        (Some(first), inputs) => {
            let inputs = sentence::counted(inputs.max(1), "input");
            let verb = if inputs.starts_with("1 ") { "differs" } else { "differ, the first" };
            format!("{inputs} {verb}: {}.", sentence::cause(first))
        }
    };
    let listed = |run: &Run| -> Result<_, Error> {
        let before = success_before(archive, &run.head)?;
        let before = before.map(|head| archive.outline(&head, Scope::Desired));
        item_of(&bodies, run, before.transpose()?.as_ref())
    };
    Ok(Compare {
        before: listed(&was)?,
        after: listed(&is)?,
        sentence,
        differs: found.first.is_some(),
        steps: found.steps,
        first: found.first,
    })
}

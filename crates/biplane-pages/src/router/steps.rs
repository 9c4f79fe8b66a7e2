//! One step of a run.

use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::{Archive as _, Scope};
use biplane_recorder::query::ask::{self, Named, Question};
use biplane_recorder::query::outline::Bodies;
use biplane_recorder::query::record::Step;
use biplane_recorder::query::state;
use biplane_recorder::store::rows::StepRow;
use serde_json::Value;

use super::{Context, Reply, Result, by_id, from, part_of};
use crate::draw;
use crate::http::Request;
use crate::page::failure::Failure;
use crate::page::step::{self, Asked, Shown, Tab};
use crate::tree::{Position, names_towards, size, unread};

/// Messages up to this size are read as a whole.
const SMALL: usize = 256 * 1024;

/// The page of a step. Steps are numbers, with that of the call if there are several.
pub(super) fn page(
    context: &Context<'_>,
    request: &Request,
    run: &str,
    number: &str,
    tab: &str,
) -> Result<Reply> {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let (first, call) = number.split_once('.').unwrap_or((number, "1"));
    if !is_number(first) || !is_number(call) {
        return Err(Failure::NoPage);
    }
    let asked = Asked {
        step: number.to_owned(),
        tab: Tab::of_text(tab).ok_or(Failure::NoPage)?,
        position: Position::of_text(request.query("p").unwrap_or_default())
            .ok_or(Failure::NoPage)?,
        from: from(request),
    };
    let Answer::Run(detail) = context.ask(&Question::Run(by_id(run)?))? else {
        return Err(Failure::NoPage);
    };
    let named = part_of(&detail.item.run, &format!("/{number}"))?;
    let shown = shown(context, &named, asked.tab, &asked.position)?;
    let is_late = || context.is_late();
    let page = step::page(&detail, &shown, &asked, &is_late, &context.links);
    Ok(page.ok_or(Failure::NoPage)?.into())
}

/// Reads as much of a step as a tab shows. Of small messages that is everything.
fn shown(context: &Context<'_>, named: &Named, tab: Tab, position: &Position) -> Result<Shown> {
    let stored = context.stored;
    let found = ask::find(stored, named, context.now)?;
    let rows = stored.store().steps(found.head.key)?;
    let run = stored.outline(&found.head, Scope::Messages)?;
    let Some(step) = found.step(&run)? else { return Err(Failure::NoPage) };
    let is_it = |row: &&StepRow| {
        (row.index, row.iteration) == (i64::from(step.index), i64::from(step.iteration))
    };
    let row = rows.iter().find(is_it).ok_or(Failure::NoPage)?;
    let bytes = |count: i64| usize::try_from(count).unwrap_or_default();
    let bytes = (bytes(row.bytes.0), bytes(row.bytes.1));
    if bytes.0 + bytes.1 <= SMALL {
        let Answer::Steps(steps) = context.ask(&Question::Steps(named.clone()))? else {
            return Err(Failure::NoPage);
        };
        let sentence = steps.sentence.unwrap_or_default();
        let item = steps.steps.into_iter().next().ok_or(Failure::NoPage)?;
        let redacted = item.redacted.len();
        let bytes = (item.request.as_ref().map(size), item.response.as_ref().map(size));
        return Ok(Shown { item, sentence, bytes, redacted });
    }
    let (mut item, sentence) = ask::step_summary(step);
    let redactions = row.exchange.map(|id| stored.store().redactions(id)).transpose()?;
    let redactions = redactions.flatten().and_then(|count| usize::try_from(count).ok());
    let redactions = redactions.unwrap_or_default();
    let mut step = step.clone();
    let bodies = Bodies::new(stored);
    match tab {
        Tab::Difference => difference(&bodies, &mut step, redactions > 0)?,
        Tab::Request => document(context, &bodies, step.request.as_mut(), position)?,
        Tab::Response => document(context, &bodies, step.response.as_mut(), position)?,
        Tab::Raw => {
            for message in [&mut step.request, &mut step.response].into_iter().flatten() {
                bodies.message(message, step::RAW)?;
            }
        }
        Tab::Needs => {}
    }
    let bytes = (step.request.as_ref().map(|_| bytes.0), step.response.as_ref().map(|_| bytes.1));
    (item.request, item.response) = (step.request, step.response);
    Ok(Shown { item, sentence, bytes, redacted: redactions })
}

/// Reads the resource that a position in a message leads into. The others are known by their sizes.
fn document(
    context: &Context<'_>,
    bodies: &Bodies<'_>,
    message: Option<&mut Value>,
    position: &Position,
) -> Result<()> {
    let Some(message) = message else { return Ok(()) };
    let names = names_towards(message, position);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (state, slot) = match names.as_slice() {
        [state, "resources", slot, ..] => (*state, *slot),
        [state, ..] => (*state, state::COMPOSITE),
        [] => ("observed", state::COMPOSITE),
    };
    if matches!(state, "observed" | "desired") {
        bodies.slot(message.get_mut(state), slot)?;
    }
    let leave_unread = |slot: &mut Value| -> Result<()> {
        if let Some(body) = slot.get_mut("resource")
            && let Some(key) = body.as_i64()
        {
            *body = unread(context.stored.body_bytes(key)?);
        }
        Ok(())
    };
    for state in ["observed", "desired"] {
        let Some(state) = message.get_mut(state) else { continue };
        if let Some(composite) = state.get_mut("composite") {
            leave_unread(composite)?;
        }
        let composed = state.get_mut("resources").and_then(Value::as_object_mut);
        for (_, slot) in composed.into_iter().flatten() {
            leave_unread(slot)?;
        }
    }
    Ok(())
}

/// Reads what a step made of what it was given, and where it can have it from.
fn difference(bodies: &Bodies<'_>, step: &mut Step, is_redacted: bool) -> Result<()> {
    let desired = |message: &mut Option<Value>| match message {
        Some(Value::Object(fields)) => fields.remove("desired"),
        _ => None,
    };
    let mut was = desired(&mut step.request);
    let mut is = desired(&mut step.response);
    bodies.differing(was.as_mut(), is.as_mut(), usize::MAX)?;
    bodies.common(was.as_mut(), is.as_mut(), draw::NAMED, is_redacted)?;
    for (message, state) in [(&mut step.request, was), (&mut step.response, is)] {
        if let (Some(Value::Object(fields)), Some(state)) = (message, state) {
            fields.insert("desired".to_owned(), state);
        }
    }
    let observed = step.request.as_mut().and_then(|request| request.get_mut("observed"));
    Ok(bodies.slot(observed, state::COMPOSITE)?)
}

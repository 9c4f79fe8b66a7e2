//! A composed resource, by itself and in one run.

use std::collections::BTreeMap;

use biplane_recorder::query::answer::{Answer, BlameItem, Verb};
use biplane_recorder::query::archive::{Archive as _, Scope};
use biplane_recorder::query::ask::Question;
use biplane_recorder::query::outline::Bodies;
use biplane_recorder::query::record::{ObjectRef, Run};
use biplane_recorder::query::sentence::lists::ResourceHistory;
use biplane_recorder::query::state;
use biplane_recorder::store::rows::{self, Side, SlotRow};
use jiff::Timestamp;
use maud::html;
use serde_json::{Value, json};

use super::changes::items;
use super::runs::states;
use super::{Context, Reply, Result, part_of, run_row};
use crate::ids;
use crate::links::object_ref;
use crate::page::failure::Failure;
use crate::page::resource::{self, InRun, Resource, Version, step_words};

/// How many versions and changes the page has.
const VERSIONS: usize = 40;
const CHANGES: usize = 20;

pub(super) fn slot(context: &Context<'_>, key: &str) -> Result<(SlotRow, rows::ObjectRow)> {
    let store = context.stored.store();
    let id = ids::key(key).ok_or(Failure::NoPage)?;
    let gone = || Failure::NotFound("this resource is no longer kept".to_owned());
    let slot = store.slot(id)?.ok_or_else(gone)?;
    let owner = store.object(slot.owner)?.ok_or_else(gone)?;
    Ok((slot, owner))
}

/// The page of a resource.
pub(super) fn one(context: &Context<'_>, key: &str) -> Result<Reply> {
    let store = context.stored.store();
    let (slot, owner) = slot(context, key)?;
    let versions = store.versions(slot.id, Side::Desired)?;
    let mut changed: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for field in store.fields_of_slot(slot.id, Side::Desired)? {
        changed.entry(field.run).or_default().push(field.path);
    }
    let mut shown = Vec::new();
    for version in versions.iter().rev().take(VERSIONS) {
        shown.push(Version {
            run: store.run_by_id(version.run)?.map(|row| row.trace),
            at: version.at,
            gone: version.body.is_none(),
            fields: changed.remove(&version.run).unwrap_or_default(),
        });
    }
    let object = match slot.object {
        Some(id) => store.object(id)?.map(|row| object_ref(&row)).unwrap_or_default(),
        None => ObjectRef::default(),
    };
    let blame = last_blame(context, &owner, &slot.name)?;
    let object = match &blame {
        Some((_, item)) if object.name.is_empty() => item.object.clone(),
        _ => object,
    };
    let filter = rows::ChangeFilter { object: slot.object, ..rows::ChangeFilter::default() };
    let changes = match slot.object {
        Some(_) => items(&store.changes(&filter, CHANGES, None)?),
        None => Vec::new(),
    };
    // What was gone in between is another life of the resource.
    let life = versions.iter().rposition(|version| version.body.is_none()).map_or(0, |at| at + 1);
    let life = versions.get(life..).unwrap_or_default();
    let time = |at: i64| Timestamp::from_microsecond(at).ok();
    let last = shown.first().and_then(|version| version.run.clone());
    let step = last.as_ref().zip(blame.as_ref()).and_then(|(run, (_, item))| {
        let is_new = |since: &&biplane_recorder::query::answer::BlameField| {
            since.since.as_ref().is_some_and(|since| since.run == *run)
        };
        item.fields.iter().find(is_new).and_then(|field| field.step.as_ref()).map(step_words)
    });
    let history = ResourceHistory {
        since: life.first().and_then(|version| time(version.at)),
        gone: versions.last().filter(|v| v.body.is_none()).and_then(|v| time(v.at)),
        changes: life.len().saturating_sub(1),
        last: last.map(|run| (ids::trace(&run).to_owned(), step)),
        provider: changes.first().map(|change| (change.operation.clone(), change.error.clone())),
    };
    let is_gone = history.gone.is_some();
    let page = Resource {
        key: slot.id,
        owner: object_ref(&owner),
        name: slot.name.clone(),
        object,
        history,
        is_cut: versions.len() > VERSIONS,
        versions: shown,
        changes,
        blame,
        questions: super::composites::asked(slot.id, verbs(is_gone)),
    };
    Ok(resource::page(&page, &context.links).into())
}

/// What can be asked about a resource.
fn verbs(is_gone: bool) -> &'static [Verb] {
    if is_gone { &[Verb::Deleted] } else { &[Verb::Created, Verb::Changed, Verb::NotReady] }
}

/// Who set what in the last run that got to its end.
fn last_blame(
    context: &Context<'_>,
    owner: &rows::ObjectRow,
    name: &str,
) -> Result<Option<(String, BlameItem)>> {
    let filter = rows::RunFilter {
        owner: Some(owner.id),
        outcomes: vec![rows::Outcome::Ok, rows::Outcome::Warning],
        ..rows::RunFilter::default()
    };
    let runs = context.stored.store().runs(&filter, 2, None)?;
    let Some(run) = runs.iter().find(|run| !run.open) else { return Ok(None) };
    Ok(blamed(context, &run.trace, name)?.map(|item| (run.trace.clone(), item)))
}

fn blamed(context: &Context<'_>, trace: &str, name: &str) -> Result<Option<BlameItem>> {
    match context.ask(&Question::Blame(part_of(trace, &format!(":{name}"))?)) {
        Ok(Answer::Blame(blame)) => Ok(blame.resources.into_iter().next()),
        Ok(_) | Err(Failure::NotFound(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The page of a resource in one run.
pub(super) fn in_run(context: &Context<'_>, run: &str, key: &str, from: usize) -> Result<Reply> {
    let (slot, _) = slot(context, key)?;
    let row = run_row(context, run)?;
    if row.owner.id != slot.owner {
        return Err(Failure::NoPage);
    }
    let name = &slot.name;
    let id = ids::trace(&row.trace).to_owned();
    let before = part_of(&row.trace, &format!(":{name}"))?;
    let asked = context.ask(&Question::Diff { before, after: None, observed: false });
    let diff = match asked {
        Ok(Answer::Diff(diff)) => Some(diff),
        Ok(_) | Err(Failure::NotFound(_)) => None,
        Err(failure) => return Err(failure),
    };
    let drawn = match &diff {
        None => {
            html! { p { "The run did not get to its end, or neither it nor the run before has the resource." } }
        }
        Some(diff) => {
            let stored = context.stored;
            let bodies = Bodies::new(stored);
            let mut after = stored.outline_of(&stored.head(&row)?, name)?;
            let trace = diff.before.split(':').next().unwrap_or_default();
            let before = match stored.by_trace(trace)?.as_slice() {
                [head] if trace != "nothing" => Some(stored.outline(head, Scope::Desired)?),
                _ => None,
            };
            let mut was = before.as_ref().map(|run| only(run, name));
            let mut is = only(&after, name);
            bodies.slot(was.as_mut(), name)?;
            bodies.slot(Some(&mut is), name)?;
            let next = |line: usize| format!("/runs/{id}/r/{key}?o={line}");
            states(context, &bodies, &mut after, (was.as_ref(), Some(&is)), from, &next)?
        }
    };
    let blamed = blamed(context, &row.trace, name)?;
    let shown = InRun {
        trace: &row.trace,
        owner: &object_ref(&row.owner),
        name,
        key: slot.id,
        diff: diff.as_ref(),
        drawn: &drawn,
        blamed: blamed.as_ref(),
    };
    Ok(resource::in_run(&shown, &context.links).into())
}

/// What a run desired of one resource.
fn only(run: &Run, name: &str) -> Value {
    match state::slot(run.desired(), name).cloned() {
        None => json!({}),
        Some(slot) if name.is_empty() => json!({"composite": slot}),
        Some(slot) => {
            let resources: serde_json::Map<String, Value> =
                [(name.to_owned(), slot)].into_iter().collect();
            json!({"resources": resources})
        }
    }
}

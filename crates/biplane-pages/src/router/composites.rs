//! Composite resources and Operations, and other objects.

use biplane_recorder::query::answer::{Answer, Verb};
use biplane_recorder::query::archive::{RunFilter, kind_and_group};
use biplane_recorder::query::ask::Question;
use biplane_recorder::query::record::ObjectRef;
use biplane_recorder::query::sentence::lists;
use biplane_recorder::query::time;
use biplane_recorder::store::rows::{self, ObjectRow, Side};
use jiff::Timestamp;

use super::changes::items;
use super::runs::beats;
use super::{Context, Reply, Result, outcome};
use crate::http::Request;
use crate::ids;
use crate::links::object_ref;
use crate::page::composite::{self, Composite, SLOTS, Slot};
use crate::page::composites::{self, Item};
use crate::page::failure::Failure;
use crate::page::resource::step_words;
use crate::page::why;

/// How many of them a list has.
const LIMIT: usize = 100;
/// How many runs and changes the page of one has.
const RUNS: usize = 10;

/// The list.
pub(super) fn list(context: &Context<'_>, request: &Request) -> Result<Reply> {
    let store = context.stored.store();
    let after = request.query("after").and_then(ids::key).unwrap_or_default();
    let owners = store.owners(after, LIMIT + 1)?;
    let more = owners.get(LIMIT - 1).filter(|_| owners.len() > LIMIT).map(|owner| owner.id);
    let mut found = Vec::new();
    for owner in owners.iter().take(LIMIT) {
        let filter = rows::RunFilter { owner: Some(owner.id), ..rows::RunFilter::default() };
        let last = store.runs(&filter, 1, None)?.into_iter().next();
        found.push(Item {
            key: owner.id,
            object: object_ref(owner),
            last: last.map(|row| (row.trace, row.started, outcome(row.outcome), row.open)),
        });
    }
    Ok(composites::page(&found, more).into())
}

pub(super) fn object(context: &Context<'_>, key: &str) -> Result<ObjectRow> {
    let id = ids::key(key).ok_or(Failure::NoPage)?;
    let gone = || Failure::NotFound("this resource is no longer kept".to_owned());
    context.stored.store().object(id)?.ok_or_else(gone)
}

/// The runs of an owner.
fn of_owner(owner: &ObjectRef) -> RunFilter {
    RunFilter {
        kind: Some(kind_and_group(owner)),
        name: Some(owner.name.clone()),
        namespace: (!owner.namespace.is_empty()).then(|| owner.namespace.clone()),
        ..RunFilter::default()
    }
}

/// One of them, or another object.
pub(super) fn one(context: &Context<'_>, key: &str, from: usize) -> Result<Reply> {
    let store = context.stored.store();
    let row = object(context, key)?;
    let beats = beats(context, row.id)?;
    let slots = store.slots(row.id)?;
    if beats.is_empty() && slots.is_empty() {
        return other(context, &row);
    }
    let named = object_ref(&row);
    let question = Question::Runs { filter: of_owner(&named), limit: RUNS, after: None };
    let Answer::Runs(list) = context.ask(&question)? else { return Err(Failure::NoPage) };
    let last = list.runs.iter().find(|run| !run.open);
    let is_failing = last.is_some_and(|run| run.outcome.is_failure());
    let step = last
        .filter(|_| is_failing)
        .and_then(|run| run.pipeline.get(run.reached.checked_sub(1)?).map(step_words));
    let said: Vec<lists::Beat> = beats
        .iter()
        .map(|beat| lists::Beat {
            started: Timestamp::from_microsecond(beat.started).unwrap_or_default(),
            outcome: beat.outcome,
            open: beat.open,
        })
        .collect();
    let has_changes = store.has_changes()?;
    let composed: Vec<_> = slots.into_iter().filter(|slot| !slot.name.is_empty()).collect();
    let mut shown = Vec::new();
    let mut changed = Vec::new();
    for slot in composed.iter().skip(from).take(SLOTS) {
        let object = slot.object.map(|id| store.object(id)).transpose()?.flatten();
        let filter = rows::ChangeFilter { object: slot.object, ..rows::ChangeFilter::default() };
        let done = match slot.object.filter(|_| has_changes) {
            Some(_) => store.changes(&filter, 3, None)?,
            None => Vec::new(),
        };
        let version = store.version_at(slot.id, Side::Desired, i64::MAX)?;
        shown.push(Slot {
            key: slot.id,
            name: slot.name.clone(),
            object: object.map(|row| object_ref(&row)).unwrap_or_default(),
            since: version.as_ref().map(|version| version.at),
            gone: version.as_ref().is_some_and(|version| version.body.is_none()),
            change: items(&done).into_iter().next(),
        });
        changed.extend(done);
    }
    changed.sort_by_key(|change| std::cmp::Reverse((change.at, change.id)));
    changed.truncate(RUNS);
    let page = Composite {
        key: row.id,
        sentence: lists::owner(&said, step.as_deref(), context.now),
        is_failing,
        beats,
        runs: list.runs,
        slots: shown,
        from,
        total: composed.len(),
        relations: relations(context, &row)?,
        changes: items(&changed),
        has_changes,
        object: named,
        questions: questions(context, &row, is_failing)?,
    };
    Ok(composite::page(&page, &context.links).into())
}

/// What can be asked about a composite resource: words and addresses.
fn questions(
    context: &Context<'_>,
    row: &ObjectRow,
    is_failing: bool,
) -> Result<Vec<(String, String)>> {
    let Some(slot) = context.stored.store().slot_named(row.id, "")? else { return Ok(Vec::new()) };
    let verbs = if is_failing {
        [Verb::Failed, Verb::NotReady, Verb::Slow]
    } else {
        [Verb::NotReady, Verb::Changed, Verb::Slow]
    };
    Ok(asked(slot.id, &verbs))
}

/// Questions about a resource: words and addresses.
pub(super) fn asked(slot: i64, verbs: &[Verb]) -> Vec<(String, String)> {
    let href = |verb: &Verb| format!("/r/{}/why/{}", ids::text(slot), verb.name());
    verbs.iter().map(|verb| (why::words(*verb).to_owned(), href(verb))).collect()
}

/// The objects around a composite resource.
fn relations(context: &Context<'_>, row: &ObjectRow) -> Result<Vec<(&'static str, ObjectRef)>> {
    let store = context.stored.store();
    let mut found = Vec::new();
    for (what, key) in [("Claim", row.claim), ("Parent", row.parent)] {
        if let Some(object) = key.map(|key| store.object(key)).transpose()?.flatten() {
            found.push((what, object_ref(&object)));
        }
    }
    found.extend(store.needs(row.id)?.iter().map(|need| ("Needs", object_ref(&need.object))));
    Ok(found)
}

/// An object that has no pipeline. One that is composed has its page elsewhere.
fn other(context: &Context<'_>, row: &ObjectRow) -> Result<Reply> {
    let store = context.stored.store();
    if let Some(slot) = store.slots_of_object(row.id)?.first() {
        return Ok(Reply::Redirect(format!("/r/{}", ids::text(slot.id))));
    }
    let mut owners = Vec::new();
    for need in store.needed_by(row.id)? {
        if let Some(owner) = store.object(need.owner)? {
            let owner = object_ref(&owner);
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        }
    }
    let filter = rows::ChangeFilter { object: Some(row.id), ..rows::ChangeFilter::default() };
    let changed = items(&store.changes(&filter, RUNS, None)?);
    Ok(composite::other(&object_ref(row), &owners, &changed, &context.links).into())
}

/// A time that was typed: leads to its address, which has it as microseconds.
pub(super) fn at(context: &Context<'_>, key: &str, text: &str) -> Result<Reply> {
    let row = object(context, key)?;
    let at = time::point(text, context.now).map_err(|error| Failure::Usage(error.to_string()))?;
    let (key, at) = (ids::text(row.id), ids::text(at.as_microsecond()));
    Ok(Reply::Redirect(format!("/x/{key}/at/{at}")))
}

//! Finds runs, resources, fields and changes by what was typed.

use biplane_recorder::query::record::ObjectRef;
use biplane_recorder::store::rows::{self, RunRow};

use super::{Context, Reply, Result, outcome};
use crate::ids;
use crate::links::object_ref;
use crate::page::search::{self, Found, FoundChange, FoundField, FoundRun};

/// How many things of each kind are found.
const MOST: usize = 20;
/// How many failed changes are looked at.
const CHANGES: usize = 300;
/// Shorter beginnings of ids are words.
const SHORTEST_ID: usize = 4;

/// Searches.
pub(super) fn search(context: &Context<'_>, words: &str) -> Result<Reply> {
    let words = words.trim();
    let mut found = Found { words: words.to_owned(), ..Found::default() };
    if words.is_empty() {
        return Ok(search::page(&found, &context.links).into());
    }
    let store = context.stored.store();
    let is_id = words.len() >= SHORTEST_ID
        && words.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if is_id {
        match store.run(words)? {
            rows::Found::One(row) => {
                return Ok(Reply::Redirect(format!("/runs/{}", ids::trace(&row.trace))));
            }
            rows::Found::Many(rows) => found.runs.extend(rows.iter().map(run)),
            rows::Found::None => {}
        }
    }
    found.objects = objects(context, words)?;
    found.runs.extend(store.runs_that_say(words, MOST)?.iter().map(run));
    if words.contains('.') && !words.contains([' ', '/']) {
        found.fields = fields(context, words)?;
    }
    let failed = rows::ChangeFilter { failed: true, ..rows::ChangeFilter::default() };
    let lower = words.to_lowercase();
    for change in store.changes(&failed, CHANGES, None)? {
        let error = change.error.clone().unwrap_or_default();
        if error.to_lowercase().contains(&lower) && found.changes.len() < MOST {
            found.changes.push(FoundChange {
                id: change.id,
                object: object_ref(&change.object),
                at: change.at,
                error,
            });
        }
    }
    Ok(search::page(&found, &context.links).into())
}

fn run(row: &RunRow) -> FoundRun {
    FoundRun {
        trace: row.trace.clone(),
        owner: object_ref(&row.owner),
        started: row.started,
        outcome: outcome(row.outcome),
    }
}

/// Objects by the beginning of their name, or by kind and name.
fn objects(context: &Context<'_>, words: &str) -> Result<Vec<ObjectRef>> {
    let store = context.stored.store();
    let rows = match words.split_once('/') {
        Some((kind, name)) => {
            let kind = kind.split('.').next().unwrap_or_default();
            let named = store.objects_named(name, 10 * MOST)?;
            let is_kind = |row: &rows::ObjectRow| row.kind.eq_ignore_ascii_case(kind);
            named.into_iter().filter(is_kind).take(MOST).collect()
        }
        None => store.objects_named(words, MOST)?,
    };
    Ok(rows.iter().map(object_ref).collect())
}

fn fields(context: &Context<'_>, path: &str) -> Result<Vec<FoundField>> {
    let store = context.stored.store();
    let mut found = Vec::new();
    for field in store.fields_at(path, MOST)? {
        let Some(slot) = store.slot(field.slot)? else { continue };
        let owner = store.object(slot.owner)?.map(|row| object_ref(&row)).unwrap_or_default();
        found.push(FoundField {
            slot: slot.id,
            name: slot.name,
            owner,
            run: store.run_by_id(field.run)?.map(|row| row.trace),
            values: (field.before.unwrap_or_default(), field.after.unwrap_or_default()),
        });
    }
    Ok(found)
}

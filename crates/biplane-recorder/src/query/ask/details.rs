//! All about one run, and who set what in it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::address::Part;
use super::super::answer::{
    Blame, BlameField, BlameItem, Condition, Need, RunDetail, Since, SlotItem, StepRef,
};
use super::super::archive::{Archive, ChangeFilter, Error, kind_and_group};
use super::super::blame::{self, SlotBlame, Stamp};
use super::super::compare::{self, step_ref};
use super::super::difference::NODES;
use super::super::path::Path;
use super::super::record::{Head, ObjectRef, Run};
use super::super::{state, time};
use super::{Found, PATIENCE, item_of, step_item, success_before, whole_pipeline};
use crate::query::sentence;

/// How many runs are looked at to say since when a field has its value.
const HISTORY: usize = 200;
/// How many resources of a run are followed to what providers did.
const FOLLOWED: usize = 20;

/// What a run desired, compared with another: what differs, or is redacted.
pub(super) fn changed(before: &Run, run: &Run) -> Vec<SlotItem> {
    let mut nodes = NODES;
    let slots = state::compare(before.desired(), run.desired(), &mut nodes);
    slots.iter().map(SlotItem::from).collect()
}

pub(super) fn run(archive: &dyn Archive, head: &Head) -> Result<RunDetail, Error> {
    let run = archive.load(head)?;
    let head = &run.head;
    let before = archive.run_before(head)?;
    let success = success_before(archive, head)?.map(|head| archive.load(&head)).transpose()?;
    let none = Run::default();
    let is_complete = !head.outcome.is_failure();
    let slots = changed(success.as_ref().unwrap_or(&none), &run);
    let slots = if is_complete { slots } else { Vec::new() };
    let compared = match &before {
        Some(before) if !is_complete => Some(compare::compare(&archive.load(before)?, &run)),
        _ => None,
    };
    let context = sentence::Context {
        pipeline: whole_pipeline(head, success.as_ref().map(|run| &run.head)),
        changed: success.as_ref().map(|_| slots.as_slice()),
        same_runs: same_runs(archive, head)?,
        before: before
            .as_ref()
            .zip(compared.as_ref())
            .map(|(before, compared)| (before.outcome, compared.first.as_ref(), compared.inputs)),
    };
    let sentence = sentence::run(&run, &context);
    let blamed = blame::blame(&run);
    let (mut resources, rest): (Vec<_>, Vec<_>) = slots.into_iter().partition(SlotItem::differs);
    for slot in &mut resources {
        slot.step = stamped(&run, &blamed, slot);
    }
    let changes = provider_changes(archive, head, &resources)?;
    Ok(RunDetail {
        item: item_of(&run, success.as_ref()),
        sentence,
        run_before: before.map(|before| before.trace),
        steps: run.steps.iter().map(|step| step_item(step, false)).collect(),
        unchanged: rest.iter().filter(|slot| !slot.resource.is_empty()).count(),
        resources,
        conditions: conditions(&run),
        needs: needs(&run),
        changes,
    })
}

/// How many runs right before one did the same.
fn same_runs(archive: &dyn Archive, head: &Head) -> Result<usize, Error> {
    let mut at = head.clone();
    for count in 0..PATIENCE {
        if !at.same {
            return Ok(count);
        }
        match archive.run_before(&at)? {
            Some(before) => at = before,
            None => return Ok(count),
        }
    }
    Ok(PATIENCE)
}

/// The step that created a resource, or set the first of the fields that differ.
fn stamped(run: &Run, blamed: &[SlotBlame], slot: &SlotItem) -> Option<StepRef> {
    let blamed = blamed.iter().find(|blamed| blamed.slot == slot.resource)?;
    let field = slot.own_fields().next();
    let field = field.and_then(|field| {
        let found =
            blamed.fields.iter().find(|(path, ..)| path.to_string().starts_with(&field.path));
        found.map(|(_, _, stamp)| *stamp)
    });
    step_of(run, blamed.removed.or(field).or(blamed.created)?)
}

fn step_of(run: &Run, stamp: Stamp) -> Option<StepRef> {
    match stamp {
        Stamp::Step(at) => run.last_calls().get(at).map(|step| step_ref(Some(step))),
        Stamp::Given | Stamp::Between(_) => None,
    }
}

fn provider_changes(
    archive: &dyn Archive,
    head: &Head,
    resources: &[SlotItem],
) -> Result<Vec<super::super::answer::ChangeItem>, Error> {
    let mut found = Vec::new();
    let named = resources.iter().filter(|slot| !slot.object.name.is_empty());
    for slot in named.filter(|slot| !slot.resource.is_empty()).take(FOLLOWED) {
        let filter = ChangeFilter {
            kind: Some(kind_and_group(&slot.object)),
            name: Some(slot.object.name.clone()),
            since: Some(whole_second(head.started)),
            ..ChangeFilter::default()
        };
        for change in archive.changes(&filter, 5, None)? {
            let item = super::changes::item(archive, &change)?;
            if item.link.as_ref().is_some_and(|link| link.run == head.trace) {
                found.push(item);
            }
        }
    }
    Ok(found)
}

/// Entries of change logs are known by the second.
fn whole_second(time: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn conditions(run: &Run) -> Vec<Condition> {
    let mut found = Vec::new();
    for step in run.last_calls() {
        let list =
            step.response.as_ref().and_then(|r| r.get("conditions")).and_then(Value::as_array);
        for condition in list.into_iter().flatten() {
            found.push(Condition {
                r#type: text(condition, "type").to_owned(),
                status: match text(condition, "status") {
                    "STATUS_CONDITION_TRUE" => "True",
                    "STATUS_CONDITION_FALSE" => "False",
                    "STATUS_CONDITION_UNKNOWN" => "Unknown",
                    _ => "Unspecified",
                }
                .to_owned(),
                reason: text(condition, "reason").to_owned(),
                message: text(condition, "message").to_owned(),
                step: step_ref(Some(step)),
            });
        }
    }
    found
}

fn needs(run: &Run) -> Vec<Need> {
    let mut found: Vec<Need> = Vec::new();
    for step in run.last_calls() {
        let part = |message: &Option<Value>, name: &str| -> Vec<(String, Value)> {
            let fields = message.as_ref().and_then(|m| m.get(name)).and_then(Value::as_object);
            fields.into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let mut given = part(&step.request, "requiredResources");
        given.extend(part(&step.request, "extraResources"));
        for (name, required) in given {
            let items = required.get("items").and_then(Value::as_array);
            for body in items.into_iter().flatten().map(state::body) {
                let metadata = body.get("metadata").unwrap_or(&Value::Null);
                found.push(Need {
                    name: name.clone(),
                    step: step_ref(Some(step)),
                    object: ObjectRef::of_object(body),
                    resource_version: text(metadata, "resourceVersion").to_owned(),
                });
            }
        }
        // What was fetched while the step ran is not in its request.
        let requirements = step.response.as_ref().and_then(|r| r.get("requirements")).cloned();
        for field in ["resources", "extraResources"] {
            for (name, asked) in part(&requirements, field) {
                if found.iter().any(|need| need.name == name) {
                    continue;
                }
                found.push(Need {
                    name,
                    step: step_ref(Some(step)),
                    object: ObjectRef {
                        api_version: text(&asked, "apiVersion").to_owned(),
                        kind: text(&asked, "kind").to_owned(),
                        namespace: text(&asked, "namespace").to_owned(),
                        name: text(&asked, "matchName").to_owned(),
                        uid: String::new(),
                    },
                    resource_version: String::new(),
                });
            }
        }
    }
    found
}

pub(super) fn blame(archive: &dyn Archive, found: &Found) -> Result<Blame, Error> {
    let run = archive.load(&found.head)?;
    let mut slots = blame::blame(&run);
    match &found.part {
        Part::Whole => {}
        Part::Slot(name) => {
            slots.retain(|slot| slot.slot == *name);
            if slots.is_empty() {
                let trace = &found.head.trace;
                let reason = format!("no step of run {trace} desired a resource {name:?}");
                return Err(Error::NotFound(reason));
            }
        }
        Part::Step(_) => {
            return Err(Error::Usage(
                "blame takes a run or a resource of it, not a step".to_owned(),
            ));
        }
    }
    let ages = ages(archive, &found.head, &slots)?;
    let resources = slots
        .into_iter()
        .zip(ages)
        .map(|(slot, ages)| BlameItem {
            object: ObjectRef::of_object(&slot.body),
            created_by: slot.created.and_then(|stamp| step_of(&run, stamp)),
            removed_by: slot.removed.and_then(|stamp| step_of(&run, stamp)),
            since: slot.removed.is_none().then(|| ages.slot.clone()),
            fields: slot
                .fields
                .iter()
                .map(|(path, value, stamp)| BlameField {
                    path: path.to_string(),
                    value: value.clone(),
                    step: step_of(&run, *stamp),
                    since: ages.fields.get(path).cloned().filter(|_| slot.removed.is_none()),
                })
                .collect(),
            resource: slot.slot,
        })
        .collect();
    Ok(Blame { run: found.head.trace.clone(), owner: found.head.owner.clone(), resources })
}

/// Since when a resource is desired, and each of its fields has its value.
struct Ages {
    slot: Since,
    fields: BTreeMap<Path, Since>,
}

/// Walks back from a run for as long as something is as it is. Runs that did not get to their end
/// say nothing.
fn ages(archive: &dyn Archive, head: &Head, slots: &[SlotBlame]) -> Result<Vec<Ages>, Error> {
    let since = |head: &Head| Since {
        run: head.trace.clone(),
        at: time::rfc3339(head.started),
        or_earlier: false,
    };
    let here = since(head);
    let mut ages: Vec<Ages> = slots
        .iter()
        .map(|slot| Ages {
            slot: here.clone(),
            fields: slot.fields.iter().map(|(path, ..)| (path.clone(), here.clone())).collect(),
        })
        .collect();
    // What may still be older: the slot itself, and its fields.
    let mut open: Vec<(bool, Vec<&Path>)> = slots
        .iter()
        .map(|slot| (true, slot.fields.iter().map(|(path, ..)| path).collect()))
        .collect();
    let mut at = head.clone();
    for count in 0..HISTORY {
        let Some(before) = archive.run_before(&at)? else {
            let or_earlier = archive.has_forgotten(&at)?;
            for (ages, (is_open, paths)) in ages.iter_mut().zip(&open) {
                ages.slot.or_earlier |= or_earlier && *is_open;
                for path in paths {
                    if let Some(since) = ages.fields.get_mut(*path) {
                        since.or_earlier |= or_earlier;
                    }
                }
            }
            break;
        };
        if before.outcome.is_failure() {
            at = before;
            continue;
        }
        let mut mark = since(&before);
        mark.or_earlier = count + 1 == HISTORY;
        let loaded = if at.same { None } else { Some(archive.load(&before)?) };
        for ((slot, ages), (is_open, paths)) in slots.iter().zip(&mut ages).zip(&mut open) {
            if let Some(run) = &loaded {
                let body = state::slot(run.desired(), &slot.slot).map(state::body);
                *is_open &= body.is_some();
                paths.retain(|path| body.is_some_and(|b| path.get(b) == path.get(&slot.body)));
            }
            if *is_open {
                ages.slot = mark.clone();
            }
            for path in &*paths {
                ages.fields.insert((*path).clone(), mark.clone());
            }
        }
        if open.iter().all(|(is_open, paths)| !is_open && paths.is_empty()) {
            break;
        }
        at = before;
    }
    Ok(ages)
}

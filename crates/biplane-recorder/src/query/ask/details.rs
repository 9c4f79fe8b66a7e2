//! All about one run, and who set what in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::address::Part;
use super::super::answer::{
    Blame, BlameField, BlameItem, Condition, Need, RunDetail, Since, SlotItem, StepRef,
};
use super::super::archive::{Archive, ChangeFilter, Error, Scope, kind_and_group};
use super::super::blame::{self, SlotBlame, Stamp, leaves};
use super::super::compare::{self, step_ref};
use super::super::difference::NODES;
use super::super::outline::Bodies;
use super::super::path::Path;
use super::super::record::{Head, ObjectRef, Run};
use super::super::{state, time};
use super::{Found, PATIENCE, item, step_item, success_before, whole_pipeline};
use crate::query::answer::Sign;
use crate::query::sentence;
use crate::store::rows::Side;

/// How many runs are looked at to say since when a field has its value.
const HISTORY: usize = 200;
/// How many resources of a run are followed to what providers did.
const FOLLOWED: usize = 20;

/// What a run desired, compared with another. At most so many resources are compared field by
/// field.
pub(super) fn changed(
    bodies: &Bodies<'_>,
    before: &Run,
    run: &Run,
    most: usize,
) -> Result<Vec<SlotItem>, Error> {
    let mut nodes = NODES;
    let (mut was, mut is) = (before.desired().cloned(), run.desired().cloned());
    bodies.differing(was.as_mut(), is.as_mut(), most)?;
    let slots = state::compare(was.as_ref(), is.as_ref(), &mut nodes);
    Ok(slots.iter().map(SlotItem::from).collect())
}

pub(super) fn run(archive: &dyn Archive, head: &Head) -> Result<RunDetail, Error> {
    let bodies = Bodies::new(archive);
    let mut run = archive.outline(head, Scope::Messages)?;
    let head = &run.head.clone();
    let before = archive.run_before(head)?;
    let success = success_before(archive, head)?;
    let success = success.map(|head| archive.outline(&head, Scope::Desired)).transpose()?;
    let none = Run::default();
    let is_complete = !head.outcome.is_failure();
    let slots = changed(&bodies, success.as_ref().unwrap_or(&none), &run, usize::MAX)?;
    let summary = sentence::summary(&run, success.as_ref().map(|_| slots.as_slice()));
    let slots = if is_complete { slots } else { Vec::new() };
    let compared = match &before {
        Some(before) if !is_complete => {
            let mut was = archive.outline(before, Scope::Messages)?;
            let mut is = run.clone();
            bodies.runs(&mut was, &mut is)?;
            Some(compare::compare(&was, &is))
        }
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
    let steps = run.steps.iter().map(|step| step_item(step, false)).collect();
    let (mut resources, rest): (Vec<_>, Vec<_>) = slots.into_iter().partition(SlotItem::differs);
    // Who created or removed something shows without its bodies.
    for slot in resources.iter().filter(|slot| slot.change == Sign::Changed) {
        bodies.everywhere(&mut run, &slot.resource)?;
    }
    let differing: BTreeSet<&str> = resources.iter().map(|slot| slot.resource.as_str()).collect();
    let blamed = blame::of(&run, &|name| differing.contains(name)).into_iter();
    let blamed: BTreeMap<String, SlotBlame> = blamed.map(|b| (b.slot.clone(), b)).collect();
    for slot in &mut resources {
        slot.step = stamped(&run, &blamed, slot);
    }
    let changes = provider_changes(archive, head, &resources)?;
    Ok(RunDetail {
        item: item(head, run.last_calls().len(), success.as_ref().map(|run| &run.head), summary),
        sentence,
        run_before: before.map(|before| before.trace),
        steps,
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
fn stamped(run: &Run, blamed: &BTreeMap<String, SlotBlame>, slot: &SlotItem) -> Option<StepRef> {
    let blamed = blamed.get(&slot.resource)?;
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
    let bodies = Bodies::new(archive);
    let mut run = match &found.part {
        Part::Slot(name) => archive.outline_of(&found.head, name)?,
        _ => archive.outline(&found.head, Scope::Messages)?,
    };
    let slots = match &found.part {
        Part::Whole => {
            for step in &mut run.steps {
                bodies.step(step)?;
            }
            blame::blame(&run)
        }
        Part::Slot(name) => {
            bodies.everywhere(&mut run, name)?;
            let slots = blame::of(&run, &|slot| slot == name);
            if slots.is_empty() {
                let trace = &found.head.trace;
                let reason = format!("no step of run {trace} desired a resource {name:?}");
                return Err(Error::NotFound(reason));
            }
            slots
        }
        Part::Step(_) => {
            return Err(Error::Usage(
                "blame takes a run or a resource of it, not a step".to_owned(),
            ));
        }
    };
    let ages = ages(&bodies, archive, &found.head, &slots)?;
    let resources = slots.into_iter().zip(ages).map(|(slot, ages)| blame_item(&run, slot, &ages));
    let resources = resources.collect();
    Ok(Blame { run: found.head.trace.clone(), owner: found.head.owner.clone(), resources })
}

/// Who set what in a run, as far as one looks: the fields of the first resources, and since when
/// the first fields of these have their values. Of the other resources, only who created and who
/// removed them.
pub fn blame_first(
    archive: &dyn Archive,
    head: &Head,
    resources: usize,
    fields: usize,
) -> Result<Blame, Error> {
    let bodies = Bodies::new(archive);
    let mut run = archive.outline(head, Scope::Messages)?;
    let mut slots = blame::blame(&run);
    let first: Vec<String> = slots.iter().take(resources).map(|slot| slot.slot.clone()).collect();
    for name in &first {
        bodies.everywhere(&mut run, name)?;
    }
    let is_first = |name: &str| first.binary_search_by(|first| first.as_str().cmp(name)).is_ok();
    let mut rest = slots.split_off(first.len());
    let slots = blame::of(&run, &is_first);
    let mut left = fields;
    let dated = slots.iter().take_while(|slot| {
        let is_dated = slot.fields.len() <= left;
        left = left.saturating_sub(slot.fields.len());
        is_dated
    });
    let dated = dated.count();
    let mut ages = ages(&bodies, archive, head, slots.get(..dated).unwrap_or_default())?;
    ages.resize_with(slots.len() + rest.len(), Ages::default);
    for slot in &mut rest {
        // Without its body, nothing is known of its fields.
        (slot.body, slot.fields) = (Value::Null, Vec::new());
    }
    let all = slots.into_iter().chain(rest).zip(ages);
    let resources = all.map(|(slot, ages)| blame_item(&run, slot, &ages)).collect();
    Ok(Blame { run: head.trace.clone(), owner: head.owner.clone(), resources })
}

fn blame_item(run: &Run, slot: SlotBlame, ages: &Ages) -> BlameItem {
    let is_there = slot.removed.is_none();
    let field = |(path, value, stamp): (Path, Value, Stamp)| BlameField {
        path: path.to_string(),
        value,
        step: step_of(run, stamp),
        since: ages.fields.get(&path).cloned().filter(|_| is_there),
    };
    BlameItem {
        object: ObjectRef::of_object(&slot.body),
        created_by: slot.created.and_then(|stamp| step_of(run, stamp)),
        removed_by: slot.removed.and_then(|stamp| step_of(run, stamp)),
        since: ages.slot.clone().filter(|_| is_there),
        fields: slot.fields.into_iter().map(field).collect(),
        resource: slot.slot,
    }
}

/// Since when a resource is desired, and each of its fields has its value.
#[derive(Default)]
struct Ages {
    slot: Option<Since>,
    fields: BTreeMap<Path, Since>,
}

/// What of a resource may still be older than the runs that were looked at.
struct Open<'a> {
    is_there: bool,
    /// Its fields with their values.
    fields: Vec<(&'a Path, &'a Value)>,
    /// The body that was last looked at, or its key.
    seen: Option<Value>,
}

impl Open<'_> {
    fn is_over(&self) -> bool {
        !self.is_there && self.fields.is_empty()
    }

    /// Takes in what an older run desired. What was otherwise then is as old as the run after it.
    fn look(
        &mut self,
        bodies: &Bodies<'_>,
        body: Option<Value>,
        ages: &mut Ages,
        after: &Since,
    ) -> Result<(), Error> {
        if self.is_over() || (body.is_some() && body == self.seen) {
            return Ok(());
        }
        self.seen.clone_from(&body);
        let body = body.map(|body| bodies.document(body)).transpose()?;
        if self.is_there && body.is_none() {
            self.is_there = false;
            ages.slot = Some(after.clone());
        }
        // One look at the whole body, because a path to an item of a list takes a look at all of them.
        let then: BTreeMap<Path, &Value> =
            body.as_ref().map(|body| leaves(body).into_iter().collect()).unwrap_or_default();
        self.fields.retain(|(path, value)| {
            let is_same = then.get(path).is_some_and(|then| then == value);
            if !is_same {
                ages.fields.insert((*path).clone(), after.clone());
            }
            is_same
        });
        Ok(())
    }

    /// Says how old what is left is.
    fn end(self, ages: &mut Ages, first: &Since) {
        if self.is_there {
            ages.slot = Some(first.clone());
        }
        let left = self.fields.into_iter().map(|(path, _)| (path.clone(), first.clone()));
        ages.fields.extend(left);
    }
}

/// Walks back from a run for as long as something is as it is. Runs that did not get to their end
/// say nothing.
fn ages(
    bodies: &Bodies<'_>,
    archive: &dyn Archive,
    head: &Head,
    slots: &[SlotBlame],
) -> Result<Vec<Ages>, Error> {
    let since = |head: &Head| Since {
        run: head.trace.clone(),
        at: time::rfc3339(head.started),
        or_earlier: false,
    };
    let here = since(head);
    let mut ages: Vec<Ages> = slots
        .iter()
        .map(|slot| Ages {
            slot: Some(here.clone()),
            fields: slot.fields.iter().map(|(path, ..)| (path.clone(), here.clone())).collect(),
        })
        .collect();
    let names: Vec<&str> = slots.iter().map(|slot| slot.slot.as_str()).collect();
    if names.is_empty() {
        return Ok(ages);
    }
    // What may still be older: the slot itself, and its fields.
    let now = archive.bodies(head, Side::Desired, &names)?.into_iter();
    let mut open: Vec<Open<'_>> = slots
        .iter()
        .zip(now)
        .map(|(slot, now)| Open {
            is_there: true,
            fields: slot.fields.iter().map(|(path, value, _)| (path, value)).collect(),
            seen: now.filter(|_| slot.removed.is_none()),
        })
        .collect();
    let mut mark = here;
    let mut at = head.clone();
    for count in 0..HISTORY {
        let Some(before) = archive.run_before(&at)? else {
            mark.or_earlier |= archive.has_forgotten(&at)?;
            break;
        };
        if before.outcome.is_failure() {
            mark.or_earlier |= count + 1 == HISTORY;
            at = before;
            continue;
        }
        if !at.same {
            let then = archive.bodies(&before, Side::Desired, &names)?;
            for ((open, ages), body) in open.iter_mut().zip(&mut ages).zip(then) {
                open.look(bodies, body, ages, &mark)?;
            }
        }
        mark = Since { or_earlier: count + 1 == HISTORY, ..since(&before) };
        if open.iter().all(Open::is_over) {
            break;
        }
        at = before;
    }
    for (open, ages) in open.into_iter().zip(&mut ages) {
        open.end(ages, &mark);
    }
    Ok(ages)
}

//! What was the case at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::super::address::{Address, Part, RunName, Which};
use super::super::answer::{At, AtItem, Diff, FieldItem, Since};
use super::super::archive::{Archive, ChangeFilter, Error, Scope, kind_and_group};
use super::super::difference::{self, NODES, What};
use super::super::outline::Bodies;
use super::super::record::{Head, ObjectRef, Run};
use super::super::{state, time};
use super::differences::{View, compared};
use super::{Named, find, item_of, success_before};
use crate::query::sentence;
use crate::store::rows::Side;

/// How many runs are looked at to say since when something was so.
const HISTORY: usize = 200;

/// The owner's last run that had begun at a time, and the last of those that got to its end.
struct Moment {
    run: Run,
    desired: Option<Run>,
}

fn moment(
    archive: &dyn Archive,
    named: &Named,
    at: Timestamp,
    now: Timestamp,
) -> Result<Moment, Error> {
    let address = Address::parse(&named.address, now)?;
    let RunName::Owner { kind, name, .. } = address.run else {
        let reason = "expected a composite resource such as Store/north, not a run";
        return Err(Error::Usage(reason.to_owned()));
    };
    if address.part != Part::Whole {
        return Err(Error::Usage("expected a composite resource alone".to_owned()));
    }
    let run = RunName::Owner { kind, name, which: Which::At(at) };
    let address = Address { run, part: Part::Whole }.to_string();
    let not_yet = |error| match error {
        Error::NotFound(_) => Error::NotFound(format!(
            "no run of {} is kept that had begun at {}",
            named.address,
            time::rfc3339(at)
        )),
        error => error,
    };
    let named = Named { address, namespace: named.namespace.clone() };
    let found = find(archive, &named, now).map_err(not_yet)?;
    let run = archive.outline(&found.head, Scope::States)?;
    let success = if run.head.outcome.is_failure() {
        let before = success_before(archive, &run.head)?;
        before.map(|head| archive.outline(&head, Scope::Desired)).transpose()?
    } else {
        Some(run.clone())
    };
    Ok(Moment { run, desired: success })
}

/// What was the case at a time. Of the resources outside of a range, only what the sentence counts
/// is told.
pub fn at(
    archive: &dyn Archive,
    named: &Named,
    at: Timestamp,
    now: Timestamp,
    range: Range<usize>,
) -> Result<At, Error> {
    let bodies = Bodies::new(archive);
    let Moment { run, desired } = moment(archive, named, at, now)?;
    let before = success_before(archive, &run.head)?;
    let before = before.map(|head| archive.outline(&head, Scope::Desired)).transpose()?;
    let after = archive.run_after(&run.head)?;
    let mut resources = Vec::new();
    let names: BTreeSet<&str> = state::slots(run.observed())
        .into_iter()
        .chain(state::slots(desired.as_ref().and_then(Run::desired)))
        .map(|(name, _)| name)
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    let told = names.get(range.start.min(names.len())..range.end.min(names.len()));
    let told = told.unwrap_or_default();
    let observed_ages = ages(&bodies, archive, &run, Side::Observed, told)?;
    let desired_ages = match &desired {
        Some(desired) => ages(&bodies, archive, desired, Side::Desired, told)?,
        None => Ages::new(),
    };
    for (place, name) in names.into_iter().enumerate() {
        if !range.contains(&place) {
            resources.push(counted(name, &run, desired.as_ref()));
            continue;
        }
        let mut item = resource(&bodies, archive, name, &run, desired.as_ref(), at)?;
        item.observed_since = observed_ages.get(name).cloned();
        item.desired_since = desired_ages.get(name).cloned();
        resources.push(item);
    }
    let sentence = words(&run, desired.as_ref(), after.as_ref(), &resources);
    Ok(At {
        at: time::rfc3339(at),
        owner: run.head.owner.clone(),
        sentence,
        desired_run: desired.as_ref().map(|run| run.head.trace.clone()),
        run_after: after.as_ref().map(since),
        run: item_of(&bodies, &run, before.as_ref())?,
        resources,
    })
}

fn since(head: &Head) -> Since {
    Since { run: head.trace.clone(), at: time::rfc3339(head.started), or_earlier: false }
}

/// Since when each slot was as it is.
type Ages = BTreeMap<String, Since>;

/// Walks back from a run for as long as anything that it observed, or desired, is as it is.
fn ages(
    bodies: &Bodies<'_>,
    archive: &dyn Archive,
    run: &Run,
    side: Side,
    names: &[&str],
) -> Result<Ages, Error> {
    let now = archive.bodies(&run.head, side, names)?;
    // What it was, and the last that was found to be alike.
    let mut open: BTreeMap<&str, (Value, Value)> = BTreeMap::new();
    for (name, body) in names.iter().zip(now) {
        if let Some(body) = body {
            open.insert(name, (body.clone(), body));
        }
    }
    let is_there = |name: &&str| open.contains_key(*name);
    let names: Vec<&str> = names.iter().copied().filter(is_there).collect();
    let mut ages: Ages = names.iter().map(|name| ((*name).to_owned(), since(&run.head))).collect();
    let mut at = run.head.clone();
    for count in 0..HISTORY {
        if open.is_empty() {
            break;
        }
        let is_last = count + 1 == HISTORY;
        let Some(before) = archive.run_before(&at)? else {
            if archive.has_forgotten(&at)? {
                say_or_earlier(&mut ages, &open);
            }
            break;
        };
        // Runs that did not get to their end do not tell what was desired.
        if side == Side::Desired && before.outcome.is_failure() {
            if is_last {
                say_or_earlier(&mut ages, &open);
            }
            at = before;
            continue;
        }
        if !at.same {
            let then = archive.bodies(&before, side, &names)?;
            for (name, body) in names.iter().zip(then) {
                let Some((own, seen)) = open.get_mut(name) else { continue };
                let Some(body) = body else {
                    open.remove(name);
                    continue;
                };
                if body == *seen {
                    continue;
                }
                seen.clone_from(&body);
                let alike = is_alike(&bodies.document(body)?, &bodies.document(own.clone())?);
                if !alike {
                    open.remove(name);
                }
            }
        }
        let mark = Since { or_earlier: is_last, ..since(&before) };
        ages.extend(open.keys().map(|name| ((*name).to_owned(), mark.clone())));
        at = before;
    }
    Ok(ages)
}

/// Says that what is still open may be older than the runs that were looked at.
fn say_or_earlier<T>(ages: &mut Ages, open: &BTreeMap<&str, T>) {
    for name in open.keys() {
        if let Some(since) = ages.get_mut(*name) {
            since.or_earlier = true;
        }
    }
}

/// Whether two documents differ in bookkeeping at most.
fn is_alike(a: &Value, b: &Value) -> bool {
    a == b || difference::difference(a, b).changes.iter().all(|c| c.path.is_bookkeeping())
}

/// What the sentence counts of a resource.
fn counted(name: &str, run: &Run, desired: Option<&Run>) -> AtItem {
    let slot = state::slot(desired.and_then(Run::desired), name);
    AtItem {
        resource: name.to_owned(),
        ready: slot.map(|slot| state::ready(slot).to_owned()).unwrap_or_default(),
        observed: state::slot(run.observed(), name).map(|_| Value::Null),
        desired: slot.map(|_| Value::Null),
        ..AtItem::default()
    }
}

fn resource(
    bodies: &Bodies<'_>,
    archive: &dyn Archive,
    name: &str,
    run: &Run,
    desired: Option<&Run>,
    at: Timestamp,
) -> Result<AtItem, Error> {
    let document = |slot: &Value| bodies.document(state::body(slot).clone());
    let observed = state::slot(run.observed(), name).map(document).transpose()?;
    let slot = state::slot(desired.and_then(Run::desired), name);
    let wanted = slot.map(document).transpose()?;
    let object = observed.as_ref().or(wanted.as_ref()).map(ObjectRef::of_object);
    let mut object = object.unwrap_or_default();
    if name.is_empty() && object.name.is_empty() {
        object = run.head.owner.clone();
    }
    let differs = match (&observed, &wanted) {
        (Some(observed), Some(wanted)) => {
            let mut nodes = NODES;
            let found = difference::within(observed, wanted, &mut nodes);
            // What only the cluster sets is no difference.
            let is_wanted = |change: &&difference::Change| {
                !matches!(change.what, What::Removed { .. } | What::Moved { .. })
                    && !change.path.is_bookkeeping()
            };
            found.changes.iter().filter(is_wanted).map(FieldItem::from).collect()
        }
        _ => Vec::new(),
    };
    let last_change = if name.is_empty() || object.name.is_empty() {
        None
    } else {
        let filter = ChangeFilter {
            kind: Some(kind_and_group(&object)),
            name: Some(object.name.clone()),
            namespace: Some(object.namespace.clone()),
            until: at.checked_add(SignedDuration::from_micros(1)).ok(),
            ..ChangeFilter::default()
        };
        let records = archive.changes(&filter, 1, None)?;
        super::change_items(archive, &records)?.pop()
    };
    Ok(AtItem {
        resource: name.to_owned(),
        object,
        ready: slot.map(|slot| state::ready(slot).to_owned()).unwrap_or_default(),
        observed,
        desired: wanted,
        differs,
        last_change,
        ..AtItem::default()
    })
}

fn words(run: &Run, desired: Option<&Run>, after: Option<&Head>, resources: &[AtItem]) -> String {
    let short = |head: &Head| head.trace.chars().take(8).collect::<String>();
    let composed: Vec<&AtItem> =
        resources.iter().filter(|item| !item.resource.is_empty()).collect();
    let count = |is: &dyn Fn(&AtItem) -> bool| composed.iter().filter(|item| is(item)).count();
    let wanted = count(&|item| item.desired.is_some());
    let ready = count(&|item| item.ready == "true");
    let there = count(&|item| item.observed.is_some());
    let mut sentences = vec![format!(
        "{} desired, {there} observed, {ready} ready, as run {} of {} tells.",
        sentence::counted(wanted, "composed resource"),
        short(&run.head),
        time::date(run.head.started)
    )];
    match desired {
        Some(desired) if desired.head.key != run.head.key => sentences.push(format!(
            "That run did not get to its end; what was desired is as in run {} of {}.",
            short(&desired.head),
            time::date(desired.head.started)
        )),
        Some(_) => {}
        None => sentences
            .push("No run had got to its end, so what was desired is not known.".to_owned()),
    }
    if let Some(after) = after {
        sentences.push(format!(
            "The next run was {} at {}.",
            short(after),
            time::date(after.started)
        ));
    }
    sentences.join(" ")
}

/// What differs between two times.
pub(super) fn diff_at(
    archive: &dyn Archive,
    named: &Named,
    (from, to): (Timestamp, Timestamp),
    observed: bool,
    now: Timestamp,
) -> Result<Diff, Error> {
    let view = |at: Timestamp| -> Result<View, Error> {
        let Moment { run, desired } = moment(archive, named, at, now)?;
        let run = if observed { Some(run) } else { desired };
        let none = || {
            Error::NotFound(format!(
                "no run of {} had got to its end at {}",
                named.address,
                time::rfc3339(at)
            ))
        };
        let run = run.ok_or_else(none)?;
        let short: String = run.head.trace.chars().take(8).collect();
        let state = if observed { run.observed() } else { run.desired() };
        Ok(View {
            label: format!("{} ({short})", time::date(at)),
            state: state.cloned(),
            context: None,
            slot: None,
            is_redacted: archive.is_redacted(&run.head)?,
        })
    };
    compared(archive, &mut view(from)?, &mut view(to)?)
}

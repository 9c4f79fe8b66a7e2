//! What providers did, and which runs it belongs to.

use super::super::answer::{ChangeDetail, ChangeItem, ChangeList, Link};
use super::super::archive::{After, Archive, ChangeFilter, Error, RunFilter, kind_and_group};
use super::super::links::{self, Certainty, Version};
use super::super::record::{ChangeRecord, ObjectRef};
use super::super::time;
use super::{MOST, cursor, mark};
use crate::store::rows::Side;

/// How many runs are looked at to find the one that decided something.
const HISTORY: usize = 100;
/// How many of them at a time.
const PAGE: usize = 10;

pub(super) fn list(
    archive: &dyn Archive,
    filter: &ChangeFilter,
    limit: usize,
    after: Option<&str>,
) -> Result<ChangeList, Error> {
    let limit = limit.clamp(1, MOST);
    let mut records = archive.changes(filter, limit + 1, cursor(after)?)?;
    let is_more = records.len() > limit;
    records.truncate(limit);
    let last = records.last().filter(|_| is_more);
    let more = last.map(|last| mark(last.at.as_microsecond(), last.key));
    Ok(ChangeList { changes: change_items(archive, &records)?, more })
}

/// Changes as lists show them.
pub fn change_items(
    archive: &dyn Archive,
    records: &[ChangeRecord],
) -> Result<Vec<ChangeItem>, Error> {
    records.iter().map(|record| item(archive, record)).collect()
}

pub(super) fn one(archive: &dyn Archive, id: &str) -> Result<ChangeDetail, Error> {
    let wrong = || Error::Usage(format!("expected the id of a change, a number, but got {id:?}"));
    let key = id.parse().map_err(|_| wrong())?;
    let none = || Error::NotFound(format!("there is no change {id}"));
    let record = archive.change(key)?.ok_or_else(none)?;
    Ok(ChangeDetail {
        item: item(archive, &record)?,
        source: record.source.clone(),
        sequence: record.sequence,
        received: time::rfc3339(record.received),
        entry: record.entry.clone(),
    })
}

pub(super) fn item(archive: &dyn Archive, record: &ChangeRecord) -> Result<ChangeItem, Error> {
    Ok(ChangeItem {
        id: record.key.to_string(),
        at: time::rfc3339(record.at),
        operation: record.operation.clone(),
        object: record.object.clone(),
        provider: record.provider.clone(),
        external_name: record.external_name.clone(),
        error: record.error.clone(),
        cause: record.cause.clone().filter(|cause| !cause.is_empty()),
        link: linked(archive, record)?,
    })
}

/// What a change belongs to.
pub fn linked(archive: &dyn Archive, change: &ChangeRecord) -> Result<Option<Link>, Error> {
    let owner = match links::owner_in_snapshot(&change.entry) {
        Some(owner) => Some(owner),
        None => archive.owners_of(&change.object)?.into_iter().next(),
    };
    let slot = || owner.as_ref().map(|(_, slot)| slot.clone()).unwrap_or_default();
    let link = |certainty: Certainty, run: String, owner: ObjectRef| Link {
        certainty: certainty.name().to_owned(),
        run,
        owner,
        resource: slot(),
    };
    if let Some(trace) = change.trace.as_deref().and_then(links::hyphenated)
        && let Some(head) = archive.by_trace(&trace)?.pop()
    {
        return Ok(Some(link(Certainty::Certain, head.trace, head.owner)));
    }
    let Some((owner, slot)) = &owner else { return Ok(None) };
    let Some((version, owner)) = version(archive, owner, slot, change)? else { return Ok(None) };
    let previous = previous(archive, change)?;
    let judged = links::judge(change, previous, &[version]);
    Ok(judged.map(|(certainty, run)| link(certainty, run, owner)))
}

/// When the provider changed the resource before.
fn previous(
    archive: &dyn Archive,
    change: &ChangeRecord,
) -> Result<Option<jiff::Timestamp>, Error> {
    let filter = ChangeFilter {
        kind: Some(kind_and_group(&change.object)),
        name: Some(change.object.name.clone()),
        namespace: Some(change.object.namespace.clone()),
        until: Some(change.at),
        ..ChangeFilter::default()
    };
    Ok(archive.changes(&filter, 1, None)?.first().map(|change| change.at))
}

/// The run from which on what is desired of a slot was as it was when a change was made.
fn version(
    archive: &dyn Archive,
    owner: &ObjectRef,
    slot: &str,
    change: &ChangeRecord,
) -> Result<Option<(Version, ObjectRef)>, Error> {
    let filter = RunFilter {
        kind: Some(kind_and_group(owner)),
        name: Some(owner.name.clone()),
        // The snapshot of a cluster-scoped resource does not tell the namespace of its owner.
        namespace: (!owner.namespace.is_empty()).then(|| owner.namespace.clone()),
        until: change.at.checked_add(jiff::SignedDuration::from_secs(1)).ok(),
        changed: true,
        ..RunFilter::default()
    };
    let (mut found, mut current, mut is_exact, mut is_cut) = (None, None, false, true);
    let mut after = None;
    'walk: for _ in 0..HISTORY / PAGE {
        let heads = archive.runs(&filter, PAGE, after)?;
        let is_last = heads.len() < PAGE;
        after = heads.last().map(|h| After { at: h.started.as_microsecond(), key: h.key });
        for head in heads {
            if head.outcome.is_failure() {
                continue;
            }
            let body = archive.bodies(&head, Side::Desired, &[slot])?.pop().flatten();
            match &current {
                None => current = Some(body),
                Some(current) if *current == body => {}
                Some(_) => {
                    is_exact = true;
                    break 'walk;
                }
            }
            found = Some(head);
        }
        if is_last {
            is_cut = false;
            break;
        }
    }
    // A slot that no run had is no version.
    let is_there = current.is_some_and(|body| body.is_some() || change.operation == "delete");
    let Some(head) = found.filter(|_| is_there) else { return Ok(None) };
    let or_earlier = !is_exact && (is_cut || archive.has_forgotten(&head)?);
    Ok(Some((Version { run: head.trace, at: head.started, or_earlier }, head.owner)))
}

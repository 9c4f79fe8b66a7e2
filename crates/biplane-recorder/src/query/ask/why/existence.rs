//! Why a resource is there, and why it no longer is.

use serde_json::Value;

use super::super::super::answer::{Evidence, EvidenceKind, Reason, Why};
use super::super::super::archive::{Error, kind_and_group};
use super::super::super::cause::{capital, step_words};
use super::super::super::compare::step_ref;
use super::super::super::record::{ObjectRef, Run};
use super::super::super::{state, time};
use super::super::{Named, find};
use super::{
    Asking, Edge, change_evidence, counterpart, edge, named_step, run_evidence, run_words, short,
    slot_steps, step_evidence, words,
};
use crate::store::rows::Side;

fn is_desired(run: &Run, slot: &str) -> bool {
    state::slot(run.desired(), slot).is_some()
}

fn is_observed(run: &Run, slot: &str) -> bool {
    state::slot(run.observed(), slot).is_some()
}

/// When an object was marked for deletion, as a run observed it, and what holds it.
fn deletion(run: &Run, slot: &str) -> Option<(String, Vec<String>)> {
    let body = state::slot(run.observed(), slot).map(state::body)?;
    let at = body.pointer("/metadata/deletionTimestamp")?.as_str()?.to_owned();
    let held = body.pointer("/metadata/finalizers").and_then(Value::as_array);
    let held = held.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Some((at, held.collect()))
}

pub(super) fn created(asking: &Asking<'_>) -> Result<Why, Error> {
    let run = asking.success()?;
    let slot = &asking.slot;
    if slot.is_empty() {
        return composed_by(asking, &run, created);
    }
    if !is_desired(&run, slot) {
        let subject = asking.subject(&asking.object_in(&run));
        let sentence = format!("{subject} is not desired in {}.", run_words(&run));
        return Ok(asking.answer(Reason::NotSo, Some(&run), sentence));
    }
    let Edge { run, before, is_cut } = edge(asking, run, Side::Desired, |body| body.is_some())?;
    let object = asking.object_in(&run);
    let subject = asking.subject(&object);
    let (step, _) = slot_steps(&run, slot);
    let who = step.map_or_else(String::new, |step| {
        format!(": {} created it", step_words(&step_ref(Some(step))))
    });
    let mut sentence = format!("{subject} is desired since {}{who}.", run_words(&run));
    let mut why = asking.answer(Reason::FirstRun, Some(&run), String::new());
    why.object = object;
    why.step = named_step(step);
    why.evidence.extend(step.map(|step| step_evidence(&run, step, "created it")));
    if let Some(before) = &before {
        let root = super::root(before, &run, step, None);
        sentence = format!("{sentence} {}", root.words());
        why.evidence.extend(root.evidence(before, &run));
        why.reason = root.reason;
        why.run_before = Some(before.head.trace.clone());
    } else {
        let owner = words(&asking.head.owner);
        let what = if is_cut { "no older run was looked at" } else { "no older run is kept" };
        sentence = format!("{sentence} Of {owner}, {what}.");
        why.evidence.push(run_evidence(&run, "the first run that is known"));
    }
    let changes = asking.changes(&why.object, Some(run.head.started), Some("create"), false)?;
    if let Some(change) = changes.first() {
        let failed = change.error.as_ref().map_or("", |_| "did not succeed in creating it");
        let did = if failed.is_empty() { "created it" } else { failed };
        sentence = format!("{sentence} {} {did}.", capital(&provider(&change.provider)));
    }
    why.evidence.extend(changes.into_iter().map(change_evidence));
    why.sentence = sentence;
    Ok(why)
}

fn provider(name: &str) -> String {
    if name.is_empty() { "a provider".to_owned() } else { format!("provider {name}") }
}

pub(super) fn deleted(asking: &Asking<'_>) -> Result<Why, Error> {
    let run = asking.success()?;
    let slot = &asking.slot;
    if slot.is_empty() {
        let last = asking.load(&asking.head)?;
        if let Some((at, held)) = deletion(&last, slot) {
            return Ok(marked(asking, &last, Reason::OwnerDeleted, &at, &held));
        }
        return composed_by(asking, &run, deleted);
    }
    if is_desired(&run, slot) {
        return still_desired(asking, run);
    }
    let found = edge(asking, run, Side::Desired, |body| body.is_some())?;
    let Some(before) = found.before else {
        let owner = words(&asking.head.owner);
        let reason = format!("no kept run of {owner} desired a resource {slot:?}");
        return Err(Error::NotFound(reason));
    };
    let run = found.run;
    let object = asking.object_in(&before);
    let subject = asking.subject(&object);
    let (created, _) = slot_steps(&before, slot);
    let (_, removed) = slot_steps(&run, slot);
    let step = removed.or_else(|| counterpart(&before, &run, created?));
    let did = if removed.is_some() { "removed it" } else { "no longer desired it" };
    let who = match (step, created) {
        (Some(step), _) => format!(": {} {did}", step_words(&step_ref(Some(step)))),
        (None, Some(created)) => {
            format!(": {} had desired it", step_words(&step_ref(Some(created))))
        }
        (None, None) => String::new(),
    };
    let root = match (step, created) {
        // The step itself is gone.
        (None, Some(_)) => super::Root {
            reason: Reason::CompositionChanged,
            pipeline: super::cause::pipeline_difference(&before.head, &run.head),
            ..super::Root::default()
        },
        _ => super::root(&before, &run, step, None),
    };
    let mut why = asking.answer(root.reason, Some(&run), String::new());
    why.object = object;
    why.step = named_step(step);
    why.run_before = Some(before.head.trace.clone());
    why.evidence.extend(step.map(|step| step_evidence(&run, step, did)));
    why.evidence.extend(root.evidence(&before, &run));
    let mut sentence =
        format!("{subject} is not desired since {}{who}. {}", run_words(&run), root.words());
    let changes = asking.changes(&why.object, Some(run.head.started), Some("delete"), false)?;
    if let Some(change) = changes.first() {
        let did = match &change.error {
            None => "deleted it".to_owned(),
            Some(error) => format!("could not delete it: {}", super::one_line(error)),
        };
        sentence = format!("{sentence} {} {did}.", capital(&provider(&change.provider)));
    }
    why.evidence.extend(changes.into_iter().map(change_evidence));
    why.sentence = sentence;
    Ok(why)
}

/// A resource that is marked for deletion.
fn marked(asking: &Asking<'_>, run: &Run, reason: Reason, at: &str, held: &[String]) -> Why {
    let when = at.parse().map_or_else(|_| at.to_owned(), time::date);
    let owner = words(&asking.head.owner);
    let mut sentence = match reason {
        Reason::OwnerDeleted if asking.slot.is_empty() => {
            format!("Somebody deleted {owner} at {when}.")
        }
        Reason::OwnerDeleted => {
            format!("Somebody deleted {owner} at {when}, and its composed resources go with it.")
        }
        _ => {
            let subject = asking.subject(&asking.object_in(run));
            format!("Somebody else deleted {subject} at {when}; {owner} still desires it.")
        }
    };
    if !held.is_empty() {
        sentence = format!("{sentence} It is held by {}.", held.join(", "));
    }
    let mut why = asking.answer(reason, Some(run), sentence);
    why.evidence.push(Evidence {
        run: Some(run.head.trace.clone()),
        resource: Some(if reason == Reason::OwnerDeleted { "" } else { &asking.slot }.to_owned()),
        ..Evidence::new(EvidenceKind::Resource, format!("metadata.deletionTimestamp {at}"))
    });
    why
}

/// What else can have deleted a resource that is desired.
fn still_desired(asking: &Asking<'_>, run: Run) -> Result<Why, Error> {
    let slot = &asking.slot;
    let last = asking.load(&asking.head)?;
    if let Some((at, held)) = deletion(&last, "") {
        return Ok(marked(asking, &last, Reason::OwnerDeleted, &at, &held));
    }
    if let Some((at, held)) = deletion(&last, slot) {
        return Ok(marked(asking, &last, Reason::SomebodyElse, &at, &held));
    }
    let object = asking.object_in(&run);
    let subject = asking.subject(&object);
    let owner = words(&asking.head.owner);
    let deletes = asking.changes(&object, None, Some("delete"), false)?;
    // Whether it was deleted after everything that is known of the owner.
    let after = deletes.first().filter(|change| {
        let at = change.at.parse::<jiff::Timestamp>();
        at.is_ok_and(|at| at >= last.head.started) && !asking.is_named
    });
    if let Some(change) = after {
        let parent = parent(asking)?;
        let mut sentence = format!(
            "{} deleted {subject} at {}. The last run of {owner}, {}, still desired it, and no run followed: \
             likely {owner} was deleted.",
            capital(&provider(&change.provider)),
            change.at.parse().map_or_else(|_| change.at.clone(), time::date),
            run_words(&last),
        );
        let mut why = asking.answer(Reason::OwnerDeleted, Some(&last), String::new());
        if let Some(parent) = &parent
            && let Ok(cause) = deleted(parent)
            && cause.reason != Reason::NotSo
        {
            sentence = format!("{sentence} {}", cause.sentence);
            why.evidence.extend(cause.evidence);
        }
        why.object = object;
        why.sentence = sentence;
        why.evidence.insert(0, run_evidence(&last, "the last run still desired it"));
        why.evidence.extend(deletes.into_iter().map(change_evidence));
        return Ok(why);
    }
    if !is_observed(&last, slot) && !last.head.outcome.is_failure() {
        let found = edge(asking, run, Side::Observed, |body| body.is_some())?;
        let Some(before) = found.before else {
            let sentence = format!(
                "{subject} is desired in {} and was never observed: it is not deleted, it has not been created.",
                run_words(&found.run)
            );
            return Ok(asking.answer(Reason::NotCreated, Some(&found.run), sentence));
        };
        let subject = asking.subject(&asking.object_in(&before));
        let sentence = format!(
            "{subject} was observed in run {} and no longer in {}, though {owner} still desires it: somebody else deleted it.",
            short(&before),
            run_words(&found.run),
        );
        let mut why = asking.answer(Reason::SomebodyElse, Some(&found.run), sentence);
        why.object = asking.object_in(&before);
        why.run_before = Some(before.head.trace.clone());
        why.evidence.push(run_evidence(&before, "the last run that observed it"));
        why.evidence.push(run_evidence(&found.run, "the first run that did not"));
        let since = Some(before.head.started);
        let deletes = asking.changes(&why.object, since, Some("delete"), false)?;
        why.evidence.extend(deletes.into_iter().map(change_evidence));
        return Ok(why);
    }
    let sentence = format!("{subject} is not deleted: {} desires it.", run_words(&run));
    let mut why = asking.answer(Reason::NotSo, Some(&run), sentence);
    why.evidence.push(run_evidence(&run, "desires it"));
    Ok(why)
}

/// The owner's own place among the composed resources of another.
fn parent<'a>(asking: &Asking<'a>) -> Result<Option<Asking<'a>>, Error> {
    let owner = &asking.head.owner;
    let Some((parent, slot)) = asking.archive.owners_of(owner)?.into_iter().next() else {
        return Ok(None);
    };
    let named = Named {
        address: format!("{}/{}", kind_and_group(&parent), parent.name),
        namespace: Some(parent.namespace.clone()).filter(|namespace| !namespace.is_empty()),
    };
    let head = find(asking.archive, &named, jiff::Timestamp::MAX)?.head;
    Ok(Some(Asking {
        archive: asking.archive,
        verb: asking.verb,
        field: None,
        head,
        is_named: false,
        slot,
        object: Some(owner.clone()),
    }))
}

/// What is asked about a composite resource is answered by the one that composes it.
fn composed_by(
    asking: &Asking<'_>,
    run: &Run,
    ask: impl FnOnce(&Asking<'_>) -> Result<Why, Error>,
) -> Result<Why, Error> {
    if let Some(parent) = parent(asking)? {
        return ask(&parent);
    }
    let owner: &ObjectRef = &asking.head.owner;
    let (reason, sentence) = match asking.verb {
        super::Verb::Created => (
            Reason::SomebodyElse,
            format!(
                "Somebody else created {}: no composite resource that is known composes it.",
                words(owner)
            ),
        ),
        _ => (
            Reason::NotSo,
            format!("{} does not say that {} is deleted.", capital(&run_words(run)), words(owner)),
        ),
    };
    let mut why = asking.answer(reason, Some(run), sentence);
    why.evidence.push(run_evidence(run, "the last run that is known"));
    Ok(why)
}

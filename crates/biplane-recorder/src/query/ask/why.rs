//! Why something is so: the cause in words, with its evidence.

mod changed;
mod existence;
mod failed;
mod ready;
mod slow;

use jiff::Timestamp;
use serde_json::Value;

use super::super::address::{Address, Part, RunName};
use super::super::answer::{
    ChangeItem, Evidence, EvidenceKind, Reason, SlotItem, StepRef, Verb, Why,
};
use super::super::archive::{Archive, ChangeFilter, Error, Scope, kind_and_group};
use super::super::blame::{self, Stamp};
use super::super::cause::{self, Root, Values};
use super::super::compare::{aligned, step_ref};
use super::super::difference::NODES;
use super::super::outline::Bodies;
use super::super::record::{Head, ObjectRef, Run, Step};
use super::super::{state, time};
use super::{Named, find, success_before};
use crate::store::rows::Side;

/// How many runs are looked at for the one in which something began.
const HISTORY: usize = 200;

/// What is asked about.
struct Asking<'a> {
    archive: &'a dyn Archive,
    verb: Verb,
    field: Option<String>,
    /// The run to begin with, and whether the user named it.
    head: Head,
    is_named: bool,
    /// The name of the composed resource, or empty.
    slot: String,
    /// The object, if the user named it.
    object: Option<ObjectRef>,
}

pub(super) fn why(
    archive: &dyn Archive,
    verb: Verb,
    named: &Named,
    field: Option<&str>,
    now: Timestamp,
) -> Result<Why, Error> {
    if field.is_some() && verb != Verb::Changed {
        let reason = format!("a field can have changed, but not be {}", verb.name());
        return Err(Error::Usage(reason));
    }
    let asking = asking(archive, verb, named, field, now)?;
    match verb {
        Verb::Deleted => existence::deleted(&asking),
        Verb::Created => existence::created(&asking),
        Verb::Changed => changed::changed(&asking),
        Verb::NotReady => ready::not_ready(&asking),
        Verb::Failed => failed::failed(&asking),
        Verb::Slow => slow::slow(&asking),
    }
}

/// Finds what the user means. A name may be that of a composed resource, of an owner of runs, or of
/// both: then the verb decides.
fn asking<'a>(
    archive: &'a dyn Archive,
    verb: Verb,
    named: &Named,
    field: Option<&str>,
    now: Timestamp,
) -> Result<Asking<'a>, Error> {
    let address = Address::parse(&named.address, now)?;
    let field = field.map(|field| field.trim_start_matches('.').to_owned());
    let of = |head, is_named, slot, object| Asking {
        archive,
        verb,
        field: field.clone(),
        head,
        is_named,
        slot,
        object,
    };
    let slot = match &address.part {
        Part::Slot(slot) => Some(slot.clone()),
        Part::Whole => None,
        Part::Step(_) if matches!(verb, Verb::Failed | Verb::Slow) => Some(String::new()),
        Part::Step(_) => {
            return Err(Error::Usage("expected a resource or a run, not a step".to_owned()));
        }
    };
    let RunName::Owner { kind, name, which } = &address.run else {
        let head = find(archive, named, now)?.head;
        return Ok(of(head, true, slot.unwrap_or_default(), None));
    };
    let is_named = *which != super::super::address::Which::Back(0);
    if let Some(slot) = slot {
        return Ok(of(find(archive, named, now)?.head, is_named, slot, None));
    }
    let as_owner = || find(archive, named, now).map(|found| found.head);
    let as_composed = || -> Result<Option<Asking<'a>>, Error> {
        let found = archive.composed(kind, name, named.namespace.as_deref())?;
        let Some((object, owner, slot)) = found.first().cloned() else { return Ok(None) };
        if let Some((other, ..)) = found.iter().find(|(other, ..)| !other.is_same(&object)) {
            let place = |object: &ObjectRef| match object.namespace.as_str() {
                "" => kind_and_group(object),
                namespace => format!("namespace {namespace}"),
            };
            let address = &named.address;
            let reason = format!(
                "{address} is in {} and {}: name the namespace or the group",
                place(&object),
                place(other)
            );
            return Err(Error::Usage(reason));
        }
        let run = RunName::Owner {
            kind: kind_and_group(&owner),
            name: owner.name.clone(),
            which: *which,
        };
        let address = Address { run, part: Part::Slot(slot.clone()) }.to_string();
        let namespace = Some(owner.namespace.clone()).filter(|namespace| !namespace.is_empty());
        let head = find(archive, &Named { address, namespace }, now)?.head;
        Ok(Some(of(head, is_named, slot, Some(object))))
    };
    if matches!(verb, Verb::NotReady | Verb::Failed | Verb::Slow) {
        return match as_owner() {
            Err(Error::NotFound(reason)) => as_composed()?.ok_or(Error::NotFound(reason)),
            found => found.map(|head| of(head, is_named, String::new(), None)),
        };
    }
    match as_composed()? {
        Some(found) => Ok(found),
        None => Ok(of(as_owner()?, is_named, String::new(), None)),
    }
}

/// Where something began: the first run that has it, and the run before that does not.
struct Edge {
    run: Run,
    /// `None` if no kept run is different.
    before: Option<Run>,
    /// Not all runs that are kept were looked at.
    is_cut: bool,
}

/// Walks back from a run that got to its end for as long as the resource looks the same in what was
/// observed, or desired.
fn edge<T: PartialEq>(
    asking: &Asking<'_>,
    run: Run,
    side: Side,
    view: impl Fn(Option<&Value>) -> T,
) -> Result<Edge, Error> {
    let archive = asking.archive;
    let bodies = Bodies::new(archive);
    let body = |head: &Head| -> Result<Option<Value>, Error> {
        Ok(archive.bodies(head, side, &[&asking.slot])?.pop().flatten())
    };
    let viewed = |body: &Option<Value>| -> Result<T, Error> {
        let document = body.clone().map(|body| bodies.document(body)).transpose()?;
        Ok(view(document.as_ref()))
    };
    let mut seen = body(&run.head)?;
    let value = viewed(&seen)?;
    let mut first = run.head.clone();
    let mut at = first.clone();
    let mut found = (None, true);
    for _ in 0..HISTORY {
        let Some(before) = archive.run_before(&at)? else {
            found.1 = false;
            break;
        };
        if before.outcome.is_failure() {
            at = before;
            continue;
        }
        // A run that did the same as the one before it needs no look.
        if !(at.same && at.key == first.key) {
            let then = body(&before)?;
            if then != seen && viewed(&then)? != value {
                found = (Some(before), false);
                break;
            }
            seen = then;
        }
        first = before.clone();
        at = before;
    }
    let mut run = if first.key == run.head.key { run } else { asking.load(&first)? };
    let mut before = found.0.map(|before| asking.load(&before)).transpose()?;
    if let Some(before) = &mut before {
        asking.pair(before, &mut run)?;
    }
    Ok(Edge { run, before, is_cut: found.1 })
}

impl Asking<'_> {
    /// A run with all that is recorded of the resource and of the composite resource.
    fn load(&self, head: &Head) -> Result<Run, Error> {
        let bodies = Bodies::new(self.archive);
        let mut run = self.archive.outline(head, Scope::Messages)?;
        bodies.everywhere(&mut run, &self.slot)?;
        bodies.everywhere(&mut run, state::COMPOSITE)?;
        Ok(run)
    }

    /// Reads what two runs need to tell why they differ.
    fn pair(&self, before: &mut Run, run: &mut Run) -> Result<(), Error> {
        let bodies = Bodies::new(self.archive);
        bodies.runs(before, run)?;
        bodies.redacted(before)?;
        bodies.redacted(run)
    }

    /// The last run that got to its end: the one to begin with, or one before it.
    fn success(&self) -> Result<Run, Error> {
        let head = self.archive.outline(&self.head, Scope::Desired)?.head;
        let head = if head.outcome.is_failure() {
            success_before(self.archive, &head)?
        } else {
            Some(head)
        };
        let none =
            || Error::NotFound(format!("no run of {} got to its end", words(&self.head.owner)));
        self.load(&head.ok_or_else(none)?)
    }

    /// The object in the slot, as a run tells it.
    fn object_in(&self, run: &Run) -> ObjectRef {
        if self.slot.is_empty() {
            return self.head.owner.clone();
        }
        let of =
            |state| state::slot(state, &self.slot).map(|s| ObjectRef::of_object(state::body(s)));
        let seen: Vec<ObjectRef> =
            of(run.observed()).into_iter().chain(of(run.desired())).collect();
        let named = seen.iter().find(|object| match &self.object {
            Some(own) => (&own.kind, &own.name) == (&object.kind, &object.name),
            None => !object.name.is_empty(),
        });
        named.or(self.object.as_ref()).or(seen.first()).cloned().unwrap_or_default()
    }

    /// An answer about what began in a run.
    fn answer(&self, reason: Reason, run: Option<&Run>, sentence: String) -> Why {
        let object = run.map(|run| self.object_in(run)).or_else(|| self.object.clone());
        Why {
            verb: self.verb,
            object: object.unwrap_or_default(),
            owner: self.head.owner.clone(),
            resource: self.slot.clone(),
            field: self.field.clone(),
            reason,
            sentence,
            run: run.map(|run| run.head.trace.clone()),
            at: run.map(|run| time::rfc3339(run.head.started)),
            ..Why::default()
        }
    }

    /// The resource as sentences name it.
    fn subject(&self, object: &ObjectRef) -> String {
        if object.name.is_empty() && !self.slot.is_empty() {
            return match object.kind.as_str() {
                "" => self.slot.clone(),
                kind => format!("{kind} {}", self.slot),
            };
        }
        words(object)
    }

    /// What providers did to an object from a time on, the newest first.
    fn changes(
        &self,
        object: &ObjectRef,
        since: Option<Timestamp>,
        operation: Option<&str>,
        failed: bool,
    ) -> Result<Vec<ChangeItem>, Error> {
        if object.name.is_empty() {
            return Ok(Vec::new());
        }
        let filter = ChangeFilter {
            kind: Some(kind_and_group(object)),
            name: Some(object.name.clone()),
            namespace: Some(object.namespace.clone()),
            operation: operation.map(str::to_owned),
            // Entries of change logs are known by the second.
            since: since.and_then(|since| Timestamp::from_second(since.as_second()).ok()),
            failed,
            ..ChangeFilter::default()
        };
        let records = self.archive.changes(&filter, 3, None)?;
        super::change_items(self.archive, &records)
    }
}

/// Why a step decided something in a run, compared with the run before.
fn root(before: &Run, run: &Run, step: Option<&Step>, values: Values<'_>) -> Root {
    match step {
        Some(step) => cause::root(before, run, step, values),
        // Nobody is known to have decided it: begin with the last step.
        None => match run.last_calls().last() {
            Some(last) => cause::root(before, run, last, values),
            None => Root::default(),
        },
    }
}

/// An object in words.
fn words(object: &ObjectRef) -> String {
    format!("{} {}", object.kind, object.name).trim().to_owned()
}

fn short(run: &Run) -> String {
    run.head.trace.chars().take(8).collect()
}

/// A run with its time, as sentences name it.
fn run_words(run: &Run) -> String {
    format!("run {} ({})", short(run), time::date(run.head.started))
}

fn step_of(run: &Run, stamp: Stamp) -> Option<&Step> {
    match stamp {
        Stamp::Step(at) => run.last_calls().get(at).copied(),
        Stamp::Given | Stamp::Between(_) => None,
    }
}

/// The step of a run that is the same as one of the run before.
fn counterpart<'a>(before: &'a Run, run: &'a Run, step: &Step) -> Option<&'a Step> {
    let (was, is) = (before.last_calls(), run.last_calls());
    let pairs = aligned(&was, &is);
    let pair = pairs.into_iter().find(|(was, _)| was.is_some_and(|w| w.index == step.index));
    pair.and_then(|(_, is)| is)
}

/// The step that created a slot, or the one that removed it.
fn slot_steps<'a>(run: &'a Run, slot: &str) -> (Option<&'a Step>, Option<&'a Step>) {
    let blamed = blame::of(run, &|name| name == slot).pop();
    let step = |stamp: Option<Stamp>| stamp.and_then(|stamp| step_of(run, stamp));
    blamed.map_or((None, None), |blamed| (step(blamed.created), step(blamed.removed)))
}

/// How a slot differs between what two runs desired.
fn slot_difference(before: &Run, run: &Run, slot: &str, observed: bool) -> SlotItem {
    let mut nodes = NODES;
    let of = |run: &Run| {
        let state = if observed { run.observed() } else { run.desired() };
        state::slot(state, slot).cloned()
    };
    SlotItem::from(&state::one(slot, of(before).as_ref(), of(run).as_ref(), &mut nodes))
}

fn named_step(step: Option<&Step>) -> Option<StepRef> {
    step.map(|step| step_ref(Some(step)))
}

/// What a provider did, as evidence.
fn change_evidence(change: ChangeItem) -> Evidence {
    let who = if change.provider.is_empty() { "a provider" } else { change.provider.as_str() };
    let when = change.at.parse().map_or_else(|_| change.at.clone(), time::date);
    let result = match &change.error {
        Some(error) => format!("failed: {}", one_line(error)),
        None => "ok".to_owned(),
    };
    let text = format!("{when} {who}: {}, {result}", change.operation);
    Evidence {
        run: change.link.as_ref().map(|link| link.run.clone()),
        change: Some(change),
        ..Evidence::new(EvidenceKind::Change, text)
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A run as evidence.
fn run_evidence(run: &Run, text: &str) -> Evidence {
    Evidence { run: Some(run.head.trace.clone()), ..Evidence::new(EvidenceKind::Run, text) }
}

/// A step as evidence.
fn step_evidence(run: &Run, step: &Step, text: impl Into<String>) -> Evidence {
    Evidence {
        run: Some(run.head.trace.clone()),
        step: named_step(Some(step)),
        ..Evidence::new(EvidenceKind::Step, text)
    }
}

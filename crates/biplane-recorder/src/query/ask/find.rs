//! Finds what an address names.

use jiff::Timestamp;

use super::super::address::{Address, Part, RunName, Which};
use super::super::archive::{Archive, Error, RunFilter};
use super::super::record::{Head, Run, Step};
use super::Named;

/// What an address names.
#[derive(Clone, Debug)]
pub struct Found {
    /// The run.
    pub head: Head,
    /// The part of it.
    pub part: Part,
}

/// Finds what an address names.
pub fn find(archive: &dyn Archive, named: &Named, now: Timestamp) -> Result<Found, Error> {
    let Address { run, part } = Address::parse(&named.address, now)?;
    let head = match run {
        RunName::Trace(prefix) => by_trace(archive, &prefix)?,
        RunName::Owner { kind, name, which } => {
            let until = match which {
                // At a time means also a run that began in its last microsecond.
                Which::At(at) => at.checked_add(jiff::SignedDuration::from_micros(1)).ok(),
                Which::Back(_) => None,
            };
            let back = match which {
                Which::Back(back) => back,
                Which::At(_) => 0,
            };
            let filter = RunFilter {
                kind: Some(kind.clone()),
                name: Some(name.clone()),
                namespace: named.namespace.clone(),
                until,
                ..RunFilter::default()
            };
            of_owner(archive, &filter, back, &named.address)?
        }
    };
    Ok(Found { head, part })
}

fn by_trace(archive: &dyn Archive, prefix: &str) -> Result<Head, Error> {
    let mut found = archive.by_trace(prefix)?;
    match (found.pop(), found.is_empty()) {
        (Some(head), true) => Ok(head),
        (None, _) => Err(Error::NotFound(format!("no run begins with {prefix:?}"))),
        (Some(last), false) => {
            let traces: Vec<&str> =
                found.iter().chain([&last]).map(|head| head.trace.as_str()).collect();
            let traces = traces.join(", ");
            Err(Error::Usage(format!("several runs begin with {prefix:?}: {traces}")))
        }
    }
}

/// How many runs are looked at to see that a name means one owner.
const LATEST: usize = 10;

fn of_owner(
    archive: &dyn Archive,
    filter: &RunFilter,
    back: usize,
    address: &str,
) -> Result<Head, Error> {
    let latest = archive.runs(filter, LATEST, None)?;
    let none = || Error::NotFound(format!("no run of {address} is kept"));
    let mut head = latest.first().ok_or_else(none)?.clone();
    if let Some(other) = latest.iter().find(|other| !is_same_name(other, &head)) {
        let place = |head: &Head| match head.owner.namespace.as_str() {
            "" => format!("{}.{}", head.owner.kind, head.owner.group()),
            namespace => format!("namespace {namespace}"),
        };
        let places = format!("{} and {}", place(&head), place(other));
        let help = "name the namespace or the group";
        return Err(Error::Usage(format!("{address} is in {places}: {help}")));
    }
    for passed in 0..back {
        let before = archive.run_before(&head)?;
        let only = format!("only {} runs of {address} are kept", passed + 1);
        head = before.ok_or(Error::NotFound(only))?;
    }
    Ok(head)
}

/// An owner that was deleted and created anew has the same name and another uid.
fn is_same_name(a: &Head, b: &Head) -> bool {
    (&a.owner.kind, a.owner.group(), &a.owner.namespace)
        == (&b.owner.kind, b.owner.group(), &b.owner.namespace)
}

impl Found {
    /// The step that the address names, if it names one.
    pub fn step<'a>(&self, run: &'a Run) -> Result<Option<&'a Step>, Error> {
        let Part::Step(text) = &self.part else { return Ok(None) };
        let last = |is_meant: &dyn Fn(&Step) -> bool| run.steps.iter().rev().find(|s| is_meant(s));
        let numbered = |text: &str| text.parse::<i32>().ok().map(|number| number - 1);
        let named =
            |step: &Step, text: &str| step.name == text || Some(step.index) == numbered(text);
        let whole = last(&|step| named(step, text));
        let found = whole.or_else(|| {
            let (step_text, iteration) = text.rsplit_once('.')?;
            let iteration = numbered(iteration)?;
            last(&|step| named(step, step_text) && step.iteration == iteration)
        });
        let missing = || {
            let trace = &self.head.trace;
            let known: Vec<String> = run
                .last_calls()
                .iter()
                .map(|step| format!("{} {}", step.index + 1, step.name))
                .collect();
            Error::NotFound(format!(
                "run {trace} has no step {text:?}: it has {}",
                known.join(", ")
            ))
        };
        found.map(Some).ok_or_else(missing)
    }
}

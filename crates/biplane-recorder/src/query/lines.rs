//! An archive in memory, made from lines that sidecars printed.

use std::collections::BTreeMap;

use biplane_proto::redact::{Half, Redactor};
use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Loss, VerifyItem};
use super::archive::{
    After, Archive, ChangeFilter, Error, RunFilter, Timing, WarningFilter, has_marker, is_kind,
};
use super::changes;
use super::findings;
use super::import::{Printed, Reading};
use super::record::{ChangeRecord, Head, ObjectRef, Run, Step};
use super::state;
use crate::emission::Emission;
use crate::store::rows::FindingRow;

/// Runs and changes in memory. What was redacted stays so, and what was not is.
#[derive(Debug, Default)]
pub struct Lines {
    /// The newest last.
    runs: Vec<Run>,
    /// In the order of the lines.
    changes: Vec<ChangeRecord>,
}

impl Lines {
    /// Makes an archive of what was read.
    pub fn new(readings: Vec<Reading>, redactor: &Redactor) -> Self {
        let mut calls: BTreeMap<String, Vec<Step>> = BTreeMap::new();
        let mut owners: BTreeMap<String, (ObjectRef, String)> = BTreeMap::new();
        let mut archive = Self::default();
        for (_, printed) in readings.into_iter().flat_map(|reading| reading.printed) {
            match printed {
                Printed::Emission(emission) => {
                    let Some(meta) = &emission.meta else { continue };
                    let trace = meta.trace_id.clone();
                    let owner = ObjectRef::of_meta(meta);
                    owners.entry(trace.clone()).or_insert(owner);
                    take(calls.entry(trace).or_default(), &emission, redactor);
                }
                Printed::Entry(entry) => archive.take_entry(*entry, redactor),
            }
        }
        for (trace, steps) in calls {
            let (owner, composition) = owners.remove(&trace).unwrap_or_default();
            archive.runs.push(Run::of_steps(trace, owner, composition, steps));
        }
        archive
            .runs
            .sort_by(|a, b| (a.head.started, &a.head.trace).cmp(&(b.head.started, &b.head.trace)));
        archive.settle();
        archive
    }

    fn take_entry(
        &mut self,
        entry: biplane_proto::changelogs::ChangeLogEntry,
        redactor: &Redactor,
    ) {
        let entry = redactor.entry(entry).into_inner();
        let Some(mut record) = changes::record(&entry, Timestamp::UNIX_EPOCH) else { return };
        record.received = record.at;
        record.sequence = i64::try_from(self.changes.len()).unwrap_or(i64::MAX) + 1;
        record.key = record.sequence;
        self.changes.push(record);
    }

    /// Finds what can only be told of a run beside others: its key, and whether it repeats.
    fn settle(&mut self) {
        for at in 0..self.runs.len() {
            let (before, from_here) = self.runs.split_at_mut(at);
            let Some(run) = from_here.first_mut() else { continue };
            let earlier =
                before.iter().rev().find(|other| other.head.owner.is_same(&run.head.owner));
            run.head.same = earlier.is_some_and(|earlier| repeats(earlier, run));
            run.head.key = i64::try_from(at).unwrap_or(i64::MAX) + 1;
        }
    }
}

/// Adds half of a call to the calls of a run.
fn take(steps: &mut Vec<Step>, emission: &Emission, redactor: &Redactor) {
    let Some(meta) = &emission.meta else { return };
    let is_same = |step: &Step| {
        step.span == meta.span_id
            && step.index == meta.step_index
            && step.iteration == meta.iteration
    };
    let at = steps.iter().position(is_same).unwrap_or_else(|| {
        let time = meta.timestamp.unwrap_or_default();
        steps.push(Step {
            index: meta.step_index,
            iteration: meta.iteration,
            name: meta.step_name.clone(),
            function: meta.function_name.clone(),
            span: meta.span_id.clone(),
            started: Timestamp::new(time.seconds, time.nanos).unwrap_or_default(),
            ..Step::default()
        });
        steps.len() - 1
    });
    let Some(step) = steps.get_mut(at) else { return };
    let Emission { half, payload, error, details, .. } = emission;
    let was_redacted = step.request.as_ref().is_some_and(has_marker);
    let payload = redactor.line_payload(*half, payload, was_redacted).into_inner();
    let payload = (!payload.is_null()).then_some(payload);
    match half {
        Half::Request => {
            step.request = payload;
            step.asked = true;
        }
        Half::Response => {
            step.response = payload;
            step.answered = true;
            step.error = (!error.is_empty()).then(|| error.clone());
        }
    }
    let took = details.took.and_then(|took| i64::try_from(took.as_micros()).ok());
    step.took = took.or(step.took);
    step.cached = details.cached.or(step.cached);
    step.revision = details.revision.clone().or_else(|| step.revision.take());
}

/// Whether a run asked and answered the same as another.
fn repeats(earlier: &Run, run: &Run) -> bool {
    let calls = |run: &Run| -> Vec<_> {
        let call = |step: &Step| {
            (
                step.index,
                step.iteration,
                step.request.clone(),
                step.response.clone(),
                step.error.clone(),
            )
        };
        run.steps.iter().map(call).collect()
    };
    calls(earlier) == calls(run)
}

impl Archive for Lines {
    fn runs(
        &self,
        filter: &RunFilter,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<Head>, Error> {
        let is_wanted = |run: &&Run| {
            let head = &run.head;
            let key = (head.started.as_microsecond(), head.key);
            after.is_none_or(|after| key < (after.at, after.key)) && matches(filter, run)
        };
        Ok(self.runs.iter().rev().filter(is_wanted).take(limit).map(|r| r.head.clone()).collect())
    }

    fn by_trace(&self, prefix: &str) -> Result<Vec<Head>, Error> {
        let found = self.runs.iter().filter(|run| run.head.trace.starts_with(prefix));
        Ok(found.take(3).map(|run| run.head.clone()).collect())
    }

    fn load(&self, head: &Head) -> Result<Run, Error> {
        let found = self.runs.iter().find(|run| run.head.key == head.key);
        found.cloned().ok_or_else(|| Error::NotFound(format!("run {} is gone", head.trace)))
    }

    fn run_before(&self, head: &Head) -> Result<Option<Head>, Error> {
        let is_earlier =
            |run: &&Run| run.head.key < head.key && run.head.owner.is_same(&head.owner);
        Ok(self.runs.iter().rev().find(is_earlier).map(|run| run.head.clone()))
    }

    fn run_after(&self, head: &Head) -> Result<Option<Head>, Error> {
        let is_later = |run: &&Run| run.head.key > head.key && run.head.owner.is_same(&head.owner);
        Ok(self.runs.iter().find(is_later).map(|run| run.head.clone()))
    }

    fn timings(&self, head: &Head) -> Result<Vec<Timing>, Error> {
        let timing = |step: &Step| Timing {
            index: step.index,
            name: step.name.clone(),
            function: step.function.clone(),
            took: step.took,
            cached: step.cached,
        };
        let run = self.runs.iter().find(|run| run.head.key == head.key);
        Ok(run.into_iter().flat_map(|run| &run.steps).map(timing).collect())
    }

    fn composed(
        &self,
        kind: &str,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<(ObjectRef, ObjectRef, String)>, Error> {
        let mut found: Vec<(ObjectRef, ObjectRef, String)> = Vec::new();
        for run in self.runs.iter().rev() {
            for (slot, value) in state::slots(run.observed()) {
                let object = ObjectRef::of_object(state::body(value));
                let is_meant = !slot.is_empty()
                    && object.name == name
                    && is_kind(kind, &object)
                    && namespace.is_none_or(|namespace| object.namespace == namespace)
                    && !found.iter().any(|(other, owner, place)| {
                        other.is_same(&object) && owner.is_same(&run.head.owner) && place == slot
                    });
                if is_meant {
                    found.push((object, run.head.owner.clone(), slot.to_owned()));
                }
            }
        }
        Ok(found)
    }

    fn warnings(
        &self,
        filter: &WarningFilter,
        limit: usize,
        from: Option<After>,
    ) -> Result<Vec<FindingRow>, Error> {
        findings::list(findings::of_runs(&self.runs)?.store(), filter, limit, from)
    }

    fn warning(&self, key: i64) -> Result<Option<FindingRow>, Error> {
        Ok(findings::of_runs(&self.runs)?.store().finding(key)?)
    }

    fn changes(
        &self,
        filter: &ChangeFilter,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<ChangeRecord>, Error> {
        let is_wanted = |change: &&ChangeRecord| {
            let key = (change.at.as_microsecond(), change.key);
            after.is_none_or(|after| key < (after.at, after.key)) && is_meant(filter, change)
        };
        let mut found: Vec<_> = self.changes.iter().filter(is_wanted).cloned().collect();
        if filter.newer_than.is_some() {
            found.sort_by_key(|change| change.key);
        } else {
            found.sort_by_key(|change| std::cmp::Reverse((change.at, change.key)));
        }
        found.truncate(limit);
        Ok(found)
    }

    fn change(&self, key: i64) -> Result<Option<ChangeRecord>, Error> {
        Ok(self.changes.iter().find(|change| change.key == key).cloned())
    }

    fn owners_of(&self, object: &ObjectRef) -> Result<Vec<(ObjectRef, String)>, Error> {
        let mut found: Vec<(ObjectRef, String)> = Vec::new();
        for run in self.runs.iter().rev() {
            for (slot, value) in state::slots(run.observed()) {
                let is_meant = !slot.is_empty()
                    && ObjectRef::of_object(state::body(value)).is_same(object)
                    && !found
                        .iter()
                        .any(|(owner, name)| owner.is_same(&run.head.owner) && name == slot);
                if is_meant {
                    found.push((run.head.owner.clone(), slot.to_owned()));
                }
            }
        }
        Ok(found)
    }

    fn losses(&self, _: Option<Timestamp>, _: Option<Timestamp>) -> Result<Vec<Loss>, Error> {
        Ok(Vec::new())
    }

    fn verify(&self) -> Result<Vec<VerifyItem>, Error> {
        Err(Error::Usage("lines have no chain: verify a store".to_owned()))
    }
}

fn matches(filter: &RunFilter, run: &Run) -> bool {
    let Head { owner, composition, started, outcome, same, steps, .. } = &run.head;
    let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|w| w == value);
    let labels = || {
        let object = run.observed().and_then(|state| state.get("composite"));
        object.and_then(|slot| state::body(slot).get("metadata")?.get("labels"))
    };
    filter.kind.as_ref().is_none_or(|kind| is_kind(kind, owner))
        && is(&filter.name, &owner.name)
        && is(&filter.namespace, &owner.namespace)
        && is(&filter.composition, composition)
        && filter.function.as_ref().is_none_or(|f| steps.iter().any(|(_, _, own)| own == f))
        && (filter.outcomes.is_empty() || filter.outcomes.contains(outcome))
        && filter.since.is_none_or(|since| *started >= since)
        && filter.until.is_none_or(|until| *started < until)
        && !(filter.changed && *same)
        && filter.labels.iter().all(|(key, value)| {
            labels().and_then(|labels| labels.get(key)) == Some(&Value::from(value.as_str()))
        })
}

fn is_meant(filter: &ChangeFilter, change: &ChangeRecord) -> bool {
    let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|w| w == value);
    let provider = |wanted: &String| {
        *wanted == change.provider
            || change.provider.split_once(':').is_some_and(|(name, _)| name == wanted)
    };
    filter.kind.as_ref().is_none_or(|kind| is_kind(kind, &change.object))
        && is(&filter.name, &change.object.name)
        && is(&filter.namespace, &change.object.namespace)
        && filter.provider.as_ref().is_none_or(provider)
        && is(&filter.operation, &change.operation)
        && is(&filter.cause, change.cause.as_deref().unwrap_or_default())
        && !(filter.failed && change.error.is_none())
        && filter.since.is_none_or(|since| change.at >= since)
        && filter.until.is_none_or(|until| change.at < until)
        && filter.newer_than.is_none_or(|key| change.key > key)
}

//! Runs a recorded pipeline again: each step is given what the step before it answers now.
//!
//! Who calls functions is the caller's business: [`Rerun::ask`] says what to ask, and
//! [`Rerun::answered`] takes the answer.

use biplane_proto::redact::{Half, Redactor};
use serde_json::Value;

use super::super::answer::{FieldItem, SlotItem, WhatIf, WhatIfNeed, WhatIfStep};
use super::super::archive::Error;
use super::super::compare::{self, step_ref};
use super::super::difference::{self, NODES};
use super::super::print::whole_numbers;
use super::super::record::{Outcome, Run, Step};
use super::super::state;
use super::suppose::Supposition;
use super::{supply, unrecorded};
use crate::query::sentence;

/// A step to be run.
#[derive(Clone, Debug)]
struct Planned {
    step: Step,
    /// The run that it was taken from, if it is another one.
    taken_from: Option<String>,
}

/// A pipeline that is run again.
#[derive(Debug)]
pub struct Rerun {
    recorded: Run,
    /// The last run before that got to its end, if the recorded one did not.
    success: Option<Run>,
    planned: Vec<Planned>,
    supposed: Vec<Supposition>,
    supplied: Value,
    redactor: Redactor,
    done: Vec<Step>,
    targets: Vec<String>,
    /// The request of the step that is being run.
    asked: Option<Value>,
    /// What the last step answered.
    answer: Option<Value>,
    is_over: bool,
    needs: Vec<WhatIfNeed>,
    given_markers: Vec<String>,
    given_values: Vec<String>,
}

/// What a step is to be asked.
#[derive(Clone, Debug)]
pub struct Asking {
    /// The step as it was recorded.
    pub step: Step,
    /// What it is given.
    pub request: Value,
}

impl Rerun {
    /// Prepares to run a pipeline again. Steps that the run did not reach are taken from `success`.
    pub fn new(
        recorded: Run,
        success: Option<Run>,
        supposed: Vec<Supposition>,
        supplied: Value,
        redactor: Redactor,
    ) -> Self {
        let own = |step: &&Step| Planned { step: (*step).clone(), taken_from: None };
        let calls = recorded.last_calls();
        let mut planned: Vec<Planned> = calls.iter().map(own).collect();
        let last = calls.last().map(|step| step.index);
        if let Some(success) = &success {
            let trace = &success.head.trace;
            let later = success.last_calls().into_iter().filter(|step| Some(step.index) > last);
            planned.extend(
                later.map(|step| Planned { step: step.clone(), taken_from: Some(trace.clone()) }),
            );
        }
        // The next one is the last.
        planned.reverse();
        Self {
            recorded,
            success,
            planned,
            supposed,
            supplied,
            redactor,
            done: Vec::new(),
            targets: Vec::new(),
            asked: None,
            answer: None,
            is_over: false,
            needs: Vec::new(),
            given_markers: Vec::new(),
            given_values: Vec::new(),
        }
    }

    /// All functions that may be called.
    pub fn functions(&self) -> Vec<String> {
        let all = self.planned.iter().map(|planned| planned.step.function.clone());
        let mut all: Vec<String> = all.collect();
        all.sort();
        all.dedup();
        all
    }

    /// What the next step is asked. Nothing at the end of the pipeline.
    pub fn ask(&mut self) -> Result<Option<Asking>, Error> {
        let Some(planned) = self.planned.last().filter(|_| !self.is_over) else { return Ok(None) };
        let step = planned.step.clone();
        let number = i64::from(step.index) + 1;
        let unknown = || Error::Usage(format!("the request of step {number} was not recorded"));
        let mut request = step.request.clone().filter(Value::is_object).ok_or_else(unknown)?;
        if planned.taken_from.is_some() {
            set(&mut request, "observed", self.recorded.observed().cloned());
        }
        for supposition in &self.supposed {
            let applied = supposition.apply(&step, &mut request);
            applied.map_err(|error| Error::Usage(error.to_string()))?;
        }
        if let Some(answer) = &self.answer {
            for part in ["desired", "context"] {
                set(&mut request, part, answer.get(part).cloned());
            }
        }
        let (given, missing) = supply(&mut request, &self.supplied);
        let named = |path: String| format!("{number}: {path}");
        self.given_values.extend(given.into_iter().map(named));
        self.given_markers.extend(missing.into_iter().map(named));
        self.asked = Some(request.clone());
        Ok(Some(Asking { step, request }))
    }

    /// Takes what a step answered, or why it could not be called.
    pub fn answered(&mut self, target: &str, answer: Result<Value, String>) {
        let Some(planned) = self.planned.pop() else { return };
        let redact = |half, message: Value| {
            let mut message = self.redactor.json(half, message, false).into_inner();
            whole_numbers(&mut message);
            message
        };
        let request = self.asked.take().map(|request| redact(Half::Request, request));
        let (response, error) = match &answer {
            Ok(response) => (Some(redact(Half::Response, response.clone())), None),
            Err(error) => (None, Some(error.clone())),
        };
        let step = Step {
            index: planned.step.index,
            name: planned.step.name,
            function: planned.step.function,
            request,
            response,
            asked: true,
            answered: true,
            error,
            ..Step::default()
        };
        let place = step_ref(Some(&step));
        let need = |name: String| WhatIfNeed { step: place.clone(), name };
        self.needs.extend(unrecorded(&step).into_iter().map(need));
        self.is_over = step.outcome().is_failure();
        self.answer = answer.ok();
        self.targets.push(target.to_owned());
        self.done.push(step);
    }

    /// Compares what the pipeline does now with what it did.
    pub fn finish(self) -> WhatIf {
        let mut recorded = self.recorded;
        let head = recorded.head.clone();
        normalize(&mut recorded);
        let origins: Vec<(i32, String)> = self
            .success
            .iter()
            .flat_map(|success| {
                let last = recorded.last_calls().last().map(|step| step.index);
                let later = success.last_calls().into_iter().map(|step| step.index);
                later
                    .filter(move |index| Some(*index) > last)
                    .map(|index| (index, success.head.trace.clone()))
            })
            .collect();
        let now = Run::of_steps(head.trace.clone(), head.owner, head.composition, self.done);
        let compared = compare::compare(&recorded, &now);
        let steps: Vec<WhatIfStep> = compared
            .steps
            .into_iter()
            .map(|row| {
                let of = |run: &Run| {
                    let calls = run.last_calls();
                    calls.into_iter().find(|step| step_ref(Some(step)) == row.step).cloned()
                };
                let after = of(&now);
                let at = now.steps.iter().position(|step| step_ref(Some(step)) == row.step);
                let target = at.and_then(|at| self.targets.get(at)).cloned();
                let index = row.step.number - 1;
                let origin = origins.iter().find(|(of, _)| i64::from(*of) == index);
                WhatIfStep {
                    target: target.unwrap_or_default(),
                    before: of(&recorded).map(|step| step.outcome()),
                    results: after.as_ref().map(Step::results).unwrap_or_default(),
                    error: after.as_ref().and_then(|step| step.error.clone()),
                    after: after.map(|step| step.outcome()),
                    given: row.given,
                    answered: row.answered,
                    taken_from: origin.map(|(_, trace)| trace.clone()),
                    step: row.step,
                }
            })
            .collect();
        // A run that failed desired nothing. Then the last one that did not is what things are.
        let mut success = self.success;
        success.iter_mut().for_each(normalize);
        let was_fine = !recorded.head.outcome.is_failure();
        let is_fine = !now.head.outcome.is_failure();
        let before = if was_fine { Some(&recorded) } else { success.as_ref() };
        let (mut resources, mut unchanged, mut context) = (Vec::new(), 0, Vec::new());
        if let Some(before) = before.filter(|_| is_fine) {
            let mut nodes = NODES;
            let slots = state::compare(before.desired(), now.desired(), &mut nodes);
            let items = slots.iter().map(SlotItem::from);
            let (other, same): (Vec<_>, Vec<_>) = items.partition(SlotItem::differs);
            unchanged = same.iter().filter(|slot| !slot.resource.is_empty()).count();
            resources = other;
            context = context_difference(before, &now);
        }
        let differs = steps.iter().any(|step| step.answered != "same");
        let sentence = sentence_of(&recorded, &now, &steps, &resources);
        WhatIf {
            run: head.trace,
            set: self.supposed.iter().map(|set| set.text().to_owned()).collect(),
            sentence,
            differs,
            outcome: now.head.outcome,
            steps,
            resources,
            unchanged,
            context,
            needs: self.needs,
            redacted: self.given_markers,
            supplied: self.given_values,
        }
    }
}

/// Puts a part into a message, or removes it.
fn set(message: &mut Value, part: &str, value: Option<Value>) {
    if let Some(fields) = message.as_object_mut() {
        match value {
            Some(value) => drop(fields.insert(part.to_owned(), value)),
            None => drop(fields.remove(part)),
        }
    }
}

/// Archives differ in how they keep whole numbers.
fn normalize(run: &mut Run) {
    for step in &mut run.steps {
        step.request.iter_mut().for_each(whole_numbers);
        step.response.iter_mut().for_each(whole_numbers);
    }
}

fn context_difference(before: &Run, now: &Run) -> Vec<FieldItem> {
    let context = |run: &Run| {
        let calls = run.last_calls();
        let last = calls.last().and_then(|step| step.response.as_ref()?.get("context"));
        last.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    };
    let found = difference::difference(&context(before), &context(now));
    found.changes.iter().map(FieldItem::from).collect()
}

fn sentence_of(recorded: &Run, now: &Run, steps: &[WhatIfStep], resources: &[SlotItem]) -> String {
    let calls = now.last_calls();
    let total = steps.len();
    let was_fine = !recorded.head.outcome.is_failure();
    if let Some(failed) = calls.iter().find(|step| step.outcome().is_failure()) {
        let how = format!("{} {}", sentence::place(failed, total), sentence::failure(failed));
        let is_same = steps.iter().all(|step| step.answered == "same");
        return match (was_fine, is_same) {
            (true, _) => format!("The pipeline would fail. {how}"),
            (false, true) => format!("The pipeline would fail as it did. {how}"),
            (false, false) => format!("The pipeline would fail in another way. {how}"),
        };
    }
    let others: Vec<String> =
        steps.iter().filter(|step| step.answered != "same").map(|step| step.step.label()).collect();
    if !was_fine {
        let outcome = recorded.head.outcome;
        let ended = match outcome {
            Outcome::Incomplete => "was not recorded to its end",
            _ => "failed",
        };
        let changes = match resources {
            [] => String::new(),
            resources => format!(" {}.", sentence::changes(resources)),
        };
        return format!("The run {ended}; now every step answers.{changes}");
    }
    match (others.is_empty(), resources.is_empty()) {
        (true, _) => "Nothing would differ: every step answers the same.".to_owned(),
        (false, true) => {
            let others = others.join(", ");
            format!("The same would be desired. These steps answer something else: {others}.")
        }
        (false, false) => {
            format!("Something else would be desired. {}.", sentence::changes(resources))
        }
    }
}

#[cfg(test)]
mod tests;

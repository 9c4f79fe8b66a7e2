//! Two runs side by side: what each step was given and what it answered.

use serde_json::Value;

use super::answer::{Cause, CompareStep, FieldItem, StepRef};
use super::difference::{self, NODES, What};
use super::path::{Path, Segment};
use super::record::{Run, Step};
use super::state;

/// The parts of a request in the order of cause: what the world is, then what functions made of it.
const REQUEST: [&str; 8] = [
    "observed",
    "requiredResources",
    "extraResources",
    "requiredSchemas",
    "input",
    "credentials",
    "context",
    "desired",
];
/// The parts of a response.
const RESPONSE: [&str; 6] =
    ["desired", "context", "results", "conditions", "requirements", "output"];

/// A difference between two messages of the same half, beside bookkeeping.
struct Found {
    part: &'static str,
    resource: Option<String>,
    field: Option<FieldItem>,
}

impl Found {
    fn cause(self, step: StepRef, half: &str) -> Cause {
        let Self { part, resource, field } = self;
        Cause { step, half: half.to_owned(), part: part.to_owned(), resource, field }
    }
}

/// What differs in what a step was given in two runs, in the order of cause.
pub fn given(was: &Step, is: &Step, nodes: &mut usize) -> Vec<Cause> {
    let found = message(was.request.as_ref(), is.request.as_ref(), &REQUEST, nodes);
    found.into_iter().map(|found| found.cause(step_ref(Some(is)), "given")).collect()
}

/// What differs in what a step answered in two runs.
pub fn answered(was: &Step, is: &Step, nodes: &mut usize) -> Vec<Cause> {
    let mut found = message(was.response.as_ref(), is.response.as_ref(), &RESPONSE, nodes);
    if was.error != is.error {
        found.push(error(was, is));
    }
    found.into_iter().map(|found| found.cause(step_ref(Some(is)), "answered")).collect()
}

/// What the comparison of two runs found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The steps, aligned by name.
    pub steps: Vec<CompareStep>,
    /// The first difference in the order of cause.
    pub first: Option<Cause>,
    /// How many fields of what the first step was given differ. It is what the world decided.
    pub inputs: usize,
}

/// Compares two runs.
pub fn compare(before: &Run, after: &Run) -> Comparison {
    let mut nodes = NODES;
    let (was, is) = (before.last_calls(), after.last_calls());
    let mut found = Comparison::default();
    for (at, pair) in aligned(&was, &is).into_iter().enumerate() {
        let mut row = CompareStep {
            step: step_ref(pair.1.or(pair.0)),
            took_before_micros: pair.0.and_then(|step| step.took),
            took_after_micros: pair.1.and_then(|step| step.took),
            ..CompareStep::default()
        };
        match pair {
            (Some(was), Some(is)) => {
                let given = given(was, is, &mut nodes);
                let answered = answered(was, is, &mut nodes);
                row.given = verdict(&given);
                row.answered = verdict(&answered);
                if at == 0 {
                    found.inputs = given.len();
                }
                let given = given.into_iter().next();
                let answered = answered.into_iter().next();
                found.first = found.first.or(given).or(answered);
            }
            (Some(_), None) => only(&mut row, &mut found.first, "absent after"),
            _ => only(&mut row, &mut found.first, "absent before"),
        }
        found.steps.push(row);
    }
    found
}

fn only(row: &mut CompareStep, first: &mut Option<Cause>, verdict: &str) {
    verdict.clone_into(&mut row.given);
    verdict.clone_into(&mut row.answered);
    if first.is_none() {
        *first = Some(Cause {
            step: row.step.clone(),
            half: "given".to_owned(),
            part: "step".to_owned(),
            ..Cause::default()
        });
    }
}

fn verdict(found: &[Cause]) -> String {
    if found.is_empty() { "same" } else { "differs" }.to_owned()
}

fn error(was: &Step, is: &Step) -> Found {
    let text = |step: &Step| step.error.clone().map(Value::from);
    let (before, after) = (text(was), text(is));
    let field = FieldItem { path: "error".to_owned(), before, after, ..FieldItem::default() };
    Found { part: "error", resource: None, field: Some(field) }
}

/// A step by its place.
pub fn step_ref(step: Option<&Step>) -> StepRef {
    step.map_or_else(StepRef::default, |step| StepRef {
        number: i64::from(step.index) + 1,
        name: step.name.clone(),
        function: step.function.clone(),
    })
}

/// Pairs steps of the same name, in the order of the second run. Steps without a name are paired by
/// position.
pub fn aligned<'a>(was: &[&'a Step], is: &[&'a Step]) -> Vec<(Option<&'a Step>, Option<&'a Step>)> {
    let is_same = |a: &Step, b: &Step| {
        if a.name.is_empty() || b.name.is_empty() { a.index == b.index } else { a.name == b.name }
    };
    let mut pairs: Vec<(Option<&Step>, Option<&Step>)> = Vec::new();
    for step in is {
        let partner = was.iter().find(|other| is_same(other, step)).copied();
        pairs.push((partner, Some(step)));
    }
    for step in was.iter().filter(|step| !is.iter().any(|other| is_same(other, step))) {
        let is_later = |(was, is): &(Option<&Step>, Option<&Step>)| {
            was.or(*is).is_some_and(|other| other.index > step.index)
        };
        let place = pairs.iter().position(is_later);
        pairs.insert(place.unwrap_or(pairs.len()), (Some(step), None));
    }
    pairs
}

fn message<'a>(
    before: Option<&'a Value>,
    after: Option<&'a Value>,
    parts: &[&'static str],
    nodes: &mut usize,
) -> Vec<Found> {
    let mut found = Vec::new();
    for part in parts {
        let none = Value::Object(serde_json::Map::new());
        let side = |message: Option<&'a Value>| message.and_then(|message| message.get(*part));
        let (before, after) = (side(before).unwrap_or(&none), side(after).unwrap_or(&none));
        if matches!(*part, "observed" | "desired") {
            states(part, before, after, nodes, &mut found);
            continue;
        }
        let changes = difference::within(before, after, nodes).changes;
        let changes = changes.iter().filter(|change| !change.path.is_bookkeeping());
        found.extend(changes.map(|change| Found {
            part,
            resource: None,
            field: Some(change.into()),
        }));
    }
    found
}

fn states(
    part: &'static str,
    before: &Value,
    after: &Value,
    nodes: &mut usize,
    found: &mut Vec<Found>,
) {
    for slot in state::compare(Some(before), Some(after), nodes) {
        let item = super::answer::SlotItem::from(&slot);
        if !item.differs() {
            continue;
        }
        let resource = Some(slot.slot.clone());
        let whole = |field| Found { part, resource: resource.clone(), field };
        let before_fields = found.len();
        found.extend(item.own_fields().map(|field| whole(Some(field.clone()))));
        if found.len() == before_fields {
            found.push(whole(None));
        }
    }
}

/// What two answers to the same request differ in beside their desired states.
pub fn rest_of_response(before: &Value, after: &Value) -> Vec<FieldItem> {
    let mut nodes = NODES;
    let mut found = Vec::new();
    for part in RESPONSE.iter().filter(|part| **part != "desired") {
        let side = |message: &Value| message.get(*part).cloned();
        let (before, after) = (side(before), side(after));
        let name = Segment::Field((*part).to_owned());
        match (before, after) {
            (Some(before), Some(after)) => {
                for mut change in difference::within(&before, &after, &mut nodes).changes {
                    change.path.0.insert(0, name.clone());
                    found.push((&change).into());
                }
            }
            (None, None) => {}
            (Some(value), None) if is_empty(&value) => {}
            (None, Some(value)) if is_empty(&value) => {}
            (Some(value), None) => {
                let what = What::Removed { value, from: None };
                found.push((&difference::Change { path: Path(vec![name]), what }).into());
            }
            (None, Some(value)) => {
                let what = What::Added { value, to: None };
                found.push((&difference::Change { path: Path(vec![name]), what }).into());
            }
        }
    }
    found
}

/// Protobuf does not tell an empty message from an absent one in most places.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::record::ObjectRef;
    use serde_json::json;

    fn step(index: i32, name: &str, request: Value, response: Value) -> Step {
        Step {
            index,
            name: name.to_owned(),
            request: Some(request),
            response: Some(response),
            answered: true,
            ..Step::default()
        }
    }

    fn run(steps: Vec<Step>) -> Run {
        Run::of_steps("t".into(), ObjectRef::default(), String::new(), steps)
    }

    fn xr(size: i64, version: &str) -> Value {
        let metadata = json!({"resourceVersion": version});
        json!({"composite": {"resource": {"kind": "Store", "metadata": metadata, "spec": {"size": size}}}})
    }

    fn verdicts(found: &Comparison) -> Vec<(&str, &str, &str)> {
        found
            .steps
            .iter()
            .map(|r| (r.step.name.as_str(), r.given.as_str(), r.answered.as_str()))
            .collect()
    }

    #[test]
    fn the_first_difference_in_the_order_of_cause_is_what_the_world_decided() {
        let make = |size, version: &str| {
            let out = json!({"desired": {"resources": {"b": {"resource": {"size": size}}}}});
            run(vec![
                step(
                    0,
                    "env",
                    json!({"observed": xr(size, version), "meta": {"tag": version}}),
                    json!({}),
                ),
                step(1, "compose", json!({"observed": xr(size, version)}), out),
            ])
        };
        let found = compare(&make(3, "1"), &make(5, "2"));
        assert_eq!(
            verdicts(&found),
            [("env", "differs", "same"), ("compose", "differs", "differs")]
        );
        let first = found.first.unwrap();
        assert_eq!(
            (first.step.number, first.half.as_str(), first.part.as_str()),
            (1, "given", "observed")
        );
        assert_eq!(first.field.unwrap().path, "spec.size");
        assert_eq!(found.inputs, 1);
        // Versions of objects are no difference.
        let found = compare(&make(3, "1"), &make(3, "2"));
        assert_eq!((found.first, found.inputs), (None, 0));
    }

    #[test]
    fn equal_input_with_different_output_begins_with_the_answer() {
        let make =
            |answer: Value| run(vec![step(0, "roll", json!({"observed": xr(1, "1")}), answer)]);
        let found =
            compare(&make(json!({"context": {"a": 1}})), &make(json!({"context": {"a": 2}})));
        assert_eq!(verdicts(&found), [("roll", "same", "differs")]);
        let first = found.first.unwrap();
        assert_eq!((first.half.as_str(), first.part.as_str()), ("answered", "context"));
    }

    #[test]
    fn steps_are_aligned_by_name() {
        let named = |names: &[&str]| {
            let steps = names.iter().zip(0..).map(|(n, i)| step(i, n, json!({}), json!({})));
            run(steps.collect())
        };
        let found = compare(&named(&["a", "b", "c"]), &named(&["b", "x", "c"]));
        assert_eq!(
            verdicts(&found),
            [
                ("a", "absent after", "absent after"),
                ("b", "same", "same"),
                ("x", "absent before", "absent before"),
                ("c", "same", "same"),
            ]
        );
    }
}

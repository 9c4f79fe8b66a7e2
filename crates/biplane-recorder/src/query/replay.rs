//! What a recorded request lacks, and how an answer to it differs from the recorded one.

pub mod junit;
pub mod pipeline;
mod shape;
pub mod suppose;
pub mod week;

use std::collections::BTreeSet;

use biplane_proto::function::v1::RunFunctionResponse;
use biplane_proto::json;
use biplane_proto::redact::{Half, Redactor};
use serde_json::Value;

use super::answer::{Replay, SlotItem};
use super::blame::leaves;
use super::compare::{rest_of_response, step_ref};
use super::difference::{NODES, is_redacted};
use super::path::{Path, Segment};
use super::print::whole_numbers;
use super::record::Step;
use super::state;
use crate::query::sentence;

pub use self::shape::shape;

/// The paths of redacted values.
pub fn redacted(message: &Value) -> Vec<String> {
    let found = leaves(message).into_iter().filter(|(_, value)| is_redacted(value));
    found.map(|(path, _)| path.to_string()).collect()
}

/// Puts values in the place of redacted ones. `supplied` has the shape of the message, with as much
/// of it as is needed. Returns the paths that were supplied and those that are still redacted.
pub fn supply(message: &mut Value, supplied: &Value) -> (Vec<String>, Vec<String>) {
    let places: Vec<Path> = leaves(message)
        .into_iter()
        .filter(|(_, value)| is_redacted(value))
        .map(|(path, _)| path)
        .collect();
    let (mut given, mut missing) = (Vec::new(), Vec::new());
    for path in places {
        match path.get(supplied) {
            Some(value) if put(message, &path.0, value.clone()) => given.push(path.to_string()),
            _ => missing.push(path.to_string()),
        }
    }
    (given, missing)
}

fn put(value: &mut Value, path: &[Segment], new: Value) -> bool {
    let Some((first, rest)) = path.split_first() else {
        *value = new;
        return true;
    };
    let below = match first {
        Segment::Field(name) => value.get_mut(name),
        Segment::Index(index) => value.get_mut(*index),
        Segment::Item(key) => value
            .as_array_mut()
            .and_then(|items| items.iter_mut().find(|i| super::path::item_has_key(i, key))),
    };
    below.is_some_and(|below| put(below, rest, new))
}

/// An answer in the form of recorded ones. What would have been redacted is redacted, so that it is
/// neither printed nor taken for a difference.
pub fn as_recorded(
    answer: &RunFunctionResponse,
    redactor: &Redactor,
) -> Result<Value, json::Error> {
    let text = json::to_string(answer)?;
    Ok(redactor.line_payload(Half::Response, text.as_bytes(), false).into_inner())
}

/// The names of what a step required and was not given in its recorded request: it was fetched while
/// the step ran, and nobody recorded it.
pub fn unrecorded(step: &Step) -> Vec<String> {
    let names = |message: Option<&Value>| -> BTreeSet<String> {
        let fields = message.and_then(Value::as_object);
        fields.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let request = |field: &str| names(step.request.as_ref().and_then(|r| r.get(field)));
    let required = step.response.as_ref().and_then(|response| response.get("requirements"));
    let required = |field: &str| names(required.and_then(|required| required.get(field)));
    // Control planes give what is required under its old name in the new place, too.
    let given = &request("requiredResources") | &request("extraResources");
    let asked = &required("resources") | &required("extraResources");
    let schemas = &required("schemas") - &request("requiredSchemas");
    (&(&asked - &given) | &schemas).into_iter().collect()
}

/// Compares a new answer with the recorded one.
pub fn compare(run: &str, step: &Step, target: String, answer: Result<Value, String>) -> Replay {
    let mut replay =
        Replay { run: run.to_owned(), step: step_ref(Some(step)), target, ..Replay::default() };
    let mut response = match answer {
        Ok(response) => response,
        Err(error) => {
            replay.sentence = format!("The function could not be called: {error}");
            replay.differs = step.error.is_none();
            replay.error = Some(error);
            return replay;
        }
    };
    let Some(recorded) = &step.response else {
        let recorded = match &step.error {
            Some(_) => "The recorded call failed.",
            None => "No answer was recorded.",
        };
        replay.sentence = format!("The function answers now. {recorded}");
        replay.differs = true;
        return replay;
    };
    let mut recorded = recorded.clone();
    // Archives differ in how they keep whole numbers.
    whole_numbers(&mut recorded);
    whole_numbers(&mut response);
    let mut nodes = NODES;
    let slots = state::compare(recorded.get("desired"), response.get("desired"), &mut nodes);
    let items: Vec<SlotItem> = slots.iter().map(SlotItem::from).collect();
    replay.fields = rest_of_response(&recorded, &response);
    replay.resources = items.into_iter().filter(SlotItem::differs).collect();
    replay.differs = !replay.resources.is_empty() || !replay.fields.is_empty();
    replay.sentence = match (replay.differs, replay.resources.is_empty()) {
        (false, _) => "The function answers the same as it did.".to_owned(),
        (true, true) => {
            let fields = sentence::counted(replay.fields.len(), "field");
            format!("The function answers something else: {fields} beside what it desires.")
        }
        (true, false) => {
            let changes = sentence::changes(&replay.resources);
            format!("The function answers something else. {changes}.")
        }
    };
    replay
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn redacted_values_are_named_and_can_be_supplied() {
        let mut request = json!({
            "credentials": {"c": {"credentialData": {"data": {"k": "KipSRURBQ1RFRCoq"}}}},
            "observed": {"resources": {"s": {"resource": {"data": {"a": "**REDACTED**", "b": "x"}}}}},
            "list": [{"name": "n", "v": "**REDACTED**"}],
        });
        let all = redacted(&request);
        let secret = "observed.resources.s.resource.data.a";
        assert_eq!(all, ["credentials.c.credentialData.data.k", "list[name=n].v", secret]);
        let supplied = json!({
            "observed": {"resources": {"s": {"resource": {"data": {"a": "YQ==", "b": "not taken"}}}}},
            "list": [{"name": "n", "v": 5}],
        });
        let (given, missing) = supply(&mut request, &supplied);
        assert_eq!(given, ["list[name=n].v", secret]);
        assert_eq!(missing, ["credentials.c.credentialData.data.k"]);
        assert_eq!(
            request["observed"]["resources"]["s"]["resource"]["data"],
            json!({"a": "YQ==", "b": "x"})
        );
        assert_eq!(request["list"][0]["v"], json!(5));
    }

    #[test]
    fn what_was_fetched_while_a_step_ran_is_named() {
        let step = Step {
            request: Some(json!({"requiredResources": {"known": {"items": []}}})),
            response: Some(json!({"requirements": {
                "resources": {"known": {"kind": "A"}, "fetched": {"kind": "B"}},
                "schemas": {"shape": {"kind": "C"}},
            }})),
            ..Step::default()
        };
        assert_eq!(unrecorded(&step), ["fetched", "shape"]);
        assert_eq!(unrecorded(&Step::default()), Vec::<String>::new());
    }

    #[test]
    fn whole_numbers_are_equal_however_they_are_kept() {
        let answer =
            |number: Value| json!({"desired": {"resources": {"a": {"resource": {"x": number}}}}});
        let step = Step { response: Some(answer(json!(3))), answered: true, ..Step::default() };
        assert!(!compare("r", &step, "here".into(), Ok(answer(json!(3.0)))).differs);
        assert!(compare("r", &step, "here".into(), Ok(answer(json!(3.5)))).differs);
    }

    #[test]
    fn answers_are_compared_with_the_recorded_one() {
        let recorded = json!({"meta": {"tag": "t"}, "desired": {"resources": {"a": {"resource": {"x": 1}}}}, "context": {}});
        let step = Step { response: Some(recorded.clone()), answered: true, ..Step::default() };
        let replayed = |answer: Value| compare("r", &step, "here".into(), Ok(answer));
        // The tag and an absent context are no differences.
        let same = replayed(json!({"meta": {"tag": "u"}, "desired": recorded["desired"].clone()}));
        assert!(!same.differs, "{same:?}");
        let other = replayed(
            json!({"desired": {"resources": {"a": {"resource": {"x": 2}}}}, "results": [{"severity": "SEVERITY_NORMAL"}]}),
        );
        assert_eq!(other.sentence, "The function answers something else. Changed a (1 field).");
        assert_eq!(other.fields[0].path, "results");
        let failed = compare("r", &step, "here".into(), Err("refused".into()));
        assert_eq!((failed.differs, failed.error.as_deref()), (true, Some("refused")));
    }
}

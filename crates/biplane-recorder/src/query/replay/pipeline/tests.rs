//! Tests pipelines that are run again, with functions of their own.

use biplane_proto::redact::{Mode, Redactor, TagKey};
use serde_json::{Value, json};

use super::super::super::answer::WhatIf;
use super::super::super::record::{ObjectRef, Outcome, Run, Step};
use super::*;

/// Copies the size of the composite resource into a bucket.
fn size(request: &Value) -> Value {
    let size = &request["observed"]["composite"]["resource"]["spec"]["size"];
    if *size == json!(7) {
        return json!({"results": [{"severity": "SEVERITY_FATAL", "message": "7 is too much"}]});
    }
    json!({"desired": {"resources": {"bucket": {"resource": {"kind": "Bucket", "spec": {"size": size}}}}},
        "context": {"size": size}})
}

/// Doubles what the step before desired, and adds a Secret.
fn double(request: &Value) -> Value {
    let mut desired = request["desired"].clone();
    let size = desired["resources"]["bucket"]["resource"]["spec"]["size"].as_f64().unwrap_or(0.0);
    desired["resources"]["bucket"]["resource"]["spec"]["size"] = json!(size * 2.0);
    desired["resources"]["login"] = json!({"resource": {"apiVersion": "v1", "kind": "Secret", "data": {"password": "aHVudGVyMg=="}}});
    json!({"desired": desired, "context": request["context"]})
}

fn redactor() -> Redactor {
    Redactor::new(Mode::Deep, TagKey::new([1; 32]))
}

fn observed(size: i64) -> Value {
    json!({"composite": {"resource": {"kind": "Store", "spec": {"size": size}}}})
}

/// The run that the functions make, as it is recorded.
fn recorded(trace: &str, size_of_store: i64) -> Run {
    let mut steps = Vec::new();
    let mut answer = json!({"desired": {}, "context": {}});
    for (index, name, function) in
        [(0, "compose", size as fn(&Value) -> Value), (1, "double", double)]
    {
        let request = json!({
            "observed": observed(size_of_store), "desired": answer["desired"], "context": answer["context"],
        });
        answer = function(&request);
        steps.push(Step {
            index,
            name: name.to_owned(),
            function: format!("function-{name}"),
            request: Some(redactor().json(Half::Request, request, false).into_inner()),
            response: Some(redactor().json(Half::Response, answer.clone(), false).into_inner()),
            asked: true,
            answered: true,
            ..Step::default()
        });
        if answer.get("results").is_some() {
            break;
        }
    }
    Run::of_steps(trace.to_owned(), ObjectRef::default(), "stores".to_owned(), steps)
}

fn rerun(run: Run, success: Option<Run>, set: &[&str]) -> WhatIf {
    let supposed = set.iter().map(|text| text.parse().unwrap()).collect();
    let mut rerun = Rerun::new(run, success, supposed, Value::Null, redactor());
    while let Some(asking) = rerun.ask().unwrap() {
        let function = if asking.step.name == "compose" { size } else { double };
        rerun.answered("here", Ok(function(&asking.request)));
    }
    rerun.finish()
}

fn verdicts(answer: &WhatIf) -> Vec<(&str, &str, &str)> {
    answer
        .steps
        .iter()
        .map(|step| (step.step.name.as_str(), step.given.as_str(), step.answered.as_str()))
        .collect()
}

#[test]
fn the_same_pipeline_answers_the_same() {
    let answer = rerun(recorded("a", 3), None, &[]);
    assert!(!answer.differs, "{answer:?}");
    assert_eq!(answer.sentence, "Nothing would differ: every step answers the same.");
    assert_eq!(verdicts(&answer), [("compose", "same", "same"), ("double", "same", "same")]);
    assert_eq!((answer.resources.len(), answer.unchanged), (0, 2));
}

#[test]
fn each_step_is_given_what_the_step_before_answers_now() {
    let answer = rerun(recorded("a", 3), None, &["spec.size=5"]);
    assert!(answer.differs);
    let differs = ("compose", "differs", "differs");
    assert_eq!(verdicts(&answer), [differs, ("double", "differs", "differs")]);
    assert_eq!(answer.sentence, "Something else would be desired. Changed bucket (1 field).");
    let field = &answer.resources[0].fields[0];
    assert_eq!((&field.before, &field.after), (&Some(json!(6)), &Some(json!(10))));
    assert_eq!((answer.resources.len(), answer.unchanged), (1, 1));
    assert_eq!(answer.context[0].path, "size");
    // What is a secret stays one.
    assert!(!serde_json::to_string(&answer).unwrap().contains("aHVudGVyMg"));
}

#[test]
fn a_pipeline_that_would_fail_stops_there() {
    let answer = rerun(recorded("a", 3), None, &["spec.size=7"]);
    assert_eq!(answer.outcome, Outcome::Fatal);
    assert_eq!(
        answer.sentence,
        "The pipeline would fail. Step 1 of 2, compose, returned a fatal result: \"7 is too much\"."
    );
    assert_eq!(answer.steps[1].answered, "absent after");
    assert_eq!(answer.steps[1].after, None);
}

#[test]
fn steps_that_a_failed_run_did_not_reach_are_taken_from_the_last_success() {
    let answer = rerun(recorded("b", 7), Some(recorded("a", 3)), &["spec.size=5"]);
    assert_eq!(answer.outcome, Outcome::Ok);
    assert_eq!(
        answer.sentence,
        "The run failed; now every step answers. Changed bucket (1 field)."
    );
    assert_eq!(answer.steps[1].taken_from.as_deref(), Some("a"));
    assert_eq!(answer.resources[0].fields[0].after, Some(json!(10)));
    let answer = rerun(recorded("b", 7), Some(recorded("a", 3)), &[]);
    assert!(answer.sentence.starts_with("The pipeline would fail as it did. Step 1 of"));
    assert!(!answer.differs);
}

#[test]
fn what_cannot_be_supposed_is_told() {
    let supposed = vec!["none:a=1".parse().unwrap()];
    let mut rerun = Rerun::new(recorded("a", 3), None, supposed, Value::Null, redactor());
    let error = rerun.ask().unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot set none:a=1: nothing was recorded at observed.resources.none.resource"
    );
}

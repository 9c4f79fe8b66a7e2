//! Every case of a sentence.

use serde_json::json;

use super::*;
use crate::query::answer::StepRef;
use crate::query::record::ObjectRef;

fn step(index: i32, name: &str, response: Option<Value>) -> Step {
    Step {
        index,
        name: name.to_owned(),
        function: format!("function-{name}"),
        started: "2026-11-16T14:03:07Z".parse().unwrap(),
        took: Some(41_000),
        request: Some(json!({})),
        asked: true,
        answered: response.is_some(),
        response,
        ..Step::default()
    }
}

fn of(steps: Vec<Step>) -> Run {
    Run::of_steps("t".into(), ObjectRef::default(), String::new(), steps)
}

fn pipeline() -> Vec<(i32, String, String)> {
    ["env", "compose", "ready"]
        .iter()
        .zip(0..)
        .map(|(name, index)| (index, (*name).to_owned(), format!("function-{name}")))
        .collect()
}

fn ok() -> Value {
    json!({})
}

fn fatal() -> Value {
    json!({"results": [{"severity": "SEVERITY_FATAL", "message": "it broke"}]})
}

fn cause_of_size() -> Cause {
    Cause {
        step: StepRef::default(),
        half: "given".into(),
        part: "observed".into(),
        resource: Some(String::new()),
        field: Some(FieldItem {
            path: "spec.size".into(),
            before: Some(json!(3)),
            after: Some(json!(5)),
            ..FieldItem::default()
        }),
    }
}

#[test]
fn failures_are_told_with_their_step_and_cause() {
    let pipeline = pipeline();
    let context = Context { pipeline: &pipeline, ..Context::default() };
    let failed = of(vec![step(0, "env", Some(ok())), step(1, "compose", Some(fatal()))]);
    assert_eq!(
        run(&failed, &context),
        "Step 2 of 3, compose, returned a fatal result after 41 ms: \"it broke\". \
         Step 3, ready, was not reached."
    );
    assert_eq!(summary(&failed, None), "2 compose: it broke");

    let size = cause_of_size();
    for (before, inputs, want) in [
        (
            (Outcome::Ok, Some(&size)),
            1,
            "The run before succeeded; one input differs: observed composite spec.size 3 -> 5.",
        ),
        (
            (Outcome::Ok, Some(&size)),
            3,
            "The run before succeeded; 3 inputs differ, the first: observed composite spec.size 3 -> 5.",
        ),
        (
            (Outcome::Ok, Some(&size)),
            0,
            "The run before succeeded; no input differs: same input, different output.",
        ),
        ((Outcome::Ok, None), 0, "The run before succeeded, and nothing differs."),
        ((Outcome::Fatal, None), 0, "The run before failed too."),
    ] {
        let before = Some((before.0, before.1, inputs));
        let told = run(&failed, &Context { before, ..context.clone() });
        assert!(told.ends_with(want), "{told}");
    }

    let mut refused = step(1, "compose", None);
    refused.answered = true;
    refused.error = Some("function-y did not answer within 1 m 58 s.".into());
    let refused = of(vec![step(0, "env", Some(ok())), refused]);
    assert_eq!(
        run(&refused, &context),
        "Step 2 of 3, compose, could not be called: function-y did not answer within 1 m 58 s. \
         Step 3, ready, was not reached."
    );

    let silent = of(vec![step(0, "env", None)]);
    assert_eq!(
        run(&silent, &context),
        "Step 1 of 3, env, was asked at 14:03:07; no answer was recorded. \
         Steps 2 to 3 were not reached."
    );
    assert_eq!(summary(&silent, None), "1 env: no answer was recorded");
}

#[test]
fn successes_are_told_with_what_changed() {
    let pipeline = pipeline();
    let all = of(vec![
        step(0, "env", Some(ok())),
        step(1, "compose", Some(ok())),
        step(2, "ready", Some(ok())),
    ]);
    let slot = |name: &str, change: Sign, fields: usize| SlotItem {
        resource: name.into(),
        change,
        fields: vec![FieldItem::default(); fields],
        ..SlotItem::default()
    };
    let slots = [
        slot("bucket", Sign::Changed, 2),
        slot("role", Sign::Added, 0),
        slot("same", Sign::Unchanged, 0),
    ];
    let context = Context { pipeline: &pipeline, changed: Some(&slots), ..Context::default() };
    assert_eq!(
        run(&all, &context),
        "All 3 steps answered in 41 ms. Changed bucket (2 fields), added role."
    );
    assert_eq!(summary(&all, Some(&slots)), "Changed bucket (2 fields), added role");
    let same = |same_runs| run(&all, &Context { same_runs, ..context.clone() });
    assert_eq!(same(1), "All 3 steps answered in 41 ms, with the same result as the run before.");
    assert_eq!(
        same(14),
        "All 3 steps answered in 41 ms, with the same result as the 14 runs before."
    );
    let none = Context { changed: Some(&[]), ..context.clone() };
    assert!(run(&all, &none).ends_with("The result is the same as before."));
    let many: Vec<_> = ["a", "b", "c", "d", "e"].map(|n| slot(n, Sign::Removed, 0)).into();
    assert_eq!(changes(&many), "Removed a, b, c and 2 more");

    let warned = Some(json!({"results": [{"severity": "SEVERITY_WARNING", "message": "w"}]}));
    let warned = of(vec![step(0, "env", warned)]);
    let told = run(&warned, &Context::default());
    assert_eq!(told, "The only step answered in 41 ms. Functions gave 1 warning.");
}

#[test]
fn what_was_lost_is_said() {
    let gap = of(vec![step(0, "env", Some(ok())), step(2, "ready", Some(ok()))]);
    assert!(run(&gap, &Context::default()).ends_with("2 of 6 emissions of this run were lost."));
    let mut half = step(0, "env", Some(ok()));
    half.asked = false;
    let half = of(vec![half]);
    assert!(run(&half, &Context::default()).ends_with("1 of 2 emissions of this run was lost."));
    assert_eq!(run(&of(vec![]), &Context::default()), "No step of this run was recorded.");
}

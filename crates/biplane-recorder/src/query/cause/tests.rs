//! Tests of causes: which difference is taken for it.

use serde_json::json;

use super::*;
use crate::query::record::Outcome;

fn step(index: i32, name: &str, request: Value, response: Value) -> Step {
    Step {
        index,
        name: name.to_owned(),
        function: format!("function-{name}"),
        request: Some(request),
        response: Some(response),
        asked: true,
        answered: true,
        ..Step::default()
    }
}

fn run(steps: Vec<Step>) -> Run {
    Run::of_steps("t".into(), ObjectRef::default(), "c".into(), steps)
}

fn of_one(request: Value) -> Run {
    run(vec![step(0, "one", request, json!({}))])
}

fn cause_of(before: &Run, after: &Run) -> Root {
    root(before, after, after.last_calls().last().unwrap(), None)
}

fn observed(composite: &Value) -> Value {
    json!({"observed": {"composite": {"resource": composite}}})
}

#[test]
fn what_people_wrote_is_likelier_than_what_the_world_made_of_it() {
    let make = |n: i64| {
        json!({
            "observed": {
                "composite": {"resource": {"kind": "Store", "metadata": {"labels": {"a": n}},
                    "spec": {"x": n}, "status": {"y": n}}},
                "resources": {"b": {"resource": {"spec": {"z": n}, "status": {"w": n}}}},
            },
            "requiredResources": {"r": {"items": [{"resource": {"kind": "Config",
                "metadata": {"name": "c"}, "data": {"d": n}}}]}},
            "input": {"i": n},
            "context": {"k": n},
        })
    };
    let found = cause_of(&of_one(make(1)), &of_one(make(2)));
    let words: Vec<String> = found.inputs.iter().map(sentence::cause).collect();
    assert_eq!(
        words,
        [
            "observed composite spec.x 1 -> 2",
            "required Config/c data.d 1 -> 2",
            "input i 1 -> 2",
            "observed composite metadata.labels.a 1 -> 2",
            "context k 1 -> 2",
            "observed b spec.z 1 -> 2",
            "observed composite status.y 1 -> 2",
            "observed b status.w 1 -> 2",
        ]
    );
    assert_eq!(found.reason, Reason::InputDiffers);
    // Whatever had the same values is likelier still.
    let (one, two) = (json!(1), json!(2));
    let (before, mut after) = (make(1), make(2));
    after["observed"]["composite"]["resource"]["spec"]["x"] = json!(7);
    let (before, after) = (of_one(before), of_one(after));
    let found = root(&before, &after, &after.steps[0], Some((Some(&one), Some(&two))));
    assert_eq!(sentence::cause(&found.inputs[0]), "required Config/c data.d 1 -> 2");
}

#[test]
fn required_resources_come_and_go_by_name() {
    let make = |names: &[&str]| {
        let items: Vec<Value> = names
            .iter()
            .map(|name| json!({"resource": {"kind": "Config", "metadata": {"name": name}}}))
            .collect();
        of_one(json!({"extraResources": {"r": {"items": items}}}))
    };
    let found = cause_of(&make(&["a", "b"]), &make(&["b", "c"]));
    let words: Vec<String> = found.inputs.iter().map(sentence::cause).collect();
    assert_eq!(words, ["required Config/c (added)", "required Config/a (removed)"]);
}

#[test]
fn composed_resources_come_and_go() {
    let with = |resources: Value| of_one(json!({"observed": {"resources": resources}}));
    let (none, some) = (with(json!({})), with(json!({"b": {"resource": {"kind": "B"}}})));
    assert_eq!(sentence::cause(&cause_of(&none, &some).inputs[0]), "observed b (added)");
    assert_eq!(sentence::cause(&cause_of(&some, &none).inputs[0]), "observed b (removed)");
}

#[test]
fn bookkeeping_is_no_difference() {
    let make = |version: &str| {
        of_one(observed(&json!({"kind": "Store", "metadata": {"resourceVersion": version}})))
    };
    assert_eq!(cause_of(&make("1"), &make("2")).reason, Reason::SameInput);
}

#[test]
fn pipelines_differ_in_words() {
    let head = |composition: &str, steps: &[(&str, &str)]| Head {
        composition: composition.to_owned(),
        steps: (0..).zip(steps).map(|(i, (n, f))| (i, (*n).to_owned(), (*f).to_owned())).collect(),
        ..Head::default()
    };
    let base = head("c", &[("a", "f"), ("b", "g")]);
    for (other, want) in [
        (head("c", &[("a", "f"), ("b", "g")]), None),
        (head("d", &[("a", "f"), ("b", "g")]), Some("composition c -> d")),
        (head("c", &[("a", "f"), ("b", "h")]), Some("function of step b: g -> h")),
        (head("c", &[("a", "f"), ("x", "g")]), Some("step x is new")),
        (head("c", &[("a", "f")]), Some("step b is gone")),
    ] {
        assert_eq!(pipeline_difference(&base, &other).as_deref(), want);
    }
    // A run that failed did not get to its last steps.
    let failed = Head { outcome: Outcome::Fatal, ..head("c", &[("a", "f")]) };
    assert_eq!(pipeline_difference(&base, &failed), None);
    assert_eq!(pipeline_difference(&failed, &base), None);
}

#[test]
fn paths_are_below_others() {
    for (path, above, want) in [
        ("spec", "spec", true),
        ("spec.a", "spec", true),
        ("spec[0]", "spec", true),
        ("specs", "spec", false),
        ("spec", "spec.a", false),
    ] {
        assert_eq!(is_below(path, above), want, "{path} {above}");
    }
}

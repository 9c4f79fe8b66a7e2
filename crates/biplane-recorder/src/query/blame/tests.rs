//! Tables of which step set what.

use serde_json::json;

use super::*;
use crate::query::record::ObjectRef;

/// A run of steps, each given what the one before answered.
fn run(answers: &[Value]) -> Run {
    let mut given = json!({});
    let mut steps = Vec::new();
    for (index, desired) in answers.iter().enumerate() {
        steps.push(Step {
            index: i32::try_from(index).unwrap(),
            name: format!("s{index}"),
            request: Some(json!({"desired": given})),
            response: Some(json!({"desired": desired})),
            answered: true,
            ..Step::default()
        });
        given = desired.clone();
    }
    Run::of_steps("t".into(), ObjectRef::default(), String::new(), steps)
}

fn bucket(body: &Value) -> Value {
    json!({"resources": {"bucket": {"resource": body}}})
}

fn fields(slot: &SlotBlame) -> Vec<(String, Stamp)> {
    slot.fields.iter().map(|(path, _, stamp)| (path.to_string(), *stamp)).collect()
}

fn stamps(pairs: &[(&str, usize)]) -> Vec<(String, Stamp)> {
    pairs.iter().map(|(path, step)| ((*path).to_owned(), Stamp::Step(*step))).collect()
}

#[test]
fn a_field_belongs_to_the_step_that_last_gave_it_its_value() {
    let run = run(&[
        bucket(&json!({"kind": "Bucket", "spec": {"region": "a", "size": 1}})),
        bucket(&json!({"kind": "Bucket", "spec": {"region": "b", "size": 1, "tags": {"t": "x"}}})),
        // Says the same again.
        bucket(&json!({"kind": "Bucket", "spec": {"region": "b", "size": 1, "tags": {"t": "x"}}})),
    ]);
    let found = blame(&run);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].created, Some(Stamp::Step(0)));
    assert_eq!(found[0].removed, None);
    let want = stamps(&[("kind", 0), ("spec.region", 1), ("spec.size", 0), ("spec.tags.t", 1)]);
    assert_eq!(fields(&found[0]), want);
}

#[test]
fn who_takes_a_value_away_and_gives_it_back_has_set_it() {
    let with = bucket(&json!({"spec": {"x": 1}}));
    let without = bucket(&json!({"spec": {}}));
    let found = blame(&run(&[with.clone(), without, with]));
    assert_eq!(fields(&found[0]), stamps(&[("spec.x", 2)]));
}

#[test]
fn a_resource_that_is_removed_and_created_anew_belongs_to_the_last_step() {
    let some = bucket(&json!({"spec": {"x": 1}}));
    let found = blame(&run(&[some.clone(), json!({}), some.clone()]));
    assert_eq!((found[0].created, found[0].removed), (Some(Stamp::Step(2)), None));
    assert_eq!(fields(&found[0]), stamps(&[("spec.x", 2)]));

    let found = blame(&run(&[some, json!({}), json!({})]));
    assert_eq!(found[0].created, Some(Stamp::Step(0)));
    assert_eq!(found[0].removed, Some(Stamp::Step(1)));
    assert_eq!(fields(&found[0]), stamps(&[("spec.x", 0)]));
}

#[test]
fn items_of_lists_keep_their_step_when_others_come_and_go() {
    let rules = |names: &[&str]| {
        let items: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        bucket(&json!({"rules": items}))
    };
    let found = blame(&run(&[rules(&["a", "b"]), rules(&["c", "b", "a"])]));
    let want =
        stamps(&[("rules[name=c].name", 1), ("rules[name=b].name", 0), ("rules[name=a].name", 0)]);
    assert_eq!(fields(&found[0]), want);

    let plain = |values: &[&str]| bucket(&json!({"list": values}));
    let found = blame(&run(&[plain(&["a", "b"]), plain(&["x", "a", "b"])]));
    assert_eq!(fields(&found[0]), stamps(&[("list[0]", 1), ("list[1]", 0), ("list[2]", 0)]));
}

#[test]
fn what_was_there_before_and_what_changed_between_steps_is_nobodys() {
    let mut run = run(&[bucket(&json!({"x": 1})), bucket(&json!({"x": 2}))]);
    run.steps[0].request = Some(json!({"desired": {"resources": {"old": {"resource": {"y": 1}}}}}));
    run.steps[1].request = Some(json!({"desired": bucket(&json!({"x": 7}))}));
    run.steps[1].response = Some(json!({"desired": bucket(&json!({"x": 7}))}));
    let found = blame(&run);
    assert_eq!((found[0].slot.as_str(), found[0].created), ("bucket", Some(Stamp::Step(0))));
    assert_eq!(fields(&found[0]), [("x".to_owned(), Stamp::Between(1))]);
    let old = &found[1];
    assert_eq!((old.created, old.removed), (Some(Stamp::Given), Some(Stamp::Step(0))));
}

#[test]
fn a_step_without_an_answer_sets_nothing() {
    let mut run = run(&[bucket(&json!({"x": 1})), bucket(&json!({"x": 2}))]);
    run.steps[1].response = None;
    run.steps[1].answered = false;
    let found = blame(&run);
    assert_eq!(fields(&found[0]), stamps(&[("x", 0)]));
    assert_eq!(found[0].removed, None);
}

//! Tests of rules.

use biplane_model::Object;
use serde_json::{Value, json};

use super::{Limits, Rules};

fn errors(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let object = |value: &Value| Object::from_value(value.clone()).unwrap();
    let (new, old) = (object(new), old.map(object));
    let found = Rules::read(schema).unwrap().validate(&new, old.as_ref(), Limits::API_SERVER);
    found.iter().map(ToString::to_string).collect()
}

fn with_rules(rules: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "integer"}},
        },
        "x-kubernetes-validations": rules,
    }}})
}

#[test]
fn a_rule_that_compares_with_the_past_needs_one() {
    let schema = with_rules(&json!([{"rule": "self.n >= oldSelf.n", "message": "only up"}]));
    let (one, two) = (json!({"spec": {"n": 1}}), json!({"spec": {"n": 2}}));
    assert_eq!(errors(&schema, &one, None), [""; 0]);
    assert_eq!(errors(&schema, &two, Some(&one)), [""; 0]);
    assert_eq!(errors(&schema, &one, Some(&two)), ["spec: Invalid value: only up"]);
}

#[test]
fn what_did_not_change_is_not_reported_again() {
    let schema = with_rules(&json!([{"rule": "self.n > 5"}]));
    let (one, two) = (json!({"spec": {"n": 1}}), json!({"spec": {"n": 2}}));
    assert_eq!(errors(&schema, &one, Some(&one)), [""; 0]);
    assert_eq!(errors(&schema, &one, Some(&two)), ["spec: Invalid value: failed rule: self.n > 5"]);
}

#[test]
fn an_expensive_rule_stops_all_others() {
    let schema = with_rules(&json!([
        {"rule": "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))"},
        {"rule": "false"},
    ]));
    let list: Vec<u32> = (0..300).collect();
    let found = errors(&schema, &json!({"spec": {"list": list}}), None);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("call cost exceeds limit"), "{found:?}");
}

//! Tests of the ledger against answers of servers that store something else than what was sent.

use serde_json::json;

use super::*;

const HOW: Applying<'_> = Applying { manager: "a", subresource: None };

fn object(mut content: Value, metadata: &Value) -> Object {
    content["apiVersion"] = json!("example.org/v1");
    content["kind"] = json!("Widget");
    content["metadata"] = metadata.clone();
    Object::from_value(content).unwrap()
}

fn intent(content: &Value) -> Object {
    object(content.clone(), &json!({"name": "x", "namespace": "n"}))
}

/// A stored object. The manager owns these fields.
fn stored(content: &Value, fields: &Value) -> Object {
    let entry = json!({
        "manager": "a",
        "operation": "Apply",
        "apiVersion": "example.org/v1",
        "time": "2024-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    });
    let metadata = json!({
        "name": "x",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "1",
        "generation": 1,
        "managedFields": [entry],
    });
    object(content.clone(), &metadata)
}

/// Rows: what is applied, the answer, what is owned, changes that matter, changes that do not.
type Row = (Value, Value, Value, Vec<(&'static str, Value)>, Vec<(&'static str, Value)>);

fn rewritten() -> Vec<Row> {
    vec![
        (
            json!({"spec": {"rows": [{"a": 1}]}}),
            json!({"spec": {"rows": [{"a": 1, "b": 7}]}}),
            json!({"f:spec": {"f:rows": {}}}),
            vec![("/spec/rows/0/b", json!(8)), ("/spec/rows", json!([]))],
            vec![("/spec/other", json!(1)), ("/status", json!({"x": 1}))],
        ),
        (
            json!({"spec": {"limits": {"cpu": "1000m"}}}),
            json!({"spec": {"limits": {"cpu": "1"}}}),
            json!({"f:spec": {"f:limits": {"f:cpu": {}}}}),
            vec![("/spec/limits/cpu", json!("2")), ("/spec/limits", json!({}))],
            vec![("/spec/limits/memory", json!("1Gi"))],
        ),
        (
            json!({"stringData": {"k": "v"}}),
            json!({"data": {"k": "dg=="}}),
            json!({"f:stringData": {"f:k": {}}}),
            vec![("/data/k", json!("eA=="))],
            vec![("/status", json!(1)), ("/metadata/labels", json!({"x": "y"}))],
        ),
        (
            json!({"spec": {"paused": false, "items": [{"name": "b", "n": "01"}, {"name": "a"}]}}),
            json!({"spec": {"items": [{"name": "b", "n": "1"}, {"name": "a"}, {"name": "z"}]}}),
            json!({"f:spec": {"f:items": {
                r#"k:{"name":"a"}"#: {".": {}, "f:name": {}},
                r#"k:{"name":"b"}"#: {".": {}, "f:name": {}, "f:n": {}},
            }, "f:paused": {}}}),
            vec![
                ("/spec/items/0/n", json!("2")),
                ("/spec/items", json!([{"name": "a"}, {"name": "b", "n": "1"}])),
                ("/spec/paused", json!(true)),
            ],
            vec![("/spec/items/2", json!({"name": "y"})), ("/spec/items/1/other", json!(1))],
        ),
        (
            json!({"spec": {"set": ["b", "a"], "n": "01"}}),
            json!({"spec": {"set": ["b", "a", "c"], "n": "1"}}),
            json!({"f:spec": {"f:n": {}, "f:set": {"v:\"a\"": {}, "v:\"b\"": {}}}}),
            vec![("/spec/set", json!(["a", "b", "c"])), ("/spec/n", json!("2"))],
            vec![("/spec/set", json!(["b", "x", "a"]))],
        ),
    ]
}

fn changed(object: &Object, pointer: &str, value: &Value) -> Object {
    fn put(place: &mut Value, keys: &[&str], value: &Value) {
        match (keys, place) {
            ([], place) => *place = value.clone(),
            ([key, rest @ ..], Value::Array(items)) => {
                put(&mut items[key.parse::<usize>().unwrap()], rest, value);
            }
            ([key, rest @ ..], place) => put(&mut place[*key], rest, value),
        }
    }
    let keys: Vec<&str> = pointer.split('/').skip(1).collect();
    let mut whole = object.to_value();
    put(&mut whole, &keys, value);
    Object::from_value(whole).unwrap()
}

#[test]
fn what_the_server_rewrites_is_applied_once_and_again_after_a_foreign_change() {
    for (applied, answer, owned, noticed, ignored) in rewritten() {
        let (intent, answer) = (intent(&applied), stored(&answer, &owned));
        let mut ledger = Ledger::new();
        assert!(!ledger.can_skip(&intent, &answer, &HOW), "{applied}");
        ledger.remember(&intent, &answer, &HOW);
        assert!(ledger.can_skip(&intent, &answer, &HOW), "{applied}");
        for (pointer, value) in noticed {
            let live = changed(&answer, pointer, &value);
            assert!(!ledger.can_skip(&intent, &live, &HOW), "{applied}: {pointer} {value}");
        }
        for (pointer, value) in ignored {
            let live = changed(&answer, pointer, &value);
            assert!(ledger.can_skip(&intent, &live, &HOW), "{applied}: {pointer} {value}");
        }
    }
}

#[test]
fn an_intent_with_something_empty_is_known_after_two_equal_answers() {
    let intent = intent(&json!({"spec": {"n": 1, "list": []}}));
    let owned = json!({"f:spec": {"f:n": {}}});
    let emptied = stored(&json!({"spec": {"n": 1}}), &owned);
    let empty = stored(&json!({"spec": {"n": 1, "list": []}}), &owned);
    // The apply took the last item out of a list, and the next one creates it again.
    let mut ledger = Ledger::new();
    ledger.remember(&intent, &emptied, &HOW);
    assert!(!ledger.knows(&intent, &emptied, &HOW));
    ledger.remember(&intent, &empty, &HOW);
    assert!(!ledger.knows(&intent, &empty, &HOW));
    ledger.remember(&intent, &empty, &HOW);
    assert!(ledger.knows(&intent, &empty, &HOW));
    assert!(!ledger.knows(&intent, &emptied, &HOW));
    // The kind does not store empty lists.
    ledger.clear();
    ledger.remember(&intent, &emptied, &HOW);
    ledger.remember(&intent, &emptied, &HOW);
    assert!(ledger.knows(&intent, &emptied, &HOW));
}

#[test]
fn another_intent_entry_version_or_object_is_sent_again() {
    let (applied, answer, owned, ..) = rewritten().remove(0);
    let (wanted, answer) = (intent(&applied), stored(&answer, &owned));
    let mut ledger = Ledger::new();
    ledger.remember(&wanted, &answer, &HOW);
    assert!(!ledger.knows(&intent(&json!({"spec": {"rows": [{"a": 2}]}})), &answer, &HOW));
    for (pointer, value) in [
        ("/metadata/uid", json!("other")),
        ("/metadata/managedFields", json!([])),
        ("/metadata/managedFields/0/fieldsV1", json!({"f:spec": {}})),
        ("/metadata/managedFields/0/manager", json!("b")),
        ("/metadata/managedFields/0/apiVersion", json!("example.org/v2")),
        ("/apiVersion", json!("example.org/v2")),
    ] {
        assert!(!ledger.knows(&wanted, &changed(&answer, pointer, &value), &HOW), "{pointer}");
    }
    for (pointer, value) in [
        ("/metadata/resourceVersion", json!("9")),
        ("/metadata/generation", json!(2)),
        ("/metadata/managedFields/0/time", json!("2025-01-01T00:00:00Z")),
    ] {
        assert!(ledger.knows(&wanted, &changed(&answer, pointer, &value), &HOW), "{pointer}");
    }
    // Whoever shares the value that the server made of ours loses it to our next apply.
    let mut managers = entries(&answer).to_vec();
    managers.extend(
        entries(&changed(&answer, "/metadata/managedFields/0/manager", &json!("b"))).to_vec(),
    );
    let shared = changed(&answer, "/metadata/managedFields", &json!(managers));
    assert!(!ledger.knows(&wanted, &shared, &HOW));
    managers[1]["subresource"] = json!("status");
    let apart = changed(&answer, "/metadata/managedFields", &json!(managers));
    assert!(ledger.knows(&wanted, &apart, &HOW));
    managers.swap(0, 1);
    assert!(ledger.knows(
        &wanted,
        &changed(&apart, "/metadata/managedFields", &json!(managers)),
        &HOW
    ));
    for how in [
        Applying { manager: "b", subresource: None },
        Applying { manager: "a", subresource: Some("status") },
    ] {
        assert!(!ledger.knows(&wanted, &answer, &how), "{how:?}");
    }
    ledger.forget("u");
    assert!(!ledger.knows(&wanted, &answer, &HOW));
}

#[test]
fn a_fenced_intent_is_known_in_every_state_but_only_for_the_state_that_it_names() {
    let (applied, answer, owned, ..) = rewritten().remove(0);
    let fenced =
        |version: &str| changed(&intent(&applied), "/metadata/resourceVersion", &json!(version));
    let answer = stored(&answer, &owned);
    let later = changed(&answer, "/metadata/resourceVersion", &json!("2"));
    let mut ledger = Ledger::new();
    ledger.remember(&fenced("0"), &answer, &HOW);
    assert!(ledger.knows(&fenced("1"), &answer, &HOW));
    assert!(ledger.knows(&fenced("2"), &later, &HOW));
    assert!(!ledger.knows(&fenced("1"), &later, &HOW));
}

#[test]
fn memory_is_bounded_and_an_answer_like_the_intent_needs_none() {
    let plain = json!({"spec": {"n": 1}});
    let answer = stored(&plain, &json!({"f:spec": {"f:n": {}}}));
    let mut ledger = Ledger::new();
    ledger.remember(&intent(&plain), &answer, &HOW);
    assert!(ledger.is_empty());
    let (applied, odd, owned, ..) = rewritten().remove(0);
    let (wanted, odd) = (intent(&applied), stored(&odd, &owned));
    let names: Vec<String> = (0..100).map(|i| format!("m{i}")).collect();
    for manager in &names {
        ledger.remember(&wanted, &odd, &Applying { manager, subresource: None });
    }
    assert_eq!(ledger.len(), 1);
    assert_eq!(ledger.objects["u"].len(), NOTES_PER_OBJECT);
    // The last ones are kept.
    let known =
        |manager: &String| ledger.knows(&wanted, &odd, &Applying { manager, subresource: None });
    assert_eq!(names.iter().filter(|name| known(name)).count(), NOTES_PER_OBJECT);
    assert!(names.iter().rev().take(NOTES_PER_OBJECT).all(known));
    // What needs no note any more loses the one that it had.
    ledger.clear();
    ledger.remember(&wanted, &odd, &HOW);
    ledger.remember(&intent(&plain), &answer, &HOW);
    assert!(ledger.is_empty());
}

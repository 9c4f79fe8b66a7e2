//! Tests of single cases. The memory cluster judges generated ones in `biplane-cluster`.

use serde_json::json;

use super::*;

const HOW: Applying<'_> = Applying { manager: "a", subresource: None };

fn intent(spec: &Value) -> Object {
    let object = json!({
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "x", "namespace": "n"},
        "spec": spec,
    });
    Object::from_value(object).unwrap()
}

fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({
        "manager": manager,
        "operation": operation,
        "apiVersion": "example.org/v1",
        "time": "2024-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    })
}

fn live(spec: &Value, owned: &Value) -> Object {
    let mut object = intent(spec);
    for (field, value) in [("uid", "u"), ("resourceVersion", "7"), ("creationTimestamp", "then")] {
        object.set_meta(field, value);
    }
    object.set_at_or_ignore(&["metadata", "generation"], 3);
    let own = entry("a", "Apply", &json!({"f:spec": owned}));
    object.set_at_or_ignore(&["metadata", "managedFields"], vec![own]);
    object
}

fn is_same(intent: &Object, live: &Object) -> bool {
    verdict(intent, live, &HOW) == Verdict::Same
}

/// Rows: what is applied, what is stored, what the applier owns below `spec`.
fn check(same: bool, rows: &[(Value, Value, Value)]) {
    for (applied, stored, owned) in rows {
        let found = is_same(&intent(applied), &live(stored, owned));
        assert_eq!(found, same, "{applied} on {stored} with {owned}");
    }
}

#[test]
fn equal_values_that_are_owned_are_the_same() {
    let ports = r#"k:{"port":80,"protocol":"TCP"}"#;
    check(
        true,
        &[
            (json!({"n": 1}), json!({"n": 1.0, "other": 2}), json!({"f:n": {}})),
            (
                json!({"m": {"a": "b"}}),
                json!({"m": {"a": "b"}}),
                json!({"f:m": {".": {}, "f:a": {}}}),
            ),
            (json!({"e": {}, "l": []}), json!({"e": {}, "l": []}), json!({"f:e": {}, "f:l": {}})),
            (json!({"l": [1, {"x": null}]}), json!({"l": [1, {"x": null}]}), json!({"f:l": {}})),
            (
                json!({"s": ["b", "<"]}),
                json!({"s": ["a", "b", "c", "<"]}),
                json!({"f:s": {"v:\"b\"": {}, "v:\"\\u003c\"": {}}}),
            ),
            (
                json!({"p": [{"port": 80, "name": "web"}]}),
                json!({"p": [{"port": 1}, {"port": 80, "protocol": "TCP", "name": "web"}]}),
                json!({"f:p": {ports: {".": {}, "f:port": {}, "f:name": {}}}}),
            ),
            (
                json!({"p": [{"port": 80, "protocol": "UDP"}, {"port": 80}]}),
                json!({"p": [{"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}]}),
                json!({"f:p": {
                    ports: {".": {}, "f:port": {}},
                    r#"k:{"port":80,"protocol":"UDP"}"#: {".": {}, "f:port": {}, "f:protocol": {}},
                }}),
            ),
        ],
    );
}

#[test]
fn what_is_not_owned_or_given_up_may_change() {
    check(
        false,
        &[
            (json!({"n": 1, "m": 1}), json!({"n": 1, "m": 1}), json!({"f:n": {}})),
            (json!({"n": 1}), json!({"n": 1, "m": 1}), json!({"f:n": {}, "f:m": {}})),
            (json!({"n": 1}), json!({"n": 2}), json!({"f:n": {}})),
            (json!({"n": 1}), json!({}), json!({"f:n": {}})),
            (json!({"n": null}), json!({"n": null}), json!({"f:n": {}})),
            (json!({"n": "1"}), json!({"n": 1}), json!({"f:n": {}})),
            (json!({"e": {}}), json!({"e": {"x": 1}}), json!({"f:e": {}})),
            (json!({"l": []}), json!({"l": []}), json!({})),
            (
                json!({"s": ["a", "a"]}),
                json!({"s": ["a", "b"]}),
                json!({"f:s": {"v:\"a\"": {}, "v:\"b\"": {}}}),
            ),
            (json!({"s": ["a"]}), json!({"s": ["a", "a"]}), json!({"f:s": {"v:\"a\"": {}}})),
            (json!({"l": ["a"]}), json!({"l": ["a"]}), json!({"f:l": {"i:0": {}}})),
            (json!({"l": ["a"]}), json!({"l": ["a"]}), json!({"f:l": 5})),
        ],
    );
}

#[test]
fn another_order_of_owned_items_is_a_change() {
    let (a, b) = (r#"k:{"name":"a"}"#, r#"k:{"name":"b"}"#);
    let owned = json!({"f:p": {a: {".": {}, "f:name": {}}, b: {".": {}, "f:name": {}}}});
    let set = json!({"f:s": {"v:\"a\"": {}, "v:\"b\"": {}}});
    let (ab, ba) = (json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "b"}, {"name": "a"}]));
    check(true, &[(json!({"p": ab}), json!({"p": ab}), owned.clone())]);
    check(
        false,
        &[
            (json!({"p": ab}), json!({"p": ba}), owned.clone()),
            (json!({"p": [{"name": "a"}]}), json!({"p": ab}), owned.clone()),
            (
                json!({"p": [{"name": "a"}, {"name": "a"}]}),
                json!({"p": [{"name": "a"}, {"name": "a"}]}),
                owned,
            ),
            (json!({"s": ["a", "b"]}), json!({"s": ["b", "a"]}), set),
        ],
    );
}

#[test]
fn an_object_that_is_owned_as_one_value_may_have_been_empty_when_it_was_applied() {
    check(false, &[(json!({"m": {"a": 1}}), json!({"m": {"a": 1}}), json!({"f:m": {}}))]);
}

#[test]
fn a_list_that_is_owned_as_one_value_is_divided_if_others_own_items_of_it() {
    let intent = intent(&json!({"l": ["x"]}));
    let mut live = live(&json!({"l": ["x"]}), &json!({"f:l": {}}));
    assert!(is_same(&intent, &live));
    let own = entries(&live)[0].clone();
    let mut with = |other: Value| {
        live.set_at_or_ignore(&["metadata", "managedFields"], vec![own.clone(), other]);
        is_same(&intent, &live)
    };
    assert!(with(entry("b", "Apply", &json!({"f:spec": {"f:l": {}}}))));
    assert!(!with(entry("b", "Apply", &json!({"f:spec": {"f:l": {"v:\"x\"": {}}}}))));
    // Whoever writes another version may have replaced the list there, and may have lost it since.
    let mut older = entry("b", "Update", &json!({"f:metadata": {"f:labels": {}}}));
    older["apiVersion"] = json!("example.org/v1beta1");
    assert!(!with(older.clone()));
    older["subresource"] = json!("status");
    older["fieldsV1"] = json!({"f:status": {"f:n": {}}});
    assert!(with(older));
}

#[test]
fn the_entry_must_be_the_appliers_own_and_the_only_one() {
    let intent = intent(&json!({"n": 1}));
    let live = live(&json!({"n": 1}), &json!({"f:n": {}}));
    assert!(is_same(&intent, &live));
    for how in [
        Applying { manager: "b", subresource: None },
        Applying { manager: "", subresource: None },
        Applying { manager: "a", subresource: Some("status") },
    ] {
        assert_eq!(verdict(&intent, &live, &how), Verdict::CannotTell, "{how:?}");
    }
    let own = entries(&live)[0].clone();
    let change = |field: &str, value: &str| {
        let mut entry = own.clone();
        entry[field] = json!(value);
        entry
    };
    let other = change("manager", "b");
    for (managers, same) in [
        (vec![other.clone(), own.clone()], true),
        (vec![], false),
        (vec![own.clone(), own.clone()], false),
        (vec![own.clone(), change("manager", BEFORE_FIRST_APPLY)], false),
        (vec![own.clone(), change("operation", "Other")], false),
        (vec![change("operation", "Update")], false),
        (vec![change("apiVersion", "example.org/v2")], false),
        (vec![change("fieldsType", "FieldsV2")], false),
    ] {
        let mut live = live.clone();
        live.set_at_or_ignore(&["metadata", "managedFields"], managers);
        assert_eq!(is_same(&intent, &live), same, "{live:?}");
    }
}

#[test]
fn an_intent_that_names_another_state_is_left_to_the_server() {
    let live = live(&json!({"n": 1}), &json!({"f:n": {}}));
    for (field, value, same) in [
        ("uid", json!("u"), true),
        ("uid", json!("v"), false),
        ("resourceVersion", json!("7"), true),
        ("resourceVersion", json!("6"), false),
        ("generation", json!(3), true),
        ("creationTimestamp", Value::Null, true),
        ("creationTimestamp", json!("now"), false),
        ("managedFields", json!([]), false),
        ("name", json!("y"), false),
        ("namespace", json!("m"), false),
        ("labels", json!({"a": "b"}), false),
        ("labels", Value::Null, false),
    ] {
        let mut intent = intent(&json!({"n": 1}));
        intent.set_at_or_ignore(&["metadata", field], value.clone());
        assert_eq!(is_same(&intent, &live), same, "{field} {value}");
    }
    for (field, value) in [("apiVersion", "example.org/v2"), ("kind", "Other"), ("status", "x")] {
        let mut intent = intent(&json!({"n": 1}));
        intent.set_at_or_ignore(&[field], value);
        assert!(!is_same(&intent, &live), "{field}");
    }
}

#[test]
fn metadata_is_compared_like_everything_else_and_owners_are_atomic() {
    let owner =
        json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": "o", "controller": true});
    let mut wanted = intent(&json!({"n": 1}));
    wanted.set_at_or_ignore(&["metadata", "labels"], json!({"a": "b"}));
    wanted.set_at_or_ignore(&["metadata", "finalizers"], json!(["f"]));
    wanted.set_at_or_ignore(&["metadata", "ownerReferences"], json!([owner]));
    let mut live = live(&json!({"n": 1}), &json!({"f:n": {}}));
    live.set_at_or_ignore(&["metadata", "labels"], json!({"a": "b", "c": "d"}));
    live.set_at_or_ignore(&["metadata", "finalizers"], json!(["e", "f"]));
    live.set_at_or_ignore(&["metadata", "ownerReferences"], json!([owner]));
    let with = |finalizers: &Value| {
        let fields = json!({
            "f:metadata": {
                "f:finalizers": finalizers,
                "f:labels": {"f:a": {}},
                "f:ownerReferences": {r#"k:{"uid":"o"}"#: {}},
            },
            "f:spec": {"f:n": {}},
        });
        let mut live = live.clone();
        live.set_at_or_ignore(&["metadata", "managedFields"], vec![entry("a", "Apply", &fields)]);
        live
    };
    let finalizers = json!({"v:\"f\"": {}});
    assert!(is_same(&wanted, &with(&finalizers)));
    let mut other = with(&finalizers);
    let mut changed = owner.clone();
    changed["blockOwnerDeletion"] = json!(true);
    other.set_at_or_ignore(&["metadata", "ownerReferences"], json!([changed]));
    assert!(!is_same(&wanted, &other));
    // Null was applied, and somebody added a finalizer since. They are a set in every schema.
    let mut null = with(&json!({}));
    null.set_at_or_ignore(&["metadata", "finalizers"], json!(["f"]));
    assert!(!is_same(&wanted, &null));
}

#[test]
fn an_object_that_waits_for_its_removal_goes_with_the_next_write() {
    let intent = intent(&json!({"n": 1}));
    let mut live = live(&json!({"n": 1}), &json!({"f:n": {}}));
    live.set_meta("deletionTimestamp", "2024-01-01T00:00:00Z");
    assert!(!is_same(&intent, &live));
    live.set_at_or_ignore(&["metadata", "finalizers"], json!(["f"]));
    assert!(is_same(&intent, &live));
}

#[test]
fn a_status_has_an_entry_of_its_own() {
    let mut intent = intent(&json!({}));
    intent.make_mut().remove("spec");
    intent.set_at_or_ignore(&["status"], json!({"phase": "Up"}));
    let mut live = live(&json!({"n": 1}), &json!({"f:n": {}}));
    live.set_at_or_ignore(&["status"], json!({"phase": "Up"}));
    let mut own = entry("a", "Apply", &json!({"f:status": {"f:phase": {}}}));
    own["subresource"] = json!("status");
    let managers = vec![entries(&live)[0].clone(), own];
    live.set_at_or_ignore(&["metadata", "managedFields"], managers);
    let how = Applying { manager: "a", subresource: Some("status") };
    assert_eq!(verdict(&intent, &live, &how), Verdict::Same);
    assert!(!is_same(&intent, &live));
    intent.set_at_or_ignore(&["spec"], json!({"n": 1}));
    assert_eq!(verdict(&intent, &live, &how), Verdict::CannotTell);
}

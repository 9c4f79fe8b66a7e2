//! Tests of what types make of objects.

use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

#[test]
fn what_does_not_fit_is_named_as_each_reader_does() {
    for (operation, want) in [
        (json!({"spec": "text"}), "cannot restore struct from: string"),
        (json!({"spec": []}), "cannot restore struct from: slice"),
        (json!({"spec": {"pipeline": {}}}), "cannot restore slice from map"),
        (json!({"spec": {"pipeline": [true]}}), "cannot restore struct from: bool"),
        (json!({"spec": {"mode": 5}}), "unrecognized type: string"),
        (json!({"metadata": {"labels": "x"}}), "cannot restore map from string"),
        (json!({"spec": {"retryLimit": 1.5}}), "cannot convert float64 to int64"),
        (json!({"spec": {"retryLimit": "1"}}), "unrecognized type: int64"),
        // The first field that is read is the one that is named.
        (json!({"metadata": {"name": {}}, "spec": []}), "unrecognized type: string"),
    ] {
        let operation = object(operation);
        assert_eq!(restored(&operation, tables::OPERATION).unwrap_err(), want);
        let error = decoded(&operation, tables::OPERATION).unwrap_err();
        assert!(error.starts_with("json: cannot unmarshal "), "{error}");
    }
}

#[test]
fn null_and_unknown_fields_fit_everywhere() {
    let any = object(json!({"spec": null, "metadata": {"name": null, "x": 1}, "more": []}));
    assert_eq!(restored(&any, tables::OPERATION), Ok(()));
    assert_eq!(decoded(&any, tables::COMPOSITION), Ok(()));
}

#[test]
fn bytes_say_where_they_are_wrong_and_not_what_they_are() {
    let text = |at| format!("illegal base64 data at input byte {at}");
    assert_eq!(bytes("Z\nGF0YQ=="), Ok(b"data".to_vec()));
    assert_eq!(bytes("%%%").unwrap_err(), text(0));
    assert_eq!(bytes("not base64!").unwrap_err(), text(3));
}

#[test]
fn a_type_drops_what_it_does_not_know_and_adds_what_it_always_has() {
    let operation = json!({
        "metadata": {"name": "a", "labels": {}, "generation": 2, "foreign": true},
        "spec": {"pipeline": [{"step": "s", "credentials": [], "input": {"any": [1]}}]},
        "status": {"failures": 0, "pipeline": [], "phase": "up"},
    });
    assert_eq!(
        Value::Object(normal(operation.as_object().unwrap(), tables::OPERATION)),
        json!({
            "metadata": {"name": "a", "generation": 2},
            "spec": {"mode": "", "pipeline": [
                {"step": "s", "functionRef": {"name": ""}, "input": {"any": [1]}},
            ]},
            "status": {},
        })
    );
}

#[test]
fn scalars_become_texts_where_the_type_has_texts_and_keys_are_found_in_any_case() {
    let mut composition = json!({
        "metadata": {"name": 12, "labels": {"a": true, "b": 1.50, "c": "x"}},
        "Spec": {"mode": false, "pipeline": [
            {"step": 1, "functionref": {"NAME": 2}, "input": {"kept": 1, "functionref": 3}},
        ]},
    });
    text_scalars(composition.as_object_mut().unwrap(), tables::COMPOSITION);
    assert_eq!(
        composition,
        json!({
            "metadata": {"name": "12", "labels": {"a": "true", "b": "1.5", "c": "x"}},
            "spec": {"mode": "false", "pipeline": [
                {"step": "1", "functionRef": {"name": "2"}, "input": {"kept": 1, "functionref": 3}},
            ]},
        })
    );
}

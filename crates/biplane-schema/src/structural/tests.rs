//! Tests of schemas.

use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn schema(spec: &Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

fn problems(spec_schema: &Value, spec: &Value) -> String {
    let object = object(json!({"spec": spec}));
    joined(&schema(spec_schema).validate(&object, None))
}

#[test]
fn problems_are_worded_as_the_api_server_words_them() {
    for (schema, value, text) in [
        (
            json!({"type": "integer"}),
            json!("x"),
            "spec: Invalid value: \"string\": spec in body must be of type integer: \"string\"",
        ),
        (
            json!({"type": "integer", "format": "int64"}),
            json!(1.5),
            "[spec: Invalid value: \"float64\": spec in body must be of type int64: \"float64\", \
             <nil>: Invalid value: \"\": Checked value must be of type integer with format int64 \
             in spec]",
        ),
        (
            json!({"type": "string"}),
            Value::Null,
            "spec: Invalid value: \"null\": spec in body must be of type string: \"null\"",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            "spec: Invalid value: \"boolean\": spec in body must be of type integer,string: \
             \"boolean\"",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            "spec: Unsupported value: \"c\": supported values: \"a\", \"b\"",
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            "spec: Invalid value: 0: spec in body should be greater than or equal to 1",
        ),
        (
            json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
            json!(3),
            "spec: Invalid value: 3: spec in body should be less than 3",
        ),
        (
            json!({"type": "number", "multipleOf": 0.5}),
            json!(1.2),
            "spec: Invalid value: 1.2: spec in body should be a multiple of 0.5",
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("a"),
            "spec: Invalid value: \"a\": spec in body should be at least 2 chars long",
        ),
        (
            json!({"type": "string", "maxLength": 1}),
            json!("ab"),
            "spec: Too long: may not be more than 1 byte",
        ),
        (
            json!({"type": "string", "pattern": "^a$"}),
            json!("b"),
            "spec: Invalid value: \"b\": spec in body should match '^a$'",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("b"),
            "spec: Invalid value: \"b\": spec in body must be of type date-time: \"b\"",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a", "b"]),
            "spec: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            "spec: Invalid value: 0: spec in body should have at least 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!([1]),
            "spec[0]: Invalid value: \"integer\": spec[0] in body must be of type string: \
             \"integer\"",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            json!({}),
            "spec.a: Required value",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"k": 1}),
            "spec.k: Invalid value: \"integer\": spec.k in body must be of type string: \
             \"integer\"",
        ),
        (
            json!({"type": "object", "maxProperties": 0}),
            json!({"k": 1}),
            "spec: Too many: 1: must have at most 0 items",
        ),
        (
            json!({
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "string"},
            }),
            json!(["a", "b", "a", "a"]),
            "spec[2]: Duplicate value: \"a\"",
        ),
        (
            json!({
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a", "b"],
                "items": {"type": "object", "properties": {"a": {}, "b": {}}},
            }),
            json!([{"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}]),
            "spec[2]: Duplicate value: {\"a\":1,\"b\":2}",
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format \
             int32 in spec",
        ),
    ] {
        assert_eq!(problems(&schema, &value), text);
    }
}

#[test]
fn alternatives_are_counted() {
    let is_a = json!({"required": ["a"]});
    let is_b = json!({"required": ["b"]});
    for (rule, value, text) in [
        (
            json!({"oneOf": [is_a, is_b]}),
            json!({"a": 1, "b": 1}),
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema \
             (oneOf). Found 2 valid alternatives",
        ),
        (
            json!({"oneOf": [is_a, is_b]}),
            json!({}),
            "[<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema \
             (oneOf). Found none valid, spec.a: Required value]",
        ),
        (
            json!({"anyOf": [is_a, is_b]}),
            json!({}),
            "[<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf), \
             spec.a: Required value]",
        ),
        (json!({"anyOf": [is_a, is_b]}), json!({"b": 1}), "[]"),
        (
            json!({"allOf": [is_a, is_b]}),
            json!({"a": 1}),
            "[spec.b: Required value, <nil>: Invalid value: \"\": \"spec\" must validate all \
             the schemas (allOf)]",
        ),
        (
            json!({"not": is_a}),
            json!({"a": 1}),
            "<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)",
        ),
    ] {
        let mut schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        });
        schema.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
        assert_eq!(problems(&schema, &value), text);
    }
}

#[test]
fn what_was_wrong_before_and_has_not_changed_is_not_reported() {
    let schema = schema(&json!({
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "string"}},
    }));
    let old = object(json!({"spec": {"a": "long", "b": "x"}}));
    let new = object(json!({"spec": {"a": "long", "b": "y"}}));
    assert_eq!(schema.validate(&new, Some(&old)), []);
    assert_eq!(schema.validate(&new, None).len(), 1);
}

#[test]
fn unknown_fields_and_stray_nulls_go_and_defaults_come() {
    let schema = schema(&json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "nullable": {"type": "string", "nullable": true},
            "count": {"type": "integer", "default": 3},
            "inner": {
                "type": "object",
                "default": {},
                "properties": {"x": {"type": "integer", "default": 1}},
            },
            "free": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "object", "properties": {"x": {}}}},
            },
            "list": {
                "type": "array",
                "items": {"type": "object", "properties": {"y": {"type": "integer", "default": 2}}},
            },
        },
    }));
    let mut object = object(json!({
        "apiVersion": "v1",
        "metadata": {"name": "x", "odd": 1},
        "other": 1,
        "spec": {
            "a": null,
            "nullable": null,
            "count": null,
            "gone": 1,
            "free": {"kept": {"z": 1}, "known": {"x": 1, "gone": 1}},
            "list": [{"gone": 1}],
        },
    }));
    schema.prune(&mut object);
    schema.default(&mut object);
    assert_eq!(
        object.to_value(),
        json!({
            "apiVersion": "v1",
            "metadata": {"name": "x", "odd": 1},
            "spec": {
                "nullable": null,
                "count": 3,
                "inner": {"x": 1},
                "free": {"kept": {"z": 1}, "known": {"x": 1}},
                "list": [{"y": 2}],
            },
        })
    );
}

#[test]
fn what_is_no_schema_is_refused_with_its_place() {
    let error = Schema::parse(&json!({"properties": {"a": {"type": "text"}}})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read schema: openAPIV3Schema.properties[a] type is not one that JSON has"
    );
}

#[test]
fn undeclared_fields_of_the_status_are_removed_and_named() {
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object"},
        "status": {"type": "object", "properties": {
            "known": {"type": "string"},
            "items": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
    }}))
    .unwrap();
    let mut object = Object::from_value(json!({
        "spec": {"undeclared": "not looked at"},
        "status": {
            "known": "k", "unknown": {"deep": 1}, "free": {"any": "thing"},
            "items": [{"a": "x"}, {"a": "y", "b": "z"}],
        },
    }))
    .unwrap();
    assert!(schema.declares_status("known") && !schema.declares_status("unknown"));
    assert_eq!(schema.prune_status(&mut object), ["status.items[1].b", "status.unknown"]);
    let left = json!({"known": "k", "free": {"any": "thing"}, "items": [{"a": "x"}, {"a": "y"}]});
    assert_eq!(object.get("status"), Some(&left));
    assert!(object.at(&["spec", "undeclared"]).is_some());
    assert!(schema.prune_status(&mut object).is_empty());
}

/// With every item compared with every other, this would take minutes.
#[test]
fn long_lists_are_checked_in_linear_time() {
    let unique = json!({"type": "array", "uniqueItems": true, "items": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}});
    let items = |count: usize| -> Vec<Value> { (0..count).map(|n| json!({"n": n})).collect() };
    let mut list = items(60_000);
    assert_eq!(problems(&unique, &list.clone().into()), "[]");
    list.push(json!({"n": 7}));
    let text = "spec: Invalid value: \"\": spec in body shouldn't contain duplicates";
    assert_eq!(problems(&unique, &list.into()), text);

    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
        "items": {"type": "object", "properties": {"n": {"type": "integer"}}}});
    let object = object(json!({"spec": items(40_000)}));
    assert_eq!(schema(&keyed).validate(&object, Some(&object)), []);
}

#[test]
fn numbers_are_unique_by_their_written_form() {
    let unique = json!({"type": "array", "uniqueItems": true, "items": {"type": "number"}});
    assert_eq!(problems(&unique, &json!([1, 1.5, 2])), "[]");
    assert!(problems(&unique, &json!([1.5, 1, 1.5])).contains("duplicates"));
    assert!(problems(&unique, &json!([0.0, -0.0])).contains("duplicates"));
}

#[test]
fn many_problems_are_joined_in_linear_time() {
    let error =
        |n: usize| FieldError::new(Problem::Invalid, format!("spec.f{}", n / 2), n / 2, "is wrong");
    let errors: Vec<FieldError> = (0..120_000).map(error).collect();
    let text = joined(&errors);
    assert_eq!(text.matches(": Invalid value: ").count(), 60_000);
    assert!(text.starts_with("[spec.f0: Invalid value: 0: is wrong, spec.f1: "), "{text:.80}");
}

/// The patterns of one schema share a budget, and are compiled when they are used.
#[test]
fn large_patterns_cost_nothing_until_they_are_used() {
    let property =
        |n: usize| (format!("p{n}"), json!({"type": "string", "pattern": r"^\pL{900}$"}));
    let properties: serde_json::Map<String, Value> = (0..100).map(property).collect();
    let schema = json!({"type": "object", "properties": properties});
    let text = problems(&schema, &json!({"p5": "a"}));
    let reason = "but pattern is invalid: the patterns of a schema may take 64 MiB, and this one is \
                  beyond that'";
    assert!(text.contains(reason), "{text}");
}

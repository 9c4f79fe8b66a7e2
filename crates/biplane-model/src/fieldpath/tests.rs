//! Tests of field paths.

use serde_json::{Map, Number, Value, json};

use super::*;

mod merging;
mod paths;
mod properties;
mod reading;
mod writing;

/// A document as the Kubernetes decoder reads it: whole numbers without fraction or exponent are
/// integers.
fn doc(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}

/// A document as a protobuf Struct holds it: every number is a double.
fn struct_doc(text: &str) -> Map<String, Value> {
    let mut value = Value::Object(doc(text));
    to_doubles(&mut value);
    match value {
        Value::Object(map) => map,
        _ => unreachable!(),
    }
}

fn path(text: &str) -> FieldPath {
    FieldPath::parse(text).unwrap()
}

fn double(value: f64) -> Value {
    Value::Number(Number::from_f64(value).unwrap())
}

fn field(name: &str) -> Segment {
    Segment::Field(name.to_owned())
}

/// Parses a path and reads it.
fn get(document: &str, text: &str) -> Result<Value, PathError> {
    Ok(FieldPath::parse(text)?.get(&doc(document))?.clone())
}

fn print_json(map: &Map<String, Value>) -> String {
    serde_json::to_string(map).unwrap()
}

#[test]
fn doubles_read_back_as_the_integers_that_they_print_as() {
    let check = |input: f64, expected: Value| {
        let mut value = double(input);
        normalize(&mut value);
        assert_eq!(value, expected, "{input}");
    };
    check(3.0, json!(3));
    check(-0.0, json!(0));
    check(2.5, double(2.5));
    check(1e21, double(1e21));
    check(4_611_686_018_427_387_904.0, json!(4_611_686_018_427_388_000_i64));
    check(-9_223_372_036_854_775_808.0, double(-9_223_372_036_854_775_808.0));
    check(9_223_372_036_854_775_808.0, double(9_223_372_036_854_775_808.0));
    let mut large = json!({"l": [9_223_372_036_854_775_808_u64]});
    normalize(&mut large);
    assert_eq!(large, json!({"l": [double(9_223_372_036_854_775_808.0)]}));
}

#[test]
fn kinds_have_the_names_that_go_gives_them() {
    let check = |value: Value, name| assert_eq!(type_name(&value), name, "FP-1");
    check(json!(null), "<nil>");
    check(json!(true), "bool");
    check(json!(2), "int64");
    check(json!(2.0), "float64");
    check(json!(u64::MAX), "float64");
    check(json!("s"), "string");
    check(json!([]), "[]interface {}");
    check(json!({}), "map[string]interface {}");
}

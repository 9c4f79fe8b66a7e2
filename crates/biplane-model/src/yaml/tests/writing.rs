//! Tests of YAML-1 to YAML-6.

use serde_json::json;

use crate::Value;
use crate::yaml::{to_string, write_documents};

/// YAML-1
#[test]
fn every_document_is_preceded_by_a_separator() {
    let documents = [json!({"a": 1}), json!("x"), json!([])];
    assert_eq!(write_documents(&documents), "---\na: 1\n---\nx\n---\n[]\n");
    assert_eq!(write_documents([]), "");
}

/// YAML-2
#[test]
fn keys_are_in_natural_order_at_every_level() {
    let value = json!({"status": 1, "apiVersion": 1, "spec": {
        "item10": 1, "item2": 1, "item": 1, "_x": 1, "Z": 1, "ab": 1, "a-b": 1, "a01": 1, "a1": 1
    }, "kind": 1, "metadata": 1});
    let expected = "apiVersion: 1\nkind: 1\nmetadata: 1\nspec:\n  _x: 1\n  Z: 1\n  a-b: 1\n  \
                    a1: 1\n  a01: 1\n  ab: 1\n  item: 1\n  item2: 1\n  item10: 1\nstatus: 1\n";
    assert_eq!(to_string(&value), expected);
}

/// YAML-2: the order is not transitive for these keys, but all are printed.
#[test]
fn keys_whose_order_has_cycles_are_printed_all() {
    let keys: Vec<String> =
        (0..200).flat_map(|n| [format!("{n}"), format!("{n}a"), format!("0{n}")]).collect();
    let map: crate::Map<_, _> = keys.iter().map(|key| (key.clone(), json!(1))).collect();
    let count = map.len();
    assert_eq!(to_string(&Value::Object(map)).lines().count(), count);
}

/// YAML-3
#[test]
fn lists_stand_below_their_key_and_empty_ones_on_its_line() {
    let value = json!({"a": [{"b": [1, [2, []]], "c": {}}, null], "d": {"e": []}});
    let expected = "a:\n- b:\n  - 1\n  - - 2\n    - []\n  c: {}\n- null\nd:\n  e: []\n";
    assert_eq!(to_string(&value), expected);
}

/// YAML-6
#[test]
fn numbers_print_as_go_prints_them() {
    let numbers = json!([
        1.0,
        -0.0,
        1e20,
        1e21,
        1e22,
        123_456.5,
        1_234_567.5,
        0.0001,
        0.000_01,
        1e-7,
        1e19,
        -1e19,
        9_007_199_254_740_993_i64,
        u64::MAX,
        0.1
    ]);
    let printed = to_string(&numbers);
    let printed: Vec<_> = printed.lines().map(|line| &line[2..]).collect();
    assert_eq!(
        printed,
        [
            "1",
            "0",
            "1e+20",
            "1e+21",
            "1e+22",
            "123456.5",
            "1.2345675e+06",
            "0.0001",
            "1e-05",
            "1e-07",
            "10000000000000000000",
            "-1e+19",
            "9007199254740993",
            "18446744073709551615",
            "0.1"
        ]
    );
}

#[test]
fn values_of_any_depth_are_printed_on_a_small_stack() {
    let mut value = json!(1);
    for _ in 0..1000 {
        value = Value::Array(vec![Value::Object([("a".to_owned(), value)].into_iter().collect())]);
    }
    assert_eq!(to_string(&value).lines().count(), 1000);
}

/// Our output differs where upstream's would be read as something else.
#[test]
fn text_that_would_not_survive_is_escaped() {
    let value = json!({"<<": "<<", "a": "x\u{2028}y", "b": "x\u{85}y", "c": "\u{2029}\ny"});
    let printed = to_string(&value);
    assert_eq!(printed, "\"<<\": <<\na: \"x\\Ly\"\nb: \"x\\Ny\"\nc: \"\\P\\ny\"\n");
    assert_eq!(super::read(&printed), value);
}

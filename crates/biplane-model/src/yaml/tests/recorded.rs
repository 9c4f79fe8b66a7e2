//! Recorded inputs and the output of `kubectl patch --local` with `-o json` and `-o yaml`.
//!
//! - `scalars`: one object, every value an unusual scalar;
//! - `strings`: objects with strings, keys and long lines that are hard to print;
//! - `documents`: a stream of documents in every common layout;
//! - `refused`: texts that are not YAML, or cannot be JSON.

use serde_json::Value;

use crate::yaml::{parse_documents, write_documents};

/// Reads a stream, without the locations of its documents.
fn read(name: &str, text: &str) -> Vec<Value> {
    let documents = parse_documents(name, text).expect("readable");
    documents.into_iter().map(|document| document.value).collect()
}

fn json(text: &str) -> Vec<Value> {
    match serde_json::from_str(text).expect("recorded JSON") {
        Value::Array(values) => values,
        value => vec![value],
    }
}

/// JSON does not distinguish `1.0` from `1`, so both are equal.
pub(super) fn assert_same(path: &str, ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            assert_eq!(a.as_f64(), b.as_f64(), "at {path}");
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                assert_same(&format!("{path}[{index}]"), a, b);
            }
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for ((key, a), b) in a.iter().zip(b.values()) {
                assert_same(&format!("{path}.{key}"), a, b);
            }
        }
        _ => assert_eq!(ours, theirs, "at {path}"),
    }
}

fn assert_all_same(ours: &[Value], theirs: &[Value]) {
    assert_eq!(ours.len(), theirs.len());
    for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert_same(&format!("document {index}: "), ours, theirs);
    }
}

/// Compares line by line, for readable failures.
fn assert_prints(values: &[Value], printed: &str) {
    let ours = write_documents(values);
    for (number, (ours, theirs)) in ours.lines().zip(printed.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(ours, printed);
}

/// YAML-4
#[test]
fn scalars_mean_what_kubectl_reads() {
    let ours = read("scalars.yaml", include_str!("recorded/scalars.yaml"));
    let count = ours[0]["spec"].as_object().map(serde_json::Map::len);
    assert!(count > Some(200), "{count:?} scalars");
    assert_all_same(&ours, &json(include_str!("recorded/scalars.read.json")));
    let printed = include_str!("recorded/scalars.printed.yaml");
    assert_prints(&ours, &format!("---\n{printed}"));
}

/// YAML-2 to YAML-5
#[test]
fn strings_and_keys_print_as_kubectl_prints_them() {
    let values = json(include_str!("recorded/strings.json"));
    let printed = include_str!("recorded/strings.printed.yaml");
    assert_prints(&values, printed);
}

/// LOAD-1, YAML-1
#[test]
fn documents_read_and_print_as_with_kubectl() {
    let ours = read("documents.yaml", include_str!("recorded/documents.yaml"));
    assert_all_same(&ours, &json(include_str!("recorded/documents.read.json")));
    assert_prints(&ours, include_str!("recorded/documents.printed.yaml"));
}

#[test]
fn what_is_printed_reads_back_as_it_was() {
    let strings = json(include_str!("recorded/strings.json"));
    let printed = write_documents(&strings);
    assert_all_same(&read("strings", &printed), &strings);
    let documents = include_str!("recorded/documents.printed.yaml");
    assert_prints(&read("documents", documents), documents);
}

#[test]
fn refuses_what_kubectl_refuses() {
    for text in json(include_str!("recorded/refused.json")) {
        let text = text.as_str().expect("text");
        let error = parse_documents("refused.yaml", text).expect_err(text);
        let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
        assert_eq!(&*error.source_line, line.trim_end_matches('\r'), "{text:?}: {error}");
        assert!(error.column <= line.chars().count() + 1, "{text:?}: {error}");
    }
}

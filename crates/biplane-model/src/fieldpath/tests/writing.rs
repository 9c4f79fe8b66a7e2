//! Tests of writing and deleting.

use super::*;

/// Writes into a document and returns the new document or the error.
fn set(document: &str, text: &str, value: Value) -> Result<String, String> {
    let mut map = doc(document);
    let before = map.clone();
    match path(text).set(&mut map, value) {
        Ok(()) => Ok(print_json(&map)),
        Err(error) => {
            assert!(!error.is_not_found());
            assert_eq!(map, before, "a write that fails at once changes nothing");
            Err(error.to_string())
        }
    }
}

#[test]
fn writing_makes_what_is_missing() {
    for (id, document, text, value, expected) in [
        ("FT-70", "{}", "metadata.name", json!("cool"), r#"{"metadata":{"name":"cool"}}"#),
        (
            "FT-71",
            "{}",
            "spec.containers[0].name",
            json!("cool"),
            r#"{"spec":{"containers":[{"name":"cool"}]}}"#,
        ),
        (
            "FT-72",
            r#"{"spec":{"containers":[{"name":"cool"}]}}"#,
            "spec.containers[1].name",
            json!("cooler"),
            r#"{"spec":{"containers":[{"name":"cool"},{"name":"cooler"}]}}"#,
        ),
        ("FT-73", "{}", "data[0][0]", json!("a"), r#"{"data":[["a"]]}"#),
        ("FT-74", r#"{"data":[["a"]]}"#, "data[0][1]", json!("b"), r#"{"data":[["a","b"]]}"#),
        ("FT-75", r#"{"data":["a"]}"#, "data[2]", json!("c"), r#"{"data":["a",null,"c"]}"#),
        ("FT-82", r#"{"l":[null]}"#, "l[0].a", json!(1), r#"{"l":[{"a":1}]}"#),
        ("FT-82", r#"{"l":[null]}"#, "l[0][1]", json!(1), r#"{"l":[[null,1]]}"#),
        ("FT-84", "{}", "n", double(3.0), r#"{"n":3}"#),
        ("FT-85", "{}", "n", double(1e21), r#"{"n":1e+21}"#),
        ("FT-86", r#"{"a":1}"#, "", json!(2), r#"{"a":1}"#),
        ("FT-87", r#"{"a":1}"#, "a", json!(null), r#"{"a":null}"#),
        (
            "FT-89",
            "{}",
            "metadata.labels[a.b/c]",
            json!("x"),
            r#"{"metadata":{"labels":{"a.b/c":"x"}}}"#,
        ),
    ] {
        assert_eq!(set(document, text, value), Ok(expected.to_owned()), "{id}");
    }
}

#[test]
fn writing_replaces_nothing_that_is_in_the_way() {
    for (id, document, text, expected) in [
        (
            "FT-76",
            r#"{"data":["a"]}"#,
            "data[1025]",
            "index 1025 is greater than max allowed index 1024",
        ),
        ("FT-79", r#"{"data":{}}"#, "data[0]", "data is not an array"),
        ("FT-80", r#"{"data":[]}"#, "data.name", "data is not an object"),
        ("FT-81", r#"{"spec":null}"#, "spec.a", "spec is not an object"),
        ("FT-83", r#"{"a":"s"}"#, "a.b", "a is not an object"),
        ("FT-88", "{}", "[0]", " is not an array"),
        ("FP-32", r#"{"a":null}"#, "a[0]", "a is not an array"),
    ] {
        assert_eq!(set(document, text, json!(1)), Err(expected.to_owned()), "{id}");
    }
}

#[test]
fn an_index_at_the_limit_can_be_written() {
    let mut map = doc("{}");
    path("data[1024]").set(&mut map, json!("c")).unwrap();
    assert_eq!(map["data"].as_array().unwrap().len(), 1025, "FT-77");
}

#[test]
fn writing_never_makes_a_document_that_is_too_deep_to_handle() {
    let mut map = doc("{}");
    let long = "a".to_owned() + &"[0]".repeat(100_000);
    let error = path(&long).set(&mut map, json!(1)).unwrap_err();
    assert!(matches!(error, PathError::Depth { .. }));
    // Writing segment by segment fails as well.
    let step = path(&("a".to_owned() + &".a".repeat(150)));
    for _ in 0..10 {
        let value = map.get("a").cloned().unwrap_or_default();
        let _ = step.set(&mut map, value);
    }
    assert!(print_json(&map).matches('{').count() < 500);
}

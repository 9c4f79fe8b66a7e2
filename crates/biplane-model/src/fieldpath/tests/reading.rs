//! Tests of reading, typed getters and wildcards.

use super::*;

#[test]
fn reading_finds_values_of_their_own_kind() {
    for (id, document, text, expected) in [
        ("FT-40", r#"{"metadata":{"name":"cool"}}"#, "metadata.name", json!("cool")),
        ("FT-41", r#"{"items":[["a","b"]]}"#, "items[0][1]", json!("b")),
        ("FT-42", r#"{"v":2}"#, "v", json!(2)),
        ("FT-43", r#"{"v":2.0}"#, "v", double(2.0)),
        ("FT-44", r#"{"v":1e3}"#, "v", double(1000.0)),
        ("FT-53", r#"{"a":null}"#, "a", json!(null)),
        ("FT-56", r#"{"a":1}"#, "", json!(null)),
    ] {
        assert_eq!(get(document, text), Ok(expected), "{id}");
    }
    assert_eq!(path("v").get(&struct_doc(r#"{"v":2}"#)), Ok(&double(2.0)), "FT-45");
    assert_ne!(json!(2), double(2.0));
}

#[test]
fn reading_tells_the_absent_from_the_impossible() {
    for (id, document, text, missing, expected) in [
        (
            "FT-46",
            r#"{"metadata":{"nope":1}}"#,
            "metadata.name",
            true,
            "metadata.name: no such field",
        ),
        (
            "FT-47",
            r#"{"spec":{"containers":[{}]}}"#,
            "spec.containers[1].name",
            true,
            "spec.containers[1]: no such element",
        ),
        ("FT-48", r#"{"metadata":{}}"#, "metadata[1]", false, "metadata: not an array"),
        (
            "FT-49",
            r#"{"spec":{"containers":[{}]}}"#,
            "spec.containers[nope].name",
            false,
            "spec.containers: not an object",
        ),
        (
            "FT-50",
            r#"{"spec":{"containers":null}}"#,
            "spec.containers[*].name",
            true,
            "spec.containers: expected map, got nil",
        ),
        ("FT-51", r#"{"spec":{"items":null}}"#, "spec.items[0]", false, "spec.items: not an array"),
        ("FT-52", r#"{"spec":{}}"#, "spec.items[0]", true, "spec.items: no such field"),
        ("FT-54", r#"{"a":null}"#, "a.b", true, "a: expected map, got nil"),
        (
            "FT-55",
            "{}",
            "spec[]",
            false,
            r#"cannot parse path "spec[]": unexpected ']' at position 5"#,
        ),
        ("FT-57", "{}", "[0]", false, ": not an array"),
        ("FP-15", r#"{"l":[]}"#, "l[4000]", true, "l[4000]: no such element"),
    ] {
        let error = get(document, text).unwrap_err();
        assert_eq!(error.to_string(), expected, "{id}");
        assert_eq!(error.is_not_found(), missing, "{id}");
    }
}

#[test]
fn typed_getters_refuse_other_kinds() {
    let text = |error: PathError| error.to_string();
    let v = path("v");
    assert_eq!(v.get_str(&doc(r#"{"v":2}"#)).map_err(text), Err("v: not a string".into()), "FT-58");
    assert_eq!(
        v.get_bool(&doc(r#"{"v":"x"}"#)).map_err(text),
        Err("v: not a bool".into()),
        "FT-61"
    );
    assert_eq!(v.get_bool(&doc(r#"{"v":true}"#)), Ok(true));
    let two = doc(r#"{"v":2.0}"#);
    let quoted = path("'v'");
    assert_eq!(quoted.get_str(&two).map_err(text), Err("'v': not a string".into()), "FP-21");
    assert!(quoted.get_str(&doc("{}")).unwrap_err().is_not_found(), "FP-21");
}

#[test]
fn wildcards_expand_to_what_exists() {
    for (id, document, text, expected) in [
        ("FT-120", r#"{"password":"x"}"#, "password", &["password"][..]),
        ("FT-121", r#"{"password":"x"}"#, "username", &[]),
        (
            "FT-122",
            r#"{"items":[["a","b","c"],["d"]]}"#,
            "items[*][*]",
            &["items[0][0]", "items[0][1]", "items[0][2]", "items[1][0]"],
        ),
        (
            "FT-123",
            r#"{"items":{"key1":"v","key2.as.annotation":"v"}}"#,
            "items[*]",
            &["items.key1", "items[key2.as.annotation]"],
        ),
        ("FT-124", r#"{"l":[{"a":1},{}]}"#, "l[*].a", &["l[0].a"]),
        ("FT-125", r#"{"l":[{},{}]}"#, "l[*].a", &[]),
        ("FT-126", "{}", "metadata[*]", &[]),
        ("FT-127", r#"{"l":[]}"#, "l[*].a", &[]),
        ("FP-40", r#"{"b":1,"a":2}"#, "*", &["a", "b"]),
        ("FP-40", r#"{"o":{"*":{"x":1},"k":{"x":1}}}"#, "o[*].x", &["o[*].x", "o.k.x"]),
        ("FP-40", r#"{"o":{"'k'":1,"\"":2,"":3}}"#, "o[*]", &["o.", "o."]),
    ] {
        assert_eq!(path(text).expand(&doc(document)).unwrap(), expected, "{id}");
    }
}

#[test]
fn wildcards_need_something_to_range_over() {
    for (id, document, text, missing, expected) in [
        (
            "FT-128",
            r#"{"spec":{"containers":null}}"#,
            "spec.containers[*].name",
            true,
            r#"cannot expand wildcards for segments: "spec.containers[*].name": wildcard field "spec.containers" is not found in the path"#,
        ),
        (
            "FT-129",
            r#"{"l":[{"name":"x"}]}"#,
            "l[0].name[*]",
            false,
            r#"cannot expand wildcards for segments: "l[0].name[*]": "l[0].name": unexpected wildcard usage"#,
        ),
        (
            "FT-130",
            r#"{"l":["s"]}"#,
            "l[*][*]",
            false,
            r#"cannot expand wildcards for segments: "l[*][*]": "l[0][*]": cannot expand wildcards: "l[0]": unexpected wildcard usage"#,
        ),
        (
            "FP-40",
            r#"{"l":["s"]}"#,
            "l[*].a",
            false,
            r#"cannot expand wildcards for segments: "l[*].a": "l[0].a": cannot expand wildcards: l[0]: not an object"#,
        ),
        (
            "FP-40",
            r#"{"l":[{"in":{"one":{"a":1}}},{"in":{"one":"s"}}]}"#,
            "l[*].in[*].a",
            false,
            r#"cannot expand wildcards for segments: "l[*].in[*].a": "l[1].in[*].a": cannot expand wildcards: "l[1].in.one.a": cannot expand wildcards: l[1].in.one: not an object"#,
        ),
    ] {
        let error = path(text).expand(&doc(document)).unwrap_err();
        assert_eq!(error.to_string(), expected, "{id}");
        assert_eq!(error.is_not_found(), missing, "{id}");
    }
}

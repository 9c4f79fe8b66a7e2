//! Tests of merging.

use super::*;

const F: Option<bool> = Some(false);
const T: Option<bool> = Some(true);

/// Merges into the field `v` and returns its new value. An empty destination means that the field
/// does not exist.
fn merge(
    current: &str,
    value: Value,
    keep: Option<bool>,
    append: Option<bool>,
) -> Result<String, String> {
    let mut map = match current {
        "" => Map::new(),
        _ => doc(&format!(r#"{{"v":{current}}}"#)),
    };
    let options = MergeOptions { keep_map_values: keep, append_slice: append };
    path("v").merge(&mut map, value, Some(options)).map_err(|error| error.to_string())?;
    Ok(map["v"].to_string())
}

#[test]
fn values_merge_as_the_options_say() {
    let zeros = r#"{"a":0,"b":"","c":false,"d":[],"e":{},"f":null}"#;
    let ones = r#"{"a":9,"b":"n","c":true,"d":[1],"e":{"k":1},"f":7}"#;
    let ab = r#"{"a":1,"b":"x"}"#;
    let ac = r#"{"a":2,"c":3}"#;
    let full = r#"{"a":"x","l":[1]}"#;
    let empty = r#"{"a":"","l":[]}"#;
    let (l12, l23) = (r#"{"l":[1,2]}"#, r#"{"l":[2,3]}"#);
    for (id, current, value, keep, append, expected) in [
        ("FT-141", "", r#"{"a":1}"#, T, F, r#"{"a":1}"#),
        ("FT-142", ab, ac, T, F, r#"{"a":1,"b":"x","c":3}"#),
        ("FT-143", ab, ac, F, F, r#"{"a":2,"b":"x","c":3}"#),
        ("FT-143", ab, ac, None, None, r#"{"a":2,"b":"x","c":3}"#),
        ("FT-144", zeros, ones, T, F, ones),
        ("FT-145", full, empty, F, F, empty),
        ("FT-146", full, empty, T, F, full),
        ("FT-147", l12, l23, T, F, l12),
        ("FT-148", l12, l23, F, F, l23),
        ("FT-149", l12, l23, T, T, r#"{"l":[1,2,2,3]}"#),
        ("FT-149", l12, l23, F, T, r#"{"l":[1,2,2,3]}"#),
        ("FT-150", "[1,2]", "[2,3,3]", F, T, "[1,2,3,3]"),
        ("FT-150", "[1,2]", "[2,3,3]", T, T, "[1,2,3,3]"),
        ("FT-151", "[1,2]", "[2,3,3]", F, F, "[2,3,3]"),
        ("FT-152", "[1]", "[1.0]", F, T, "[1,1]"),
        ("FT-153", r#"{"a":"x"}"#, r#"{"a":{"k":1}}"#, T, F, r#"{"a":"x"}"#),
        ("FT-154", r#"{"a":"x"}"#, r#"{"a":{"k":1}}"#, F, F, r#"{"a":{"k":1}}"#),
        ("FT-155", r#"{"a":{"k":1}}"#, r#"{"a":"x"}"#, T, F, r#"{"a":{"k":1}}"#),
        ("FT-156", r#"{"a":"x"}"#, r#"{"a":null}"#, F, F, r#"{"a":null}"#),
        ("FT-157", r#"{"a":"x"}"#, r#"{"a":null}"#, T, F, r#"{"a":"x"}"#),
        ("FT-158", "{}", r#"{"a":null}"#, T, F, r#"{"a":null}"#),
        ("FT-159", r#""old""#, r#""new""#, T, F, r#""old""#),
        ("FT-160", r#""""#, r#""new""#, T, F, r#""new""#),
        ("FT-161", "5", "0", F, F, "0"),
        ("FT-164", "[1]", r#"{"a":1}"#, F, T, r#"{"a":1}"#),
        (
            "FT-165",
            r#"{"a":{"b":{"c":1}}}"#,
            r#"{"a":{"b":{"d":2}}}"#,
            T,
            F,
            r#"{"a":{"b":{"c":1,"d":2}}}"#,
        ),
        ("FT-166", r#"{"a":1}"#, "null", T, T, "null"),
        ("FP-51", "[]", "[]", F, T, "null"),
        ("FP-51", "[]", "[1]", F, T, "[1]"),
        ("FP-51", "[1]", "[1]", T, T, "[1]"),
        ("FP-52", r#"{"l":[]}"#, r#"{"l":[]}"#, F, T, r#"{"l":[]}"#),
        ("FP-52", r#"{"o":{}}"#, r#"{"o":{"a":null,"b":1}}"#, T, F, r#"{"o":{"b":1}}"#),
        ("FP-52", r#"{"o":{}}"#, r#"{"o":{"a":null,"b":1}}"#, F, F, r#"{"o":{"a":null,"b":1}}"#),
        ("FP-52", r#"{"a":1}"#, r#"{"b":null}"#, T, F, r#"{"a":1}"#),
        ("FP-52", r#"{"a":1}"#, r#"{"o":{"b":null}}"#, T, F, r#"{"a":1,"o":{"b":null}}"#),
        ("FP-52", r#"{"l":null}"#, r#"{"l":[1]}"#, T, T, r#"{"l":[1]}"#),
    ] {
        let value: Value = serde_json::from_str(value).unwrap();
        assert_eq!(merge(current, value, keep, append), Ok(expected.to_owned()), "{id}: {current}");
    }
}

#[test]
fn arrays_are_appended_only_to_arrays() {
    let error = "failed to merge values: cannot append two slices with different type \
                 ([]interface {}, map[string]interface {})";
    assert_eq!(merge(r#"{"a":1}"#, json!([1]), F, T), Err(error.into()), "FT-162");
    let error = "failed to merge values: cannot append two slices with different type \
                 ([]interface {}, string)";
    assert_eq!(merge(r#"{"l":"str"}"#, json!({"l": [1]}), T, T), Err(error.into()), "FT-163");
    assert_eq!(merge(r#"{"l":""}"#, json!({"l": [1]}), T, T), Err(error.into()), "FP-52");
}

#[test]
fn without_options_the_value_replaces_what_is_there() {
    let mut map = doc(r#"{"v":{"a":1}}"#);
    path("v").merge(&mut map, json!({"b": 2.0}), None).unwrap();
    assert_eq!(print_json(&map), r#"{"v":{"b":2}}"#, "FT-140");
}

#[test]
fn a_path_that_cannot_be_read_is_refused_in_the_words_of_reading_or_writing() {
    let mut map = doc(r#"{"v":"s"}"#);
    let merge =
        |map: &mut _, options| path("v.a").merge(map, json!(1), options).unwrap_err().to_string();
    assert_eq!(merge(&mut map, Some(MergeOptions::default())), "v: not an object", "FP-51");
    assert_eq!(merge(&mut map, None), "v is not an object", "FP-51");
    let text = r#"{"keepMapValues":true}"#;
    let options: MergeOptions = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&options).unwrap(), text, "FP-50");
}

/// Every append copied the array, and compared all new items with all old ones.
#[test]
fn appending_takes_time_for_the_new_items_only() {
    let options = Some(MergeOptions { keep_map_values: None, append_slice: T });
    let mut map = doc(r#"{"v":{"list":[],"rest":{}}}"#);
    let numbers = |range: std::ops::Range<i32>| Value::from(range.collect::<Vec<_>>());
    path("v.list").merge_normalized(&mut map, numbers(0..50_000), options).unwrap();
    path("v.list").merge_normalized(&mut map, numbers(25_000..75_000), options).unwrap();
    for number in 75_000..77_000 {
        path("v.list").merge_normalized(&mut map, numbers(number..number + 1), options).unwrap();
    }
    assert_eq!(map["v"]["list"], numbers(0..77_000));
}

#[test]
fn a_merge_that_fails_changes_nothing() {
    let before = doc(r#"{"v":{"a":1,"b":{"c":"text"}}}"#);
    let mut map = before.clone();
    let options = Some(MergeOptions { keep_map_values: None, append_slice: T });
    let error = path("v").merge(&mut map, json!({"a": 2, "b": {"c": [1]}}), options).unwrap_err();
    let text = "cannot append two slices with different type ([]interface {}, string)";
    assert_eq!(error.to_string(), format!("failed to merge values: {text}"));
    assert_eq!(map, before);
}

#[test]
fn an_expansion_ends_when_there_is_no_room() {
    let map = doc(r#"{"a":[1,2,3]}"#);
    let room = |room| path("a[*]").expand_within(&map, room).unwrap();
    assert_eq!(room(12), Some(vec!["a[0]".to_owned(), "a[1]".to_owned(), "a[2]".to_owned()]));
    assert_eq!(room(11), None);
}

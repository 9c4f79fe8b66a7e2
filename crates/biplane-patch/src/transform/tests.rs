//! Tests of single transforms.

use serde_json::{Value, json};

use super::*;
use crate::config::{self, Fields};
use crate::dialect::Dialect;

/// Runs one transform on a value. Its numbers keep the type that they are written with.
fn transform(config: &Value, input: Value) -> Result<Value, String> {
    transform_as(Dialect::FUNCTION, config, input)
}

fn transform_as(dialect: Dialect, config: &Value, input: Value) -> Result<Value, String> {
    let parsed = config::transform(Fields(config.as_object()));
    let op = Transform::new(&parsed, &Patterns::default(), dialect);
    run(&[op], input.into(), &Budget::default())?.into_json()
}

fn check(id: &str, config: &Value, input: Value, expected: Value) {
    assert_eq!(transform(config, input), Ok(expected), "{id}");
}

fn fails(id: &str, config: &Value, input: Value, expected: &str) {
    let kind = config["type"].as_str().unwrap();
    let expected = format!(
        "transform at index 0 returned error: {kind} transform could not resolve: {expected}"
    );
    assert_eq!(transform(config, input), Err(expected), "{id}");
}

#[allow(clippy::needless_pass_by_value)] // tables read better without borrows
fn string(kind: &str, key: &str, value: Value) -> Value {
    json!({"type": "string", "string": {"type": kind, key: value}})
}

fn convert(to: &str, format: &str) -> Value {
    json!({"type": "convert", "convert": {"toType": to, "format": format}})
}

#[test]
fn text_converts() {
    let c = |name: &str| string("Convert", "convert", json!(name));
    for (id, name, input, expected) in [
        ("PTT-41", "ToUpper", json!("crossplane"), "CROSSPLANE"),
        ("PTT-42", "ToUpper", json!("straße"), "STRAßE"),
        ("PTT-43", "ToLower", json!("ΣΑΣ"), "σασ"),
        ("PTT-44", "ToUpper", json!(true), "TRUE"),
        ("PTT-45", "ToBase64", json!("CrossPlane"), "Q3Jvc3NQbGFuZQ=="),
        ("PTT-46", "ToBase64", json!({"a": 1.0, "b": "x"}), "bWFwW2E6MSBiOnhd"),
        ("PTT-47", "ToBase64", json!(1e6), "MWUrMDY="),
        ("PTT-48", "FromBase64", json!("Q3Jvc3NQ\nbGFuZQ=="), "CrossPlane"),
        ("PTT-51", "ToJson", json!({"foo": "bar"}), r#"{"foo":"bar"}"#),
        ("PTT-52", "ToJson", json!("<a>"), r#""\u003ca\u003e""#),
        ("PTT-53", "ToJson", json!(5.0), "5"),
        ("PTT-53", "ToJson", json!(null), "null"),
        ("PTT-54", "ToSha1", json!("Crossplane"), "3b683dc8ff44122b331a5e4f253dd69d90726d75"),
        (
            "PTT-56",
            "ToSha256",
            json!(5.0),
            "ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d",
        ),
        ("PTT-57", "ToSha1", json!(true), "5ffe533b830f08a0326348a9160afafc8ada44db"),
        (
            "PTT-58",
            "ToSha256",
            json!({"b": "<x>", "a": 1.0}),
            "982959243131ed23a4a0649722dfb20df5406838a6abb772dd15f098ffbe9fc1",
        ),
        ("PTT-60", "ToAdler32", json!("Crossplane"), "373097499"),
        ("PTT-60", "ToAdler32", json!(""), "1"),
        ("PTT-60", "ToAdler32", json!([1.0, 2.0]), "64291144"),
    ] {
        check(id, &c(name), input, json!(expected));
    }
    let base64 = "string is not valid base64: illegal base64 data at input byte";
    fails("PTT-49", &c("FromBase64"), json!("ThisStringIsNotBase64"), &format!("{base64} 20"));
    fails("PTT-50", &c("FromBase64"), json!("QQ"), &format!("{base64} 0"));
    fails(
        "PTT-61",
        &c("Something"),
        json!("x"),
        "type Something is not supported for string convert",
    );
}

#[test]
fn text_is_trimmed_searched_joined_and_replaced() {
    let regexp = |pattern: &str, group: i64| {
        string("Regexp", "regexp", json!({"match": pattern, "group": group}))
    };
    let join = |separator: &str| string("Join", "join", json!({"separator": separator}));
    let replace = |search: &str, by: &str| {
        string("Replace", "replace", json!({"search": search, "replace": by}))
    };
    let prefix = |trim: &str| string("TrimPrefix", "trim", json!(trim));
    for (id, config, input, expected) in [
        ("PTT-62", prefix("https://"), json!("https://crossplane.io"), "crossplane.io"),
        ("PTT-62", prefix("https://"), json!("crossplane.io"), "crossplane.io"),
        (
            "PTT-63",
            string("TrimSuffix", "trim", json!("-test")),
            json!("my-string-test"),
            "my-string",
        ),
        ("PTT-64", prefix("a"), json!("aab"), "ab"),
        ("PTT-65", prefix("1e"), json!(1e6), "+06"),
        ("PTT-66", regexp("[0-9]", 0), json!("my-1-string"), "1"),
        ("PTT-67", regexp("my-([0-9]+)-string", 1), json!("my-1-string"), "1"),
        ("PTT-70", regexp("(a)?b", 1), json!("b"), ""),
        ("PTT-71", regexp(r"\d+", 0), json!(10.0), "10"),
        ("PTT-74", join(","), json!(["cross", "plane"]), "cross,plane"),
        ("PTT-75", join(""), json!(["cross", "plane"]), "crossplane"),
        ("PTT-76", join("-"), json!(["cross", "plane", 42.0]), "cross-plane-42"),
        ("PTT-77", join(", "), json!(["a", "b"]), "a, b,"),
        ("PTT-78", join(","), json!([]), ""),
        ("PTT-78", join(","), json!([1e6]), "1e+06"),
        ("PTT-80", replace("Cr", "B"), json!("Crossplane"), "Bossplane"),
        ("PTT-80", replace("xx", "zz"), json!("Crossplane"), "Crossplane"),
        ("PTT-80", replace("ss", ""), json!("Crossplane"), "Croplane"),
    ] {
        check(id, &config, input, json!(expected));
    }
    let none = r#"regexp "my-([0-9]+)-string" had no matches for group 2"#;
    fails("PTT-68", &regexp("my-([0-9]+)-string", 2), json!("my-1-string"), none);
    fails("PTT-72", &regexp(r"\d+", 0), json!("٣x"), r#"regexp "\\d+" had no matches for group 0"#);
    fails("PTT-73", &regexp("x", -1), json!("x"), r#"regexp "x" had no matches for group -1"#);
    fails("PTT-79", &join(","), json!("a"), "could not parse input array");
}

#[test]
fn maps_and_matches_look_values_up() {
    let map = |pairs: Value| json!({"type": "map", "map": pairs});
    check("PTT-81", &map(json!({"ola": "voila"})), json!("ola"), json!("voila"));
    check("PTT-82", &map(json!({"ola": 1})), json!("ola"), json!(1.0));
    fails("PTT-84", &map(json!({"a": 1})), json!("x"), "key x is not found in map");
    let kind = "type float64 is not supported for map transform";
    fails("PTT-85", &map(json!({"a": 1})), json!(5.0), kind);
    let null = "value for key a is not valid JSON: unexpected end of JSON input";
    fails("PTT-86", &map(json!({"a": null})), json!("a"), null);

    let config = |patterns: Value, to: &str, value: Value| json!({"type": "match", "match": {"patterns": patterns, "fallbackTo": to, "fallbackValue": value}});
    let a = json!([{"type": "literal", "literal": "a", "result": 1}]);
    let oo = json!([{"type": "regexp", "regexp": "oo", "result": "x"}]);
    check("PTT-89", &config(oo.clone(), "", json!(null)), json!("foobar"), json!("x"));
    check("PTT-90", &config(a.clone(), "", json!(null)), json!("b"), json!(null));
    check("PTT-91", &config(a.clone(), "", json!("d")), json!("b"), json!("d"));
    check("PTT-92", &config(a.clone(), "Input", json!(null)), json!("b"), json!("b"));
    let both = "cannot set both a fallback value and the fallback to input flag";
    fails("PTT-93", &config(a.clone(), "Input", json!("d")), json!("b"), both);
    check("PTT-94", &config(a.clone(), "Input", json!("d")), json!("a"), json!(1.0));
    let at = |what: &str| format!("cannot match pattern at index 0: {what}");
    let float = at("unsupported input type 'float64'");
    fails("PTT-96", &config(a.clone(), "", json!("d")), json!(5.0), &float);
    fails("PTT-97", &config(oo, "", json!("d")), json!(null), &at("unsupported input type 'null'"));
    fails("PTT-98", &config(a, "", json!("d")), json!(null), &at("unsupported input type '<nil>'"));
    let untyped = config(json!([{"literal": "a"}]), "", json!(null));
    fails("PTT-99", &untyped, json!("a"), &at("unsupported pattern type ''"));
}

#[test]
fn numbers_are_multiplied_and_clamped() {
    let math =
        |kind: &str, key: &str, by: i64| json!({"type": "math", "math": {"type": kind, key: by}});
    let (min, max) = (math("ClampMin", "clampMin", 2), math("ClampMax", "clampMax", 2));
    let twice = math("Multiply", "multiply", 2);
    for (id, config, input, expected) in [
        ("PTT-100", &twice, json!(3), json!(6)),
        ("PTT-100", &twice, json!(3.0), json!(6.0)),
        ("PTT-101", &twice, json!(i64::MAX), json!(-2)),
        ("PTT-103", &min, json!(1), json!(2)),
        ("PTT-103", &min, json!(1.9), json!(2)),
        ("PTT-103", &min, json!(2.5), json!(2.5)),
        ("PTT-104", &max, json!(3.0), json!(2)),
        ("PTT-104", &max, json!(2.9), json!(2.9)),
        ("PTT-105", &math("ClampMax", "clampMax", -2), json!(-1.5), json!(-2)),
    ] {
        check(id, config, input, expected);
    }
    let wrong = "input is required to be a number for math transformer, got string";
    fails("PTT-102", &twice, json!("ola"), wrong);
}

#[test]
fn values_convert_between_types() {
    for (id, to, format, input, expected) in [
        ("PTT-110", "bool", "none", json!("T"), json!(true)),
        ("PTT-112", "bool", "none", json!(0.5), json!(false)),
        ("PTT-113", "int64", "none", json!("+5"), json!(5)),
        ("PTT-117", "int64", "none", json!(-1.9), json!(-1)),
        ("PTT-118", "float64", "none", json!("1_000.5"), json!(1000.5)),
        ("PTT-118", "float64", "none", json!("0x1p-2"), json!(0.25)),
        ("PTT-120", "float64", "none", json!(true), json!(1.0)),
        ("PTT-121", "float64", "quantity", json!("1000m"), json!(1.0)),
        ("PTT-121", "float64", "quantity", json!("1.5Gi"), json!(1_610_612_736.0)),
        ("PTT-121", "float64", "quantity", json!("1e3"), json!(1000.0)),
        ("PTT-122", "float64", "quantity", json!("0.3"), json!(0.300_000_000_000_000_04)),
        ("GJ-5", "float64", "quantity", json!("Ki"), json!(0.0)),
        ("PTT-125", "string", "none", json!(1e6), json!("1000000")),
        ("PTT-126", "string", "none", json!(1e21), json!("1000000000000000000000")),
        ("PTT-129", "string", "json", json!("x"), json!("x")),
        ("PTT-132", "object", "json", json!(r#"{"foo":1}"#), json!({"foo": 1.0})),
        ("PTT-133", "array", "json", json!(r#"["a",2]"#), json!(["a", 2.0])),
        ("PTT-135", "object", "json", json!("null"), json!(null)),
    ] {
        check(id, &convert(to, format), input, expected);
    }
    let unsupported = "is not supported with format";
    for (id, to, format, input, expected) in [
        (
            "PTT-111",
            "bool",
            "none",
            json!("yes"),
            r#"strconv.ParseBool: parsing "yes": invalid syntax"#,
        ),
        (
            "PTT-114",
            "int",
            "none",
            json!("1.5"),
            r#"strconv.ParseInt: parsing "1.5": invalid syntax"#,
        ),
        (
            "PTT-115",
            "int64",
            "none",
            json!("9223372036854775808"),
            r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#,
        ),
        ("PTT-123", "float64", "quantity", json!("1K"), "unable to parse quantity's suffix"),
        ("PTT-127", "string", "none", json!([1]), "invalid input type []interface {}"),
        (
            "PTT-128",
            "string",
            "quantity",
            json!(1.0),
            &format!("conversion from float64 to string {unsupported} quantity"),
        ),
        (
            "PTT-131",
            "int",
            "quantity",
            json!("1"),
            &format!("conversion from string to int64 {unsupported} quantity"),
        ),
        (
            "PTT-134",
            "object",
            "json",
            json!("[1]"),
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "PTT-136",
            "object",
            "json",
            json!(r#"{"a":1} x"#),
            "invalid character 'x' after top-level value",
        ),
        (
            "PNT-88",
            "object",
            "json",
            json!("nul"),
            "invalid character ' ' in literal null (expecting 'l')",
        ),
        ("PNT-88", "array", "json", json!("[1"), "unexpected end of JSON input"),
    ] {
        fails(id, &convert(to, format), input, expected);
    }
    let infinite = transform(&convert("float64", "none"), json!("inf"));
    assert_eq!(infinite, Err("json: unsupported value: +Inf".into()), "PTT-119");
}

/// A search string that almost matches everywhere was compared in full at every byte.
#[test]
fn replacing_takes_no_longer_for_searches_that_almost_match() {
    let text = "a".repeat(1 << 20);
    let search = "a".repeat(1 << 19) + "b";
    let config = string("Replace", "replace", json!({"search": search, "replace": "c"}));
    assert_eq!(transform(&config, text.clone().into()), Ok(text.clone().into()));
    let config = string("Replace", "replace", json!({"search": "aa", "replace": "b"}));
    assert_eq!(transform(&config, text.into()), Ok("b".repeat(1 << 19).into()));
}

#[test]
fn texts_that_would_be_too_long_are_not_made() {
    let long = "x".repeat(1 << 20);
    let many = vec![Value::from("ab"); 10_000];
    for (config, input) in [
        (string("Format", "fmt", json!("%[1]s".repeat(20))), json!(long)),
        (string("Format", "fmt", json!("%9999999[1]s".repeat(200))), json!("a")),
        (string("Replace", "replace", json!({"search": "x", "replace": long})), json!(long)),
        (string("Join", "join", json!({"separator": long})), Value::from(many)),
    ] {
        let error = transform(&config, input).unwrap_err();
        let expected = "string transform could not resolve: a call may make 128 MiB of values, and \
                        this one needs more";
        assert!(error.ends_with(expected), "{error}");
    }
}

/// A few bytes of JSON are an object of hundreds.
#[test]
fn a_json_string_of_many_objects_is_not_decoded() {
    let text = format!("[{}]", vec![r#"{"a":0}"#; 300_000].join(","));
    let error = transform(&convert("array", "json"), text.into()).unwrap_err();
    assert!(error.contains("a call may make 128 MiB of values"), "{error}");
}

#[test]
fn regular_expressions_share_the_room_of_their_input() {
    let patterns = Patterns::default();
    assert!(patterns.parse(r"^\pL{1000}$").is_ok());
    let error = patterns.parse(r"^\pL{1000}$").unwrap_err();
    let expected = "the regular expressions of an input may take 64 MiB when compiled, and \
                    \"^\\\\pL{1000}$\" is beyond that";
    assert_eq!(error, expected);
    assert!(patterns.parse("[a-z]+").is_ok());
    assert!(patterns.kept_size() > 100_000_000);
}

#[test]
fn compositions_join_between_items_and_name_what_they_cannot_convert() {
    // PTN-12
    let join = string("Join", "join", json!({"separator": ", "}));
    let list = json!(["a", 1, true]);
    assert_eq!(transform_as(Dialect::FUNCTION, &join, list.clone()), Ok(json!("a, 1, true,")));
    assert_eq!(transform_as(Dialect::COMPOSITION, &join, list), Ok(json!("a, 1, true")));
    assert_eq!(transform_as(Dialect::COMPOSITION, &join, json!([])), Ok(json!("")));
    let prefix = "transform at index 0 returned error:";
    assert_eq!(
        transform_as(Dialect::COMPOSITION, &join, json!("a")),
        Err(format!("{prefix} string transform could not resolve: cannot join non-array values"))
    );
    assert_eq!(
        transform_as(Dialect::COMPOSITION, &convert("int64", "none"), json!("many")),
        Err(format!(
            "{prefix} convert transform could not resolve: cannot convert value many: \
             strconv.ParseInt: parsing \"many\": invalid syntax"
        ))
    );
}

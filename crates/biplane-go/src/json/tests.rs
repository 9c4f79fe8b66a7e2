//! Tests that JSON output equals Go's, byte for byte.

use serde_json::json;

use super::*;

/// The style of a `json.Encoder` with `SetEscapeHTML(false)`.
const PLAIN: Style = Style { html: false, ..Style::MARSHAL };

fn odd() -> Value {
    json!({
        "z": "a<b>&c \u{2028}\u{2029} \u{7f}\u{1} \u{8}\u{c}\n\r\t \"\\/ é \u{1f600}",
        "a": [1, 1.0, -0.0, 1e21, 1e-7, 1.5, u64::MAX, i64::MIN],
        "<k>": {"empty": {}, "none": [], "null": null, "yes": true, "no": false},
    })
}

// Expected strings come from Go's encoding/json.
#[test]
fn prints_what_json_marshal_prints() {
    assert_eq!(
        to_string(&odd()),
        r#"{"\u003ck\u003e":{"empty":{},"no":false,"none":[],"null":null,"yes":true},"a":[1,1,-0,1e+21,1e-7,1.5,18446744073709551615,-9223372036854775808],"z":"a\u003cb\u003e\u0026c \u2028\u2029 "#.to_owned()
            + "\u{7f}"
            + r#"\u0001 \b\f\n\r\t \"\\/ é 😀"}"#
    );
}

#[test]
fn leaves_html_alone_when_asked_but_escapes_line_separators() {
    let text = Value::from("<&>\u{2028}");
    assert_eq!(to_string_with(&text, PLAIN), r#""<&>\u2028""#);
    assert_eq!(to_string_with(&text, Style::PROTOJSON), "\"<&>\u{2028}\"");
}

#[test]
fn sets_nested_values_in_by_level_and_keeps_empty_ones_on_one_line() {
    let value = json!({"a": [1, {"b": 2}], "c": {}, "d": []});
    assert_eq!(
        to_string_with(&value, PLAIN.indented("  ")),
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}"
    );
    assert_eq!(
        object_to_string(value.as_object().unwrap(), PLAIN),
        r#"{"a":[1,{"b":2}],"c":{},"d":[]}"#
    );
}

#[test]
fn keys_come_in_byte_order() {
    assert_eq!(to_string(&json!({"b": 1, "B": 2, "é": 3, "": 4})), r#"{"":4,"B":2,"b":1,"é":3}"#);
}

// Expected strings come from Go's strconv.Quote.

proptest::proptest! {
    #[test]
    fn text_reads_back_as_the_same_string(text in ".*") {
        for style in [Style::MARSHAL, PLAIN, Style::PROTOJSON] {
            let mut out = String::new();
            write_string(&mut out, &text, style);
            proptest::prop_assert_eq!(serde_json::from_str::<String>(&out).ok(), Some(text.clone()));
        }
    }
}

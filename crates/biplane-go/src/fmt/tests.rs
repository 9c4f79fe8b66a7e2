//! Tests of formats against Go's rules.

use serde_json::{Value, json};

use super::*;

/// Formats JSON values. The tables hold the rows of the specification and cases derived from Go's
/// source.
fn format(format: &str, args: &[Value]) -> String {
    let args: Vec<_> = args.iter().map(Arg::from).collect();
    String::from_utf8(sprintf(format.as_bytes(), &args)).unwrap()
}

#[test]
fn verbs_print_what_go_prints() {
    for (id, text, arg, expected) in [
        ("PTT-1", "verycool%s", json!("thing"), "verycoolthing"),
        ("PTT-2", "the largest %d", json!(8), "the largest 8"),
        ("PTT-3", "%d", json!(8.0), "%!d(float64=8)"),
        ("PTT-4", "%s", json!(8.0), "%!s(float64=8)"),
        ("PTT-5", "%s", json!(8), "%!s(int64=8)"),
        ("PTT-6", "%v", json!(8.0), "8"),
        ("PTT-7", "%v", json!(999_999.0), "999999"),
        ("PTT-8", "%v", json!(1e6), "1e+06"),
        ("PTT-9", "%v", json!(1_000_000), "1000000"),
        ("PTT-10", "%v", json!(1_234_567.0), "1.234567e+06"),
        ("PTT-11", "%.0f", json!(1_234_567.0), "1234567"),
        ("PTT-12", "%v", json!(0.0001), "0.0001"),
        ("PTT-12", "%v", json!(0.00001), "1e-05"),
        ("PTT-13", "%v", json!(1.5), "1.5"),
        ("PTT-14", "%d", json!(1e6), "%!d(float64=1e+06)"),
        ("PTT-15", "%s", json!(true), "%!s(bool=true)"),
        ("PTT-15", "%t", json!(true), "true"),
        ("PTT-15", "%v", json!(true), "true"),
        ("PTT-16", "%v", json!(null), "<nil>"),
        ("PTT-16", "%s", json!(null), "%!s(<nil>)"),
        ("PTT-17", "%v", json!(["a", 1.0]), "[a 1]"),
        ("PTT-18", "%s", json!(["a", 1.0]), "[a %!s(float64=1)]"),
        ("PTT-19", "%v", json!({"b": 2.0, "a": "x"}), "map[a:x b:2]"),
        ("PTT-20", "%s", json!(["a", null]), "[a <nil>]"),
        ("PTT-21", "%#v", json!({"a": "x"}), r#"map[string]interface {}{"a":"x"}"#),
        ("PTT-22", "%q", json!("a\"b"), r#""a\"b""#),
        ("PTT-23", "%5s", json!("abc"), "  abc"),
        ("PTT-23", "%-5s|", json!("abc"), "abc  |"),
        ("PTT-23", "%05s", json!("abc"), "00abc"),
        ("PTT-23", "%.2s", json!("abc"), "ab"),
        ("PTT-24", "%x", json!("abc"), "616263"),
        ("PTT-24", "%X", json!("abc"), "616263"),
        ("PTT-25", "%x", json!(255), "ff"),
        ("PTT-25", "%#x", json!(255), "0xff"),
        ("PTT-25", "%03d", json!(5), "005"),
        ("PTT-25", "%+d", json!(5), "+5"),
        ("PTT-26", "plain", json!("x"), "plain%!(EXTRA string=x)"),
        ("PTT-27", "", json!(5.0), "%!(EXTRA float64=5)"),
        ("PTT-28", "%s-%s", json!("a"), "a-%!s(MISSING)"),
        ("PTT-29", "100%", json!("x"), "100%!(NOVERB)%!(EXTRA string=x)"),
        ("PTT-30", "%%-%s", json!("x"), "%-x"),
        ("PTT-31", "%[1]s-%[1]s", json!("x"), "x-x"),
        ("PTT-32", "%[2]s", json!("x"), "%!s(BADINDEX)"),
        ("PTT-33", "%z", json!("x"), "%!z(string=x)"),
        ("PTT-34", "%5d", json!(5.0), "%!d(float64=    5)"),
        ("PTT-35", "%e", json!(5.0), "5.000000e+00"),
        ("PTT-35", "%6.2f", json!(3.137), "  3.14"),
        ("PTT-35", "%.3g", json!(1234.5), "1.23e+03"),
        ("PTT-36", "%T", json!(5.0), "float64"),
        ("PTT-36", "%T", json!({"a": 1}), "map[string]interface {}"),
        ("GF-1", "%.", json!(1.0), "%!.(float64=1)"),
        ("GF-4", "%w", json!([1.0, "a"]), "%!w([]interface {}=[1 a])"),
        ("GF-4", "%#w", json!("a"), r#"%!w(string="a")"#),
        ("GF-4", "%+w", json!(3.0), "%!w(float64=3)"),
        ("GF-4", "%q", json!(5), r"'\x05'"),
        ("GF-4", "%x", json!(5.0), "0x1.4p+02"),
        ("GF-4", "%b", json!(5.0), "5629499534213120p-50"),
        ("GF-4", "%O", json!(5), "0o5"),
        ("GF-4", "%U", json!(5), "U+0005"),
        ("GF-5", "%#v", json!([null, 1]), "[]interface {}{interface {}(nil), 1}"),
        ("GF-7", "%.2T", json!(null), "<nil>"),
        ("GF-7", "%.0d|", json!(0), "|"),
        ("GF-7", "%#g", json!(5.0), "5.00000"),
        ("GF-7", "%#q", json!("abc"), "`abc`"),
        ("GF-8", "%q", json!("\u{1}é\u{200b}"), "\"\\x01é\\u200b\""),
        ("GF-8", "%+q", json!("é\u{1F600}"), r#""\u00e9\U0001f600""#),
    ] {
        assert_eq!(format(text, &[arg]), expected, "{id}");
    }
}

#[test]
fn directives_take_arguments_in_turn_or_by_number() {
    for (id, text, args, expected) in [
        ("PTT-37", "%s-%s", json!(["foo", "bar"]), "foo-bar"),
        ("PTT-38", "%s", json!(["a", "b"]), "a%!(EXTRA string=b)"),
        ("PTT-39", "%s:%d", json!(["h", 5432.0]), "h:%!d(float64=5432)"),
        ("GF-1", "%*d|", json!([5, 3]), "    3|"),
        ("GF-1", "%*d|", json!([-5, 3]), "3    |"),
        ("GF-1", "%*d", json!([5.0, 3]), "%!(BADWIDTH)3"),
        ("GF-1", "%.*f", json!([-1, 2.0]), "%!(BADPREC)2.000000"),
        ("GF-1", "%[2]*[1]d|", json!([3, 5]), "    3|"),
        ("GF-1", "%[1", json!([3]), "%!(NOVERB)"),
        ("GF-3", "%[3]d %d", json!([1, 2]), "%!d(BADINDEX) 1"),
        ("GF-3", "%d", json!([1, null, "x"]), "1%!(EXTRA <nil>, string=x)"),
    ] {
        assert_eq!(format(text, args.as_array().unwrap()), expected, "{id}: {text}");
    }
}

#[test]
fn infinities_and_broken_text_print() {
    let print = |text: &str, arg| sprintf(text.as_bytes(), &[arg]);
    assert_eq!(print("%v", Arg::Float(f64::INFINITY)), b"+Inf");
    assert_eq!(print("%05f", Arg::Float(f64::NEG_INFINITY)), b" -Inf");
    assert_eq!(print("%5v", Arg::Float(f64::NAN)), b"  NaN");
    assert_eq!(print("%q", Arg::Text(b"a\xff")), br#""a\xff""#);
    assert_eq!(print("%.1s", Arg::Text(b"\xff\xfe")), b"\xff");
    assert_eq!(display(Arg::Text(b"\xff")), b"\xff");
}

#[test]
fn halves_round_to_even() {
    for (text, arg, expected) in [
        ("%.0f", 0.5, "0"),
        ("%.0f", 1.5, "2"),
        ("%.0f", 2.5, "2"),
        ("%.2f", 0.125, "0.12"),
        ("%.0e", 2.5, "2e+00"),
        ("%.1g", 0.25, "0.2"),
        ("%.3x", 1.000_122_070_312_5, "0x1.000p+00"),
    ] {
        assert_eq!(format(text, &[json!(arg)]), expected, "{text} of {arg}");
    }
    let long = format("%.2000f", &[json!(0.1)]);
    assert_eq!(long.len(), 2002);
}

#[test]
fn quotes_as_go_does() {
    for (text, quoted) in [
        ("", r#""""#),
        ("plain 'text' `x`", r#""plain 'text' `x`""#),
        ("say \"hi\" \\ /", r#""say \"hi\" \\ /""#),
        ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
        ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
        ("\u{80}\u{a0}\u{ad}", r#""\u0080\u00a0\u00ad""#),
        ("é ñ 日本 ٣ \u{301}", "\"é ñ 日本 ٣ \u{301}\""),
        ("\u{2028}\u{200b}\u{feff}\u{e000}", r#""\u2028\u200b\ufeff\ue000""#),
        ("\u{fffd}", "\"\u{fffd}\""),
        ("\u{1f600}", "\"\u{1f600}\""),
        // Unassigned, private and beyond Go's Unicode version.
        ("\u{378}\u{10ffff}\u{e0001}", r#""\u0378\U0010ffff\U000e0001""#),
        ("\u{1c89}", r#""\u1c89""#),
        ("\u{e01ef}\u{e01f0}", "\"\u{e01ef}\\U000e01f0\""),
    ] {
        assert_eq!(quote(text), quoted);
    }
}

#[test]
fn a_result_that_is_too_long_is_not_made() {
    let array = json!([1, 2, 3]);
    for (format, arg, length) in [
        ("%s", json!("abc"), 3),
        ("%6s|", json!("abc"), 7),
        ("%-6s|", json!("abc"), 7),
        ("%[1]s%[1]s%[1]s", json!("abc"), 9),
        ("%.9d", json!(7), 9),
        ("%09d", json!(7), 9),
        ("%.9f", json!(0.5), 11),
        ("%+09.1f", json!(0.5), 9),
        ("%5d", array, 19),
        ("%q", json!("abc"), 5),
        ("abc", json!("abc"), 23),
    ] {
        let args = [Arg::from(&arg)];
        let whole = sprintf(format.as_bytes(), &args);
        assert_eq!(whole.len(), length, "{format}");
        assert_eq!(sprintf_within(format.as_bytes(), &args, length), Some(whole), "{format}");
        assert_eq!(sprintf_within(format.as_bytes(), &args, length - 1), None, "{format}");
    }
}

/// Without a limit, each of these would take gigabytes.
#[test]
fn wide_formats_end_at_the_limit() {
    let numbers = Value::from(vec![1; 100_000]);
    let text = Value::from("x".repeat(1_000_000));
    for (format, arg) in [
        ("%9999999[1]s".repeat(200), &text),
        ("%[1]s".repeat(10_000), &text),
        ("%.9999999d".to_owned(), &numbers),
        ("%9999999d".to_owned(), &numbers),
        ("%09999999[1]d".to_owned(), &numbers),
    ] {
        assert_eq!(sprintf_within(format.as_bytes(), &[arg.into()], 1 << 20), None, "{format:.20}");
    }
}

/// The values of the recorded formats, in their order.
fn items() -> Vec<Item> {
    let text = |text: &str| Item::Text(text.as_bytes().into(), "string");
    let point = |pointer: bool, inside: Item| Item::Struct {
        name: if pointer { "*main.P" } else { "main.P" },
        pointer,
        fields: vec![("A", Item::Int(1, "int")), ("b", text("x")), ("C", inside)],
    };
    let list = |name: &str, items: Vec<Item>| Item::List { name: name.into(), nil: false, items };
    let duration = |nanoseconds: i64, text: &str| Item::Stringer {
        text: text.into(),
        inner: Box::new(Item::Int(nanoseconds, "time.Duration")),
    };
    let any = "[]interface {}";
    vec![
        Item::Int(-5, "int8"),
        Item::Uint(200, "uint8"),
        Item::Uint(u64::MAX, "uint64"),
        Item::Bytes { nil: false, bytes: b"hi".to_vec() },
        Item::Bytes { nil: true, bytes: Vec::new() },
        list("[]string", vec![text("a"), text("b c")]),
        Item::Map {
            name: "map[string]int".into(),
            nil: false,
            pairs: vec![(text("a"), Item::Int(2, "int")), (text("b"), Item::Int(1, "int"))],
        },
        point(false, Item::Nil),
        point(true, list(any, vec![Item::Int(2, "int")])),
        duration(90_000_000_000, "1m30s"),
        list(any, vec![duration(5, "5ns"), Item::Nil, Item::Uint(3, "uint8")]),
        Item::Complex(1.5, -2.0),
        Item::Map { name: "map[string]interface {}".into(), nil: true, pairs: Vec::new() },
        Item::List { name: any.into(), nil: true, items: Vec::new() },
        Item::Stringer { text: "March".into(), inner: Box::new(Item::Int(3, "time.Month")) },
    ]
}

#[test]
fn values_of_all_types_print_what_go_prints() {
    let items = items();
    let mut wrong = Vec::new();
    for line in include_str!("items.jsonl").lines() {
        let (format, index, expected): (String, usize, String) =
            serde_json::from_str(line).unwrap();
        let printed = sprintf(format.as_bytes(), &[Arg::Item(&items[index])]);
        let printed = String::from_utf8(printed).unwrap();
        if printed != expected {
            wrong.push(format!("{format} of {index}: want {expected:?}, got {printed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn spaces_stand_between_values_that_are_no_strings() {
    let text = |text: &str| Item::Text(text.as_bytes().into(), "string");
    let items = [text("a"), Item::Int(1, "int"), Item::Int(2, "int"), text("b"), Item::Nil];
    let items: Vec<Arg<'_>> = items.iter().chain([&Item::Nil]).map(Arg::Item).collect();
    assert_eq!(sprint(&items), b"a1 2b<nil> <nil>");
    assert_eq!(sprintln(&items[..2]), b"a 1\n");
}

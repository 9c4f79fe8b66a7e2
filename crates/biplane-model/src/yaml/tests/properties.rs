//! Property tests: every printed value reads back, and libyaml prints the same layout.

use libyaml_safer::{Emitter, Encoding, Event, MappingStyle, ScalarStyle, SequenceStyle};
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use crate::yaml::resolve::{Meaning, meaning};
use crate::yaml::{order, parse_one, to_string};

/// Fragments that are special in YAML, are folded, or need an escape.
const PIECES: &[&str] = &[
    "a",
    "word",
    "yes",
    "null",
    "~",
    "0",
    "12",
    "1.5",
    "1e3",
    "0x1F",
    "2001-01-01",
    "1:30",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r",
    ":",
    ": ",
    " #",
    "#",
    "- ",
    "? ",
    "-",
    "---",
    "...",
    "'",
    "\"",
    "\\",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&",
    "*",
    "!",
    "|",
    ">",
    "%",
    "@",
    "`",
    "=",
    "é",
    "日本",
    "\u{a0}",
    "\u{fffd}",
    "\u{0}",
    "\u{7}",
    "\u{1b}",
    "some more words that will need folding",
];
/// Strings that libyaml and its Go port print differently. Both read back correctly.
const GO_ONLY: &[&str] = &["<<", "😀", "\u{85}", "\u{2028}", "\u{2029}", "\u{feff}", "\u{7f}"];

fn text(pieces: Vec<&'static str>) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(pieces), 0..12)
        .prop_map(|pieces| pieces.concat())
}

fn value(pieces: Vec<&'static str>) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| Number::from_f64(float).map_or(Value::Null, Value::Number)),
        text(pieces.clone()).prop_map(Value::from),
        text(pieces.clone()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        let entries = proptest::collection::vec((text(pieces.clone()), inner.clone()), 0..6);
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Value::from),
            entries.prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// A whole double prints without a fraction and reads back as an integer.
fn whole_doubles_as_integers(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let text = biplane_go::num::format_float(number.as_f64().unwrap_or_default());
            let whole = number.is_f64().then(|| text.parse::<i64>().ok()).flatten();
            whole.map_or(Value::Number(number), Value::from)
        }
        Value::Array(items) => items.into_iter().map(whole_doubles_as_integers).collect(),
        Value::Object(map) => {
            let entries = map.into_iter().map(|(k, v)| (k, whole_doubles_as_integers(v)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        other => other,
    }
}

fn libyaml(value: &Value) -> String {
    let mut out = Vec::new();
    let mut emitter = Emitter::new();
    emitter.set_output_string(&mut out);
    emitter.set_unicode(true);
    let mut emit = |event| emitter.emit(event).expect("emitted");
    emit(Event::stream_start(Encoding::Utf8));
    emit(Event::document_start(None, &[], true));
    emit_value(value, &mut emit);
    emit(Event::document_end(true));
    emit(Event::stream_end());
    drop(emitter);
    let printed = String::from_utf8(out).expect("UTF-8");
    // The C library ends a document with `...` if it ends in a block with trailing line breaks.
    printed.strip_suffix("\n...\n").map(|rest| rest.to_owned() + "\n").unwrap_or(printed)
}

fn emit_value(value: &Value, emit: &mut impl FnMut(Event)) {
    match value {
        Value::String(text) => emit_text(text, emit),
        Value::Array(items) => {
            emit(Event::sequence_start(None, None, true, SequenceStyle::Block));
            for item in items {
                emit_value(item, emit);
            }
            emit(Event::sequence_end());
        }
        Value::Object(map) => {
            emit(Event::mapping_start(None, None, true, MappingStyle::Block));
            let mut entries: Vec<_> = map.iter().map(|(k, v)| (k.as_str(), v)).collect();
            order::sort_by_key(&mut entries);
            for (key, value) in entries {
                emit_text(key, emit);
                emit_value(value, emit);
            }
            emit(Event::mapping_end());
        }
        scalar => {
            let text = to_string(scalar);
            emit(Event::scalar(None, None, text.trim_end(), true, true, ScalarStyle::Plain));
        }
    }
}

fn emit_text(text: &str, emit: &mut impl FnMut(Event)) {
    let style = if text.contains('\n') {
        ScalarStyle::Literal
    } else if meaning(text) == Meaning::Text && !text.contains(':') {
        ScalarStyle::Plain
    } else {
        // libyaml does not quote strings that look like base 60 numbers.
        match to_string(&Value::from(text)).as_bytes() {
            [b'"', ..] => ScalarStyle::DoubleQuoted,
            _ => ScalarStyle::Plain,
        }
    };
    emit(Event::scalar(None, None, text, true, true, style));
}

proptest! {
    #[test]
    fn every_value_reads_back_as_it_was(value in value([PIECES, GO_ONLY].concat())) {
        let printed = to_string(&value);
        let read = parse_one("printed", &printed).map(|document| document.value);
        prop_assert_eq!(read, Ok(whole_doubles_as_integers(value)), "{}", printed);
    }

    #[test]
    fn any_string_reads_back_as_it_was(text in any::<String>()) {
        let value = Value::Object([(text.clone(), Value::from(text))].into_iter().collect());
        let printed = to_string(&value);
        let read = parse_one("printed", &printed).map(|document| document.value);
        prop_assert_eq!(read, Ok(value), "{}", printed);
    }

    #[test]
    fn values_are_laid_out_as_libyaml_does(value in value(PIECES.to_vec())) {
        prop_assume!(value.is_object() || value.is_array());
        prop_assert_eq!(to_string(&value), libyaml(&value));
    }
}

//! Tests of LOAD-1, LOAD-2 and the meaning of scalars.

use serde_json::json;

use super::{parse_documents, parse_one, problem, read, refusal};
use crate::Value;
use crate::yaml::{MAX_DEPTH, Problem};

fn documents(text: &str) -> Vec<(Value, usize, usize)> {
    let documents = parse_documents("test.yaml", text).expect("readable");
    documents.into_iter().map(|d| (d.value, d.line, d.index)).collect()
}

/// LOAD-1
#[test]
fn splits_a_stream_at_lines_that_begin_with_three_dashes() {
    let text = "---\na: 1\n--- # the second\n\nb: 2\n---   \n---\nc: 3\n---\n";
    let expected = vec![(json!({"a": 1}), 2, 0), (json!({"b": 2}), 5, 1), (json!({"c": 3}), 8, 2)];
    assert_eq!(documents(text), expected);
    assert_eq!(documents(&text.replace('\n', "\r\n")), expected);
}

/// LOAD-1
#[test]
fn refuses_text_behind_a_separator() {
    assert_eq!(problem("a: 1\n---x\n"), Problem::Separator("x".to_owned()));
    assert_eq!(
        refusal("a: 1\n--- {b: 2}\n"),
        "cannot read YAML of test.yaml, document 2, line 2, column 1: \
         invalid Yaml document separator: {b: 2}\n 2 | --- {b: 2}\n   | ^"
    );
}

/// LOAD-2
#[test]
fn leaves_out_documents_without_content() {
    assert_eq!(documents(""), []);
    assert_eq!(documents("\n \n# nothing\n---\n# still nothing\n---\n"), []);
    assert_eq!(documents("# head\n---\n# more\na: 1\n"), [(json!({"a": 1}), 4, 0)]);
    assert_eq!(documents("null\n---\n\"\"\n"), [(json!(null), 1, 0), (json!(""), 3, 1)]);
}

/// LOAD-4
#[test]
fn one_document_is_the_first_and_later_ones_are_not_looked_at() {
    let document = parse_one("xr.yaml", "# head\n---\na: 1\n---\n]broken").expect("readable");
    assert_eq!((document.value, document.line), (json!({"a": 1}), 3));
    let error = parse_one("xr.yaml", "# nothing\n").expect_err("no document");
    assert_eq!(error.to_string(), "cannot read YAML of xr.yaml: there is no document in it");
}

/// LOAD-2: the directives above a single object belong to it.
#[test]
fn one_document_may_stand_below_directives() {
    for text in [
        "%YAML 1.1\n---\na: yes\n",
        "%YAML 1.1\n---\na: yes\n---\nb: [\n",
        "%YAML 1.1\r\n---\r\na: yes\r\n",
        "%YAML 1.1\n--- {a: yes}\n--- b\n",
        "%YAML 1.1\n%TAG !e! tag:example.org,2026:\n---\na: yes\n...\n",
    ] {
        assert_eq!(parse_one("test.yaml", text).unwrap().value, json!({"a": true}), "{text}");
    }
    let error = parse_one("test.yaml", "%YAML 1.1\n---\na: [\n").unwrap_err();
    assert!(error.line > 2, "{error}");
    // Text that is not a directive is a document.
    assert_eq!(parse_one("test.yaml", "a: 1\n---\nb: 2\n").unwrap().value, json!({"a": 1}));
}

#[test]
fn later_duplicates_of_a_key_win() {
    assert_eq!(read("a: 1\nb: 2\na: 3\n"), json!({"a": 3, "b": 2}));
    assert_eq!(read("{yes: 1, on: 2}"), json!({"true": 2}));
}

#[test]
fn merges_write_over_what_is_above_and_yield_to_what_is_below() {
    let base = "base: &base {a: 1, b: 2}\nother: &other {b: 3, c: 4}\n";
    let merged = |object: &str| read(&format!("{base}it: {object}\n"))["it"].clone();
    assert_eq!(merged("{<<: *base, a: 9}"), json!({"a": 9, "b": 2}));
    assert_eq!(merged("{a: 9, <<: *base}"), json!({"a": 1, "b": 2}));
    assert_eq!(merged("{<<: [*base, *other]}"), json!({"a": 1, "b": 2, "c": 4}));
    assert_eq!(merged("{<<: [*other, {d: 5}]}"), json!({"b": 3, "c": 4, "d": 5}));
    assert_eq!(merged("{<<: {<<: *base, z: 0}}"), json!({"a": 1, "b": 2, "z": 0}));
    assert_eq!(merged("{!!merge <<: *base}"), json!({"a": 1, "b": 2}));
    assert_eq!(merged("{\"<<\": *base}"), json!({"<<": {"a": 1, "b": 2}}));
    assert_eq!(merged("[<<]"), json!(["<<"]));
    for wrong in ["{<<: 1}", "{<<: }", "{<<: [1]}", "{<<: [[*base]]}"] {
        assert_eq!(problem(&format!("{base}it: {wrong}\n")), Problem::MergeWantsMap, "{wrong}");
    }
    assert_eq!(problem("l: &l [{a: 1}]\nit: {<<: *l}\n"), Problem::MergeWantsMap);
}

#[test]
fn aliases_repeat_values_and_keys() {
    assert_eq!(
        read("a: &x [1, &y two]\nb: *x\nc: *y\n"),
        json!({
            "a": [1, "two"], "b": [1, "two"], "c": "two"
        })
    );
    assert_eq!(read("&k yes: 1\nb: {*k : 2}\n"), json!({"true": 1, "b": {"true": 2}}));
    assert_eq!(read("a: &n 5\nb: {*n : 2}\n"), json!({"a": 5, "b": {"5": 2}}));
    assert_eq!(read("a: &x 1\nb: &x 2\nc: *x\n"), json!({"a": 1, "b": 2, "c": 2}));
}

#[test]
fn refuses_an_alias_inside_its_own_value() {
    assert_eq!(problem("a: &self [1, *self]\n"), Problem::AliasOfItself("self".to_owned()));
    assert!(matches!(problem("a: *nowhere\n"), Problem::Syntax(_)));
}

#[test]
fn refuses_keys_that_are_not_scalars() {
    assert_eq!(problem("? [a]\n: 1\n"), Problem::UnsupportedKey("a list"));
    assert_eq!(problem("{{a: 1}: 2}"), Problem::UnsupportedKey("an object"));
    assert_eq!(problem("~: 1\n"), Problem::UnsupportedKey("null"));
    assert_eq!(problem("a: &a [1]\nb: {*a : 2}\n"), Problem::UnsupportedKey("a list"));
}

#[test]
fn refuses_numbers_that_json_cannot_hold() {
    assert_eq!(problem("a: .inf\n"), Problem::NotJson(".inf".to_owned()));
    assert_eq!(problem("- -.INF\n"), Problem::NotJson("-.INF".to_owned()));
    assert_eq!(problem(".NaN\n"), Problem::NotJson(".NaN".to_owned()));
    assert_eq!(read(".inf: 1\n"), json!({".inf": 1}));
}

#[test]
fn refuses_tags_that_do_not_fit() {
    assert_eq!(problem("a: !!int 1.5\n").to_string(), "cannot decode !!float `1.5` as a !!int");
    assert_eq!(problem("!!bool maybe").to_string(), "cannot decode !!str `maybe` as a !!bool");
    assert_eq!(problem("!!binary '*'"), Problem::InvalidBase64);
}

#[test]
fn whole_doubles_stay_doubles_and_large_integers_become_doubles() {
    assert_eq!(read("1.0"), json!(1.0));
    assert_eq!(read("1"), json!(1));
    assert_eq!(read("9223372036854775807"), json!(i64::MAX));
    assert_eq!(read("9223372036854775808"), json!(9_223_372_036_854_775_808.0));
    assert_eq!(read("18446744073709551616"), json!(18_446_744_073_709_551_616.0));
    assert_eq!(read("1e400"), json!("1e400"));
}

#[test]
fn refuses_raw_control_characters() {
    for text in ["a: \u{1}\n", "a: \u{7f}\n", "a: \u{80}\n", "a: \u{ffff}\n"] {
        let error = parse_documents("test.yaml", text).expect_err("refused");
        assert_eq!((error.problem, error.column), (Problem::ControlCharacter, 4), "{text:?}");
    }
    assert_eq!(read("\u{feff}a: \u{a0}\u{ffef}\n"), json!({"a": "\u{a0}\u{ffef}"}));
    // A byte order mark is removed only at the start.
    assert_eq!(read("a: \u{feff}\n\u{feff}b: c\n"), json!({"a": "\u{feff}", "\u{feff}b": "c"}));
}

#[test]
fn refuses_deep_nesting_of_every_kind() {
    let flow = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let block = |depth: usize| "- ".repeat(depth) + "x";
    let too_deep = Problem::TooDeep(MAX_DEPTH);
    assert!(read(&flow(MAX_DEPTH)).is_array());
    assert!(read(&block(MAX_DEPTH)).is_array());
    assert_eq!(problem(&flow(MAX_DEPTH + 1)), too_deep);
    assert_eq!(problem(&block(MAX_DEPTH + 1)), too_deep);
    assert_eq!(problem(&"[".repeat(100_000)), too_deep);
    assert_eq!(problem(&"- ".repeat(100_000)), too_deep);
    assert_eq!(problem(&"{a: ".repeat(100_000)), too_deep);
    assert_eq!(problem(&"? ".repeat(100_000)), too_deep);
    let half = flow(MAX_DEPTH / 2);
    let twice = half.replacen("[]", "[*a]", 1);
    assert_eq!(problem(&format!("a: &a {half}\nb: {twice}\n")), too_deep);
}

#[test]
fn refuses_aliases_that_multiply() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = format!("*a{}", level - 1);
        bomb.extend([format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "))]);
    }
    assert_eq!(problem(&bomb), Problem::ExcessiveAliasing);
    let wide = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(5000));
    assert_eq!(problem(&wide), Problem::ExcessiveAliasing);
    let honest = format!("a: &a {{x: 1, y: 2}}\nb: [{}]\n", "*a, ".repeat(300));
    assert_eq!(read(&honest)["b"].as_array().map(Vec::len), Some(300));
}

#[test]
fn errors_show_the_place_in_the_whole_file() {
    assert_eq!(
        refusal("a: 1\n---\n# head\nb: 2\nc: d: e\n"),
        "cannot read YAML of test.yaml, document 2, line 5, column 5: \
         mapping values are not allowed in this context\n 5 | c: d: e\n   |     ^"
    );
    let long = format!("{}: x: y\n", "a".repeat(1000));
    let error = parse_documents("test.yaml", &long).expect_err("unreadable");
    assert_eq!(error.column, 1004);
    assert!(error.source_line.len() < 200 && error.source_line.get(error.caret()..) == Some(": y"));
}

#[test]
fn lines_of_quoted_scalars_may_stand_anywhere() {
    let text = "a:\n  b: 'one\ntwo\n\n three'\n  c: \"four\nfive\n  six\"\n  d: seven\n";
    let value = json!({"a": {"b": "one two\nthree", "c": "four five six", "d": "seven"}});
    assert_eq!(read(text), value);
    let error = parse_documents("test.yaml", "a:\n  b: 'one\ntwo' three\n").expect_err("refused");
    assert_eq!((error.line, error.column, &*error.source_line), (3, 6, "two' three"));
    let long = format!("a:\n  b: '{}'\n", "one\n".repeat(1000));
    assert_eq!(read(&long)["a"]["b"].as_str().map(str::len), Some(4 * 1000));
}

#[test]
fn comments_may_stand_right_behind_quotes_and_brackets() {
    let text = "a: \"é\"#one\nb: 'x'#two\nc: [1]#three\nd: {e: \"f\"#four\n  }#five\ng: h#six\n";
    let value = json!({"a": "é", "b": "x", "c": [1], "d": {"e": "f"}, "g": "h#six"});
    assert_eq!(read(text), value);
    let error = parse_documents("test.yaml", "{a: \"b\"#c\n, d: \"e\" f}\n").expect_err("refused");
    assert_eq!((error.line, error.column), (2, 10));
    assert_eq!(read(&"a: \"\"#c\n".repeat(1000)), json!({"a": ""}));
}

/// LOAD-4
#[test]
fn directives_belong_to_the_document_below_them() {
    for text in ["%YAML 1.1\n---\na: 1\n", "# head\n%YAML 1.1\n\n---\na: 1\n---\n]broken"] {
        let document = parse_one("xr.yaml", text).expect("readable");
        assert_eq!(document.value, json!({"a": 1}), "{text}");
    }
    // A stream is split before directives are parsed.
    assert!(matches!(problem("%YAML 1.1\n---\na: 1\n"), Problem::Syntax(_)));
}

/// LOAD-1, LOAD-4
#[test]
fn a_block_at_the_end_of_a_text_without_line_break_ends_in_one_only_within_a_stream() {
    for (text, alone, in_stream) in [
        ("a: |\n  b\n  c", "b\nc", "b\nc\n"),
        ("a: |+\n  b", "b", "b\n"),
        ("a: |-\n  b", "b", "b"),
        ("a: >\n  b\n  c", "b c", "b c\n"),
        ("a: |\n  b\n", "b\n", "b\n"),
        ("a: |\n  b\n---\n# end", "b\n", "b\n"),
        ("a: |\n  b\n\n\n# end", "b\n", "b\n"),
        ("a: |\n  b\n  ", "b\n", "b\n"),
        ("a: |\n  b\n   ", "b\n ", "b\n \n"),
    ] {
        assert_eq!(read(text), json!({"a": alone}), "{text:?}");
        assert_eq!(documents(text), [(json!({"a": in_stream}), 1, 0)], "{text:?}");
    }
}

//! Tests that the fast path reads everything in the same way as the full parser.

use proptest::prelude::*;
use serde_json::json;

use super::super::{LastLine, Root, parse_one, read_bytes};
use super::read;
use crate::Value;

/// The result of the full parser.
fn parsed(text: &str, last_line: LastLine) -> Option<(Option<Value>, usize)> {
    let ended = last_line == LastLine::AsItIs || text.is_empty() || text.ends_with('\n');
    let text = if ended { text.to_owned() } else { format!("{text}\n") };
    read_bytes(text.as_bytes()).ok().map(|Root { value, line }| (value, line))
}

fn quickly(text: &str) -> Option<(Option<Value>, usize)> {
    read(text).map(|Root { value, line }| (value, line))
}

/// Typical lines, and fragments that break them.
fn line() -> impl Strategy<Value = String> {
    const BEGINNINGS: &[&str] = &["", "", "- ", "- - ", "-   ", "-", "-\t", "\t"];
    const KEYS: &[&str] = &[
        "",
        "a: ",
        "b: ",
        "c:",
        "b : ",
        "\"q\": ",
        "'q': ",
        "two words: ",
        "1: ",
        "on: ",
        "~: ",
        "<<: ",
        "a.b/c-d: ",
        "-x: ",
        "\"q\" : ",
        "'it''s': ",
        "? ",
        "a:b: ",
        "a: b: ",
        "x#y: ",
        "x #y: ",
        "? a",
        "http://a: ",
        "{a: b}: ",
        "&a b: ",
        "[]: ",
        "a:\t",
        "b\t: ",
        "\"q\"\t:\t",
    ];
    const VALUES: &[&str] = &[
        "",
        "",
        "",
        "",
        "x",
        "some words",
        "1",
        "-1",
        "1.5",
        "0x1f",
        "yes",
        "~",
        "null",
        "2001-01-01",
        "'quoted'",
        "\"quoted\"",
        "'it''s'",
        "\"a\\nb\"",
        "'open",
        "\"open",
        "'a' b",
        "\"\"",
        "''",
        "{}",
        "[]",
        "{ }",
        "[1, 2]",
        "{a: b}",
        "{",
        "]",
        "|",
        "|-",
        "|+",
        "|2",
        "| # c",
        ">",
        ">-",
        "x # comment",
        "x #",
        "x#y",
        "# comment",
        "#",
        "{} # c",
        "'q' # c",
        "'q'# c",
        "a: b",
        "a:b",
        "http://x:80/",
        "b:",
        "- x",
        "-",
        "--",
        "---",
        "...",
        "&a x",
        "*a",
        "!t x",
        "!!str 1",
        "%x",
        "@x",
        "`x",
        ",x",
        "?x",
        "? x",
        ":x",
        "=",
        ".nan",
        ".inf",
        "a, b",
        "a]b",
        "a{b}",
        "\\",
        "%",
        "x  ",
        "x \"y\"",
        "é",
        "{a: 1, b: [x, 'y: z', {}]}",
        "[a, b,]",
        "{a: 1,}",
        "[,]",
        "{a: }",
        "{\"a\":1}",
        "{a:1}",
        "{a: b c}",
        "[a: b]",
        "{a: -1.5e3} # c",
        "[1]x",
        "[- a]",
        "[-]",
        "[--, -a]",
        "{'a''b': c}",
        "{\"a\" : 1}",
        "[[[]], {}]",
        "{a: [}",
        "{<<: {a: b}}",
        "{on: yes}",
        "[#x]",
        "{a: b}: c",
        "[a]: b",
        "{1: 2}",
        "{~: 2}",
        "[{a: 1, a: 2}]",
        "['', \"\"]",
        "[...]",
        "[.5, ---]",
        "\t",
        "\t# c",
        "x\t",
        "x\t# c",
        "x\ty",
        "'\t'",
        "|\t",
        "[\ta,\tb\t]",
        "{\ta:\tb\t}",
        "{\"a\"\t:\t1}",
    ];
    let piece = |pieces: &'static [&'static str]| proptest::sample::select(pieces);
    let indent = prop_oneof![4 => 0..4_usize, 1 => 4..9_usize];
    (indent, any::<bool>(), piece(BEGINNINGS), piece(KEYS), piece(VALUES)).prop_map(
        |(indent, even, beginning, key, value)| {
            let indent = if even { indent & !1 } else { indent };
            format!("{}{beginning}{key}{value}", " ".repeat(indent))
        },
    )
}

fn lines() -> impl Strategy<Value = String> {
    (proptest::collection::vec(line(), 0..7), any::<bool>()).prop_map(|(lines, ended)| {
        let end = if ended { "\n" } else { "" };
        lines.join("\n") + end
    })
}

/// Lines that fit together, so that the fast path reads most of them.
fn ordinary() -> impl Strategy<Value = String> {
    const LEAVES: &[&str] = &[
        "x",
        "1",
        "1.50",
        "true",
        "~",
        "",
        "'a: b'",
        "\"#\"",
        "{}",
        "[]",
        "x # why",
        "a:b",
        "-x",
        "|\n@ # no comment\n@   deeper\n\n@ end",
        "|-\n@ one\n@ - two\n\n\n",
        "|\n\n\n@ a: b\n   \n",
        "|\n@ x\n@                         ",
        "|-\n@ x\n #",
        "one\n@ two\n@ - three",
        "one\n\n@ two\n   \n\n@   3\n\n",
        "1\n@ 2",
        "one\n@ # no more",
        "one # why\n@ two",
        "one\n@ two: three",
        "'it''s\n@ here: # and\n\n@   there ' # why",
        "'\n@ x\n@ '",
        "\"a\\n\\\"\n@ b\\\\\n\n\n@ \\nc\"",
        "\"a\\\n@ b\"",
        "{a: 1, \"b\": 'c'} # why",
        "[x, [y], {}, -1]",
        "{\"a\":[1,2.5,true,null]}",
    ];
    let leaf = proptest::sample::select(LEAVES).prop_map(|leaf| vec![leaf.to_owned()]);
    let tree = leaf.prop_recursive(4, 24, 4, |inner| {
        let entries = |lead: fn(usize) -> String| {
            let values = proptest::collection::vec(inner.clone(), 1..4);
            (values, 1..4_usize, any::<bool>()).prop_map(move |(values, step, comment)| {
                let mut lines = vec![String::new()];
                for (index, value) in values.into_iter().enumerate() {
                    let lead = lead(index);
                    let (first, rest) = value.split_first().expect("a line");
                    let pad = " ".repeat(step);
                    lines.push(format!("{lead} {first}"));
                    lines.extend(rest.iter().map(|line| format!("{pad}{line}")));
                    if comment {
                        lines.push("# so far".to_owned());
                    }
                }
                lines
            })
        };
        prop_oneof![entries(|index| format!("k{index}:")), entries(|_| "-".to_owned())]
    });
    tree.prop_map(|lines| {
        let mut text = String::new();
        for line in lines.iter().skip(1) {
            let indent = line.len() - line.trim_start_matches(' ').len();
            text.push_str(&line.replace('@', &" ".repeat(indent + 2)));
            text.push('\n');
        }
        text
    })
}

/// The same lines with some spaces replaced by tabs.
fn tabbed() -> impl Strategy<Value = String> {
    let places = proptest::collection::vec(any::<proptest::sample::Index>(), 1..4);
    (ordinary(), places).prop_map(|(text, places)| {
        let spaces: Vec<_> = text.match_indices(' ').map(|(at, _)| at).collect();
        let mut tabbed = text;
        for place in places.into_iter().filter(|_| !spaces.is_empty()) {
            let at = *place.get(&spaces);
            tabbed.replace_range(at..=at, "\t");
        }
        tabbed
    })
}

/// A value with tabs replaced by spaces.
fn spaced(value: &Value) -> Value {
    serde_json::from_str(&value.to_string().replace("\\t", " ")).expect("JSON")
}

/// The same lines with a fragment inserted or removed.
fn disturbed() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        " ", "  ", "\n", "\n\n", ":", ": ", "-", "- ", "#", " #", "'", "\"", "\\", "|", ">", "{",
        "}", "[", "]", ",", "&a ", "*a", "!", "?", "%", "...", "\n---\n", "\t", "x",
    ];
    let piece = proptest::sample::select(PIECES);
    (ordinary(), any::<proptest::sample::Index>(), 0..3_usize, piece).prop_map(
        |(mut text, at, taken, piece)| {
            let at = at.index(text.len().max(1)).min(text.len());
            let end = (at + taken).min(text.len());
            text.replace_range(at..end, piece);
            text
        },
    )
}

fn agrees(text: &str) -> Result<(), TestCaseError> {
    if let Some(root) = quickly(text) {
        for last_line in [LastLine::Ended, LastLine::AsItIs] {
            prop_assert_eq!(Some(root.clone()), parsed(text, last_line), "{:?}", text);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn lines_of_any_kind_mean_what_the_parser_says(text in lines()) {
        agrees(&text)?;
    }

    #[test]
    fn disturbed_lines_mean_what_the_parser_says(text in disturbed()) {
        agrees(&text)?;
        agrees(&format!("---\n{text}"))?;
    }

    #[test]
    fn tabs_mean_what_spaces_mean_or_nothing(text in tabbed()) {
        agrees(&text)?;
        let value = |text: &str| parse_one("f", text).ok().map(|document| document.value);
        if let Some(value) = value(&text) {
            let plain = parse_one("f", &text.replace('\t', " ")).expect("readable with spaces");
            prop_assert_eq!(spaced(&value), plain.value, "{:?}", text);
        }
    }

    #[test]
    fn ordinary_lines_mean_what_the_parser_says(text in ordinary()) {
        agrees(&text)?;
        agrees(&format!("---\n{text}"))?;
    }
}

#[test]
fn a_separator_in_front_is_read_too() {
    assert_eq!(quickly("---\na: 1\n"), Some((Some(json!({"a": 1})), 2)));
    for text in ["---\n", "---\n---\na: 1\n", "--- # c\na: 1\n", "--- a\n", "----\na: 1\n"] {
        assert_eq!(quickly(text), None, "{text}");
    }
}

#[test]
fn reads_what_people_write() {
    let text = r#"# A comment
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: xbuckets.example.org   # another
  labels: {}
  annotations:
    "example.org/quoted": 'yes'

spec:
  mode: Pipeline
  count: 3
  empty:
  pipeline:
  - step: "compose"
    functionRef:
      name: function-go-templating
    input:
      inline:
        template: |
          {{ range . }}
          - name: {{ .name }}

            deeper: "yes"
          {{ end }}
      last: |-
        one

  - step: ready
    functionRef: {name: function-auto-ready}
"#;
    let (value, line) = quickly(text).expect("ordinary");
    assert_eq!(line, 2);
    let template = "{{ range . }}\n- name: {{ .name }}\n\n  deeper: \"yes\"\n{{ end }}\n";
    let expected = json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {
            "name": "xbuckets.example.org",
            "labels": {},
            "annotations": {"example.org/quoted": "yes"},
        },
        "spec": {
            "mode": "Pipeline",
            "count": 3,
            "empty": null,
            "pipeline": [
                {
                    "step": "compose",
                    "functionRef": {"name": "function-go-templating"},
                    "input": {"inline": {"template": template}, "last": "one"},
                },
                {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
            ],
        },
    });
    assert_eq!(value, Some(expected));
    let json = r#"{"apiVersion": "v1", "list": [1, "two", {"three": null}], "map": {}}"#;
    let expected = json!({"apiVersion": "v1", "list": [1, "two", {"three": null}], "map": {}});
    assert_eq!(quickly(json), Some((Some(expected), 1)));
}

#[test]
fn reads_scalars_of_several_lines() {
    let text = "a: one\n  two\n\n  three\nb:\n- 'it''s\n\n\n  # here'\n- \"x\\n\n    \\\"y\\\\\"  # why\nc: 1\n";
    let expected = json!({"a": "one two\nthree", "b": ["it's\n\n# here", "x\n \"y\\"], "c": 1});
    assert_eq!(quickly(text), Some((Some(expected), 1)));
}

#[test]
fn leaves_to_the_parser_what_it_does_not_know() {
    const TEXTS: &[&str] = &[
        "",
        "# nothing\n",
        "a scalar\n",
        "a: one\n  two: three\n",
        "a: one # why\n  two\n",
        "a: 'b\nc'\n",
        "a: 'b\n",
        "a: 'b' c\n",
        "a: \"b\\\n  c\"\n",
        "a: \"\\x41\"\n",
        "a: &x b\n",
        "<<: {}\n",
        "a: [1\n  ]\n",
        "{\"a\": \"\\n\"}\n",
        "{a: &x b}\n",
        "a: >\n  b\n",
        "a: |2\n   b\n",
        "a: |\n  b",
        "a:\tb\n",
        "a: b\r\n",
        "a: é\n",
        "--- a: b\n",
        "a: b\n...\n",
        "a: b: c\n",
        "a: b\n c: d\n",
        "  a: b\nc: d\n",
        "- a\nb: c\n",
        "a: b\n- c\n",
        "? a\n",
        "!!map\na: b\n",
    ];
    for text in TEXTS {
        assert_eq!(quickly(text), None, "{text:?}");
    }
}

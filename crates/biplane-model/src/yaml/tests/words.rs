//! Tests that error messages equal go-yaml's.

use crate::yaml::{parse_documents, parse_one};

/// Recorded from sigs.k8s.io/yaml 1.6.0.
#[test]
fn broken_texts_are_called_what_go_calls_them() {
    let recorded = [
        ("a: b: c\n", "yaml: mapping values are not allowed in this context"),
        ("x: 1\na: b: c\n", "yaml: line 2: mapping values are not allowed in this context"),
        ("a:\n\tb: 1\n", "yaml: line 2: found character that cannot start any token"),
        ("a: b\n\tc: d\n", "yaml: line 2: found a tab character that violates indentation"),
        ("a: @x\n", "yaml: found character that cannot start any token"),
        ("x: 1\na: `x`\n", "yaml: line 2: found character that cannot start any token"),
        ("a: 1\nb:\n  c: 1\n d: 2\n", "yaml: line 3: did not find expected key"),
        ("a: {b: 1\n", "yaml: line 1: did not find expected ',' or '}'"),
        ("a: [b, c\n", "yaml: line 1: did not find expected ',' or ']'"),
        ("x: 1\na: \"b\nc: d\n", "yaml: line 4: found unexpected end of stream"),
        ("a: 'b\n", "yaml: line 2: found unexpected end of stream"),
        ("a: *b\n", "yaml: unknown anchor 'b' referenced"),
        ("a: \"\\q\"\n", "yaml: found unknown escape character"),
        ("x: 1\na: \"\\xZZ\"\n", "yaml: line 2: did not find expected hexdecimal number"),
        ("a: \"b\u{1}\"\n", "yaml: control characters are not allowed"),
        ("a:\n- b\n c\nd\n", "yaml: line 5: could not find expected ':'"),
        ("a: 1\nb\nc: 2\n", "yaml: line 3: could not find expected ':'"),
        ("a: 1\nb\n\n# x\nc: 2\n", "yaml: line 4: could not find expected ':'"),
        ("- a\nb: c\n", "yaml: line 1: did not find expected '-' indicator"),
        ("a: [b}\n", "yaml: did not find expected ',' or ']'"),
        ("a: {b]\n", "yaml: did not find expected ',' or '}'"),
        ("a: ]\n", "yaml: did not find expected node content"),
        ("a: b\n]\n", "yaml: line 1: did not find expected key"),
        ("a: |x\n  b\n", "yaml: did not find expected comment or line break"),
        ("a: &\n", "yaml: did not find expected alphabetic or numeric character"),
        ("a: \"b\" c\n", "yaml: did not find expected key"),
        ("x: 1\na: - b\n", "yaml: line 2: block sequence entries are not allowed in this context"),
        ("a: .nan\n", "json: unsupported value: NaN"),
        ("a: -.inf\n", "json: unsupported value: -Inf"),
        ("<<: 5\n", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: !!int x\n", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: &a [*a]\n", "yaml: anchor 'a' value contains itself"),
        // The token after a key that continues on further lines, or does not.
        ("a:\n  b: |\n  c d\n    e\n  f: 1\n", "yaml: line 5: could not find expected ':'"),
        ("a: 1\nb # x\n# y\nc: 2\n", "yaml: line 4: could not find expected ':'"),
        ("a: 1\n\"b\"\n# y\nc: 2\n", "yaml: line 4: could not find expected ':'"),
        // Colons without a key.
        ("x: 1\n: b\n", "yaml: line 1: did not find expected key"),
        ("x: 1\n: b: c\n", "yaml: line 1: did not find expected key"),
        ("x: 1\na: {: b}\n", "yaml: line 1: did not find expected node content"),
        // Inside and outside of brackets.
        ("x: 1\na: {b: \"c\" d}\n", "yaml: line 1: did not find expected ',' or '}'"),
        ("x: 1\na: [\"c\" d]\n", "yaml: line 1: did not find expected ',' or ']'"),
        ("a: 1\nb {c: \"d\" e}\n", "yaml: line 1: did not find expected key"),
        ("a: 'b [' \"c\"\n", "yaml: did not find expected key"),
        ("a: {b: c, # {\n  d: \"e\" f}\n", "yaml: line 1: did not find expected ',' or '}'"),
        ("a: {b:\n", "yaml: line 1: did not find expected node content"),
        // Grammar errors come first.
        ("x: 1\n<<: a: b\n", "yaml: line 2: mapping values are not allowed in this context"),
        ("? [a]\n: b\nc: d: e\n", "yaml: line 3: mapping values are not allowed in this context"),
        (
            "x: 1\ny:\n- a\n  b: c\n- d\n",
            "yaml: line 4: mapping values are not allowed in this context",
        ),
    ];
    let said = |text: &str| parse_one("f", text).unwrap_err().reference();
    let wrong: Vec<_> = recorded
        .iter()
        .map(|(text, words)| (text, said(text), format!("error converting YAML to JSON: {words}")))
        .filter(|(_, said, words)| said != words)
        .collect();
    assert_eq!(wrong, []);
}

#[test]
fn lines_are_those_of_the_document_in_a_stream_and_of_the_file_elsewhere() {
    let line =
        |said: &str| said.split("line ").nth(1).and_then(|s| s.split(':').next()?.parse().ok());
    let broken = "x: 1\na: b: c\n";
    for (before, in_stream, in_file) in [
        ("", Some(2), Some(2)),
        ("# one\n---\n", Some(2), Some(4)),
        // A separator with nothing before it belongs to the text after it.
        ("---\n", Some(3), Some(3)),
        ("---\n---\n", Some(3), Some(4)),
    ] {
        let text = format!("{before}{broken}");
        let stream = parse_documents("f", &text).unwrap_err().reference();
        assert_eq!(line(&stream), in_stream, "{text:?}");
        let file = parse_one("f", &text).unwrap_err().reference();
        assert_eq!(line(&file), in_file, "{text:?}");
    }
}

#[test]
fn a_document_may_begin_on_the_line_of_its_separator_where_there_is_one() {
    for text in [
        "--- {a: 1}\n",
        "# x\n--- {a: 1}\n",
        "---\n--- {a: 1}\n",
        "--- {a: 1}",
        "--- !!map\na: 1\n",
    ] {
        let document = parse_one("f", text).unwrap();
        assert_eq!(document.value, serde_json::json!({"a": 1}), "{text:?}");
        assert!(parse_documents("f", text).is_err(), "{text:?}");
    }
    let second = parse_one("f", "# x\n--- {a: 1}\n--- {b: 2}\n").unwrap();
    assert_eq!((second.value, second.line), (serde_json::json!({"a": 1}), 2));
}

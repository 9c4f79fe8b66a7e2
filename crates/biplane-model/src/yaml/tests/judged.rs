//! Texts on which YAML 1.2 and go-yaml differ, with the results of sigs.k8s.io/yaml 1.6.0, which
//! kubectl also uses.
//!
//! - `tabs`: tabs in every position;
//! - `flow`: words, tags and aliases within brackets and around them, and numeric keys.

use serde_json::{Value, json};

use super::recorded::assert_same;
use crate::yaml::{parse_documents, parse_one};

/// Reads each text and compares the value or the error.
fn assert_judged(recorded: &str) -> [usize; 2] {
    let cases: Vec<Value> = serde_json::from_str(recorded).expect("recorded JSON");
    let mut counts = [0, 0];
    for case in &cases {
        let text = case["text"].as_str().expect("a text");
        let read = parse_one("f", text);
        let stream = parse_documents("f", text);
        assert_eq!(read.is_ok(), stream.is_ok(), "{text:?}: {read:?}, {stream:?}");
        match (read, case["error"].as_str()) {
            (Ok(document), None) => {
                assert_same(&format!("{text:?}: "), &document.value, &case["json"]);
            }
            (Err(error), Some(words)) => {
                // The messages about keys are our own.
                let theirs = format!("error converting YAML to JSON: {words}");
                let same = error.reference() == theirs || words.starts_with("unsupported map key");
                assert!(same, "{text:?}: {} for {words}", error.reference());
            }
            (read, theirs) => panic!("{text:?}: {read:?} for {theirs:?}"),
        }
        counts[usize::from(case.get("error").is_some())] += 1;
    }
    counts
}

#[test]
fn tabs_are_judged_as_go_yaml_judges_them() {
    let [taken, refused] = assert_judged(include_str!("recorded/tabs.json"));
    assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused");
}

#[test]
fn brackets_are_judged_as_go_yaml_judges_them() {
    let [taken, refused] = assert_judged(include_str!("recorded/flow.json"));
    assert!(taken > 40 && refused > 20, "{taken} taken, {refused} refused");
}

/// LOAD-4
#[test]
fn tabs_may_follow_separators_but_not_indent_what_is_below() {
    for text in ["---\t{a: b}\n", "---\t# c\na: b\n", "---\t\na: b\n", "a: b\n...\t\n"] {
        let document = parse_one("f", text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(document.value, json!({"a": "b"}), "{text:?}");
    }
    for text in ["---\n\ta: b\n", "---\n\t\na: b\n"] {
        let said = parse_one("f", text).unwrap_err().reference();
        assert!(said.ends_with("line 2: found character that cannot start any token"), "{said}");
    }
}

#[test]
fn a_misplaced_tab_is_shown_where_it_stands() {
    let error = parse_one("f", "é: [\n  \"x\", # \t\n]\nb: |\n  c\n \td\n").unwrap_err();
    assert_eq!((error.line, error.column, &*error.source_line), (6, 2, " \td"));
    // An error above the tab is reported first, unless the tab is still within its token.
    let error = parse_one("f", "a: \"b\" c\nd: e\n\tf: g\n").unwrap_err();
    assert_eq!((error.line, error.column), (1, 8));
    let error = parse_one("f", "a: \"b\" c\n\td: e\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 1));
}

#[test]
fn text_keeps_its_tabs() {
    let text = "a: b\tc\nd: |\n  e\tf\t\n  \tg\nh: \"\ti\t\"\nj:\t'\tk\tl'\nm: [n\to]\n";
    let value = json!({
        "a": "b\tc", "d": "e\tf\t\n\tg\n", "h": "\ti\t", "j": "\tk\tl", "m": ["n\to"],
    });
    assert_eq!(parse_one("f", text).unwrap().value, value);
}

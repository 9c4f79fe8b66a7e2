//! Tests of finding parts of documents.

use crate::yaml::Place;

const TEXT: &str = "\
# a stream
---
kind: A
---
# nothing here
---
kind: B
metadata: {name: b, labels: {x: y}}
spec:
  steps:
  - name: one
    needs:
    - p
    - q
  - name: two
  steps:
  - name: last
";

fn found(document: usize, path: &[&str]) -> Option<(usize, usize, usize)> {
    Place::find(TEXT, document, path).map(|place| (place.document, place.line, place.column))
}

#[test]
fn a_part_is_found_by_keys_and_numbers() {
    for (document, path, line, column) in [
        (0, &["kind"][..], 3, 7),
        (1, &["kind"], 7, 7),
        (1, &["metadata", "labels", "x"], 8, 33),
        // If a value begins below its key, the key is shown.
        (1, &["spec"], 9, 1),
        // If a key is given twice, the later one counts.
        (1, &["spec", "steps", "0", "name"], 17, 11),
    ] {
        assert_eq!(found(document, path), Some((document + 1, line, column)), "{path:?}");
    }
}

#[test]
fn what_is_not_there_is_looked_for_close_by() {
    assert_eq!(found(0, &["metadata", "name"]), Some((1, 3, 1)));
    assert_eq!(found(1, &["metadata", "namespace"]), Some((2, 8, 11)));
    assert_eq!(found(2, &[]), None);
    assert_eq!(Place::find("# nothing\n", 0, &[]), None);
}

#[test]
fn a_place_within_a_block_is_on_its_own_line() {
    let text = "a:\n  b: |\n\n    one\n      two\n  c: \"x y\"\n  d: >\n    z\n  e: p q\n";
    for (path, line, column, found) in [
        (["a", "b"], 2, 1, (4, 6)),
        (["a", "b"], 3, 2, (5, 7)),
        (["a", "c"], 1, 2, (6, 9)),
        (["a", "d"], 1, 0, (7, 6)),
        (["a", "e"], 1, 2, (9, 8)),
        (["a", "e"], 2, 2, (9, 6)),
    ] {
        let place = Place::find_within(text, 0, &path, line, column).expect("there");
        assert_eq!((place.line, place.column), found, "{path:?} {line} {column}");
    }
}

#[test]
fn a_place_shows_its_line() {
    let place = Place::find(TEXT, 1, &["metadata", "name"]).expect("there");
    assert_eq!(
        place.to_string(),
        "document 2, line 8, column 18\n 8 | metadata: {name: b, labels: {x: y}}\n   |                  ^"
    );
}

#[test]
fn a_tab_is_shown_on_its_own_line() {
    for text in ["kind: A\n\tspec: b\n", "a:\n  b: c\n \td: e\n", "a: 1\rb: c\r\td: e\r"] {
        let error = super::refusal(text);
        let line =
            text.split(['\n', '\r']).position(|line| line.contains('\t')).expect("a tab") + 1;
        assert!(error.contains(&format!(", line {line}, column ")), "{error}");
    }
}

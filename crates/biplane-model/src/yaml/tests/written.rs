//! Tests that a document that changes keeps the comments and the layout of what does not.

use proptest::prelude::*;
use serde_json::json;

use super::super::{Change, Moved, Written, read_document, to_string};
use crate::Value;

const DOCUMENT: &str = "\
# License

---
# About the list.
list: # of three
  - one # first
  # Above two.
  - two:
      deep: |
        # text
        more

    # After two.
  -   three: [a, # inside
              b]
map:
    # Wide.
    'quoted key': \"value\"   # behind
    folded: >-
      a
      b

    empty:
# Last.
last: {a: 1}
# The end.
";

fn change<'a>(before: &'a Value, after: &'a Value, moved: &'a [Moved]) -> Change<'a> {
    Change { before, after, moved, first: &["z"], separator: true }
}

fn rewritten(text: &str, edit: impl FnOnce(&mut Value), moved: &[Moved]) -> String {
    let before = read_document(text.as_bytes()).unwrap();
    let mut after = before.clone();
    edit(&mut after);
    let written = Written::read(text).unwrap();
    written.rewrite(change(&before, &after, moved)).unwrap()
}

#[test]
fn what_does_not_change_is_copied() {
    assert_eq!(rewritten(DOCUMENT, |_| {}, &[]), DOCUMENT);
}

#[test]
fn only_what_changes_is_printed_anew() {
    let edited = rewritten(
        DOCUMENT,
        |value| {
            value["map"]["quoted key"] = json!("other");
            value["list"][1]["two"]["deep"] = json!(true);
            value["last"] = json!({"b": 2});
        },
        &[],
    );
    let wanted = DOCUMENT
        .replace("'quoted key': \"value\"   # behind", "quoted key: other # behind")
        .replace("deep: |\n        # text\n        more\n", "deep: true\n")
        .replace("last: {a: 1}", "last:\n  b: 2");
    assert_eq!(edited, wanted);
}

#[test]
fn a_new_key_takes_the_place_of_one_that_is_gone() {
    let text = "a: 1 # one\n# Two.\nb: 2\nc: 3\n";
    let edited = rewritten(
        text,
        |value| {
            let map = value.as_object_mut().unwrap();
            map.remove("b");
            map.insert("w".into(), json!([]));
            map.insert("z".into(), json!({}));
        },
        &[],
    );
    assert_eq!(edited, "---\na: 1 # one\nz: {}\nw: []\nc: 3\n");
}

#[test]
fn what_moves_takes_its_comments_along() {
    let text =
        "# Top.\na:\n  # The list.\n  b: # here\n  - 1 # one\n  - x: 2\n    # Below.\nc: {}\n";
    let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let moved = [Moved { to: path("c.0.d"), from: Some(path("a.b")) }];
    let edited = rewritten(
        text,
        |value| {
            let list = value["a"]["b"].take();
            *value = json!({"c": [{"d": list}]});
        },
        &moved,
    );
    let wanted = "---\nc:\n-\n  # The list.\n  d: # here\n  - 1 # one\n  - x: 2\n    # Below.\n";
    assert_eq!(edited, wanted);
}

#[test]
fn a_document_without_comments_has_none() {
    for (text, has) in [("a: 1\n", false), ("a: '# no'\n", false), ("a: 1 # yes\n", true)] {
        assert_eq!(Written::read(text).unwrap().has_comments(), has, "{text}");
    }
    // Comments of later documents are not those of the first.
    assert!(!Written::read("a: 1\n---\n# other\nb: 2\n").unwrap().has_comments());
}

/// Other nesting is refused when a document is read. Here it would exhaust the stack.
#[test]
fn deep_nesting_is_refused() {
    assert!(Written::read(&"- ".repeat(9_000)).is_none());
    assert!(Written::read(&"- ".repeat(400)).is_some());
}

/// JSON values that can be documents.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ a-z#:'\\n-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]{1,2}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn objects() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]{1,2}", values(), 1..5)
        .prop_map(|map| map.into_iter().collect())
}

/// Comments above some of the lines of a document.
fn commented(text: &str, places: &[bool]) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        if places.get(number % places.len().max(1)) == Some(&true) {
            out.extend([indent.as_str(), "# ", &number.to_string(), "\n"]);
        }
        out.extend([line, "\n"]);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_is_copied(value in objects(), places in prop::collection::vec(any::<bool>(), 8)) {
        let text = format!("---\n{}", commented(&to_string(&value), &places));
        // A line of a block text that looks like a comment is text.
        prop_assume!(read_document(text.as_bytes()).ok().as_ref() == Some(&value));
        prop_assert_eq!(rewritten(&text, |_| {}, &[]), text);
    }

    #[test]
    fn any_document_can_become_any_other(
        before in objects(),
        after in objects(),
        places in prop::collection::vec(any::<bool>(), 8),
    ) {
        let text = commented(&to_string(&before), &places);
        prop_assume!(read_document(text.as_bytes()).ok().as_ref() == Some(&before));
        let printed = rewritten(&text, |value| value.clone_from(&after), &[]);
        prop_assert_eq!(read_document(printed.as_bytes()).unwrap(), after);
    }
}

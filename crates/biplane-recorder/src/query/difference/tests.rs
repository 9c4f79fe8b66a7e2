//! Differences as a table, and properties over random documents.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A line for each change, as people read it.
fn lines(before: &Value, after: &Value) -> Vec<String> {
    let found = difference(before, after);
    assert_eq!(apply(before.clone(), &found.changes), *after, "{:?}", found.changes);
    let line = |change: &Change| match &change.what {
        What::Added { value, .. } => format!("+ {} {value}", change.path),
        What::Removed { value, .. } => format!("- {} {value}", change.path),
        What::Changed { before, after } => format!("~ {} {before} -> {after}", change.path),
        What::Moved { from, to } => format!("> {} {from} -> {to}", change.path),
    };
    found.changes.iter().map(line).collect()
}

#[test]
fn objects_are_compared_by_field() {
    assert_eq!(
        lines(
            &json!({"a": 1, "b": {"c": 1, "d": null}}),
            &json!({"b": {"c": 2, "e": [1]}, "f": 1})
        ),
        ["- a 1", "~ b.c 1 -> 2", "- b.d null", "+ b.e [1]", "+ f 1"]
    );
    assert_eq!(lines(&json!({"a": {}}), &json!({"a": []})), ["~ a {} -> []"]);
    assert_eq!(lines(&json!({"a": null}), &json!({"a": 0})), ["~ a null -> 0"]);
    assert_eq!(lines(&json!(1), &json!(2)), ["~ . 1 -> 2"]);
}

#[test]
fn lists_of_objects_are_compared_by_what_identifies_an_item() {
    let before = json!({"rules": [
        {"name": "archive", "days": 90}, {"name": "keep"}, {"name": "expire", "days": 30},
    ]});
    let after = json!({"rules": [
        {"name": "expire", "days": 14}, {"name": "keep"}, {"name": "new"},
    ]});
    assert_eq!(
        lines(&before, &after),
        [
            "- rules[name=archive] {\"days\":90,\"name\":\"archive\"}",
            "> rules[name=expire] 2 -> 0",
            "~ rules[name=expire].days 30 -> 14",
            "+ rules[name=new] {\"name\":\"new\"}",
        ]
    );
    // The type is unique where the name is not.
    let conditions =
        |ready: &str| json!([{"type": "Ready", "s": ready}, {"type": "Synced", "s": "T"}]);
    assert_eq!(lines(&conditions("T"), &conditions("F")), ["~ [type=Ready].s \"T\" -> \"F\""]);
    let ports = |p: u16| json!([{"containerPort": 80, "protocol": "TCP", "x": p}, {"containerPort": 80, "protocol": "UDP"}]);
    assert_eq!(lines(&ports(1), &ports(2)), ["~ [containerPort=80,protocol=TCP].x 1 -> 2"]);
}

#[test]
fn lists_without_identity_are_compared_by_position() {
    let before = json!([{"a": 1}, {"a": 2}]);
    let after = json!([{"a": 1}, {"a": 3}, {"b": 1}]);
    assert_eq!(lines(&before, &after), ["~ [1].a 2 -> 3", "+ [2] {\"b\":1}"]);
    // Two items have the same name.
    let twice = json!([{"name": "x", "v": 1}, {"name": "x", "v": 2}]);
    let other = json!([{"name": "x", "v": 1}, {"name": "x", "v": 3}]);
    assert_eq!(lines(&twice, &other), ["~ [1].v 2 -> 3"]);
}

#[test]
fn plain_values_are_compared_by_sequence_and_moves_are_named() {
    assert_eq!(lines(&json!(["a", "b", "c"]), &json!(["a", "x", "b", "c"])), ["+ [1] \"x\""]);
    assert_eq!(lines(&json!(["a", "b", "c"]), &json!(["b", "c"])), ["- [0] \"a\""]);
    assert_eq!(lines(&json!(["a", "b", "c"]), &json!(["b", "c", "a"])), ["> [2] 0 -> 2"]);
    assert_eq!(lines(&json!([1, 1, 2]), &json!([1, 2, 2])), ["- [1] 1", "+ [1] 2"]);
}

#[test]
fn whether_redacted_values_differ_is_unknown() {
    let secret = json!({"data": {"a": "**REDACTED**", "b": "plain"}, "c": "KipSRURBQ1RFRCoq"});
    let found = difference(&secret, &secret);
    assert!(found.is_empty());
    let unknown: Vec<_> = found.unknown.iter().map(ToString::to_string).collect();
    assert_eq!(unknown, ["c", "data.a"]);
    let other = json!({"data": {"a": "shown", "b": "plain"}, "c": "KipSRURBQ1RFRCoq"});
    assert_eq!(lines(&secret, &other), ["~ data.a \"**REDACTED**\" -> \"shown\""]);
}

#[test]
fn beyond_the_budget_documents_are_compared_as_a_whole() {
    let before = json!({"a": {"b": {"c": 1}}, "d": {"e": 1}, "f": {"g": 1}});
    let after = json!({"a": {"b": {"c": 2}}, "d": {"e": 2}, "f": {"g": 1}});
    let mut nodes = 2;
    let found = within(&before, &after, &mut nodes);
    assert!(found.is_coarse);
    let paths: Vec<_> = found.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, ["a.b", "d"]);
    assert_eq!(apply(before, &found.changes), after);
}

#[test]
fn long_lists_are_compared_without_a_table_that_fills_the_memory() {
    let numbers = |from: u32| Value::from((from..from + 3_000).collect::<Vec<_>>());
    let (before, after) = (numbers(0), numbers(10_000));
    let found = difference(&before, &after);
    assert_eq!(apply(before, &found.changes), after);
}

fn documents() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec!["a", "b", "c", "name", "**REDACTED**", "x.y/z"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 5, move |inner| {
        let field = prop::sample::select(vec!["a", "b", "name", "type", "id", "x.y/z"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(field, inner.clone(), 0..4).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
            // Lists whose items have names.
            prop::collection::vec((0..5_u8, inner), 0..5).prop_map(|items| {
                let item =
                    |(name, value): (u8, Value)| json!({"name": name.to_string(), "v": value});
                items.into_iter().map(item).collect::<Vec<_>>().into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn the_changes_of_a_difference_make_the_second_document(
        before in documents(),
        after in documents(),
        budget in prop_oneof![Just(NODES), 0..20_usize],
    ) {
        let mut nodes = budget;
        let found = within(&before, &after, &mut nodes);
        prop_assert_eq!(found.is_empty(), before == after);
        prop_assert_eq!(apply(before, &found.changes), after);
    }

    #[test]
    fn a_document_does_not_differ_from_itself(document in documents()) {
        let found = difference(&document, &document);
        prop_assert!(found.is_empty());
    }
}

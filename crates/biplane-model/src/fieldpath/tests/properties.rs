//! Property tests: laws that hold for any path and document.

use proptest::prelude::*;

use super::*;

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    // Names without brackets and quotes. The empty name prints as nothing.
    let name = "[^.\\[\\]'\"]{1,8}".prop_map(Segment::Field);
    let dotted = "[a-z]{1,3}\\.[a-z.]{0,4}".prop_map(Segment::Field);
    let index = any::<u32>().prop_map(Segment::Index);
    prop::collection::vec(prop_oneof![name, dotted, index], 0..6)
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e22..1e22).prop_map(double),
        "[a-z*'.]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c*']{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn documents() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map("[a-c]", values(), 0..4).prop_map(|map| map.into_iter().collect())
}

proptest! {
    #[test]
    fn printed_paths_parse_to_the_same_steps(segments in segments()) {
        let printed = print(&segments);
        let parsed = FieldPath::parse(&printed).unwrap();
        prop_assert_eq!(parsed.segments(), segments.as_slice());
    }

    #[test]
    fn what_parses_prints_to_what_parses_alike(text in "[a-b0-9.\\[\\]*'é]{0,12}") {
        if let Ok(parsed) = FieldPath::parse(&text) {
            prop_assert_eq!(parsed.text(), text.as_str());
            let nameless = parsed.segments().iter().any(|s| *s == field(""));
            if !nameless {
                let again = FieldPath::parse(&parsed.to_string()).unwrap();
                // A numeric name in brackets would parse as an index, but printing never produces
                // one.
                prop_assert_eq!(again.segments(), parsed.segments());
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back(
        mut document in documents(),
        text in "[a-c](\\[[0-3]\\]|\\.[a-c]){0,3}",
        value in values(),
    ) {
        let path = path(&text);
        if path.set(&mut document, value.clone()).is_ok() {
            let mut expected = value;
            normalize(&mut expected);
            prop_assert_eq!(path.get(&document).unwrap(), &expected);
        }
    }

    #[test]
    fn expanded_paths_exist(document in documents(), text in "[a-c*](\\[[0-1*]\\]|\\.[a-c*]){0,3}") {
        if let Ok(found) = path(&text).expand(&document) {
            for found in found {
                let Ok(found) = FieldPath::parse(&found) else { continue };
                let nameless = found.segments().iter().any(|s| *s == field(""));
                prop_assert!(nameless || found.get(&document).is_ok());
            }
        }
    }

    #[test]
    fn no_operation_panics_on_any_document(
        mut document in documents(),
        text in "[a-c0-2.\\[\\]*']{0,8}",
        value in values(),
        keep in any::<Option<bool>>(),
        append in any::<Option<bool>>(),
    ) {
        let Ok(path) = FieldPath::parse(&text) else { return Ok(()) };
        let options = MergeOptions { keep_map_values: keep, append_slice: append };
        let _ = path.get(&document);
        let _ = path.expand(&document);
        let _ = path.merge(&mut document, value.clone(), Some(options));
        let _ = path.merge(&mut document, value, None);
    }
}

//! Tests of parsing and printing.

use super::*;

#[test]
fn paths_split_into_fields_and_indexes() {
    let i = Segment::Index;
    let f = field;
    let table: &[(&str, &str, &[Segment])] = &[
        ("FT-1", "spec", &[f("spec")]),
        ("FT-2", "[0]", &[i(0)]),
        ("FT-3", "metadata.name", &[f("metadata"), f("name")]),
        ("FT-4", "fields[1].state.current", &[f("fields"), i(1), f("state"), f("current")]),
        ("FT-5", "nested[0][1].name", &[f("nested"), i(0), i(1), f("name")]),
        ("FT-6", "spec[containers][0].name", &[f("spec"), f("containers"), i(0), f("name")]),
        ("FT-7", "data[.config.yml]", &[f("data"), f(".config.yml")]),
        ("FT-8", "metadata.labels['app.hash']", &[f("metadata"), f("labels"), f("app.hash")]),
        ("FT-9", r#"metadata.annotations["a/b"]"#, &[f("metadata"), f("annotations"), f("a/b")]),
        ("FT-10", "a[0]b", &[f("a"), i(0), f("b")]),
        ("FT-11", "items.0", &[f("items"), f("0")]),
        ("FT-12", "['0']", &[f("0")]),
        ("FT-13", "a[007]", &[f("a"), i(7)]),
        ("FT-14", "a[-3]", &[f("a"), f("-3")]),
        ("FT-14", "a[3.0]", &[f("a"), f("3.0")]),
        ("FT-14", "a[4294967296]", &[f("a"), f("4294967296")]),
        ("FT-14", "a[+1]", &[f("a"), f("+1")]),
        ("FT-15", "a[4294967295]", &[f("a"), i(4_294_967_295)]),
        ("FT-16", "a['']", &[f("a"), f("")]),
        ("FT-17", "metadata.'name'", &[f("metadata"), f("name")]),
        ("FT-18", "", &[]),
        ("FP-8", r#""'a'".'"b"#, &[f("a"), f("b")]),
        ("FP-10", "a[*]", &[f("a"), f("*")]),
        ("FP-10", "a.*", &[f("a"), f("*")]),
        ("FP-10", "a['*']", &[f("a"), f("*")]),
    ];
    for (id, text, expected) in table {
        assert_eq!(path(text).segments(), *expected, "{id}: {text}");
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    for (id, text, expected) in [
        ("FT-19", ".metadata.name", "unexpected '.' at position 0"),
        ("FT-20", "metadata.name.", "unexpected '.' at position 13"),
        ("FT-21", "metadata..name", "unexpected '.' at position 9"),
        ("FT-22", "spec.containers.[0].name", "unexpected '[' at position 16"),
        ("FT-23", "metadata.]name", "unexpected ']' at position 9"),
        ("FT-24", "spec[bracketed[name]]", "unexpected '[' at position 14"),
        ("FT-25", "spec[name", "unterminated '[' at position 4"),
        ("FT-26", "spec[]", "unexpected ']' at position 5"),
        ("FT-27", "a['x]y']", "unexpected ']' at position 7"),
        ("FT-28", "a[0]]", "unexpected ']' at position 4"),
        ("FT-32", "é.x.", "unexpected '.' at position 4"),
        ("FP-5", ".", "unexpected '.' at position 0"),
        ("FP-5", "a[b.c[0]", "unexpected '[' at position 5"),
        ("FP-5", "a\"[", "unterminated '[' at position 2"),
    ] {
        let error = FieldPath::parse(text).unwrap_err();
        let expected = format!("cannot parse path {}: {expected}", biplane_go::fmt::quote(text));
        assert_eq!(error.to_string(), expected, "{id}");
        assert!(!PathError::from(error).is_not_found(), "{id}");
    }
}

#[test]
fn printing_adds_brackets_only_where_needed() {
    let check = |id: &str, segments: Vec<Segment>, expected: &str| {
        assert_eq!(print(&segments), expected, "{id}");
    };
    check(
        "FT-29",
        vec![field("spec"), field("containers"), field("*"), field("name")],
        "spec.containers[*].name",
    );
    check("FT-30", vec![Segment::Index(0)], "[0]");
    check("FT-31", vec![field("a.b"), field("c")], "[a.b].c");
    check("FP-11", vec![field("data"), field(".config.yml")], "data[.config.yml]");
    check("FP-11", vec![field(""), field("a")], ".a");
}

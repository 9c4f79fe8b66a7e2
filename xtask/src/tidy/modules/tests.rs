//! Tests with small crates, with and without cycles.

use super::check;

/// The cycles of a crate with these files.
fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<(String, String)> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    check("krate", &files).unwrap()
}

#[test]
fn two_modules_that_import_each_other_are_a_cycle() {
    assert_eq!(
        findings(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use super::a::A; use crate::c::C; pub struct B;"),
            ("c.rs", "pub struct C;"),
        ]),
        ["krate: modules use each other: a, b\n  a uses b: a.rs\n  b uses a: b.rs"]
    );
}

#[test]
fn one_direction_is_fine() {
    let a = "use crate::b; fn a() { crate::b::b(); b::b(); }";
    assert!(
        findings(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "fn b() {}")]).is_empty()
    );
}

#[test]
fn a_folder_is_one_module_and_a_graph_of_its_own() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod x; mod y;"),
        ("a/x.rs", "fn x() { super::y::y() }"),
        ("a/y.rs", "fn y() { crate::b::b() }"),
        ("b.rs", "fn b() { crate::a::x::x() }"),
    ];
    assert_eq!(
        findings(&files),
        ["krate: modules use each other: a, b\n  a uses b: a/y.rs\n  b uses a: b.rs"]
    );
    let inside = [files[0], files[1], files[2], ("a/y.rs", "fn y() { super::x::x() }")];
    assert_eq!(
        findings(&inside),
        ["krate::a: modules use each other: x, y\n  x uses y: a/x.rs\n  y uses x: a/y.rs"]
    );
}

#[test]
fn a_module_and_its_parent_may_use_each_other() {
    let files = [
        ("lib.rs", "mod a; pub struct Root; fn f() { a::a() }"),
        ("a.rs", "mod x; use crate::Root; pub struct Parent; fn a() { x::x() }"),
        ("a/x.rs", "use super::Parent; use super::super::Root; fn x() {}"),
    ];
    assert!(findings(&files).is_empty());
}

#[test]
fn a_name_that_the_root_passes_on_belongs_to_its_module() {
    for root in ["pub use b::B;", "pub use crate::b::B;", "pub use b::*;", "use self::b::{B};"] {
        let root = format!("mod a; mod b; {root}");
        let files = [
            ("lib.rs", root.as_str()),
            ("a.rs", "use crate::B; fn a() {}"),
            ("b.rs", "pub struct B; fn b() { crate::a::a() }"),
        ];
        assert_eq!(findings(&files).len(), 1, "{root}");
    }
}

#[test]
fn paths_in_types_and_macros_count() {
    for a in [
        "fn a() { println!(\"{}\", crate::b::b()) }",
        "fn a() -> Option<super::b::B> { None }",
        "impl crate::b::T for A {}",
        "mod inner { fn a() { super::super::b::b() } }",
    ] {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "use crate::a;")];
        assert_eq!(findings(&files).len(), 1, "{a}");
    }
}

#[test]
fn tests_may_use_everything() {
    let b = "fn b() { crate::a::a() }";
    for (name, a) in [
        ("a.rs", "#[cfg(test)] mod tests { use crate::b::b; }"),
        ("a.rs", "#[cfg(test)] use crate::b::b;"),
        ("a.rs", "#[cfg(test)] mod support;"),
        ("a.rs", "mod x; impl A { #[cfg(test)] fn a() { crate::b::b() } }"),
    ] {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            (name, a),
            ("a/tests.rs", "use crate::b::b;"),
            ("a/tests/more.rs", "use crate::b::b;"),
            ("a/support.rs", if a.contains("support") { "use crate::b::b;" } else { "" }),
            ("b.rs", b),
        ];
        assert!(findings(&files).is_empty(), "{a}");
    }
}

#[test]
fn visibility_is_not_a_use() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub(in crate::b) struct A; fn a() {}"),
        ("b.rs", "fn b() { crate::a::a() }"),
    ];
    assert!(findings(&files).is_empty());
}

#[test]
fn a_file_that_is_not_rust_is_an_error() {
    let files = [("a.rs".to_owned(), "fn {".to_owned())];
    let error = check("krate", &files).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the modules of krate");
}

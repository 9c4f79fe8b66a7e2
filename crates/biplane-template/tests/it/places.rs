//! Errors say where they are, and what may have been meant.

use biplane_template::budget::Limits;
use biplane_template::{Delimiters, Functions, MissingKey, Place, Template};

use crate::engine::{Nowhere, data, functions};

fn parse_place(text: &str) -> Place {
    let delimiters = Delimiters::default();
    let error = Template::parse("manifests", text, &functions(), &delimiters).unwrap_err();
    error.place().clone()
}

fn run_place(text: &str) -> Place {
    let delimiters = Delimiters::default();
    let template = Template::parse("manifests", text, &functions(), &delimiters).unwrap();
    let error = template.run(&data(), MissingKey::Error, &Nowhere, Limits::default()).unwrap_err();
    error.place().unwrap().clone()
}

/// What the place marks in the text.
fn marked<'a>(text: &'a str, place: &Place) -> &'a str {
    let line = text.lines().nth(place.line - 1).unwrap();
    assert_eq!(&text[place.offset..][..place.length], &line[place.column..][..place.length]);
    &text[place.offset..][..place.length]
}

#[test]
fn a_misspelt_function_is_marked_and_named() {
    let text = "a\n{{ .s | prnt }}";
    let place = parse_place(text);
    assert_eq!((place.line, place.column), (2, 8));
    assert_eq!(marked(text, &place), "prnt");
    assert_eq!(place.misspelt.as_deref(), Some("prnt"));
    assert_eq!(place.near, ["print", "printf"]);
    let place = parse_place("{{ printF 1 }}");
    assert_eq!(place.near, ["printf", "print", "println"]);
}

#[test]
fn a_misspelt_variable_is_marked_and_named() {
    let text = "{{ $count := 1 }}{{ $cuont }}";
    let place = parse_place(text);
    assert_eq!(marked(text, &place), "$cuont");
    assert_eq!(place.near, ["$count"]);
}

#[test]
fn a_missing_key_is_marked_and_named() {
    let text = "é\n  {{ .Uper }}";
    let place = run_place(text);
    assert_eq!((place.line, place.column), (2, 6));
    assert_eq!(marked(text, &place), "Uper");
    assert_eq!(place.node, ".Uper");
    assert_eq!(place.misspelt.as_deref(), Some("Uper"));
    assert_eq!(place.near, ["Upper"]);
}

#[test]
fn a_misspelt_template_is_named() {
    for text in [
        "{{ define \"labels\" }}{{ end }}{{ template \"lables\" . }}",
        "{{ define \"labels\" }}{{ end }}{{ include \"lables\" . }}",
    ] {
        let place = run_place(text);
        assert!(text[place.offset..].contains("lables"), "{text}");
        assert_eq!(place.misspelt.as_deref(), Some("lables"), "{text}");
        assert_eq!(place.near, ["labels"], "{text}");
    }
}

#[test]
fn an_error_in_an_included_template_is_there() {
    let text = "{{ define \"inner\" }}\n {{ .x.y }}{{ end }}\n\n{{ include \"inner\" .a }}";
    let place = run_place(text);
    assert_eq!((place.template.as_str(), place.line, place.column), ("inner", 2, 5));
    assert_eq!(marked(text, &place), "x");
}

#[test]
fn the_place_covers_what_go_points_into() {
    // Go points at the second step of a chain.
    let text = "{{ $.s.x }}{{ .s.x }}";
    let place = run_place(text);
    assert_eq!(marked(text, &place), "$.s.x");
    let text = "{{ index .l  9 }}";
    assert_eq!(run_place(text).column, 3);
}

#[test]
fn a_key_is_marked_where_it_is_in_a_chain() {
    let text = "{{ print .a.cc.d }}";
    let place = run_place(text);
    assert_eq!(marked(text, &place), "cc");
    assert_eq!(place.near, ["c"]);
}

#[test]
fn delimiters_can_be_others() {
    let render = |left: &str, right: &str, text: &str| {
        let delimiters = Delimiters::new(left, right);
        let template = Template::parse("t", text, &functions(), &delimiters);
        let template = template.map_err(|error| error.to_string())?;
        let output = template.run(&data(), MissingKey::Default, &Nowhere, Limits::default());
        output.map(|o| String::from_utf8(o).unwrap()).map_err(|error| error.to_string())
    };
    let go = |text: &str| Ok::<_, String>(text.to_owned());
    assert_eq!(render("[[", "]]", "{{ .s }} [[ .s -]]  x"), go("{{ .s }} strx"));
    assert_eq!(render("<", ">", "a <- .s> <  .i >"), go("astr 7"));
    assert_eq!(render("", "", "{{ .s }}"), go("str"));
    assert_eq!(render("{%", "", "{% .s }}{{ .s }}"), go("str{{ .s }}"));
    assert_eq!(render("$$", "$$", "$$ .s $$ $$/* c */$$|"), go("str |"));
    assert_eq!(render("(", ")", "( .s )"), go("str"));
    assert_eq!(render("[[", "]]", "[[ .s"), Err("template: t:1: unclosed action".into()));
}

#[test]
fn options_are_those_of_go() {
    assert_eq!(MissingKey::option("missingkey=invalid"), Ok(MissingKey::Default));
    assert_eq!(MissingKey::option("missingkey=error"), Ok(MissingKey::Error));
    assert_eq!(MissingKey::option("missingkey=zero"), Ok(MissingKey::Zero));
    assert_eq!(MissingKey::option(""), Err("empty option string".into()));
    let text = " missingkey=zero";
    assert_eq!(MissingKey::option(text), Err(format!("unrecognized option: {text}")));
}

#[test]
fn templates_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let template =
        Template::parse("t", "{{ len .l }}", &functions(), &Delimiters::default()).unwrap();
    shared(&template);
    shared::<Functions>(&functions());
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = || template.run(&data(), MissingKey::Default, &Nowhere, Limits::default());
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(results.iter().all(|result| result.as_deref() == Ok(b"3")));
}

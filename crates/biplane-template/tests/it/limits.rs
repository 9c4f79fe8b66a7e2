//! Every template ends: what has no end of its own hits a limit that the error names.

use biplane_template::budget::{Exceeded, Limits};
use biplane_template::value::Value;
use biplane_template::{Delimiters, MissingKey, RunError, Template};

use crate::engine::{Nowhere, data, functions};

fn run_within(text: &str, limits: Limits) -> Result<Vec<u8>, RunError> {
    let delimiters = Delimiters::default();
    let template = Template::parse("manifests", text, &functions(), &delimiters).unwrap();
    template.run(&data(), MissingKey::Default, &Nowhere, limits)
}

fn run(text: &str) -> Result<Vec<u8>, RunError> {
    run_within(text, Limits::default())
}

fn parse_error(text: &str) -> String {
    let delimiters = Delimiters::default();
    Template::parse("manifests", text, &functions(), &delimiters).unwrap_err().to_string()
}

#[test]
fn a_loop_ends_after_the_allowed_steps() {
    let steps = Limits::default().steps;
    for text in [
        "{{ range 10000000 }}{{ $x := not . }}{{ end }}",
        "{{ range 1000000000 }}{{ end }}",
        "{{ range 10000 }}{{ range 10000 }}{{ continue }}{{ end }}{{ end }}",
    ] {
        let error = run(text).unwrap_err();
        assert_eq!(error.limit(), Some(Exceeded::Steps(steps)), "{text}");
        assert!(error.to_string().contains(&format!("more than {steps} steps")), "{error}");
        assert_eq!(error.place().unwrap().line, 1);
    }
}

#[test]
fn output_is_bounded() {
    let text = format!("{{{{ range 100000 }}}}{}{{{{ end }}}}", "x".repeat(10_000));
    let error = run(&text).unwrap_err();
    assert_eq!(error.limit(), Some(Exceeded::Output(Limits::default().output)));
    // Each template writes the next one twice.
    let mut text = String::from("{{ define \"0\" }}0123456789{{ end }}");
    for level in 1..40 {
        let inner = level - 1;
        let call = format!("{{{{ include \"{inner}\" . }}}}");
        let definition = format!("{{{{ define \"{level}\" }}}}{call}{call}{{{{ end }}}}");
        text += &definition;
    }
    text += "{{ template \"39\" . }}";
    let error = run(&text).unwrap_err();
    assert!(error.limit().is_some(), "{error}");
}

#[test]
fn strings_cannot_grow_without_end() {
    let text = "{{ $x := \"0123456789\" }}{{ range 1000 }}{{ $x = print $x $x }}{{ end }}";
    let error = run(text).unwrap_err();
    assert_eq!(error.limit(), Some(Exceeded::Memory(Limits::default().memory)));
    // A list of which each element is padded.
    let text = "{{ $x := list }}{{ range 12 }}{{ $x = list $x $x }}{{ end }}\
        {{ $y := list 1 2 3 4 5 6 7 8 }}{{ $z := list $y $y $y $y $y $y $y $y }}\
        {{ printf \"%1000000d\" (list $z $z $z $z $z $z $z $z) }}";
    let error = run(text).unwrap_err();
    assert_eq!(error.limit(), Some(Exceeded::Memory(Limits::default().memory)));
}

#[test]
fn widths_are_bounded_as_in_go() {
    let check = |text: &str, expected: &str| {
        assert_eq!(String::from_utf8(run(text).unwrap()).unwrap(), expected, "{text}");
    };
    check("{{ printf \"%2147483648d\" 1 }}", "%!(NOVERB)%!(EXTRA int=1)");
    check("{{ printf \"%*d\" 2147483648 1 }}", "%!(BADWIDTH)1");
    check("{{ printf \"%.*f\" 2147483648 1.5 }}", "%!(BADPREC)1.500000");
    assert_eq!(run("{{ printf \"%1000000d\" 1 }}").unwrap().len(), 1_000_000);
}

#[test]
fn nested_values_are_not_printed_without_end() {
    let build = "{{ $x := list }}{{ range 100000 }}{{ $x = list $x }}{{ end }}";
    assert!(run(build).is_ok(), "deep values can be made and dropped");
    let error = run(&format!("{build}{{{{ $x }}}}")).unwrap_err();
    assert_eq!(error.limit(), Some(Exceeded::Nesting(500)));
    // Few values that are printed very often.
    let build = "{{ $x := list }}{{ range 100 }}{{ $x = list $x $x }}{{ end }}{{ $x }}";
    assert!(run(build).unwrap_err().limit().is_some());
}

#[test]
fn a_value_that_contains_itself_is_an_error() {
    let data = Value::dict([]);
    let Value::Map(map) = &data else { unreachable!() };
    map.insert("self", data.clone());
    let delimiters = Delimiters::default();
    let template = Template::parse("manifests", "{{ . }}", &functions(), &delimiters).unwrap();
    let error = template.run(&data, MissingKey::Default, &Nowhere, Limits::default());
    assert_eq!(error.unwrap_err().limit(), Some(Exceeded::Nesting(500)));
    // Otherwise the map would keep itself alive.
    map.remove(b"self");
}

#[test]
fn a_map_that_a_template_puts_into_itself_is_freed() {
    use biplane_template::func::Func;
    use biplane_template::types::Type;
    use biplane_template::value::Map;
    const SET: &[Type] = &[Type::DICT, Type::String, Type::Any];
    let set = Func::new("set", SET, Type::DICT, |_, args| {
        let [Value::Map(map), Value::Str(key), value] = args else { unreachable!() };
        map.insert(key.clone(), value.clone());
        Ok(Value::Map(map.clone()))
    });
    let functions = biplane_template::Functions::new([
        set,
        Func::variadic("list", &[Type::Any], Type::LIST, |_, args| Ok(Value::list(args.to_vec()))),
    ]);
    let text = "{{ $_ := set .a \"self\" (list 1 .a) }}{{ $_ := set .b \"a\" .a }}{{ .b.a.k }}";
    let template = Template::parse("t", text, &functions, &Delimiters::default()).unwrap();
    let map = |text: &str| Map::dict([("k".into(), Value::text(text))]);
    let (a, b) = (map("x"), map("y"));
    let data =
        Value::dict([("a".into(), Value::Map(a.clone())), ("b".into(), Value::Map(b.clone()))]);
    let output = template.run(&data, MissingKey::Default, &Nowhere, Limits::default()).unwrap();
    assert_eq!(output, b"x");
    assert!(a.is_empty(), "the circle is broken");
    assert_eq!(b.len(), 2, "other maps stay as they are");
}

#[test]
fn templates_that_call_themselves_end_as_in_go() {
    let text = "{{ define \"r\" }}{{ template \"r\" . }}{{ end }}{{ template \"r\" . }}";
    let error = run(text).unwrap_err().to_string();
    let expected = "template: manifests:1:28: executing \"r\" at <{{template \"r\" .}}>: \
        exceeded maximum template depth (100000)";
    assert_eq!(error, expected, "GT-E8");
    let text = "{{ define \"r\" }}{{ include \"r\" . }}{{ end }}{{ include \"r\" . }}";
    let error = run(text).unwrap_err().to_string();
    assert_eq!(error.matches("error calling include").count(), 1002, "GT-X4");
    let end = "error calling include: rendering template has a nested reference name: r: \
        unable to execute template";
    assert!(error.ends_with(end), "{}", &error[error.len() - 300..]);
    let text = "{{ define \"a\" }}{{ template \"b\" . }}{{ end }}\
        {{ define \"b\" }}{{ include \"a\" . }}{{ end }}{{ template \"a\" . }}";
    let error = run_within(text, Limits { depth: 500, ..Limits::default() }).unwrap_err();
    assert_eq!(error.limit(), Some(Exceeded::Depth(500)));
}

#[test]
fn deep_and_large_texts_are_parsed_or_refused() {
    let deep = 10_000;
    let nested = "{{ if . }}".repeat(deep) + "x" + &"{{ end }}".repeat(deep);
    assert_eq!(run(&nested).unwrap(), b"x");
    let chain = "{{ if . | not }}".to_owned() + &"{{ else if $ | not }}".repeat(deep) + "{{ end }}";
    assert_eq!(run(&chain).unwrap(), b"");
    let loops = "{{ range 1 }}".repeat(deep) + "x" + &"{{ end }}".repeat(deep);
    assert_eq!(run(&loops).unwrap(), b"x");
    let blocks: Vec<String> = (0..deep).map(|i| format!("{{{{ block \"{i}\" . }}}}")).collect();
    let blocks = blocks.concat() + "x" + &"{{ end }}".repeat(deep);
    assert_eq!(run(&blocks).unwrap(), b"x");
    let open = "{{ if . }}".repeat(deep);
    assert_eq!(parse_error(&open), "template: manifests:1: unexpected EOF");
    let parens = "{{ ".to_owned() + &"(".repeat(deep) + "1" + &")".repeat(deep) + " }}";
    assert_eq!(parse_error(&parens), "template: manifests:1: max expression depth exceeded");
    let fields = "{{ ".to_owned() + &".a".repeat(deep) + " }}";
    assert_eq!(run(&fields).unwrap(), b"<no value>");
    let megabyte = "text {{ .s }}\n".repeat(75_000);
    assert_eq!(run(&megabyte).unwrap().len(), 75_000 * "text str\n".len());
    let pipes = "{{ 1".to_owned() + &" | print".repeat(deep) + " }}";
    assert_eq!(run(&pipes).unwrap(), b"1");
}

#[test]
fn the_clock_of_the_host_ends_a_run() {
    struct Late;
    impl biplane_template::func::Host for Late {
        fn now(&self) -> (i64, u32) {
            (0, 0)
        }
        fn random(&self, _: &mut [u8]) {}
        fn expired(&self) -> bool {
            true
        }
    }
    let delimiters = Delimiters::default();
    let text = "{{ range 1000000 }}{{ end }}";
    let template = Template::parse("manifests", text, &functions(), &delimiters).unwrap();
    let error = template.run(&data(), MissingKey::Default, &Late, Limits::default());
    assert_eq!(error.unwrap_err().limit(), Some(Exceeded::Time));
}

//! Tests against the recorded results of the Go implementation for expressions over one object.

use super::{Cost, EvaluateError, PER_RUN, Program, Type, Value, parse};
use serde_json::Value as Json;

fn object() -> Json {
    serde_json::from_str(include_str!("object.json")).unwrap()
}

/// Compiles a program with the variable `object`.
fn compile(rule: &str) -> Result<Program, String> {
    let checked = parse(rule).and_then(|expression| expression.check(&["object"]));
    checked.map_err(|error| format!("failed to compile query: {error}"))
}

/// The result of an expression, in the form of the recorded program.
fn answer(rule: &str, object: &Json) -> Result<bool, String> {
    let program = compile(rule)?;
    if *program.result() != Type::Bool {
        return Err("celQuery does not return a bool type".to_owned());
    }
    match program.evaluate(&[("object", object.into())]) {
        Ok(value) => Ok(matches!(value, Value::Bool(true))),
        Err(error) => Err(format!("failed to eval the program: {error}")),
    }
}

/// The part of a result that is compared. For syntax errors this is only the location of the first
/// one, because the rest depends on the parser.
fn essence(says: &str) -> &str {
    match says.find(": Syntax error") {
        Some(at) => &says[..at],
        None => says,
    }
}

#[test]
fn rules_say_what_they_say_in_go() {
    let mut differ = Vec::new();
    for line in include_str!("recorded.jsonl").lines() {
        let recorded: Json = serde_json::from_str(line).unwrap();
        let (rule, expected) =
            (recorded["rule"].as_str().unwrap(), recorded["says"].as_str().unwrap());
        let says = match answer(rule, &object()) {
            Ok(true) => "True".to_owned(),
            Ok(false) => "False".to_owned(),
            Err(error) => error,
        };
        if essence(&says) != essence(expected) {
            differ.push(format!("{rule}\n  said {says}\n  real {expected}"));
        }
    }
    assert!(differ.is_empty(), "{} rules differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn no_rule_is_too_odd_to_be_answered() {
    let lines: Vec<Json> = include_str!("recorded.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let rules: Vec<&[u8]> =
        lines.iter().map(|line| line["rule"].as_str().unwrap().as_bytes()).collect();
    let object = object();
    biplane_testkit::mutate("rules", &rules, 3_000, |bytes| {
        let _ = answer(&String::from_utf8_lossy(bytes), &object);
    });
}

/// Expressions that are not among the recorded ones.
#[test]
fn moments_are_those_of_the_calendar() {
    let object = object();
    for rule in [
        "timestamp('2024-02-29T23:59:59.5Z').getDayOfYear() == 59",
        "timestamp('2024-02-29T23:59:59.5Z').getDayOfWeek() == 4",
        "timestamp('2024-02-29T23:59:59.5Z').getDate('+00:01') == 1",
        "timestamp('2024-02-29T23:59:59.5Z').getMonth() == 1",
        "timestamp('2024-02-29T23:59:59.5Z').getMilliseconds() == 500",
        "timestamp('1969-12-31T23:59:59.25Z').getSeconds() == 59",
        "string(timestamp('1969-12-31T23:59:59.250Z')) == '1969-12-31T23:59:59.25Z'",
        "string(timestamp('9999-12-31T23:59:59Z')) == '9999-12-31T23:59:59Z'",
        "string(timestamp('0001-01-01T00:00:00Z')) == '0001-01-01T00:00:00Z'",
        "string(timestamp(-1)) == '1969-12-31T23:59:59Z'",
    ] {
        assert_eq!(answer(rule, &object), Ok(true), "{rule}");
    }
    for rule in [
        "timestamp(253402300800) == timestamp(0)",
        "timestamp(9223372036854775807) == timestamp(0)",
        "timestamp('0000-12-31T23:59:59Z') == timestamp(0)",
        "timestamp('9999-12-31T23:59:59Z') + duration('1s') == timestamp(0)",
        "timestamp('0001-01-01T00:00:00Z') - duration('1s') == timestamp(0)",
    ] {
        let error = answer(rule, &object).unwrap_err();
        assert_eq!(error, "failed to eval the program: timestamp overflow", "{rule}");
    }
}

/// Each of these is accepted at a smaller depth.
#[test]
fn depth_is_limited_before_it_can_hurt() {
    let object = object();
    let within = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    for (rule, fine, too_deep) in [
        (&(|n| within("(", "true", ")", n)) as &dyn Fn(usize) -> String, 100, 20_000),
        (&|n| within("[", "", "]", n) + " != []", 100, 20_000),
        (&|n| within("{1:", "1", "}", n) + " != {}", 100, 20_000),
        (&|n| within("!(", "true", ")", n) + " || true", 100, 20_000),
        (&|n| format!("1{} > 0", " + 1".repeat(n)), 100, 10_000),
        (&|n| format!("object{} == 1 || true", ".a".repeat(n)), 100, 30_000),
        (&|n| format!("object{} == 1 || true", "[0]".repeat(n)), 100, 30_000),
        (&|n| "true ? true : ".repeat(n) + "true", 100, 7_000),
    ] {
        assert_eq!(answer(&rule(fine), &object), Ok(true), "{}", rule(fine));
        let error = compile(&rule(too_deep)).unwrap_err();
        let shown: String = error.chars().take(200).collect();
        assert!(error.contains("expression recursion limit exceeded: 250"), "{shown}");
    }
    let long = vec!["true"; 10_000].join(" && ");
    assert_eq!(answer(&long, &object), Ok(true));
}

#[test]
fn endless_problems_are_not_all_told() {
    let told = compile(&"#".repeat(5_000)).unwrap_err();
    assert!(told.ends_with("4901 more errors were truncated"), "{}", &told[told.len() - 60..]);
    assert_eq!(told.matches("ERROR: ").count(), 100);
}

fn evaluate(rule: &str, object: &Json) -> Result<bool, EvaluateError> {
    let program = compile(rule).unwrap();
    program.evaluate(&[("object", object.into())]).map(|value| matches!(value, Value::Bool(true)))
}

/// Each of these took seconds to minutes, or gigabytes.
#[test]
fn what_costs_too_much_is_stopped() {
    let nested = |depth: usize| {
        let list = "[0,1,2,3,4,5,6,7,8,9]";
        (0..depth).fold("true".to_owned(), |rule, n| format!("{list}.all(x{n}, {rule})"))
    };
    let doubled = |depth: usize, start: &str| {
        let value = (0..depth).fold(start.to_owned(), |v, _| format!("[{v}].map(x, x + x)[0]"));
        format!("size({value}) > 0")
    };
    let shared = |depth: usize| {
        let value = (0..depth).fold("[1]".to_owned(), |v, _| format!("[{v}].map(x, [x, x])[0]"));
        format!("{value} == {value}")
    };
    let long = serde_json::json!({
        "text": "a".repeat(1 << 20), "list": vec!["x".repeat(1000); 1000],
        "pattern": "(a?){500}a{500}",
    });
    for (rule, object) in [
        (nested(8), &long),
        (doubled(24, "[1,1]"), &long),
        (doubled(24, "'ab'"), &long),
        (doubled(24, "b'ab'"), &long),
        (shared(30), &long),
        ("object.text.matches(object.pattern)".to_owned(), &long),
        ("'a'.matches('(\\\\pL' + '){900}')".to_owned(), &long),
        ("dyn(object.list).all(x, dyn(object.list).all(y, x == y))".to_owned(), &long),
        ("dyn(object.list).all(x, size(object.text) > 0)".to_owned(), &long),
        // An error can be ignored, but this is none.
        (format!("({}) || true", doubled(24, "[1,1]")), &long),
        (format!("[1].exists(x, {} || true) || true", nested(8)), &long),
    ] {
        assert_eq!(evaluate(&rule, object), Err(EvaluateError::CostExceeded), "{rule:.100}");
    }
}

#[test]
fn usual_rules_cost_little() {
    let object = object();
    for line in include_str!("recorded.jsonl").lines() {
        let recorded: Json = serde_json::from_str(line).unwrap();
        let Ok(program) = compile(recorded["rule"].as_str().unwrap()) else { continue };
        let mut cost = Cost::new(PER_RUN, &|| true);
        let _ = program.evaluate_within(&[("object", (&object).into())], &mut cost);
        assert!(cost.spent() < PER_RUN / 100, "{recorded} cost {}", cost.spent());
    }
}

#[test]
fn a_run_ends_when_its_caller_says_so() {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let rule = (0..5).fold("true".to_owned(), |rule, n| format!("{list}.all(x{n}, {rule})"));
    let program = compile(&rule).unwrap();
    let object = object();
    let outcome = program
        .evaluate_within(&[("object", (&object).into())], &mut Cost::new(PER_RUN, &|| false))
        .map(|_| ());
    assert_eq!(outcome, Err(EvaluateError::Interrupted));
}

/// Keys were compared with all that came before, and types copied for every call.
#[test]
fn long_literals_take_linear_time() {
    let object = object();
    let entries: Vec<String> = (0..4000).map(|n| format!("'{n}': {n}")).collect();
    let map = format!("{{{}}}", entries.join(", "));
    assert_eq!(answer(&format!("size({map}) == 4000"), &object), Ok(true));
    assert_eq!(answer(&format!("{map}['3999'] == 3999"), &object), Ok(true));
    let calls = vec!["size([])==0"; 8000].join(",");
    assert_eq!(answer(&format!("size([{calls}]) == 8000"), &object), Ok(true));
}

#[test]
fn keys_of_literals_are_equal_by_value() {
    let object = object();
    for rule in [
        "size({1: 'a', 1u: 'b', 1.0: 'c'}) == 1",
        "{1: 'a', 2: 'b'}[dyn(2u)] == 'b'",
        "{true: 'a', 'true': 'b'}[true] == 'a'",
        "size({'a': 1, 'b': 2, 'a': 3}) == 2 && {'a': 1, 'a': 3}['a'] == 3",
        "{'a': [1], 'b': {'c': 2}} == {'b': {'c': 2.0}, 'a': [1u]}",
    ] {
        assert_eq!(answer(rule, &object), Ok(true), "{rule}");
    }
}

/// Costs, types and errors that the Go implementation gave in Kubernetes' environment. The first
/// line has the schema and the object.
#[test]
fn rules_of_schemas_cost_what_they_cost_in_go() {
    let mut lines = include_str!("kubernetes.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap());
    let first = lines.next().unwrap();
    let shape = super::Shape::read(&first["schema"], false);
    let kind = shape.declared("selfType").unwrap();
    let mut differ = Vec::new();
    for line in lines {
        let rule = line["expr"].as_str().unwrap();
        let checked = super::parse_as(rule, super::Dialect::Kubernetes)
            .and_then(|expression| expression.check_with(&[("self", kind.clone())]));
        let mut cost = Cost::kubernetes(PER_RUN, &|| true);
        let mut value = None;
        let (kind, error) = match &checked {
            Err(error) => (String::new(), format!("compile: {error}")),
            Ok(program) => {
                if let Some(fault) = program.literal_fault() {
                    (program.result().to_string(), format!("program: {fault}"))
                } else {
                    let variables = [("self", shape.value(&first["object"]))];
                    let outcome = program.evaluate_within(&variables, &mut cost);
                    if let Ok(Value::Bool(bool)) = &outcome {
                        value = Some(bool.to_string());
                    }
                    let error = outcome.err().map(|error| format!("eval: {error}"));
                    (program.result().to_string(), error.unwrap_or_default())
                }
            }
        };
        let real = |name: &str| line[name].as_str().unwrap_or_default();
        let compile = |text: &str| text.starts_with("compile: ");
        let same_error = error == real("error") || (compile(&error) && compile(real("error")));
        let same_type = compile(&error) || kind == real("type");
        let same_value = line["value"].as_str().is_none_or(|real| value.as_deref() == Some(real));
        let same_cost = cost.charged() == line["cost"].as_u64().unwrap();
        let same_answer = same_error && same_type && same_value;
        if !same_answer || !same_cost {
            let charged = cost.charged();
            differ
                .push(format!("{rule}\n  ours {kind} {value:?} {charged} {error}\n  real {line}"));
        }
    }
    assert!(differ.is_empty(), "{} rules differ:\n{}", differ.len(), differ.join("\n"));
}

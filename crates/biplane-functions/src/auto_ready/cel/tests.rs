//! What the Go implementation said about rules over one object.

use super::Program;
use biplane_model::Object;
use serde_json::Value;
use std::time::Duration;

fn object() -> Object {
    serde_json::from_str(include_str!("object.json")).unwrap()
}

/// What is compared of an answer: of syntax errors only where the first one is, for the rest is the
/// parser's guess at what was meant.
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
        let recorded: Value = serde_json::from_str(line).unwrap();
        let (rule, expected) =
            (recorded["rule"].as_str().unwrap(), recorded["says"].as_str().unwrap());
        let says = match Program::compile(rule).and_then(|program| program.run(&object())) {
            Ok(true) => "True".to_owned(),
            Ok(false) => "False".to_owned(),
            Err(error) => error.to_string(),
        };
        if essence(&says) != essence(expected) {
            differ.push(format!("{rule}\n  said {says}\n  real {expected}"));
        }
    }
    assert!(differ.is_empty(), "{} rules differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn no_rule_is_too_odd_to_be_answered() {
    let lines: Vec<Value> = include_str!("recorded.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let rules: Vec<&[u8]> =
        lines.iter().map(|line| line["rule"].as_str().unwrap().as_bytes()).collect();
    let object = object();
    biplane_testkit::mutate("rules", &rules, Duration::from_secs(2), |bytes| {
        if let Ok(program) = Program::compile(&String::from_utf8_lossy(bytes)) {
            let _ = program.run(&object);
        }
    });
}

#[test]
fn depth_is_limited_before_it_can_hurt() {
    for rule in [
        "(".repeat(50_000),
        "[".repeat(50_000),
        "-!".repeat(30_000),
        format!("1{} == 1", " + 1".repeat(10_000)),
        format!("object{} == 1", ".a".repeat(30_000)),
        format!("object{} == 1", "[0]".repeat(30_000)),
        "true ? true : ".repeat(7_000) + "true",
    ] {
        assert!(Program::compile(&rule).is_err(), "{}", &rule[..20]);
    }
    let long = vec!["true"; 10_000].join(" && ");
    assert_eq!(Program::compile(&long).unwrap().run(&object()), Ok(true));
}

#[test]
fn endless_problems_are_not_all_told() {
    let told = Program::compile(&"#".repeat(5_000)).unwrap_err().to_string();
    assert!(told.ends_with("4901 more errors were truncated"), "{}", &told[told.len() - 60..]);
    assert_eq!(told.matches("ERROR: ").count(), 100);
}

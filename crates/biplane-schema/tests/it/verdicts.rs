//! Compares what we decide about objects and definitions with what a real API server decided: the
//! same verdict, and the same fields named. `biplane-cluster` asks a real server again.

#![allow(clippy::unwrap_used)] // what is recorded is there

use biplane_model::Object;
use biplane_schema::custom_resource::CustomResource;
use biplane_schema::structural::FieldError;
use biplane_testkit::Recording;
use serde_json::{Value, json};

fn object(case: &str, spec: &Value) -> Object {
    let kind = format!("C{}", &case[1..]);
    let value = json!({
        "apiVersion": "verdicts.example.org/v1", "kind": kind, "metadata": {"name": "o"}, "spec": spec,
    });
    Object::from_value(value).unwrap()
}

/// The fields that are named as wrong, with the reason, in order.
fn named<'a>(causes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut named: Vec<String> =
        causes.map(|(reason, field)| format!("{reason} {field}")).collect();
    named.sort();
    named
}

#[test]
fn objects_are_refused_for_the_fields_that_a_server_names() {
    let (mut differ, mut objects) = (Vec::new(), 0);
    for recording in Recording::load_area("verdicts") {
        let kind = CustomResource::read(&recording.json("schema.json").unwrap()).unwrap();
        let prepared = |spec: &Value| {
            let mut object = object(&recording.name, spec);
            kind.schema.prune(&mut object);
            kind.schema.default(&mut object);
            object
        };
        for case in recording.json("objects.json").unwrap().as_array().unwrap() {
            objects += 1;
            let old = case.get("old").map(prepared);
            let errors = kind.validate(&prepared(&case["new"]), old.as_ref());
            let ours = named(errors.iter().map(|e| (e.problem.reason(), e.field.as_str())));
            let causes = case["causes"].as_array().into_iter().flatten();
            let real = named(causes.map(|c| (c[0].as_str().unwrap(), c[1].as_str().unwrap())));
            let refused = case["code"] == 422;
            if refused == errors.is_empty() || ours != real {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                differ.push(format!("{}: {case}\n  ours {texts:?}", recording.name));
            }
        }
    }
    assert!(objects >= 500, "{objects}");
    assert!(differ.is_empty(), "{} of {objects} differ:\n{}", differ.len(), differ.join("\n"));
}

/// The words are the server's too.
#[test]
fn objects_are_refused_in_the_words_of_a_server() {
    let mut differ = Vec::new();
    for recording in Recording::load_area("verdicts") {
        let kind = CustomResource::read(&recording.json("schema.json").unwrap()).unwrap();
        for case in recording.json("objects.json").unwrap().as_array().unwrap() {
            let Some(causes) = case["causes"].as_array() else { continue };
            if case.get("old").is_some() {
                continue;
            }
            let mut object = object(&recording.name, &case["new"]);
            kind.schema.prune(&mut object);
            kind.schema.default(&mut object);
            let errors = kind.validate(&object, None);
            let mut ours: Vec<String> = errors.iter().map(FieldError::body).collect();
            let mut real: Vec<String> =
                causes.iter().map(|cause| cause[2].as_str().unwrap().to_owned()).collect();
            ours.sort();
            real.sort();
            if ours != real {
                differ.push(format!(
                    "{}: {}\n  ours {ours:?}\n  real {real:?}",
                    recording.name, case["new"]
                ));
            }
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

/// The definition of a recorded case about definitions, which has a schema for each version.
fn definition(schemas: &Value) -> Object {
    let version = |(place, schema): (usize, &Value)| json!({"name": format!("v{}", place + 1), "schema": {"openAPIV3Schema": schema}});
    let versions: Vec<Value> =
        schemas.as_array().unwrap().iter().enumerate().map(version).collect();
    let names = json!({"kind": "Case", "plural": "cases"});
    Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cases.x.org"},
        "spec": {"group": "x.org", "names": names, "versions": versions},
    }))
    .unwrap()
}

/// What parsers say about expressions that do not compile is not compared.
fn without_compiler(text: &str) -> &str {
    text.split_once("compilation failed: ").map_or(text, |(before, _)| before)
}

#[test]
fn definitions_are_refused_for_the_reasons_that_a_server_gives() {
    let (mut differ, mut refused) = (Vec::new(), 0);
    let recordings = Recording::load_area("crd-verdicts");
    for recording in &recordings {
        let read = |file: &str| recording.json(file).map(|schemas| definition(&schemas));
        let (new, old) = (read("schemas.json").unwrap(), read("before.json"));
        let verdict = recording.json("verdict.json").unwrap();
        let causes = verdict["causes"].as_array().into_iter().flatten();
        let mut real: Vec<String> = causes
            .map(|c| {
                let text = |place: usize| c[place].as_str().unwrap().to_owned();
                format!("{} {} {}", text(0), text(1), without_compiler(&text(2)))
            })
            .collect();
        let errors = biplane_schema::crd::validate(&new, old.as_ref());
        let one = |e: &FieldError| {
            format!("{} {} {}", e.problem.reason(), e.field, without_compiler(&e.body()))
        };
        let mut ours: Vec<String> = errors.iter().map(one).collect();
        ours.sort();
        real.sort();
        refused += usize::from(verdict["code"] == 422);
        if ours != real || errors.is_empty() == (verdict["code"] == 422) {
            differ.push(format!("{}\n  ours {ours:#?}\n  real {real:#?}", recording.name));
        }
    }
    assert!(refused >= 60, "{refused}");
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

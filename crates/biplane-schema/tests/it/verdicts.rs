//! Compares what we decide about objects with what a real API server decided: the same verdict, and
//! the same fields named. `biplane-cluster` asks a real server again.

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

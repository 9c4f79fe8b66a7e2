//! Recorded verdicts of a real API server about objects and about definitions: the one in memory
//! accepts and refuses the same, and a real one still does.

use std::time::{Duration, Instant};

use biplane_cluster::memory::ApiServer as Memory;
use biplane_cluster::{Cluster as _, Part, Source, Write, WriteError};
use biplane_devenv::ApiServer;
use biplane_model::Object;
use biplane_testkit::Recording;
use serde_json::{Value, json};

use crate::http::Client;
use crate::soon;

const GROUP: &str = "verdicts.example.org";
const JSON: &str = "application/json";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn kind(case: &str) -> String {
    format!("C{}", &case[1..])
}

fn definition(recording: &Recording) -> Value {
    let name = &recording.name;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{name}s.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster",
            "names": {"kind": kind(name), "plural": format!("{name}s"), "singular": name, "listKind": format!("{}List", kind(name))},
            "versions": [{"name": "v1", "served": true, "storage": true,
                          "schema": {"openAPIV3Schema": recording.json("schema.json").unwrap()}}],
        },
    })
}

fn object(case: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind(case), "metadata": {"name": name}, "spec": spec,
    })
}

#[tokio::test]
async fn the_server_in_memory_refuses_what_a_real_one_refuses() {
    let server = Memory::default();
    let write = Write::by("us");
    let mut differ = Vec::new();
    for recording in Recording::load_area("verdicts") {
        let read = |value: Value| Object::from_value(value).unwrap();
        server.create(read(definition(&recording)), &write, soon()).await.unwrap();
        let cases = recording.json("objects.json").unwrap();
        for (place, case) in cases.as_array().unwrap().iter().enumerate() {
            let name = format!("o{place}");
            let new = object(&recording.name, &name, &case["new"]);
            let outcome = match case.get("old") {
                None => server.create(read(new), &write, soon()).await,
                Some(old) => {
                    let old = read(object(&recording.name, &name, old));
                    let stored = server.create(old, &write, soon()).await.unwrap();
                    let mut new = read(new);
                    new.set_meta("resourceVersion", stored.resource_version());
                    server.update(&new, Part::Main, &write, soon()).await
                }
            };
            let refused = match outcome {
                Ok(_) => false,
                Err(WriteError::Invalid(_)) => true,
                Err(other) => panic!("{}: {case}: {other}", recording.name),
            };
            if refused != (case["code"] == 422) {
                differ.push(format!("{}: {case}", recording.name));
            }
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

/// What the server answered, in the form of the recording.
fn verdict(status: u16, answer: &Value) -> (Value, Option<Value>) {
    let causes = answer["details"]["causes"].as_array();
    let cause = |cause: &Value| json!([cause["reason"], cause["field"], cause["message"]]);
    let causes = causes.map(|causes| causes.iter().map(cause).collect());
    (status.into(), causes)
}

/// Whether the answers are to be recorded instead of compared.
#[allow(clippy::disallowed_methods)] // set by the developer who runs the test
fn records() -> bool {
    std::env::var("RECORD_APISERVER").is_ok()
}

/// Reasons and fields of causes, in order. Go tells them in a random one.
fn named(causes: Option<&Value>) -> Vec<String> {
    let causes = causes.and_then(Value::as_array).into_iter().flatten();
    let mut named: Vec<String> = causes.map(|cause| format!("{} {}", cause[0], cause[1])).collect();
    named.sort();
    named
}

/// Waits until objects of a kind can be stored.
fn wait_for(client: &Client, path: &str) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while client.ask("GET", path, JSON, "").0 != 200 {
        assert!(Instant::now() < deadline, "{path} is not served");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Rewrites the recording if `RECORD_APISERVER` is set.
#[test]
fn a_real_server_still_decides_as_recorded() {
    let server = ApiServer::start().unwrap();
    let client = Client::new(&server);
    let mut recordings = Recording::load_area("verdicts");
    for recording in &recordings {
        let (status, answer) = client.ask("POST", CRDS, JSON, &definition(recording).to_string());
        assert_eq!(status, 201, "{}: {answer}", recording.name);
    }
    let mut differ = Vec::new();
    for recording in &mut recordings {
        let path = format!("/apis/{GROUP}/v1/{}s", recording.name);
        wait_for(&client, &path);
        let mut cases = recording.json("objects.json").unwrap();
        for (place, case) in cases.as_array_mut().unwrap().iter_mut().enumerate() {
            let name = format!("o{place}");
            let mut new = object(&recording.name, &name, &case["new"]);
            let (status, answer) = match case.get("old") {
                None => client.ask("POST", &format!("{path}?dryRun=All"), JSON, &new.to_string()),
                Some(old) => {
                    let old = object(&recording.name, &name, old).to_string();
                    let (_, stored) = client.ask("POST", &path, JSON, &old);
                    new["metadata"]["resourceVersion"] =
                        stored["metadata"]["resourceVersion"].clone();
                    let path = format!("{path}/{name}?dryRun=All");
                    client.ask("PUT", &path, JSON, &new.to_string())
                }
            };
            let (code, causes) = verdict(status, &answer);
            if case["code"] != code || named(case.get("causes")) != named(causes.as_ref()) {
                differ.push(format!("{}: {case}\n  now {status} {answer}", recording.name));
            }
            case["code"] = code;
            match causes {
                Some(causes) => case["causes"] = causes,
                None => drop(case.as_object_mut().unwrap().remove("causes")),
            }
        }
        recording.files.insert("objects.json".to_owned(), cases.to_string());
    }
    if records() {
        Recording::save_area("verdicts", &recordings);
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

/// The definition of a recorded case about definitions, which has a schema for each version.
fn definition_of(recording: &Recording, schemas: &Value) -> Value {
    let version = |(place, schema): (usize, &Value)| {
        json!({"name": format!("v{}", place + 1), "served": true, "storage": place == 0,
               "schema": {"openAPIV3Schema": schema}})
    };
    let versions: Vec<Value> =
        schemas.as_array().unwrap().iter().enumerate().map(version).collect();
    let plural = recording.name.replace('-', "");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster", "versions": versions,
            "names": {"kind": format!("K{plural}"), "plural": plural, "singular": plural,
                      "listKind": format!("K{plural}List")},
        },
    })
}

#[tokio::test]
async fn the_server_in_memory_refuses_definitions_that_a_real_one_refuses() {
    let server = Memory::default();
    let write = Write::by("us");
    let mut differ = Vec::new();
    for recording in Recording::load_area("crd-verdicts") {
        let read =
            |schemas: &Value| Object::from_value(definition_of(&recording, schemas)).unwrap();
        let mut new = read(&recording.json("schemas.json").unwrap());
        let outcome = match recording.json("before.json") {
            None => server.create(new, &write, soon()).await,
            Some(before) => {
                let stored = server.create(read(&before), &write, soon()).await.unwrap();
                let stored = server.get(&stored.id(), Source::Live, soon()).await.unwrap();
                new.set_meta("resourceVersion", stored.resource_version());
                server.update(&new, Part::Main, &write, soon()).await
            }
        };
        let verdict = recording.json("verdict.json").unwrap();
        let refused = match &outcome {
            Ok(_) => false,
            Err(WriteError::Invalid(_)) => true,
            Err(other) => panic!("{}: {other}", recording.name),
        };
        if refused != (verdict["code"] == 422) {
            differ.push(format!("{}: {verdict}\n  ours {outcome:?}", recording.name));
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

/// Rewrites the recording if `RECORD_APISERVER` is set.
#[test]
fn a_real_server_still_decides_about_definitions_as_recorded() {
    let server = ApiServer::start().unwrap();
    let client = Client::new(&server);
    let mut recordings = Recording::load_area("crd-verdicts");
    let mut differ = Vec::new();
    for recording in &mut recordings {
        let mut new = definition_of(recording, &recording.json("schemas.json").unwrap());
        let (status, answer) = match recording.json("before.json") {
            None => client.ask("POST", &format!("{CRDS}?dryRun=All"), JSON, &new.to_string()),
            Some(before) => {
                let before = definition_of(recording, &before);
                let (status, stored) = client.ask("POST", CRDS, JSON, &before.to_string());
                assert_eq!(status, 201, "{}: {stored}", recording.name);
                // A patch needs no version, which changes when the definition is established.
                new["metadata"].as_object_mut().unwrap().remove("resourceVersion");
                let name = stored["metadata"]["name"].as_str().unwrap();
                let path = format!("{CRDS}/{name}?dryRun=All");
                client.ask("PATCH", &path, "application/merge-patch+json", &new.to_string())
            }
        };
        let (code, causes) = verdict(status, &answer);
        let recorded = recording.json("verdict.json").unwrap_or_default();
        if recorded["code"] != code || named(recorded.get("causes")) != named(causes.as_ref()) {
            differ.push(format!("{}: {recorded}\n  now {status} {answer}", recording.name));
        }
        let now = json!({"code": code, "causes": causes});
        recording.files.insert("verdict.json".to_owned(), now.to_string());
    }
    if records() {
        Recording::save_area("crd-verdicts", &recordings);
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

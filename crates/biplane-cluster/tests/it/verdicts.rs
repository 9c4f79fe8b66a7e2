//! Recorded verdicts of a real API server: the one in memory accepts and refuses the same objects,
//! and a real one still does.

use std::time::{Duration, Instant};

use biplane_cluster::memory::ApiServer as Memory;
use biplane_cluster::{Cluster as _, Part, Write, WriteError};
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

#[test]
fn a_real_server_still_decides_as_recorded() {
    let server = ApiServer::start().unwrap();
    let client = Client::new(&server);
    let recordings = Recording::load_area("verdicts");
    for recording in &recordings {
        let (status, answer) = client.ask("POST", CRDS, JSON, &definition(recording).to_string());
        assert_eq!(status, 201, "{}: {answer}", recording.name);
    }
    let mut differ = Vec::new();
    for recording in &recordings {
        let path = format!("/apis/{GROUP}/v1/{}s", recording.name);
        let deadline = Instant::now() + Duration::from_mins(2);
        while client.ask("GET", &path, JSON, "").0 != 200 {
            assert!(Instant::now() < deadline, "{path} is not served");
            std::thread::sleep(Duration::from_millis(50));
        }
        let cases = recording.json("objects.json").unwrap();
        for (place, case) in cases.as_array().unwrap().iter().enumerate() {
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
            let mut fields: Vec<&Value> = answer["details"]["causes"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|c| &c["field"])
                .collect();
            let mut recorded: Vec<&Value> =
                case["causes"].as_array().into_iter().flatten().map(|cause| &cause[1]).collect();
            fields.sort_by_key(std::string::ToString::to_string);
            recorded.sort_by_key(std::string::ToString::to_string);
            if case["code"] != status || fields != recorded {
                differ.push(format!("{}: {case}\n  now {status} {answer}", recording.name));
            }
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

//! Checks the input schemas of the packages with the rules of a Kubernetes API server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use biplane_devenv::ApiServer;
use serde_json::{Value, json};

use crate::recorded::{Recording, unpack};

const FUNCTIONS: [(&str, &str, &str, &[u8]); 4] = [
    (
        "function-patch-and-transform",
        "pt.fn.crossplane.io/v1beta1",
        "Resources",
        include_bytes!("../data/pt.jsonl.gz"),
    ),
    (
        "function-environment-configs",
        "environmentconfigs.fn.crossplane.io/v1beta1",
        "Input",
        include_bytes!("../data/env.jsonl.gz"),
    ),
    (
        "function-auto-ready",
        "autoready.fn.crossplane.io/v1beta1",
        "Input",
        include_bytes!("../data/ready.jsonl.gz"),
    ),
    (
        "function-go-templating",
        "gotemplating.fn.crossplane.io/v1beta1",
        "GoTemplate",
        include_bytes!("../data/tmpl.jsonl.gz"),
    ),
];

fn run(mut command: Command, stdin: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    let writer = std::thread::spawn(move || input.write_all(stdin.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

fn kubectl(server: &ApiServer, arguments: &[&str]) -> String {
    let mut command = server.kubectl().unwrap();
    command.args(arguments);
    let output = run(command, "");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the inputs of recorded pipelines that the function accepted.
fn inputs(packed: &[u8]) -> Vec<(String, Value)> {
    let refused = |recording: &Recording| {
        let results = &recording.response.results;
        results.iter().any(|result| result.message.contains("Function input"))
    };
    unpack(packed)
        .into_iter()
        .filter(|recording| recording.id.contains('/') && !refused(recording))
        .filter_map(|recording| {
            let input = recording.request.input?.into_object();
            Some((recording.id, input.into_value()))
        })
        .collect()
}

/// Inputs that the schemas refuse although the functions accept them, like the original schemas.
/// The schemas do not list every value that the functions support, and the functions do not check
/// every value.
const NARROWER: [&str; 14] = [
    "env/input-unknown-source-type/0",
    "env/input-unknown-source-type/1",
    "pt/combine-bad-transform-never-runs#0",
    "pt/combine-transforms-are-not-validated#0",
    "pt/combine-unknown-from-policy#0",
    "pt/invalid-base-without-kind#0",
    "pt/json-html-escaping#0",
    "pt/string-convert-hashes#0",
    "pt/string-convert-hashes-of-json#0",
    "pt/string-convert-unknown-is-fatal#0",
    "pt/string-join#0",
    "pt/string-join-long-separator#0",
    "pt/string-join-null-is-fatal#0",
    "pt/string-join-object-is-fatal#0",
];

#[test]
fn an_api_server_takes_the_schemas_and_the_inputs_of_recorded_pipelines() {
    let server = ApiServer::start().unwrap();
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages");
    for (function, ..) in FUNCTIONS {
        let folder = packages.join(function).join("package/input");
        kubectl(&server, &["create", "-f", folder.to_str().unwrap()]);
    }
    kubectl(&server, &["wait", "--for=condition=Established", "--timeout=120s", "crd", "--all"]);
    let definitions = kubectl(&server, &["get", "crd", "-o", "json"]);
    let definitions: Value = serde_json::from_str(&definitions).unwrap();
    for definition in definitions["items"].as_array().unwrap() {
        let conditions = definition["status"]["conditions"].as_array().unwrap();
        let named = |condition: &&Value| condition["type"] == "NonStructuralSchema";
        assert_eq!(conditions.iter().find(named), None);
    }

    let mut stream = String::new();
    let mut ids = BTreeMap::new();
    for (_, api_version, kind, packed) in FUNCTIONS {
        for (id, mut input) in inputs(packed) {
            let name = format!("input-{}", ids.len());
            input["apiVersion"] = json!(api_version);
            input["kind"] = json!(kind);
            input["metadata"] = json!({"name": name, "namespace": "default"});
            writeln!(stream, "---\n{input}").unwrap();
            ids.insert(name, id);
        }
    }
    assert!(ids.len() > 250, "{} inputs", ids.len());
    let mut create = server.kubectl().unwrap();
    create.args(["create", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"]);
    let output = run(create, &stream);
    let taken = String::from_utf8(output.stdout).unwrap();
    let taken: BTreeSet<&str> =
        taken.lines().filter_map(|line| Some(line.split_once('/')?.1)).collect();
    let refused = ids.iter().filter(|(name, _)| !taken.contains(name.as_str()));
    let refused: BTreeSet<&str> = refused.map(|(_, id)| id.as_str()).collect();
    let reasons = String::from_utf8_lossy(&output.stderr);
    assert_eq!(refused, BTreeSet::from(NARROWER), "{reasons}");
}

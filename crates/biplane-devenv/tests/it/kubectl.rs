//! Compares kubectl's output with the recorded output that the YAML code is tested with.
//!
//! If `RECORD_KUBECTL` is set, output that differs replaces the recorded output. The test then
//! fails anyway, because it compared nothing.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use biplane_devenv::{Places, Tool, provision, say};
use serde_json::{Deserializer, Value};

fn recorded(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.join("../biplane-model/src/yaml/tests/recorded").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(recorded(name)).unwrap()
}

/// Passes YAML through kubectl without changing it.
fn kubectl(text: &str, format: &str) -> Output {
    let binaries = provision(&Places::from_env().unwrap(), &[Tool::Kubectl], &mut say).unwrap();
    let mut child = Command::new(binaries.path(Tool::Kubectl).unwrap())
        .args(["patch", "--local", "--type=merge", "--patch={}", "-f", "-", "-o", format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn printed(text: &str, format: &str) -> String {
    let output = kubectl(text, format);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Records output that differs if recording is requested. The test fails in either case.
fn record(name: &str, answer: &str) {
    #[allow(clippy::disallowed_methods)] // set by the developer who runs the test
    if std::env::var_os("RECORD_KUBECTL").is_some() {
        std::fs::write(recorded(name), answer).unwrap();
        panic!("{name} is recorded anew: look at the difference and run again");
    }
}

/// Compares output with the recorded output.
fn settle(name: &str, answer: &str) {
    let recorded = read(name);
    if recorded != answer {
        record(name, answer);
    }
    for (number, (ours, theirs)) in recorded.lines().zip(answer.lines()).enumerate() {
        assert_eq!(ours, theirs, "{name}, line {}", number + 1);
    }
    assert_eq!(recorded, answer, "{name}");
}

/// Compares objects that kubectl has read, by their content.
fn settle_objects(name: &str, json: &str) {
    let objects = Deserializer::from_str(json).into_iter::<Value>();
    let objects: Vec<_> = objects.map(Result::unwrap).collect();
    let recorded: Vec<Value> = serde_json::from_str(&read(name)).unwrap();
    if recorded != objects {
        let lines: Vec<_> = objects.iter().map(ToString::to_string).collect();
        record(name, &format!("[\n{}\n]\n", lines.join(",\n")));
    }
    assert_eq!(recorded, objects, "{name}");
}

#[test]
fn scalars_are_read_and_printed_as_recorded() {
    let scalars = read("scalars.yaml");
    settle("scalars.printed.yaml", &printed(&scalars, "yaml"));
    settle("scalars.read.json", &printed(&scalars, "json"));
}

#[test]
fn strings_are_printed_as_recorded() {
    let objects: Vec<Value> = serde_json::from_str(&read("strings.json")).unwrap();
    let mut all = String::new();
    for object in objects {
        all.extend(["---\n", &printed(&object.to_string(), "yaml")]);
    }
    settle("strings.printed.yaml", &all);
}

/// kubectl prints no separators, so each document is passed separately.
#[test]
fn documents_are_read_and_printed_as_recorded() {
    let documents = format!("\n{}", read("documents.yaml"));
    let (mut yaml, mut json) = (String::new(), String::new());
    for document in documents.split("\n---\n").skip(1) {
        let document = format!("{document}\n");
        yaml.extend(["---\n", &printed(&document, "yaml")]);
        json += &printed(&document, "json");
    }
    settle("documents.printed.yaml", &yaml);
    settle_objects("documents.read.json", &json);
}

#[test]
fn what_is_recorded_as_refused_is_refused() {
    let texts: Vec<String> = serde_json::from_str(&read("refused.json")).unwrap();
    for text in texts {
        let output = kubectl(&text, "yaml");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("error converting YAML to JSON"), "{text:?}: {stderr}");
    }
}

#[test]
fn tabs_and_brackets_are_judged_as_recorded() {
    const REFUSAL: &str = "error converting YAML to JSON: ";
    for name in ["tabs.json", "flow.json"] {
        let cases: Vec<Value> = serde_json::from_str(&read(name)).unwrap();
        for case in cases {
            let text = case["text"].as_str().unwrap();
            // kubectl first tries to read input as JSON if it begins like JSON.
            if text.trim_start().starts_with('{') {
                continue;
            }
            let output = kubectl(text, "yaml");
            let stderr = String::from_utf8_lossy(&output.stderr);
            let said = stderr.split_once(REFUSAL).map(|(_, words)| words.trim_end());
            assert_eq!(said, case["error"].as_str(), "{text:?}: {stderr}");
        }
    }
}

//! Sequences of writes that must have the same results on the memory cluster and on a real API
//! server.
//!
//! `tests/ssa/sequences` contains the sequences, and `tests/ssa/recorded` the recorded responses of
//! an API server. The memory cluster is always compared with the recording. A real server is also
//! compared with it, and rewrites it when `RECORD_APISERVER` is set.

pub(crate) mod memory;
mod normal;
pub(crate) mod server;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use biplane_model::{Object, Value, yaml};
use serde_json::json;

/// Writes to objects that share a name with the sequence.
pub(crate) struct Sequence {
    pub name: String,
    kind: String,
    pub steps: Vec<Value>,
}

/// One write, ready to send.
pub(crate) struct Step<'a> {
    pub verb: &'a str,
    pub manager: &'a str,
    pub force: bool,
    pub object: Object,
    pub patch: &'a Value,
}

/// The response of a cluster: the object, or a reason and a message.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Object(Object),
    Gone,
    Refused { reason: &'static str, message: String },
}

/// A cluster that accepts writes.
pub(crate) trait World {
    fn get(&self, object: &Object) -> Answer;
    fn run(&self, step: &Step<'_>) -> Answer;
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ssa")
}

fn documents(path: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let documents = yaml::parse_documents(&path.display().to_string(), &text).unwrap();
    documents.into_iter().map(|document| document.value).collect()
}

pub(crate) fn definitions() -> Vec<Object> {
    let documents = documents(&folder().join("crds.yaml"));
    documents.into_iter().map(|value| Object::from_value(value).unwrap()).collect()
}

pub(crate) fn sequences() -> Vec<Sequence> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder().join("sequences")).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let mut out = Vec::new();
    for value in files.iter().flat_map(documents) {
        for sequence in value.as_array().unwrap() {
            out.push(Sequence {
                name: sequence["name"].as_str().unwrap().to_owned(),
                kind: sequence["kind"].as_str().unwrap_or("Widget").to_owned(),
                steps: sequence["steps"].as_array().unwrap().clone(),
            });
        }
    }
    out
}

/// Applies a merge patch (RFC 7386), like a client that reads, changes and writes back.
pub(crate) fn change(document: &mut Value, changes: &Value) {
    let Value::Object(changes) = changes else {
        *document = changes.clone();
        return;
    };
    if !document.is_object() {
        *document = json!({});
    }
    let map = document.as_object_mut().unwrap();
    for (name, value) in changes {
        if value.is_null() {
            map.remove(name);
        } else {
            change(map.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The object of a step, without content.
pub(crate) fn bare(sequence: &Sequence, step: &Value) -> Value {
    let suffix = step["suffix"].as_str().map(|s| format!("-{s}")).unwrap_or_default();
    let mut object = json!({
        "apiVersion": "example.org/v1",
        "kind": sequence.kind,
        "metadata": {"name": format!("{}{suffix}", sequence.name), "namespace": "default"},
    });
    if sequence.kind == "Plain" {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    object
}

/// Removes the objects of a sequence, so that it can run again.
fn clear(world: &dyn World, sequence: &Sequence) {
    for step in &sequence.steps {
        let object = Object::from_value(bare(sequence, step)).unwrap();
        let patch = &Value::Null;
        world.run(&Step { verb: "delete", manager: "test", force: false, object, patch });
    }
}

/// Makes a step of a sequence ready to send.
pub(crate) fn prepare<'a>(world: &dyn World, sequence: &Sequence, step: &'a Value) -> Step<'a> {
    let mut object = bare(sequence, step);
    if let Some(changes) = step.get("change") {
        let bare = Object::from_value(object.clone()).unwrap();
        if let Answer::Object(live) = world.get(&bare) {
            object = live.into_value();
        }
        change(&mut object, changes);
    }
    if let Some(given) = step.get("object") {
        // Nulls are sent as such, so this is not a merge patch.
        for (name, value) in given.as_object().unwrap() {
            if name == "metadata" {
                let metadata = object["metadata"].as_object_mut().unwrap();
                metadata.extend(value.as_object().unwrap().clone());
            } else {
                object[name] = value.clone();
            }
        }
    }
    Step {
        verb: step["do"].as_str().unwrap(),
        manager: step["as"].as_str().unwrap_or("test"),
        force: step["force"].as_bool().unwrap_or_default(),
        object: Object::from_value(object).unwrap(),
        patch: &step["patch"],
    }
}

/// Runs a sequence. Returns the responses in a form that does not depend on time and place.
fn play(world: &dyn World, sequence: &Sequence) -> Vec<Value> {
    let mut normal = normal::Normal::default();
    let steps = sequence.steps.iter();
    steps.map(|step| normal.answer(world.run(&prepare(world, sequence, step)))).collect()
}

fn recorded(sequence: &Sequence) -> PathBuf {
    folder().join("recorded").join(format!("{}.json", sequence.name))
}

/// Compares a cluster with the recording and reports every sequence that differs.
fn compare(world: &dyn World) {
    let mut wrong: BTreeMap<String, String> = BTreeMap::new();
    let all = sequences();
    for sequence in &all {
        let text = fs::read_to_string(recorded(sequence)).unwrap_or_else(|_| "[]".into());
        let expected: Vec<Value> = serde_json::from_str(&text).unwrap();
        let mut answers = play(world, sequence);
        // A server writes a new timestamp, and so a new version, if its clock reaches the next
        // second between two steps. This does not happen twice in a row.
        if answers != expected {
            clear(world, sequence);
            answers = play(world, sequence);
        }
        for (step, answer) in answers.iter().enumerate() {
            if expected.get(step) != Some(answer) {
                let expected = expected.get(step).unwrap_or(&Value::Null);
                wrong.entry(sequence.name.clone()).or_insert_with(|| {
                    format!("step {}:\n  recorded {expected}\n  answered {answer}", step + 1)
                });
            }
        }
        assert_eq!(expected.len(), answers.len(), "{} has another number of steps", sequence.name);
    }
    let report: Vec<String> = wrong.iter().map(|(name, how)| format!("{name}: {how}")).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), report.join("\n"));
}

#[test]
fn there_are_at_least_sixty_sequences_with_names_of_their_own() {
    let names: Vec<String> = sequences().into_iter().map(|sequence| sequence.name).collect();
    let unique: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
    assert!(names.len() >= 60, "{}", names.len());
}

#[test]
fn the_memory_cluster_answers_as_an_api_server_did() {
    compare(&memory::Memory::new(&definitions()));
}

#[test]
fn an_api_server_answers_as_recorded() {
    let world = server::Server::start(&definitions());
    #[allow(clippy::disallowed_methods)] // set by the developer who runs the test
    if std::env::var("RECORD_APISERVER").is_ok() {
        for sequence in sequences() {
            let answers = serde_json::to_string_pretty(&play(&world, &sequence)).unwrap();
            fs::write(recorded(&sequence), answers + "\n").unwrap();
        }
        return;
    }
    compare(&world);
}

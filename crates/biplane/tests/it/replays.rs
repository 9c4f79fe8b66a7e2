//! Tests replay of many requests and of whole pipelines, and what can be taken away.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use biplane::environment::Environment;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{PureFunction, Registry};
use biplane_model::yaml;
use biplane_proto::json::{from_value, to_value};
use serde_json::{Value, json};
use tonic::Status;

use crate::records::{ok, recorded};
use crate::support::{Folder, Ran, run, run_in};

/// Composes a bucket of the size of the composite resource. From a size on, a new version does
/// something else.
struct BySize {
    large: i64,
}

impl PureFunction for BySize {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let request = to_value(&request).unwrap();
        Ok(from_value(self.answer(&request)).unwrap())
    }
}

impl BySize {
    fn answer(&self, request: &Value) -> Value {
        let spec = &request["observed"]["composite"]["resource"]["spec"];
        let size = spec["size"].as_f64().unwrap() as i64;
        let class = if size >= self.large { "large" } else { "small" };
        let password = request["input"]["password"].clone();
        json!({
            "meta": {"ttl": "60s"},
            "desired": {"resources": {
                "bucket": {"resource": {"apiVersion": "s3.example.org/v1", "kind": "Bucket",
                    "spec": {"size": size, "class": class}}},
                "login": {"resource": {"apiVersion": "v1", "kind": "Secret", "stringData": {"password": password}}},
            }},
        })
    }
}

/// Says that all buckets that a step before desired are watched.
struct Watch;

impl PureFunction for Watch {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let request = to_value(&request).unwrap();
        Ok(from_value(Self::answer(&request)).unwrap())
    }
}

impl Watch {
    fn answer(request: &Value) -> Value {
        let mut desired = request["desired"].clone();
        let class = desired["resources"]["bucket"]["resource"]["spec"]["class"].clone();
        desired["resources"]["watch"] =
            json!({"resource": {"kind": "Watch", "spec": {"class": class}}});
        json!({"meta": {"ttl": "60s"}, "desired": desired})
    }
}

const OLD: BySize = BySize { large: 100 };

fn environment(own: BySize) -> Environment {
    let own = Registry::default().with("function-sized", own).with("function-watch", Watch);
    Environment { own, ..Environment::default() }
}

/// The lines of runs with these sizes, as the old version answered.
fn lines(sizes: impl Iterator<Item = i64>) -> String {
    let mut text = String::new();
    for (run, size) in sizes.enumerate() {
        let name = format!("xr-{size}");
        let composite = json!({"resource": {"apiVersion": "example.org/v1", "kind": "Store",
            "metadata": {"name": name, "uid": format!("uid-{size}")}, "spec": {"size": size}}});
        let mut desired = json!({});
        for (index, function) in [(0, "function-sized"), (1, "function-watch")] {
            let mut request = json!({"observed": {"composite": composite}, "desired": desired});
            if index == 0 {
                request["input"] =
                    json!({"apiVersion": "v1", "kind": "Input", "password": "hunter2"});
            }
            let answer = if index == 0 { OLD.answer(&request) } else { Watch::answer(&request) };
            desired = answer["desired"].clone();
            for (half, payload) in [("REQUEST", request), ("RESPONSE", answer)] {
                let line = json!({
                    "type": half,
                    "meta": {
                        "timestamp": format!("2026-11-16T12:{:02}:{:02}Z", run / 60 % 60, run % 60),
                        "traceId": format!("{run:08x}-0000-4000-8000-000000000000"),
                        "spanId": format!("{run:08x}-0000-4000-8000-00000000000{index}"),
                        "stepIndex": index, "stepName": if index == 0 { "size" } else { "watch" },
                        "functionName": function,
                        "compositionMeta": {
                            "compositionName": "stores", "compositeResourceName": name,
                            "compositeResourceUid": format!("uid-{size}"),
                            "compositeResourceApiVersion": "example.org/v1",
                            "compositeResourceKind": "Store",
                        },
                    },
                    "payload": payload,
                });
                writeln!(text, "{line}").unwrap();
            }
        }
    }
    text
}

fn replay(own: BySize, arguments: &[&str]) -> Ran {
    run_in(&[&["inspector", "replay"], arguments].concat(), "", &environment(own))
}

#[test]
fn requests_of_a_time_are_asked_once_each_and_differences_are_grouped() {
    let folder = Folder::new();
    // Twelve runs, of which six ask the same as another.
    let text = lines((0..12).map(|n| n % 6));
    let from = format!("--from={}", folder.write("runs.jsonl", &text));
    let store = format!("--store={}", folder.at("recorder.db").display());
    ok(&run(&["inspector", "import", &folder.at("runs.jsonl").display().to_string(), &store]));
    let function = "--function=function-sized";
    for records in [&from, &store] {
        let same = replay(OLD, &[function, records]);
        let text = "6 distinct requests of 12 recorded calls: all are answered as before.";
        assert!(ok(&same).contains(text), "{}", same.stdout);
        // From a size of four on, the new version composes something else.
        let junit = folder.at("report.xml");
        let report = format!("--junit={}", junit.display());
        let arguments = [function, records, &report, "-o", "json", "--with=function-sized"];
        let ran = replay(BySize { large: 4 }, &arguments);
        assert_eq!((ran.exit, ran.stderr.as_str()), (3, ""), "{}", ran.stdout);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let count = |field: &str| answer[field].as_i64().unwrap();
        assert_eq!((count("requests"), count("same"), count("different")), (6, 4, 2));
        let groups = answer["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 1, "{}", ran.stdout);
        assert_eq!(groups[0]["shape"], json!(["~ Bucket spec.class"]));
        assert_eq!((&groups[0]["requests"], &groups[0]["calls"]), (&json!(2), &json!(4)));
        let field = &groups[0]["first"]["resources"][0]["fields"][0];
        assert_eq!((&field["before"], &field["after"]), (&json!("small"), &json!("large")));
        let report = std::fs::read_to_string(&junit).unwrap();
        assert_eq!(report.matches("<testcase ").count(), 6);
        assert_eq!(report.matches("<failure ").count(), 2);
        assert!(report.contains(" tests=\"6\" failures=\"2\" "), "{report}");
        // What the function makes of secrets is neither a difference nor printed.
        assert!(!ran.stdout.contains("hunter2") && !report.contains("hunter2"));
        for form in ["table", "yaml", "md", "name"] {
            let ran = replay(BySize { large: 4 }, &[function, records, "-o", form]);
            assert_eq!((ran.exit, ran.stderr.as_str()), (3, ""), "{}", ran.stdout);
            assert!(!ran.stdout.contains("hunter2"));
        }
        let late = replay(OLD, &[function, records, "--since-time=2026-11-17"]);
        assert_eq!(late.exit, 1);
        assert!(late.stderr.contains("no request to function-sized was recorded in this time"));
    }
}

#[test]
fn recorded_requests_are_answered_as_upstream_answered_them() {
    let folder = Folder::new();
    let from = format!("--from={}", folder.write("runs.jsonl", &recorded()));
    let ran = run(&["inspector", "replay", "--function=function-dummy", &from, "-o", "json"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(answer["requests"].as_i64().unwrap() > 10, "{}", ran.stdout);
    assert_eq!(answer["different"], 0);
    // Names of what was redacted, and none of the values.
    let redacted: Vec<&str> = answer["redacted"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["path"].as_str().unwrap())
        .collect();
    assert!(redacted.iter().any(|path| path.starts_with("credentials.")), "{redacted:?}");
}

#[test]
fn every_recorded_pipeline_does_again_what_it_did() {
    let folder = Folder::new();
    let from = format!("--from={}", folder.write("runs.jsonl", &recorded()));
    let mut same = 0;
    for trace in traces(&from) {
        let ran = run(&["inspector", "replay", &trace, &from, "--pipeline", "-o", "json"]);
        if ran.stderr.contains("is not in the box") {
            assert_eq!(ran.exit, 80);
            continue;
        }
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(ran.stderr, "", "{trace}");
        // What was required while a step ran was not recorded, and neither was an end that never came.
        let is_whole =
            answer["steps"].as_array().unwrap().iter().all(|step| step["before"] != "incomplete");
        if is_whole && answer.get("needs").is_none() {
            assert_eq!(
                (ran.exit, &answer["differs"]),
                (0, &json!(false)),
                "{trace} {}",
                ran.stdout
            );
            same += 1;
        }
    }
    assert!(same > 15, "{same}");
}

#[test]
fn a_pipeline_shows_what_it_would_do() {
    let folder = Folder::new();
    let from = format!("--from={}", folder.write("runs.jsonl", &lines([3, 5].into_iter())));
    let same = replay(OLD, &["00000000", &from, "--pipeline"]);
    let text = "Nothing would differ: every step answers the same.";
    assert!(ok(&same).contains(text), "{}", same.stdout);
    // The second step is given what the first one answers now.
    let ran = replay(OLD, &["Store/xr-3", &from, "--set=spec.size=200", "-o", "json"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (3, ""), "{}", ran.stdout);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        answer["sentence"],
        "Something else would be desired. Changed bucket (2 fields), watch (1 field)."
    );
    assert_eq!(answer["set"], json!(["spec.size=200"]));
    let resources = answer["resources"].as_array().unwrap();
    let changed: Vec<_> = resources
        .iter()
        .flat_map(|slot| {
            let fields = slot["fields"].as_array().unwrap();
            fields.iter().map(|f| format!("{} {}", slot["resource"], f["path"])).collect::<Vec<_>>()
        })
        .collect();
    let want =
        ["\"bucket\" \"spec.class\"", "\"bucket\" \"spec.size\"", "\"watch\" \"spec.class\""];
    assert_eq!(changed, want);
    assert!(!ran.stdout.contains("hunter2"));
    for form in ["table", "yaml", "md", "name"] {
        let ran = replay(OLD, &["Store/xr-3", &from, "--set=spec.size=200", "-o", form]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (3, ""), "{}", ran.stdout);
        assert!(!ran.stdout.contains("hunter2"));
    }
    for (arguments, error) in [
        (&["00000000", &from, "--set=spec.size"][..], "expected PATH=VALUE"),
        (&["00000000", &from, "--set=none:a=1"], "nothing was recorded at observed.resources.none"),
        (&["00000000/1", &from, "--pipeline"], "name the run without a step"),
        (
            &["00000000", &from, "--pipeline", "--with=localhost:1"],
            "FUNCTION=TARGET: one of function-sized, function-watch",
        ),
        (&[&from], "--function"),
    ] {
        let ran = replay(OLD, arguments);
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""), "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains(error), "{arguments:?} {}", ran.stderr);
    }
}

fn traces(from: &str) -> Vec<String> {
    let ran = run(&["inspector", "runs", from, "--limit=500", "-o", "name"]);
    ok(&ran).lines().map(str::to_owned).collect()
}

/// Whether a document has everything that another has. Lists are compared as a whole.
fn has(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| has(whole, part)))
        }
        (whole, part) => whole == part,
    }
}

fn documents(text: &str) -> Vec<Value> {
    let documents = yaml::parse_documents("file", text).unwrap();
    documents.into_iter().map(|document| document.value).collect()
}

fn resource_name(document: &Value) -> Option<&str> {
    document["metadata"]["annotations"]["crossplane.io/composition-resource-name"].as_str()
}

#[test]
fn a_case_of_every_recorded_pipeline_renders_to_what_it_desired() {
    let folder = Folder::new();
    let from = format!("--from={}", folder.write("runs.jsonl", &recorded()));
    let (mut rendered, mut compositions) = (0, BTreeSet::new());
    for trace in traces(&from) {
        let directory = folder.at(&trace);
        let argument = format!("--directory={}", directory.display());
        let ran = run(&["inspector", "export", "--as=case", &trace, &from, &argument]);
        let said = ok(&ran);
        let command = said.lines().find_map(|line| line.strip_prefix("  biplane ")).unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).ok();
        assert!(read("README.md").unwrap().contains(command));
        let Some(expected) = read("expected.yaml") else { continue };
        // The command is written for a shell in the folder of the files.
        let arguments: Vec<String> = command
            .split(' ')
            .map(|word| match word.split_once('=') {
                Some((flag, file)) => format!("{flag}={}", directory.join(file).display()),
                None if word.contains('.') => directory.join(word).display().to_string(),
                None => word.to_owned(),
            })
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = run(&arguments);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{trace} {command}");
        let printed = documents(&ran.stdout);
        let expected = documents(&expected);
        for document in &expected {
            let name = resource_name(document);
            let is_same = |other: &&Value| match name {
                Some(_) => resource_name(other) == name,
                None => other["kind"] == document["kind"] && resource_name(other).is_none(),
            };
            let found = printed.iter().find(is_same);
            assert!(
                found.is_some_and(|found| has(found, document)),
                "{trace} {document} {}",
                ran.stdout
            );
        }
        let composed = |all: &[Value]| all.iter().filter(|d| resource_name(d).is_some()).count();
        assert_eq!(composed(&printed), composed(&expected), "{trace}");
        rendered += 1;
        compositions.insert(
            documents(&read("composition.yaml").unwrap())[0]["metadata"]["name"].to_string(),
        );
    }
    assert!(rendered > 10 && compositions.len() >= 7, "{rendered} {compositions:?}");
}

#[test]
fn a_folder_that_is_not_empty_is_not_written_to() {
    let folder = Folder::new();
    let from = format!("--from={}", folder.write("runs.jsonl", &lines([3].into_iter())));
    folder.write("case/mine.yaml", "a: b\n");
    let directory = format!("--directory={}", folder.at("case").display());
    for (arguments, error) in [
        (&["00000000", &from, "--as=case", &directory][..], "is not empty"),
        (&["00000000", &from, "--as=case"], "needs the folder of its files"),
        (&[&from, "--as=case", &directory], "name the one run"),
        (&[&from, "--as=html"], "name the one run"),
    ] {
        let ran = run(&[&["inspector", "export"], arguments].concat());
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""), "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains(error), "{arguments:?} {}", ran.stderr);
    }
}

/// The words in a text that mark secrets.
fn planted(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = text.split(|c| !is_word(c)).filter(|word| word.starts_with("PLANTED"));
    words.map(str::to_owned).collect()
}

/// What an input holds is passed through (INS-Z1). Nothing else that was planted is in any form.
#[test]
fn no_form_of_a_run_has_a_secret_or_a_script() {
    let folder = Folder::new();
    let text = recorded();
    let mut passed_through = planted("PLANTED");
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        passed_through.extend(planted(&line["payload"]["input"].to_string()));
    }
    let from = format!("--from={}", folder.write("runs.jsonl", &text));
    for trace in traces(&from) {
        for form in ["html", "md", "otlp"] {
            let ran = run(&["inspector", "export", &format!("--as={form}"), &trace, &from]);
            let found = planted(ok(&ran));
            assert!(
                found.is_subset(&passed_through),
                "{trace} {form} {found:?} {passed_through:?}"
            );
            assert!(!ran.stdout.contains("<script"));
        }
        let directory = folder.at(&trace);
        let argument = format!("--directory={}", directory.display());
        ok(&run(&["inspector", "export", "--as=case", &trace, &from, &argument]));
        for file in std::fs::read_dir(&directory).unwrap() {
            let found = planted(&std::fs::read_to_string(file.unwrap().path()).unwrap());
            assert!(found.is_subset(&passed_through), "{trace} {found:?}");
        }
    }
}

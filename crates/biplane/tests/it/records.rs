//! Tests the questions about recorded runs and changes as users ask them.

use std::io::Read;
use std::path::Path;

use crate::support::{Folder, Ran, example, run, run_with};

fn emissions() -> String {
    example("recorder", "emissions.jsonl")
}

fn changes() -> String {
    example("recorder", "changes.jsonl")
}

/// A store into which the example was imported.
fn store(folder: &Folder) -> String {
    let path = folder.at("recorder.db").to_str().unwrap().to_owned();
    let store = format!("--store={path}");
    let ran = run(&["inspector", "import", &emissions(), &store]);
    assert_eq!(ok(&ran), "Imported 22 emissions of 4 runs.\n");
    let ran = run(&["changelogs", "import", &changes(), &store]);
    assert_eq!(ok(&ran), "Imported 4 entries of change logs.\n");
    store
}

pub(crate) fn ok(ran: &Ran) -> &str {
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    &ran.stdout
}

/// The recordings of upstream's controller, as its sidecar prints them.
pub(crate) fn recorded() -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../biplane-recorder/tests/data/runs.jsonl.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_store_and_its_lines_answer_the_same() {
    let folder = Folder::new();
    let store = store(&folder);
    let from = [format!("--from={}", emissions()), format!("--from={}", changes())];
    for (question, exit) in [
        (&["inspector", "runs"][..], 0),
        (&["inspector", "runs", "Store/north", "--changed", "--failed"], 0),
        (&["inspector", "run", "Store/north@{1}"], 0),
        (&["inspector", "run", "9822d93d"], 0),
        (&["inspector", "steps", "6a3ac86e"], 0),
        (&["inspector", "steps", "6a3ac86e/compose"], 0),
        (&["inspector", "diff", "6a3ac86e"], 3),
        (&["inspector", "diff", "6a3ac86e", "6a3ac86e"], 0),
        (&["inspector", "diff", "Store/north@{3}:bucket", "Store/north@{1}:bucket"], 3),
        (&["inspector", "blame", "6a3ac86e:bucket"], 0),
        (&["inspector", "compare", "Store/north"], 3),
        (&["inspector", "at", "2026-11-16T14:00:00Z", "Store/north"], 0),
        (
            &[
                "inspector",
                "diff",
                "--at=2026-11-16T14:00Z",
                "--at=2026-11-16T15:00Z",
                "Store/north",
            ],
            3,
        ),
        (&["inspector", "warnings"], 0),
        (&["why", "changed", "Bucket/north-7f3", "spec.forProvider.region"], 0),
        (&["why", "created", "Store/north:role"], 0),
        (&["why", "deleted", "Bucket/north-7f3", "-n", "team-a"], 0),
        (&["why", "not-ready", "6a3ac86e:login"], 0),
        (&["why", "failed", "Store/north"], 0),
        (&["why", "slow", "Store/north"], 0),
        (&["inspector", "export", "6a3ac86e"], 0),
        (&["inspector", "export", "6a3ac86e", "--format=otlp"], 0),
        (&["changelogs", "list"], 0),
        (&["changelogs", "list", "Bucket/north-7f3", "--failed"], 0),
        (&["changelogs", "show", "4"], 0),
    ] {
        let here = run(&[question, &[&store]].concat());
        assert_eq!((here.exit, here.stderr.as_str()), (exit, ""), "{question:?} {}", here.stdout);
        assert!(!here.stdout.is_empty(), "{question:?}");
        let lines = run(&[question, &[&from[0], &from[1]]].concat());
        assert_eq!(lines, here, "{question:?}");
        if question[1] == "export" {
            continue;
        }
        for form in ["wide", "json", "yaml", "name", "md"] {
            let form = format!("--output={form}");
            let here = run(&[question, &[&store, &form]].concat());
            assert_eq!((here.exit, here.stderr.as_str()), (exit, ""), "{question:?}");
            let lines = run(&[question, &[&from[0], &from[1], &form]].concat());
            // A store also knows who received a change, and when.
            if question[1] != "show" {
                assert_eq!(lines, here, "{question:?} {form}");
            }
        }
    }
    let ran = run(&["changelogs", "verify", &store]);
    assert!(ok(&ran).starts_with("All chains are whole.\n"), "{}", ran.stdout);
    let ran = run(&["changelogs", "import", &changes(), &store]);
    assert!(ok(&ran).contains("it is in the store already"), "{}", ran.stdout);
}

#[test]
fn questions_about_causes_and_times_that_cannot_be_asked_are_refused() {
    let from = format!("--from={}", emissions());
    for (question, exit, want) in [
        (
            &["why", "gone", "Store/north"][..],
            80,
            "deleted, created, changed, not-ready, failed, slow",
        ),
        (
            &["why", "deleted", "Store/north:bucket", "spec"],
            80,
            "a field can have changed, but not be deleted",
        ),
        (&["why", "deleted", "Bucket/none"], 1, "no run of Bucket/none is kept"),
        (&["inspector", "at", "noon", "Store/north"], 80, "expected a time such as 14:00"),
        (
            &["inspector", "at", "2020-01-01", "Store/north"],
            1,
            "no run of Store/north is kept that had begun",
        ),
        (&["inspector", "diff", "--at=14:00", "Store/north"], 80, "--at is needed twice"),
        (&["inspector", "warnings", "7"], 1, "there is no warning 7"),
        (&["inspector", "warnings", "--found=slow"], 80, "expected one of flapping"),
    ] {
        let ran = run(&[question, &[&from]].concat());
        assert_eq!(ran.exit, exit, "{question:?} {}", ran.stderr);
        assert!(ran.stderr.contains(want), "{question:?} {}", ran.stderr);
    }
}

#[test]
fn an_export_can_be_imported() {
    let folder = Folder::new();
    let store = store(&folder);
    let exported = run(&["inspector", "export", &store]);
    assert_eq!(ok(&exported).lines().count(), 22);
    let question = ["inspector", "runs", "--from=-", "-o", "json"];
    let there = run_with(&question, &exported.stdout);
    let here = run(&["inspector", "runs", &store, "-o", "json"]);
    assert_eq!(ok(&there), ok(&here));
    let text = run(&["inspector", "export", &store, "--format=text"]);
    let there = run_with(&question, ok(&text));
    assert_eq!(ok(&there), ok(&here));
    // The password of the login is in none of them.
    for secret in ["hunter2", "aHVudGVyMg"] {
        assert!(!exported.stdout.contains(secret) && !text.stdout.contains(secret));
    }
}

#[test]
fn filters_choose_runs_and_changes() {
    let from = format!("--from={}", emissions());
    let runs = |filters: &[&str]| {
        let ran = run(&[&["inspector", "runs", "-o", "name", &from], filters].concat());
        let traces = ok(&ran).lines().map(|trace| trace[..8].to_owned());
        traces.collect::<Vec<_>>().join(" ")
    };
    let all = "9822d93d 6a3ac86e 5be31f72 3c57320a";
    for (filters, want) in [
        (&[][..], all),
        (&["-A"], all),
        (&["Store"], all),
        (&["store.shop.example.org/north"], all),
        (&["Store/south"], ""),
        (&["-n", "team-a"], all),
        (&["-n", "team-b"], ""),
        (&["-l", "team=a"], all),
        (&["-l", "team=b"], ""),
        (&["--failed"], "9822d93d"),
        (&["--outcome=ok"], "6a3ac86e 5be31f72 3c57320a"),
        (&["--composition=stores"], all),
        (&["--composition=other"], ""),
        (&["--function=function-auto-ready"], "6a3ac86e 5be31f72 3c57320a"),
        (&["--since-time=2026-11-16T14:00:00Z"], "9822d93d 6a3ac86e"),
        (&["--until-time=2026-11-16T13:49:00Z"], "3c57320a"),
        (&["--since=1s"], ""),
        (&["--limit=1"], "9822d93d"),
        (&["--limit=2", "--continue=1794837715010000.3"], "5be31f72 3c57320a"),
    ] {
        assert_eq!(runs(filters), want, "{filters:?}");
    }
    let from = format!("--from={}", changes());
    let changes = |filters: &[&str]| {
        let ran = run(&[&["changelogs", "list", "-o", "name", &from], filters].concat());
        ok(&ran).lines().collect::<Vec<_>>().join(" ")
    };
    for (filters, want) in [
        (&[][..], "4 3 2 1"),
        (&["--failed"], "3"),
        (&["--cause=drift"], "2"),
        (&["--operation=create"], "1"),
        (&["--provider=provider-s3"], "4 3 2 1"),
        (&["--provider=provider-s3:v1"], ""),
        (&["Bucket/north-7f3", "-n", "team-a"], "4 3 2 1"),
        (&["Bucket/other"], ""),
        (&["--since-time=2026-11-16T14:00:00Z"], "4 3"),
    ] {
        assert_eq!(changes(filters), want, "{filters:?}");
    }
}

#[test]
fn mistakes_are_told_with_their_exit_code() {
    let from = format!("--from={}", emissions());
    for (arguments, exit, error) in [
        (&["inspector", "runs"][..], 80, "name the records with --store, --server or --from"),
        (&["inspector", "run", "ffff", &from], 1, "no run begins with \"ffff\""),
        (&["inspector", "run", "Store/south", &from], 1, "no run of Store/south is kept"),
        (
            &["inspector", "run", "Store/north@{9}", &from],
            1,
            "only 4 runs of Store/north@{9} are kept",
        ),
        (&["inspector", "run", "a b", &from], 80, "but got \"a b\""),
        (
            &["inspector", "steps", "9822d93d/3", &from],
            1,
            "has no step \"3\": it has 1 env, 2 compose",
        ),
        (&["inspector", "diff", "9822d93d", &from], 1, "run 9822d93d did not get to its end"),
        (&["inspector", "blame", "9822d93d/2", &from], 80, "blame takes a run or a resource of it"),
        (&["inspector", "blame", "6a3ac86e:none", &from], 1, "desired a resource \"none\""),
        (&["inspector", "runs", &from, "--since=soon"], 80, "expected a duration such as 1h or 7d"),
        (
            &["inspector", "runs", &from, "-o", "xml"],
            80,
            "expected table, wide, json, yaml, name or md",
        ),
        (&["inspector", "runs", "--store=/nowhere/recorder.db"], 1, "/nowhere/recorder.db"),
        (
            &["inspector", "runs", "--server=ftp://x"],
            80,
            "expected a server such as http://127.0.0.1:7654",
        ),
        (&["changelogs", "verify", &from], 80, "lines have no chain"),
        (&["changelogs", "show", "x", &from], 80, "expected the id of a change"),
        (&["inspector", "export", "--server=http://127.0.0.1:1"], 80, "use --store or --from"),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.exit, exit, "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains(error), "{arguments:?} {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_function_of_the_box_answers_what_it_answered_upstream() {
    let folder = Folder::new();
    let from = format!("--from={}", folder.write("runs.jsonl", &recorded()));
    for step in ["Gauge.plain.insp.example.org/one/1", "Gauge.plain.insp.example.org/one/2"] {
        let ran = run(&["inspector", "replay", step, &from]);
        let same = "The function answers the same as it did.";
        assert!(ok(&ran).contains(same), "{step} {}", ran.stdout);
    }
    let ran = run(&[
        "inspector",
        "replay",
        "Gauge.plain.insp.example.org/one/1",
        &from,
        "--with=auto-ready",
    ]);
    assert_eq!(ran.exit, 3, "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("The function answers something else."), "{}", ran.stdout);
    let ran = run(&["inspector", "replay", "Gauge.unreachable.insp.example.org/one", &from]);
    assert_eq!(ran.exit, 80);
    assert!(ran.stderr.contains("is not in the box"), "{}", ran.stderr);
}

/// What was redacted is named, and can be supplied.
#[test]
fn redacted_values_are_named_and_supplied() {
    let folder = Folder::new();
    let from = format!("--from={}", folder.write("runs.jsonl", &recorded()));
    let step = "Gauge.credentials.insp.example.org/one/1";
    let replay = |supply: &[&str]| {
        let ran = run(&[&["inspector", "replay", step, &from, "-o", "json"], supply].concat());
        assert_eq!(ran.stderr, "");
        serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()
    };
    let answer = replay(&[]);
    let redacted = answer["redacted"].as_array().unwrap();
    let credential =
        redacted.iter().map(|path| path.as_str().unwrap()).find(|p| p.starts_with("credentials."));
    let credential = credential.unwrap_or_else(|| panic!("{redacted:?}"));
    // The same path as nested objects.
    let names: Vec<&str> = credential.split('.').collect();
    let supply = names
        .iter()
        .rev()
        .fold("c2VjcmV0".to_owned(), |below, name| format!("{{{name}: {below}}}"));
    let file = folder.write("supply.yaml", &supply);
    let answer = replay(&[&format!("--supply={file}")]);
    assert_eq!(answer["supplied"], serde_json::json!([credential]));
    assert!(!answer["redacted"].as_array().unwrap().iter().any(|path| path == credential));
}

/// A process whose output is read line by line.
struct Following {
    process: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Following {
    fn start(arguments: &[&str]) -> Self {
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(process.stdout.take().unwrap());
        Self { process, lines: std::io::BufRead::lines(lines) }
    }

    fn next(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn new_runs_and_changes_are_shown_as_they_arrive() {
    let folder = Folder::new();
    let path = folder.at("recorder.db").to_str().unwrap().to_owned();
    let store = format!("--store={path}");
    let emissions = std::fs::read_to_string(emissions()).unwrap();
    let changes = std::fs::read_to_string(changes()).unwrap();
    let part = |text: &str, skip: usize, take: usize| -> String {
        text.lines().skip(skip).take(take).flat_map(|line| [line, "\n"]).collect()
    };
    let import = |text: &str| {
        let ran = run_with(&["inspector", "import", "-", &store], text);
        assert!(ok(&ran).starts_with("Imported "));
    };
    import(&part(&emissions, 0, 12));
    import(&part(&changes, 0, 1));
    let mut runs = Following::start(&["inspector", "runs", "-w", &store, "-o", "name"]);
    assert_eq!(
        [runs.next(), runs.next()].map(|trace| trace[..8].to_owned()),
        ["5be31f72", "3c57320a"]
    );
    let mut followed = Following::start(&[
        "changelogs",
        "follow",
        &store,
        "-o",
        "name",
        "--since-time=2026-01-01",
    ]);
    assert_eq!(followed.next(), "1");
    import(&part(&emissions, 12, 10));
    import(&part(&changes, 1, 3));
    assert_eq!([followed.next(), followed.next(), followed.next()], ["2", "3", "4"]);
    assert_eq!(
        [runs.next(), runs.next()].map(|trace| trace[..8].to_owned()),
        ["9822d93d", "6a3ac86e"]
    );
}

#[test]
fn a_function_at_an_address_is_asked_again() {
    let folder = Folder::new();
    let from = format!("--from={}", folder.write("runs.jsonl", &recorded()));
    let socket = folder.at("function.sock");
    let path = socket.to_str().unwrap();
    let address = format!("--address={path}");
    let serve =
        ["function", "serve", "dummy", "--insecure", "--network=unix", "--metrics-address="];
    let _server = Following::start(&[&serve[..], &[&address]].concat());
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        std::thread::yield_now();
    }
    let step = "Gauge.plain.insp.example.org/one/2";
    let ran = run(&["inspector", "replay", step, &from, &format!("--address=unix://{path}")]);
    assert!(ok(&ran).contains("The function answers the same as it did."), "{}", ran.stdout);
}

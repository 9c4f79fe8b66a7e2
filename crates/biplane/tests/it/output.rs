//! Tests that documents are printed to stdout and everything else to stderr.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use biplane::environment::Environment;
use biplane_console::{Progress, Stderr, Streams};
use biplane_model::yaml::parse_documents;
use serde_json::Value;

use crate::fixtures::{composition, function};
use crate::mistakes::render;
use crate::support::{Folder, example, run_on};

const COMPOSITION: &str = composition!(
    "  - step: compose
    functionRef:
      name: function-dummy
    input:
      apiVersion: dummy.fn.crossplane.io/v1beta1
      kind: Response
      response:
        context: {a: 1}
        desired:
          resources:
            fresh: {resource: {apiVersion: example.org/v1, kind: Fresh}}
            old: {resource: {apiVersion: example.org/v1, kind: Old}}
            ready: {ready: READY_TRUE, resource: {apiVersion: example.org/v1, kind: Ready}}
        results:
        - {severity: SEVERITY_WARNING, message: careful}
"
);
const FUNCTIONS: &str = function!("function-dummy", "v0.4.1");
/// The composite resource controls the observed resources, so it needs a UID.
const XR: &str =
    "apiVersion: example.org/v1\nkind: XApp\nmetadata:\n  name: app\n  uid: u-1\nspec: {}\n";

fn observed(kind: &str, name: &str, status: &str) -> String {
    format!(
        "---
apiVersion: example.org/v1
kind: {kind}
metadata:
  name: {name}
  annotations:
    crossplane.io/composition-resource-name: {name}
  ownerReferences:
  - apiVersion: example.org/v1
    kind: XApp
    name: app
    uid: u-1
    controller: true
    blockOwnerDeletion: true
status: {status}
"
    )
}

#[test]
fn a_summary_says_what_would_happen_and_what_is_missing() {
    let status = "{conditions: [{type: Synced, status: 'True'}, {type: Ready, status: 'False', reason: Creating, message: waiting for a disk}]}";
    let existing = observed("Old", "old", status) + &observed("Gone", "gone", "{}");
    let files = [
        ("xr.yaml", XR),
        ("composition.yaml", COMPOSITION),
        ("functions.yaml", FUNCTIONS),
        ("o.yaml", &existing),
    ];
    let plain = render(&files, &["-o=DIR/o.yaml"]);
    let ran = render(&files, &["-o=DIR/o.yaml", "--summary"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout, plain.stdout);
    assert_eq!(plain.stderr, "");
    assert_eq!(
        ran.stderr,
        "\
create Fresh.example.org app-a84f42557d0c
update Old.example.org old
create Ready.example.org app-46ff1ba160e1
delete Gone.example.org gone
not Ready (Creating): Unready resources: fresh, old
  fresh: it does not exist yet
  old: not Ready (Creating): waiting for a disk
"
    );
}

/// With all flags, stdout is a stream of documents without terminal escape sequences.
#[test]
fn stdout_holds_nothing_but_documents() {
    let folder = Folder::new();
    let file = |name: &str, text: &str| folder.write(name, text);
    let existing = observed("Old", "old", "{}");
    let files = [
        file("xr.yaml", XR),
        file("composition.yaml", COMPOSITION),
        file("functions.yaml", FUNCTIONS),
        file("o.yaml", &existing),
    ];
    let operation = file(
        "operation.yaml",
        &COMPOSITION
            .replace(
                "apiextensions.crossplane.io/v1\nkind: Composition",
                "ops.crossplane.io/v1alpha1\nkind: Operation",
            )
            .replace("  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: XApp\n", ""),
    );
    let composite: Vec<&str> = files.iter().map(String::as_str).collect();
    let [xr, composition, functions, observed] = composite[..] else { panic!("four files") };
    let command = ["render", xr, composition, functions, "-o", observed, "-x"];
    let operation = ["operation", "render", &operation, functions, "-o"];
    let flags =
        ["-rc", "--context-values=b=2", "--summary", "--timing", "--verbose", "--timeout=1m"];
    for format in ["v2", "v1", "json"] {
        for command in [&command[..], &operation[..]] {
            // Operations do not exist in v1.
            if format == "v1" && command[0] == "operation" {
                continue;
            }
            let format = format!("--output-format={format}");
            let output = Command::new(env!("CARGO_BIN_EXE_biplane"))
                .args(command)
                .args(flags)
                .arg(&format)
                .env("CLICOLOR_FORCE", "1")
                .output()
                .unwrap();
            let stdout = String::from_utf8(output.stdout).unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(0), "{command:?} {format}: {stderr}");
            assert!(!stdout.contains('\u{1b}') && !stderr.contains('\u{1b}'));
            assert!(stderr.contains("Function runs in process"), "{format}: {stderr}");
            let documents: Vec<Value> = if format.ends_with("json") {
                stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
            } else {
                assert!(stdout.starts_with("---\n"));
                let documents = parse_documents("stdout", &stdout).unwrap();
                documents.into_iter().map(|document| document.value).collect()
            };
            assert!(documents.len() > 2, "{stdout}");
            for document in &documents {
                assert!(document["apiVersion"].is_string(), "{document}");
                assert!(document["kind"].is_string(), "{document}");
            }
            let kinds = |kind: &str| documents.iter().filter(|d| d["kind"] == kind).count();
            assert_eq!((kinds("Context"), kinds("Result") > 0), (1, true), "{stdout}");
        }
    }
}

/// RL-1
#[test]
fn the_v1_line_leaves_conditions_of_the_system_to_the_system() {
    let conditions = ["Ready", "Synced", "Healthy", "Custom"].map(|name| {
        format!("        - {{type: {name}, status: STATUS_CONDITION_TRUE, reason: Set}}\n")
    });
    let composition = format!("{COMPOSITION}        conditions:\n{}", conditions.concat());
    let files =
        [("xr.yaml", XR), ("composition.yaml", &composition), ("functions.yaml", FUNCTIONS)];
    let ran = render(&files, &["--output-format=v1"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let documents = parse_documents("stdout", &ran.stdout).unwrap();
    let conditions = documents[0].value["status"]["conditions"].as_array().unwrap();
    let found: Vec<_> = conditions.iter().map(|c| (&c["type"], &c["reason"])).collect();
    let want = [("Ready", "Creating"), ("Custom", "Set")].map(|(a, b)| (a.into(), b.into()));
    let want: Vec<(&Value, &Value)> = want.iter().map(|(a, b)| (a, b)).collect();
    assert_eq!(found, want);
}

/// A writer that always fails.
struct Full(std::io::ErrorKind);

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(self.0.into())
    }
}

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly_and_a_full_disk_does_not() {
    let example = |file: &str| example("first-composition", file);
    let files = ["xr.yaml", "composition.yaml", "functions.yaml"].map(example);
    let [xr, composition, functions] = files.each_ref().map(String::as_str);
    for line in [
        &["render", xr, composition, functions][..],
        &["render", xr, composition, functions, "--output-format=json"],
        &["version", "--client"],
        &["completions", "zsh"],
        &["man"],
    ] {
        for (kind, code) in [(ErrorKind::BrokenPipe, 0), (ErrorKind::StorageFull, 1)] {
            let stderr = Arc::new(Mutex::new(Vec::new()));
            let mut streams = Streams {
                stdin: Box::new(std::io::empty()),
                stdout: &mut Full(kind),
                stderr: Stderr::to(stderr.clone()),
                verbose: false,
                progress: Progress::default(),
            };
            let line = std::iter::once(&"biplane").chain(line);
            let exit = biplane::cli::run_in(line, &Environment::default(), &mut streams);
            let said = String::from_utf8(stderr.lock().unwrap().clone()).unwrap();
            assert_eq!((exit, said.is_empty()), (code, code == 0), "{kind}: {said}");
        }
    }
}

/// A reader that closes the pipe early, such as `head`, causes neither a panic nor a message.
#[test]
fn a_reader_that_goes_away_is_no_error_and_no_panic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/first-composition");
    let script = format!(
        "{} render xr.yaml composition.yaml functions.yaml 2>err | true; test ! -s err",
        env!("CARGO_BIN_EXE_biplane")
    );
    let folder = Folder::new();
    for name in ["xr.yaml", "composition.yaml", "functions.yaml"] {
        folder.write(name, &std::fs::read_to_string(root.join(name)).unwrap());
    }
    let status = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).status();
    assert!(status.unwrap().success());
}

/// RL-1: the summary does not depend on the output format.
#[test]
fn the_v1_line_has_summary_and_timing_too() {
    let composition = composition!(
        "  - step: patch
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: old
        base: {apiVersion: v1, kind: ConfigMap}
      - name: new
        base: {apiVersion: v1, kind: Secret}
        readinessChecks: [{type: None}]
"
    );
    let observed = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-x
  namespace: default
  annotations: {crossplane.io/composition-resource-name: old}
status:
  conditions: [{type: Ready, status: 'False', reason: Creating}]
";
    let files = [("composition.yaml", composition), ("o.yaml", observed)];
    let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml", "-o=DIR/o.yaml"];
    let xr = ("xr.yaml", "apiVersion: example.org/v1\nkind: XApp\nmetadata:\n  name: app\n");
    let run = |flags: &[&str]| run_on(&[&files[..], &[xr]].concat(), &[&line, flags].concat());
    let plain = run(&["--output-format=v1"]);
    assert_eq!((plain.exit, plain.stderr.as_str()), (0, ""));
    let ran = run(&["--output-format=v1", "--summary", "--timing"]);
    assert_eq!((ran.exit, &ran.stdout), (0, &plain.stdout));
    let (timing, summary) = ran.stderr.split_once('\n').unwrap();
    let call = "step patch, function function-patch-and-transform, call 1: ";
    assert!(timing.starts_with(call) && timing.ends_with(" ms"), "{timing}");
    assert_eq!(
        summary,
        "create Secret app-…
update ConfigMap default/app-x
not Ready (Creating): Unready resources: new, old
  new: it does not exist yet
  old: not Ready (Creating)
"
    );
}

/// RO-4: its results are printed, as in the recordings, but its duration is not.
#[test]
fn the_steps_that_handle_context_are_printed_but_not_timed() {
    const SEES: &str = "crossplane-render-extract-context";
    const SETS: &str = "crossplane-render-inject-context";
    let operation = COMPOSITION
        .replace(
            "apiextensions.crossplane.io/v1\nkind: Composition",
            "ops.crossplane.io/v1alpha1\nkind: Operation",
        )
        .replace("  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: XApp\n", "");
    let files = [("operation.yaml", operation.as_str()), ("functions.yaml", FUNCTIONS)];
    let line = ["operation", "render", "DIR/operation.yaml", "DIR/functions.yaml", "-c"];
    for (flags, shown) in [
        (&["--timing"][..], &["compose", SEES][..]),
        (&["--context-values=b=2", "--timing"], &[SETS, "compose", SEES]),
        (&["-o", "--timing"], &["compose", SEES]),
    ] {
        let ran = run_on(&files, &[&line, flags].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let documents = parse_documents("stdout", &ran.stdout).unwrap();
        let steps = documents[0].value["spec"]["pipeline"].as_array().unwrap();
        let steps: Vec<_> = steps.iter().map(|step| &step["step"]).collect();
        assert_eq!(steps, shown, "{flags:?}");
        assert_eq!(documents.last().unwrap().value["kind"], "Context");
        let timing: Vec<_> = ran.stderr.lines().collect();
        assert!(matches!(timing[..], [step] if step.starts_with("step compose, ")), "{timing:?}");
    }
}

#[test]
fn a_summary_leaves_out_what_stays_as_it_is() {
    let files = [("xr.yaml", XR), ("composition.yaml", COMPOSITION), ("functions.yaml", FUNCTIONS)];
    let given = |observed: &str| {
        let files = [&files[..], &[("o.yaml", observed)]].concat();
        let ran = render(&files, &["-o=DIR/o.yaml", "--summary"]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let lines = ran.stderr.lines().filter(|line| !line.starts_with([' ', 'n']));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let rendered = render(&files, &[]).stdout;
    assert_eq!(given(&rendered), [""; 0]);
    // Fields written by others or by the server do not count as changes.
    let status = "\nkind: Fresh\nstatus: {conditions: [{type: A, lastTransitionTime: now}]}\n";
    assert_eq!(given(&rendered.replace("\nkind: Fresh\n", status)), [""; 0]);
    let label = "labels:\n    crossplane.io/composite: app\n";
    assert_eq!(rendered.matches(label).count(), 3, "{rendered}");
    let changed = rendered.replacen(label, "labels:\n    crossplane.io/composite: other\n", 1);
    assert_eq!(given(&changed), ["update Fresh.example.org app-a84f42557d0c"]);
}

#[test]
fn lines_about_one_of_many_composite_resources_say_which() {
    let two = format!("{XR}---\n{}", XR.replace("name: app", "name: two"));
    let files =
        [("xrs.yaml", &*two), ("composition.yaml", COMPOSITION), ("functions.yaml", FUNCTIONS)];
    let line = ["render", "DIR/composition.yaml", "DIR/functions.yaml", "--xrs=DIR/xrs.yaml"];
    for flags in [&["--summary", "--timing"][..], &["--summary", "--timing", "--output-format=v1"]]
    {
        let ran = run_on(&files, &[&line, flags].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let lines: Vec<_> = ran.stderr.lines().collect();
        let (app, two): (Vec<&str>, Vec<&str>) =
            lines.iter().copied().partition(|line| line.starts_with("XApp.example.org app: "));
        assert!(two.iter().all(|line| line.starts_with("XApp.example.org two: ")), "{lines:?}");
        for part in ["step compose, ", "create Fresh.example.org ", "not Ready "] {
            assert_eq!(
                [&app, &two].map(|all| all.iter().filter(|l| l.contains(part)).count()),
                [1, 1]
            );
        }
    }
    let ran = run_on(&files, &[&line[..], &["--summary", "--until-stable"]].concat());
    assert!(ran.stderr.contains("\nXApp.example.org two: create Fresh.example.org "), "{ran:?}");
}

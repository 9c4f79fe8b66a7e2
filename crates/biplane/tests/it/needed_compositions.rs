//! Tests which functions are started: only those of Compositions that the render needs.

use serde_json::json;

use crate::support::{Folder, Ran, run, run_on};
use crate::watch::Watching;

const XR: &str =
    "apiVersion: example.org/v1\nkind: XApp\nmetadata: {name: app}\nspec: {colour: red}\n";

/// A Composition of one resource, made by a function.
fn composition(kind: &str, function: &str, composed: &str) -> String {
    let resource = json!({"name": "only", "base": {"apiVersion": "example.org/v1", "kind": composed},
        "patches": [{"fromFieldPath": "spec.colour", "toFieldPath": "spec.colour"}]});
    let input = json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
        "resources": [resource]});
    let type_ref = json!({"apiVersion": "example.org/v1", "kind": kind});
    let step = json!({"step": "patch", "functionRef": {"name": function}, "input": input});
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": kind.to_lowercase()},
        "spec": {"compositeTypeRef": type_ref, "mode": "Pipeline", "pipeline": [step]},
    });
    composition.to_string()
}

/// Functions that are local processes and record their start.
fn functions(notes: &str) -> String {
    let function = |name: &str| {
        let script = format!(
            "echo {name} >> {notes}; exec '{}' function serve function-patch-and-transform --metrics-address= --insecure --address {{address}}",
            env!("CARGO_BIN_EXE_biplane")
        );
        let function = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
            "metadata": {"name": name, "annotations": {
                "render.crossplane.io/runtime": "Process",
                "render.crossplane.io/runtime-process-command": json!(["sh", "-c", script]).to_string(),
            }},
        });
        format!("---\n{function}\n")
    };
    ["app", "part", "leaf", "other"].map(function).concat()
}

/// An app composed of a part, which is composed of a leaf, each with its own function, and an
/// unrelated Composition.
fn compositions() -> Vec<(&'static str, String)> {
    vec![
        ("composition.yaml", composition("XApp", "app", "XPart")),
        ("apis/part.yaml", composition("XPart", "part", "XLeaf")),
        ("apis/leaf.yaml", composition("XLeaf", "leaf", "Leaf")),
        ("apis/other.yaml", composition("XOther", "other", "Thing")),
    ]
}

#[test]
fn compositions_that_nothing_is_composed_with_start_no_function() {
    let app = composition("XApp", "function-patch-and-transform", "Thing");
    let other = composition("XOther", "function-nobody-has", "Thing");
    let files = [("xr.yaml", XR), ("composition.yaml", &*app), ("apis/other.yaml", &*other)];
    let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml", "--until-stable"];
    let ran = run_on(&files, &[&line[..], &["--compositions=DIR/apis"]].concat());
    assert_eq!((ran.exit, &ran.stdout), (0, &run_on(&files, &line).stdout), "{}", ran.stderr);

    // A nested composite resource needs its function, and the error appears once it is found.
    let app = composition("XApp", "function-patch-and-transform", "XOther");
    let files = [files[0], ("composition.yaml", &*app), files[2]];
    let ran = run_on(&files, &[&line[..], &["--compositions=DIR/apis"]].concat());
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("round 1: created XOther.example.org app-"), "{lines:?}");
    let error = "biplane: error: functions argument is required when not in a project: function \"function-nobody-has\" is not one of ";
    assert!(lines[1].starts_with(error), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
}

fn settle(words: &[&str]) -> (Ran, Vec<String>) {
    let folder = Folder::new();
    let two = format!("{XR}---\n{}", XR.replace("name: app", "name: two"));
    let notes = folder.at("started").to_str().unwrap().to_owned();
    let files =
        [("xr.yaml", XR.to_owned()), ("xrs.yaml", two), ("functions.yaml", functions(&notes))];
    for (name, text) in files.into_iter().chain(compositions()) {
        folder.write(name, &text);
    }
    let path = folder.path().to_str().unwrap();
    let words: Vec<_> = words.iter().map(|word| word.replace("DIR", path)).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let usual = format!("--compositions={path}/apis");
    let ran = run(&[&words[..], &["--until-stable", "--allow-process", &usual]].concat());
    let started = std::fs::read_to_string(notes).unwrap_or_default();
    (ran, started.lines().map(str::to_owned).collect())
}

#[test]
fn functions_start_when_what_they_compose_with_turns_up_and_once() {
    let files = ["DIR/composition.yaml", "DIR/functions.yaml"];
    let (ran, started) = settle(&[&["render", "DIR/xr.yaml"], &files[..]].concat());
    assert_eq!((ran.exit, started), (0, vec!["app".into(), "part".into(), "leaf".into()]));
    assert!(ran.stdout.contains("\nkind: Leaf\n") && ran.stdout.contains("colour: red"));
    // Every round is reported once.
    let rounds: Vec<_> = ran.stderr.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(rounds, ["round 1", "round 2", "round 3", "round 4"], "{}", ran.stderr);

    let (two, started) = settle(&[&["render"], &files[..], &["--xrs=DIR/xrs.yaml"]].concat());
    assert_eq!((two.exit, started), (0, vec!["app".into(), "part".into(), "leaf".into()]));
    assert!(two.stdout.starts_with(&ran.stdout), "{}", two.stdout);
    assert_eq!(two.stderr.lines().count(), 8, "{}", two.stderr);
}

#[test]
fn functions_that_were_reached_stay_up_while_files_are_watched() {
    let folder = Folder::new();
    let files = [("xr.yaml", XR.to_owned()), ("functions.yaml", functions("started"))];
    for (name, text) in files.into_iter().chain(compositions()) {
        folder.write(name, &text);
    }
    let words = [
        "render",
        "--watch",
        "xr.yaml",
        "composition.yaml",
        "functions.yaml",
        "--until-stable",
        "--allow-process",
        "--compositions=apis",
    ];
    let mut watching = Watching::run_in(folder, &words);
    watching.prints("kind: Leaf");
    watching.prints("colour: red");
    watching.folder.write("xr.yaml", &XR.replace("red", "blue"));
    watching.prints("kind: Leaf");
    watching.prints("colour: blue");
    let started = std::fs::read_to_string(watching.folder.at("started")).unwrap();
    assert_eq!(started, "app\npart\nleaf\n");
    assert_eq!(watching.stop().0, Some(130));
}

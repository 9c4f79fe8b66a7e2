//! Tests renders that are repeated when a file changes. They run the real program and follow its
//! output.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use crate::fixtures::{composition, development, process, project};
use crate::support::{Folder, run};

pub(crate) const XR: &str = "
apiVersion: example.org/v1
kind: XApp
metadata:
  name: app
spec:
  colour: red
";
pub(crate) const COMPOSITION: &str = composition!(
    "  - step: patch
    functionRef:
      name: function-patch-and-transform
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: paint
        base:
          apiVersion: example.org/v1
          kind: Paint
        patches:
        - fromFieldPath: spec.colour
          toFieldPath: spec.colour
"
);

/// A render that watches its files.
pub(crate) struct Watching {
    pub(crate) folder: Folder,
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Watching {
    pub(crate) fn start(files: &[(&str, &str)], flags: &[&str]) -> Self {
        Self::start_with(files, flags, &[])
    }

    /// Also with links.
    fn start_with(files: &[(&str, &str)], flags: &[&str], links: &[(&str, &str)]) -> Self {
        Self::run(files, &[&["render", "--watch"], flags].concat(), links)
    }

    fn run(files: &[(&str, &str)], words: &[&str], links: &[(&str, &str)]) -> Self {
        let folder = Folder::new();
        for (name, target) in links {
            let link = folder.path().join(name);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, link).unwrap();
        }
        for (name, text) in [("xr.yaml", XR), ("composition.yaml", COMPOSITION)].iter().chain(files)
        {
            folder.write(name, text);
        }
        Self::run_in(folder, words)
    }

    pub(crate) fn run_in(folder: Folder, words: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(words)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { folder, child, stdout, stderr }
    }

    fn simple() -> Self {
        Self::start(&[], &["xr.yaml", "composition.yaml"])
    }

    /// Waits until a line of stdout contains a text and returns it.
    pub(crate) fn prints(&mut self, wanted: &str) -> String {
        line(&mut self.stdout, wanted)
    }

    /// Waits until a line of stderr contains a text and returns it.
    pub(crate) fn says(&mut self, wanted: &str) -> String {
        line(&mut self.stderr, wanted)
    }

    /// Interrupts it and returns its exit code and the rest of its output.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let code = self.child.wait().unwrap().code();
        let left = self.stderr.lines().map(|line| line.unwrap() + "\n").collect();
        (code, left)
    }
}

fn line(stream: &mut impl BufRead, wanted: &str) -> String {
    let mut seen = String::new();
    loop {
        let start = seen.len();
        assert_ne!(stream.read_line(&mut seen).unwrap(), 0, "no {wanted:?} in\n{seen}");
        let line = &seen[start..];
        if line.contains(wanted) {
            return line.trim_end().to_owned();
        }
    }
}

#[test]
fn a_change_is_rendered_and_an_interrupt_ends_it() {
    let mut watching = Watching::simple();
    watching.prints("colour: red");
    watching.folder.write("xr.yaml", &XR.replace("red", "green"));
    watching.prints("colour: green");
    assert!(watching.says("--- ").ends_with("Z changed: xr.yaml"));
    let composition = COMPOSITION.replace("kind: Paint", "kind: Varnish");
    watching.folder.write("composition.yaml", &composition);
    watching.prints("kind: Varnish");
    assert!(watching.says("--- ").ends_with("changed: composition.yaml"));
    assert_eq!(watching.stop(), (Some(130), String::new()));
}

#[test]
fn errors_are_shown_and_the_watch_goes_on() {
    let mut watching = Watching::simple();
    watching.prints("colour: red");
    watching.folder.write("xr.yaml", "{");
    watching.says("biplane: error: cannot load composite resource from ");
    std::fs::remove_file(watching.folder.at("xr.yaml")).unwrap();
    watching.says("no such file or directory");
    watching.folder.write("xr.yaml", &XR.replace("red", "blue"));
    watching.prints("colour: blue");
    assert_eq!(watching.stop().0, Some(130));
}

#[test]
fn a_render_that_fails_at_first_is_watched_too() {
    let mut watching = Watching::start(&[("xr.yaml", "{")], &["xr.yaml", "composition.yaml"]);
    watching.says("biplane: error: ");
    watching.folder.write("xr.yaml", XR);
    watching.prints("colour: red");
    assert_eq!(watching.stop().0, Some(130));
}

#[test]
fn new_files_in_a_directory_are_seen() {
    let mut watching = Watching::start(
        &[("xrs/one.yaml", XR)],
        &["composition.yaml", "--xrs=xrs", "--output-format=json"],
    );
    watching.prints(r#""colour":"red""#);
    let two = XR.replace("red", "yellow").replace("name: app", "name: two");
    watching.folder.write("xrs/two.yaml", &two);
    watching.prints(r#""colour":"red""#);
    watching.prints(r#""colour":"yellow""#);
    assert!(watching.says("--- ").contains("changed: xrs/two.yaml"));
    assert_eq!(watching.stop().0, Some(130));
}

#[test]
fn programs_stay_up_until_the_functions_file_changes() {
    let functions = |more: &str| {
        let serve = format!(
            "exec {} function serve function-patch-and-transform --insecure --address {{address}}",
            env!("CARGO_BIN_EXE_biplane")
        );
        let script = format!("echo started >> started; {serve}");
        let function = process("function-patch-and-transform", &["sh", "-c", &script]);
        format!("{function}spec:\n  package: example.org/own{more}\n")
    };
    let mut watching = Watching::start(
        &[("functions.yaml", &functions(""))],
        &["xr.yaml", "composition.yaml", "functions.yaml", "--allow-process"],
    );
    let started = |watching: &Watching| {
        std::fs::read_to_string(watching.folder.at("started")).unwrap().lines().count()
    };
    watching.prints("colour: red");
    assert_eq!(started(&watching), 1);
    watching.folder.write("xr.yaml", &XR.replace("red", "green"));
    watching.prints("colour: green");
    assert_eq!(started(&watching), 1);
    watching.folder.write("functions.yaml", &functions(":v2"));
    watching.prints("colour: green");
    assert_eq!(started(&watching), 2);
    assert_eq!(watching.stop().0, Some(130));
}

#[test]
fn a_watch_ends_when_nobody_reads_what_it_prints() {
    let Watching { folder, mut child, mut stdout, stderr: _stderr } = Watching::simple();
    line(&mut stdout, "kind: XApp");
    drop(stdout);
    let start = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed().as_secs() > 60 {
            child.kill().unwrap();
            panic!("it still watches {}", folder.path().display());
        }
        std::thread::yield_now();
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn every_change_settles_anew() {
    let mut watching = Watching::start(&[], &["xr.yaml", "composition.yaml", "--until-stable"]);
    watching.prints("colour: red");
    watching.says("round 1: created Paint.example.org ");
    watching.says("round 2: nothing changed; ");
    watching.folder.write("xr.yaml", &XR.replace("red", "green"));
    watching.prints("colour: green");
    watching.says("--- ");
    watching.says("round 1: created Paint.example.org ");
    assert_eq!(watching.stop().0, Some(130));
}

#[test]
fn an_interrupt_does_not_wait_for_a_function_that_hangs() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = silent.local_addr().unwrap().to_string();
    let functions = development("function-patch-and-transform", &target);
    let watching = Watching::start(
        &[("functions.yaml", &functions)],
        &["xr.yaml", "composition.yaml", "functions.yaml", "--timeout=1h"],
    );
    // It is connected, and waits for a response that never comes.
    let _connection = silent.accept().unwrap();
    assert_eq!(watching.stop(), (Some(130), String::new()));
}

#[test]
fn standard_input_cannot_be_watched() {
    let folder = Folder::new();
    let composition = folder.write("composition.yaml", COMPOSITION);
    let words: [&[&str]; 2] = [&["render", "-", &composition], &["operation", "render", "-"]];
    for words in words {
        let ran = run(&[words, &["--watch"]].concat());
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""));
        assert_eq!(ran.stderr, "biplane: error: --watch can't be used with standard input\n");
    }
}

const OPERATION: &str = "
apiVersion: ops.crossplane.io/v1alpha1
kind: Operation
metadata:
  name: paint
spec:
  mode: Pipeline
  pipeline:
  - step: paint
    functionRef:
      name: function-dummy
    input:
      apiVersion: dummy.fn.crossplane.io/v1beta1
      kind: Response
      response:
        desired:
          resources:
            paint:
              resource:
                apiVersion: v1
                kind: ConfigMap
                metadata:
                  name: paint
                  namespace: default
                data:
                  colour: red
";

#[test]
fn an_operation_is_rendered_again() {
    let mut watching = Watching::run(
        &[("operation.yaml", OPERATION), ("required.yaml", "")],
        &["operation", "render", "operation.yaml", "-e=required.yaml", "--watch", "-c"],
        &[],
    );
    watching.prints("colour: red");
    watching.folder.write("operation.yaml", &OPERATION.replace("colour: red", "colour: green"));
    watching.prints("colour: green");
    assert!(watching.says("--- ").ends_with("Z changed: operation.yaml"));
    watching.folder.write("operation.yaml", "{");
    watching.says("biplane: error: cannot unmarshal type metadata from ");
    watching.folder.write("operation.yaml", OPERATION);
    watching.prints("colour: red");
    watching.folder.write("required.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n");
    watching.prints("colour: red");
    let said = watching.says("changed: required.yaml");
    assert!(said.starts_with("--- "), "{said}");
    assert_eq!(watching.stop().0, Some(130));
}

const PROJECT: &str = project!("");

#[test]
fn functions_of_a_project_stay_up_until_their_source_changes() {
    // A fake interpreter that records its source, and writes files like real interpreters do.
    let interpreter = format!(
        "#!/bin/sh\ncat function/main.py >> ../../started\nmkdir -p function/__pycache__\ndate +%s%N > function/__pycache__/main.pyc\nshift 2\nexec '{}' function serve function-patch-and-transform --metrics-address= \"$@\"\n",
        env!("CARGO_BIN_EXE_biplane")
    );
    let python = "functions/compose/.venv/bin/python";
    let composition = COMPOSITION.replace("function-patch-and-transform", "acme-appscompose");
    let folder = Folder::new();
    for (name, text) in [
        ("xr.yaml", XR),
        ("composition.yaml", composition.as_str()),
        ("crossplane-project.yaml", PROJECT),
        ("functions/compose/pyproject.toml", ""),
        ("functions/compose/function/main.py", "one\n"),
        (python, &interpreter),
    ] {
        folder.write(name, text);
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.at(python), mode).unwrap();
    let words = ["render", "--watch", "xr.yaml", "composition.yaml", "--allow-process"];
    let mut watching = Watching::run_in(folder, &words);
    let started =
        |watching: &Watching| std::fs::read_to_string(watching.folder.at("started")).unwrap();
    watching.prints("colour: red");
    assert_eq!(started(&watching), "one\n");
    watching.folder.write("xr.yaml", &XR.replace("red", "green"));
    watching.prints("colour: green");
    assert_eq!(started(&watching), "one\n", "it stays up");
    assert!(watching.says("--- ").ends_with("changed: xr.yaml"), "and what it writes is its own");
    watching.folder.write("functions/compose/function/main.py", "two\n");
    watching.prints("colour: green");
    assert_eq!(started(&watching), "one\ntwo\n");
    let said = watching.says("--- ");
    assert!(said.ends_with("changed: functions/compose/function/main.py"), "{said}");
    assert_eq!(watching.stop().0, Some(130));
}

/// RX-5
#[test]
fn functions_of_a_project_start_anew_when_their_source_changes() {
    let step = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: apps\nspec:\n  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: XApp\n  mode: Pipeline\n  pipeline:\n  - step: s\n    functionRef:\n      name: acme-appscompose\n    input:\n      apiVersion: dummy.fn.crossplane.io/v1beta1\n      kind: Response\n      response: {}\n";
    let start = |name: &str| {
        format!(
            "exec '{}' function serve {name} --metrics-address= \"$@\"\n",
            env!("CARGO_BIN_EXE_biplane")
        )
    };
    // A fake interpreter that runs the source as a script.
    let folder = Folder::new();
    let interpreter = folder.write("python3", "#!/bin/sh\nshift 2\n. ./function/main.py\n");
    std::fs::set_permissions(interpreter, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let link = folder.path().join("python3").display().to_string();
    let files = [
        ("composition.yaml", step),
        ("crossplane-project.yaml", PROJECT),
        ("functions/compose/pyproject.toml", ""),
        ("functions/compose/function/main.py", "echo broken >&2; exit 9\n"),
    ];
    let mut watching = Watching::start_with(
        &files,
        &["xr.yaml", "composition.yaml", "--allow-process"],
        &[("functions/compose/.venv/bin/python", &link)],
    );
    watching.says("broken");
    watching.folder.write("functions/compose/function/main.py", &start("dummy"));
    let said = watching.says("changed: ");
    assert!(said.ends_with("changed: functions/compose/function/main.py"), "{said}");
    watching.prints("name: app");
    assert_eq!(watching.stop().0, Some(130));
}

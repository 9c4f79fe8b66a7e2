//! Input files, and the program that runs on them.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::daemon::Daemon;

/// The result of a command line.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Ran {
    /// Runs a command.
    pub(crate) fn of(command: &mut Command) -> Self {
        let begun = Instant::now();
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            exit: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            took: begun.elapsed(),
        }
    }

    /// Asserts that the pipeline ran, as shown by the results of its steps.
    pub(crate) fn assert_rendered(&self) {
        assert_eq!(self.exit, 0, "{}", self.stderr);
        assert!(self.stdout.contains("name: orders-events\n"), "{}", self.stdout);
        assert!(
            self.stdout.contains(r#"message: 'Pipeline step "first": hello'"#),
            "{}",
            self.stdout
        );
    }

    pub(crate) fn assert_failed(&self, with: &str) {
        assert_eq!((self.exit, self.stdout.as_str()), (1, ""), "{}", self.stderr);
        assert!(self.stderr.contains(with), "{}", self.stderr);
    }
}

/// A folder with a composite resource, a Composition and Functions.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    daemon: &'a Daemon,
    folder: tempfile::TempDir,
    steps: Vec<&'static str>,
    functions: Vec<String>,
}

impl<'a> Work<'a> {
    /// No functions yet.
    pub(crate) fn new(daemon: &'a Daemon) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { daemon, folder, steps: Vec::new(), functions: Vec::new() }
    }

    /// With one function, which is the first step.
    pub(crate) fn with(daemon: &'a Daemon, image: &str, annotations: &[(&str, &str)]) -> Self {
        Self::new(daemon).and("first", image, annotations)
    }

    /// Adds a step, and a function of the same name.
    pub(crate) fn and(
        mut self,
        step: &'static str,
        image: &str,
        annotations: &[(&str, &str)],
    ) -> Self {
        self.steps.push(step);
        let annotations: Vec<_> = annotations
            .iter()
            .map(|(key, value)| format!("    render.crossplane.io/{key}: '{value}'\n"))
            .collect();
        self.functions.push(format!(
            "---\napiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: {step}\n  annotations:\n{}    a: b\nspec:\n  package: {image}\n",
            annotations.concat()
        ));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// The command that renders and prints the functions' results.
    pub(crate) fn command(&self, flags: &[&str]) -> Command {
        let steps = self.steps.iter().map(|step| {
            format!(
                "  - step: {step}\n    functionRef:\n      name: {step}\n    input:\n      apiVersion: dummy.fn.crossplane.io/v1beta1\n      kind: Response\n      response:\n        context:\n          from: {step}\n        results:\n        - severity: SEVERITY_NORMAL\n          message: hello\n"
            )
        });
        let composition = format!(
            "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: queues\nspec:\n  compositeTypeRef:\n    apiVersion: streams.example.org/v1\n    kind: Queue\n  mode: Pipeline\n  pipeline:\n{}",
            steps.collect::<Vec<_>>().concat()
        );
        let files = [
            self.write(
                "xr.yaml",
                "apiVersion: streams.example.org/v1\nkind: Queue\nmetadata:\n  name: orders-events\n  namespace: streams\n",
            ),
            self.write("composition.yaml", &composition),
            self.write("functions.yaml", &self.functions.concat()),
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_biplane"));
        command
            .arg("render")
            .args(files)
            .arg("--include-function-results")
            .args(flags)
            .env("DOCKER_HOST", self.daemon.host())
            .env("HOME", self.folder.path())
            .env_remove("DOCKER_CONFIG")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn render(&self, flags: &[&str]) -> Ran {
        Ran::of(&mut self.command(flags))
    }
}

/// Polls until a condition holds. Each poll takes a while, so that no sleep is needed.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !so() {
        assert!(Instant::now() < deadline, "never {what}");
        std::thread::yield_now();
    }
}

/// Sends a signal to a program, and returns its exit code and stderr.
pub(crate) fn stop(child: Child, signal: &str) -> (Option<i32>, String) {
    send(&child, signal);
    end(child)
}

pub(crate) fn send(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits for a program to exit, and returns its exit code and stderr.
pub(crate) fn end(mut child: Child) -> (Option<i32>, String) {
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap().code(), stderr)
}

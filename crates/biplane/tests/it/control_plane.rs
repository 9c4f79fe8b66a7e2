//! Tests `dev` and `core start` as users run them, on real servers, with the example of the guide.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use biplane_devenv::{ApiServer, Places, Tool, provision, say};

use crate::support::run;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dev").join(name)
}

/// A program of the user, whose log can be waited for. It is killed if a test fails.
struct Running {
    child: Child,
    log: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log, said: String::new() }
    }

    /// Waits for a line, and returns it.
    fn until(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "no {text:?} in\n{}", self.said);
            self.said.push_str(&line);
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Tells the program to stop, and asserts that it does so gracefully.
    fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        std::io::copy(&mut self.log, &mut std::io::sink()).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{}", self.said);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the example with kubectl, from the definition to the end.
fn play(kubectl: &dyn Fn() -> Command) {
    let run = |arguments: &[&str]| {
        let output = kubectl().args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {text}");
        String::from_utf8(output.stdout).unwrap()
    };
    for file in ["definition.yaml", "composition.yaml", "functions.yaml"] {
        run(&["apply", "-f", &example(file).display().to_string()]);
    }
    let wait = "--timeout=120s";
    run(&["wait", wait, "--for=condition=Established", "xrd/notes.example.org"]);
    run(&["apply", "-f", &example("note.yaml").display().to_string()]);
    run(&["wait", wait, "--for=condition=Ready", "note/hello"]);
    let composed = run(&["get", "configmaps", "-l", "crossplane.io/composite=hello", "-o", "json"]);
    let composed: serde_json::Value = serde_json::from_str(&composed).unwrap();
    assert_eq!(composed["items"].as_array().unwrap().len(), 1);
    let text = "Hello from a control plane on a laptop.";
    assert_eq!(composed["items"][0]["data"]["text"], text);
    run(&["delete", "note/hello", wait]);
    // The garbage collector deletes them.
    run(&["wait", wait, "--for=delete", "configmaps", "-l", "crossplane.io/composite=hello"]);
    run(&["delete", "xrd/notes.example.org", wait]);
}

const VALIDATING: &str = "--enable-composition-webhook-schema-validation";

/// A definition that no version of can be stored.
const UNUSABLE: &str = "
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: odds.example.org}
spec:
  group: example.org
  names: {kind: Odd, plural: odds}
  versions:
  - {name: v1, served: true, referenceable: false, schema: {openAPIV3Schema: {type: object}}}
";

/// Waits until a webhook refuses a definition. The API server begins to ask it when it gets to it.
fn wait_for_refusal(kubectl: &dyn Fn() -> Command) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odds.yaml");
    std::fs::write(&file, UNUSABLE).unwrap();
    let until = Instant::now() + Duration::from_mins(2);
    loop {
        let tried =
            kubectl().args(["create", "--dry-run=server", "-f"]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&tried.stderr);
        if !tried.status.success() && said.contains("<generated_CRD_\"odds.example.org\">") {
            return;
        }
        assert!(Instant::now() < until, "it was not refused: {said}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn apiserver_a_control_plane_on_a_laptop() {
    let binaries = provision(&Places::from_env().unwrap(), &[Tool::Kubectl], &mut say).unwrap();
    let kubectl = binaries.path(Tool::Kubectl).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let flag = format!("--data={}", data.display());
    for webhooks in [false, true] {
        // The second time, everything is there already.
        let mut line = vec!["dev", &flag];
        line.extend(webhooks.then_some(VALIDATING));
        let mut dev = Running::start(&line);
        dev.until("Ready.");
        let kubeconfig = dev.until("export KUBECONFIG=");
        let kubeconfig = kubeconfig.split('=').nth(1).unwrap().trim().to_owned();
        assert_eq!(Path::new(&kubeconfig), data.join("kubeconfig.yaml"));
        let pages = dev.until("What pipelines do is shown at http://127.0.0.1:");
        let address = pages.trim().rsplit_once("//").unwrap().1.to_owned();
        let kubectl = || {
            let mut command = Command::new(&kubectl);
            command.env("KUBECONFIG", &kubeconfig);
            command
        };
        play(&kubectl);
        if webhooks {
            wait_for_refusal(&kubectl);
        }
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET /runs HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
        dev.stop();
        let store = format!("--store={}", data.join("recorder.db").display());
        let runs = run(&["inspector", "runs", &store]);
        assert!(runs.stdout.contains("Note/hello"), "{}{}", runs.stdout, runs.stderr);
    }
}

#[test]
fn apiserver_a_control_plane_on_a_cluster() {
    let server = ApiServer::options().controllers().start().unwrap();
    let kubeconfig = format!("--kubeconfig={}", server.kubeconfig.display());
    let prepared = run(&["core", "init", &kubeconfig]);
    assert_eq!(prepared.exit, 0, "{}", prepared.stderr);
    let line = [
        "core",
        "start",
        &kubeconfig,
        "--package-runtime=Function=InProcess",
        "--leader-election",
        "--metrics-port=0",
        "--health-probe-port=0",
        "--enable-usages",
        "--verify-skips",
    ];
    let mut first = Running::start(&line);
    assert!(first.until("this flag has no effect yet").contains("--enable-usages"));
    first.until("control plane started");
    let mut second = Running::start(&line);
    second.until("waiting to lead");
    play(&|| server.kubectl().unwrap());
    // The other one takes over at once.
    first.stop();
    second.until("control plane started");
    play(&|| server.kubectl().unwrap());
    second.stop();
}

/// A port that is free and stays so: the system gives none below its own range away.
fn free_port() -> u16 {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    (first..32_000).find(is_free).unwrap()
}

#[test]
fn apiserver_webhooks_of_a_control_plane() {
    let server = ApiServer::start().unwrap();
    let kubeconfig = format!("--kubeconfig={}", server.kubeconfig.display());
    let port = free_port();
    let url = format!("--webhook-url=https://127.0.0.1:{port}");
    let prepared = run(&["core", "init", &kubeconfig, VALIDATING, &url]);
    assert_eq!(prepared.exit, 0, "{}", prepared.stderr);
    let port = format!("--webhook-port={port}");
    let certificate = "--tls-server-secret-name=crossplane-tls-server";
    let line = ["core", "start", &kubeconfig, VALIDATING, &port, certificate];
    let mut plane =
        Running::start(&[&line[..], &["--metrics-port=0", "--health-probe-port=0"]].concat());
    assert!(plane.until("Webhook").contains("EnableBetaCompositionWebhookSchemaValidation"));
    plane.until("serving webhooks");
    plane.until("control plane started");
    wait_for_refusal(&|| server.kubectl().unwrap());
    plane.until("refused");
    plane.stop();
}

#[test]
fn flags_that_crossplane_refuses_are_refused() {
    // CLI-4
    for (flag, text) in [
        (
            "--enable-composition-webhook-schema-validation",
            "--enable-composition-webhook-schema-validation needs a certificate for webhooks: give",
        ),
        ("--enable-external-secret-stores", "Crossplane removed support for external secret"),
        ("--registry=example.org", "the --registry flag is no longer supported since support"),
    ] {
        let refused = run(&["core", "start", flag]);
        assert_eq!(refused.exit, 1, "{flag}");
        assert!(refused.stderr.contains(&format!("biplane: error: {text}")), "{}", refused.stderr);
    }
    let refused = run(&["core", "start", "--package-runtime=Pod"]);
    assert_eq!(refused.exit, 80);
    assert!(refused.stderr.contains("unsupported package runtime \"Pod\""), "{}", refused.stderr);
    let refused = run(&[
        "core",
        "start",
        "--kubeconfig=/missing/kubeconfig",
        "--metrics-port=0",
        "--health-probe-port=0",
    ]);
    assert_eq!(refused.exit, 1);
    assert!(refused.stderr.contains("cannot use kubeconfig /missing/"), "{}", refused.stderr);
}

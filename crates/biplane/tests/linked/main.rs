//! Tests a function that uses the official SDK for Rust: served by the SDK, and linked into a
//! custom `biplane` binary.
//!
//! That binary has two cryptography providers, ours and the SDK's, so that one must be chosen
//! explicitly.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions only, not their helpers

mod build;
#[allow(dead_code)] // peers in other languages have their own tests
#[path = "../../../biplane-functions/tests/it/peers/builds.rs"]
mod builds;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use biplane_function::status;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::json;
use biplane_runner::grpc::{Client, Security};
use biplane_runner::tls;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use biplane_testkit::certs::Certs;

/// Long enough for a program to start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// The function in a separate process.
struct Served {
    target: String,
    certs: Option<Certs>,
    _folder: TempDir,
    _process: Child,
}

impl Served {
    /// Served by the SDK's own server, which only supports TCP.
    fn by_the_sdk(secure: bool) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let mut command = Command::new(build::program("served"));
        command.args(["--address", &address, "--metrics-address="]);
        Self::start(command, address, tempfile::tempdir().unwrap(), secure)
    }

    /// Served by a `biplane` binary that it is linked into.
    fn by_biplane(secure: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("fn.sock");
        let mut command = Command::new(build::program("linked"));
        command.args(["function", "serve", "rust", "--metrics-address=", "--network=unix"]);
        command.arg("--address").arg(&socket);
        Self::start(command, format!("unix://{}", socket.display()), folder, secure)
    }

    fn start(mut command: Command, target: String, folder: TempDir, secure: bool) -> Self {
        let certs = secure.then(|| Certs::new(&["localhost", "127.0.0.1"]));
        match &certs {
            Some(certs) => command.arg("--tls-certs-dir").arg(certs.server()),
            None => command.arg("--insecure"),
        };
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { target, certs, _folder: folder, _process: process }
    }

    async fn call(&self, request: &Value) -> Result<Value, String> {
        let security = self.certs.as_ref().map_or(Security::Plaintext, |certs| {
            Security::MutualTls(tls::client(&certs.client()).unwrap())
        });
        let client = Client::new(&self.target, security).unwrap();
        let request: RunFunctionRequest = json::from_value(request.clone()).unwrap();
        let answer: Result<RunFunctionResponse, _> = client.call(request, Some(PATIENCE)).await;
        answer.map(|answer| json::to_value(&answer).unwrap()).map_err(|s| status::text(&s))
    }
}

fn request(input: &Value) -> Value {
    json!({
        "meta": {"tag": "peers"},
        "observed": {"composite": {"resource": {
            "apiVersion": "example.org/v1",
            "kind": "XThing",
            "metadata": {"name": "thing"},
            "spec": {"replicas": 3},
        }}},
        "desired": {"resources": {"earlier": {"resource": {"kind": "Earlier"}, "ready": "READY_FALSE"}}},
        "context": {"list": [1, 2.5, null, {"deep": true}]},
        "input": input,
    })
}

fn answer() -> Value {
    json!({
        "meta": {"tag": "peers", "ttl": "60s"},
        "desired": {
            "composite": {"resource": {"status": {"seen": true}}},
            "resources": {
                "earlier": {"resource": {"kind": "Earlier"}, "ready": "READY_FALSE"},
                "from-rust": {
                    "resource": {
                        "apiVersion": "example.org/v1",
                        "kind": "Thing",
                        "spec": {"replicas": 4, "share": 0.5, "unset": null},
                    },
                    "ready": "READY_TRUE",
                },
            },
        },
        "context": {"list": [1, 2.5, null, {"deep": true}], "peer": "rust"},
        "results": [{
            "severity": "SEVERITY_WARNING",
            "message": "mind the gap",
            "reason": "Gap",
            "target": "TARGET_COMPOSITE_AND_CLAIM",
        }],
        "conditions": [{
            "type": "Peered",
            "status": "STATUS_CONDITION_TRUE",
            "reason": "Spoken",
            "message": "hello",
        }],
    })
}

#[tokio::test]
async fn answers_are_the_same_from_the_sdks_server_and_linked() {
    for secure in [false, true] {
        for served in [Served::by_the_sdk(secure), Served::by_biplane(secure)] {
            assert_eq!(served.call(&request(&json!({}))).await, Ok(answer()), "{}", served.target);
        }
    }
}

#[tokio::test]
async fn failures_are_the_same_from_the_sdks_server_and_linked() {
    for served in [Served::by_the_sdk(false), Served::by_biplane(false)] {
        for (input, failure) in [
            (
                json!({"fail": "not today: 100 %\nreally"}),
                "rpc error: code = FailedPrecondition desc = not today: 100 %\nreally",
            ),
            (
                json!({"fail": 1}),
                "rpc error: code = InvalidArgument desc = JSON conversion failed: invalid type: \
                 integer `1`, expected a string",
            ),
        ] {
            let error = served.call(&request(&input)).await.unwrap_err();
            assert_eq!(error, failure, "{}", served.target);
        }
    }
}

/// A render by the binary that the function is linked into.
struct Render {
    folder: TempDir,
}

struct Rendered {
    success: bool,
    stdout: String,
    stderr: String,
}

const XR: &str = "
apiVersion: example.org/v1
kind: XThing
metadata: {name: thing}
spec: {replicas: 3}
";

impl Render {
    fn new(input: &Value) -> Self {
        let render = Self { folder: tempfile::tempdir().unwrap() };
        render.write("xr.yaml", XR);
        let composition = json!({
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": {"name": "thing"},
            "spec": {
                "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
                "mode": "Pipeline",
                "pipeline": [{
                    "step": "rust",
                    "functionRef": {"name": "function-rust"},
                    "input": input,
                }],
            },
        });
        render.write("composition.yaml", &composition.to_string());
        render
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    async fn run(&self, arguments: &[&str], environment: &[(&str, &Path)]) -> Rendered {
        let output = Command::new(build::program("linked"))
            .args(["render", "xr.yaml", "composition.yaml"])
            .args(arguments)
            .current_dir(self.folder.path())
            .envs(environment.iter().copied())
            .env("XDG_CONFIG_HOME", self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Rendered {
            success: output.status.success(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

const RENDERED: &str = include_str!("rendered.yaml");

#[tokio::test]
async fn renders_with_it_in_process() {
    let flags = ["--include-function-results", "--include-context"];
    let rendered = Render::new(&json!({})).run(&flags, &[]).await;
    assert_eq!((rendered.stdout.as_str(), rendered.stderr.as_str()), (RENDERED, ""));
}

#[tokio::test]
async fn its_failures_end_a_render() {
    for (input, failure) in [
        (
            json!({"fail": "not today"}),
            "reconcile failed: cannot compose resources: cannot run Composition pipeline step \"rust\": \
             rpc error: code = FailedPrecondition desc = not today",
        ),
        (
            json!({"fatal": "never"}),
            "cannot compose resources: pipeline step \"rust\" returned a fatal result: never",
        ),
    ] {
        let rendered = Render::new(&input).run(&[], &[]).await;
        assert!(!rendered.success);
        let expected = format!("biplane: error: cannot render composite resource: {failure}\n");
        assert_eq!(rendered.stderr, expected);
    }
}

#[tokio::test]
async fn gets_what_it_requires_in_a_render() {
    let render = Render::new(&json!({"require": "settings"}));
    render.write(
        "required.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}}",
    );
    let flags = ["--include-function-results", "--required-resources=required.yaml"];
    let rendered = render.run(&flags, &[]).await;
    assert!(rendered.stdout.contains("found 1"), "{}{}", rendered.stdout, rendered.stderr);
    let rendered = render.run(&flags[..1], &[]).await;
    assert!(rendered.stdout.contains("found 0"), "{}{}", rendered.stdout, rendered.stderr);
}

#[tokio::test]
async fn a_docker_engine_is_asked_over_tls_in_spite_of_two_providers_of_cryptography() {
    let render = Render::new(&json!({}));
    render.write(
        "functions.yaml",
        "{apiVersion: pkg.crossplane.io/v1, kind: Function, metadata: {name: function-rust}, \
         spec: {package: example.org/function-rust:v1}}",
    );
    let certs = Certs::new(&["localhost"]);
    for (ours, dockers) in [("tls.key", "key.pem"), ("tls.crt", "cert.pem"), ("ca.crt", "ca.pem")] {
        std::fs::copy(certs.client().join(ours), render.folder.path().join(dockers)).unwrap();
    }
    let environment = [
        ("DOCKER_HOST", Path::new("tcp://127.0.0.1:1")),
        ("DOCKER_CERT_PATH", render.folder.path()),
        ("DOCKER_TLS_VERIFY", Path::new("1")),
    ];
    let rendered = render.run(&["functions.yaml"], &environment).await;
    assert!(rendered.stderr.starts_with("biplane: error: "), "{}", rendered.stderr);
    assert!(rendered.stderr.contains("127.0.0.1:1"), "{}", rendered.stderr);
}

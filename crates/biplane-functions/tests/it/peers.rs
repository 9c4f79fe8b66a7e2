//! Tests with functions and clients in other languages, which we call or which call us.

mod builds;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use biplane_function::serve::{self, Config, Network, Running};
use biplane_function::v1::{
    ResourceSelector, Resources, RunFunctionRequest, RunFunctionResponse, Schema, SchemaSelector,
};
use biplane_function::{PureFunction, status};
use biplane_functions::dummy::Dummy;
use biplane_proto::json;
use biplane_runner::grpc::{Client, GrpcRunner, Security};
use biplane_runner::{Call, FetchError, Fetching, FunctionRunner, Requirements, tls};
use biplane_testkit::certs::Certs;
use biplane_testkit::peers::{go, source};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Long enough for an interpreter to start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A function in another process, with a socket in its own folder.
struct Peer {
    folder: TempDir,
    certs: Option<Certs>,
    _process: Child,
}

impl Peer {
    fn start(program: &Path, secure: bool, arguments: impl FnOnce(&Path, &mut Command)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certs = secure.then(|| Certs::new(&["localhost"]));
        let mut command = Command::new(program);
        arguments(&folder.path().join("fn.sock"), &mut command);
        match &certs {
            Some(certs) => command.arg("--tls-certs-dir").arg(certs.server()),
            None => command.arg("--insecure"),
        };
        let process = command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { folder, certs, _process: process }
    }

    /// A function with the official Go SDK.
    fn go(secure: bool) -> Self {
        Self::start(&go("server"), secure, |socket, command| {
            command.arg("--network=unix").arg("--address").arg(socket);
        })
    }

    /// The published function-pythonic.
    fn python(secure: bool) -> Self {
        Self::start(&builds::python("function-pythonic"), secure, |socket, command| {
            command.arg("--address").arg(format!("unix:{}", socket.display()));
        })
    }

    fn target(&self) -> String {
        format!("unix://{}", self.folder.path().join("fn.sock").display())
    }

    fn security(&self) -> Security {
        self.certs.as_ref().map_or(Security::Plaintext, |certs| {
            Security::MutualTls(tls::client(&certs.client()).unwrap())
        })
    }

    async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, String> {
        let client = Client::new(&self.target(), self.security()).unwrap();
        client.call(request, Some(PATIENCE)).await.map_err(|s| status::text(&s))
    }
}

fn request(input: &Value) -> RunFunctionRequest {
    json::from_value(json!({
        "meta": {"tag": "peers"},
        "observed": {"composite": {
            "resource": {
                "apiVersion": "example.org/v1",
                "kind": "XThing",
                "metadata": {"name": "thing"},
                "spec": {"replicas": 3},
            },
            "connectionDetails": {"secret": "c2VjcmV0"},
        }},
        "desired": {"resources": {"earlier": {"resource": {"kind": "Earlier"}, "ready": "READY_FALSE"}}},
        "context": {"list": [1, 2.5, null, {"deep": true}]},
        "input": input,
    }))
    .unwrap()
}

fn shown(response: &RunFunctionResponse) -> Value {
    json::to_value(response).unwrap()
}

#[tokio::test]
async fn a_function_on_the_go_sdk_answers() {
    for secure in [false, true] {
        let answer = Peer::go(secure).call(request(&json!({}))).await.unwrap();
        assert_eq!(
            shown(&answer),
            json!({
                "meta": {"tag": "peers", "ttl": "60s"},
                "desired": {"resources": {
                    "earlier": {"resource": {"kind": "Earlier"}, "ready": "READY_FALSE"},
                    "from-go": {
                        "resource": {
                            "apiVersion": "example.org/v1",
                            "kind": "Thing",
                            "spec": {"replicas": 4},
                        },
                        "ready": "READY_TRUE",
                    },
                }},
                "context": {"list": [1, 2.5, null, {"deep": true}], "peer": "go"},
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
                    "target": "TARGET_COMPOSITE_AND_CLAIM",
                }],
            })
        );
    }
}

#[tokio::test]
async fn failures_of_a_function_on_the_go_sdk_come_through() {
    let peer = Peer::go(false);
    let error = peer.call(request(&json!({"fail": "not today"}))).await.unwrap_err();
    assert_eq!(error, "rpc error: code = FailedPrecondition desc = not today");
    let error = peer.call(request(&json!({"padding": 5_000_000}))).await.unwrap_err();
    let expected =
        "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (500";
    assert!(error.starts_with(expected), "{error}");
    // Our server returns the same message for a request that is too large as Go's server.
    let large = json!({"padding": 0, "text": "x".repeat(5_000_000)});
    let error = peer.call(request(&large)).await.unwrap_err();
    assert!(error.starts_with(expected) && error.ends_with(" vs. 4194304)"), "{error}");
}

/// Contains one value of every type.
struct One;

#[async_trait]
impl Requirements for One {
    async fn resources(
        &self,
        selector: &ResourceSelector,
    ) -> Result<Option<Resources>, FetchError> {
        let item = json!({"items": [{"resource": {"kind": selector.kind}}]});
        Ok(Some(json::from_value(item).unwrap()))
    }

    async fn schema(&self, _: &SchemaSelector) -> Result<Schema, FetchError> {
        Ok(Schema::default())
    }
}

#[tokio::test]
async fn a_function_on_the_go_sdk_gets_what_it_requires() {
    let peer = Peer::go(false);
    let runner = GrpcRunner::new(&peer.target(), peer.security()).unwrap();
    let call = Call { deadline: Some(Instant::now() + PATIENCE), ..Call::default() };
    let runner = Fetching::new(runner, One);
    let answer = runner.run(&call, request(&json!({"require": "config"}))).await.unwrap();
    assert_eq!(answer.results[0].message, "found 1");
}

const SCRIPT: &str = "
from crossplane.pythonic import BaseComposite

class Composite(BaseComposite):
    def compose(self):
        thing = self.resources.thing('example.org/v1', 'Thing')
        thing.spec.replicas = int(self.spec.replicas) + 1
        self.status.seen = True
";

#[tokio::test]
async fn a_published_python_function_answers() {
    for secure in [false, true] {
        let answer =
            Peer::python(secure).call(request(&json!({"composite": SCRIPT}))).await.unwrap();
        let answer = shown(&answer);
        let desired = &answer["desired"];
        assert_eq!(desired["resources"]["thing"]["resource"]["spec"], json!({"replicas": 4}));
        assert_eq!(desired["resources"]["earlier"]["ready"], "READY_FALSE");
        assert_eq!(desired["composite"]["resource"]["status"], json!({"seen": true}));
        assert_eq!(answer["meta"]["tag"], "peers");
    }
}

/// Our function-dummy as a server.
struct Served {
    certs: Option<Certs>,
    running: Running,
}

async fn serve_dummy(secure: bool) -> Served {
    serve_dummy_at(Network::Tcp, "127.0.0.1:0", secure).await
}

async fn serve_dummy_at(network: Network, address: &str, secure: bool) -> Served {
    let certs = secure.then(|| Certs::new(&["127.0.0.1"]));
    let config = Config {
        network,
        address: address.to_owned(),
        insecure: !secure,
        certs_dir: certs.as_ref().map(Certs::server),
        health: true,
        metrics_address: None,
        ..Config::default()
    };
    let running = serve::start(Arc::new(Dummy), config, std::future::pending()).await.unwrap();
    Served { certs, running }
}

impl Served {
    /// Runs a client and returns its output.
    async fn ask(&self, program: &[PathBuf], call: &str, request: &RunFunctionRequest) -> String {
        let (first, rest) = program.split_first().unwrap();
        let mut command = Command::new(first);
        command.args(rest).arg("--target").arg(self.running.target()).arg("--call").arg(call);
        if let Some(certs) = &self.certs {
            command.arg("--certs").arg(certs.client());
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A client that only lists services does not read its input.
        let _ = stdin.write_all(json::to_string(request).unwrap().as_bytes()).await;
        drop(stdin);
        let Output { status, stdout, stderr } = child.wait_with_output().await.unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap().trim().to_owned()
    }
}

fn dummy_request() -> RunFunctionRequest {
    request(&json!({
        "apiVersion": "dummy.fn.crossplane.io/v1beta1",
        "kind": "Response",
        "response": {
            "desired": {"composite": {"resource": {"status": {"n": 1, "half": 0.5}}}},
            "results": [{"severity": "SEVERITY_NORMAL", "message": "hello"}],
            "meta": {"ttl": "30s"},
        },
    }))
}

async fn check_client(program: &[PathBuf]) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("fn.sock");
    for served in [
        serve_dummy(false).await,
        serve_dummy(true).await,
        serve_dummy_at(Network::Unix, socket.to_str().unwrap(), false).await,
    ] {
        check_calls(program, &served).await;
    }
}

async fn check_calls(program: &[PathBuf], served: &Served) {
    let expected = shown(&Dummy.run(dummy_request()).unwrap());
    assert_eq!(expected["results"][0]["message"], "hello");
    for dialect in ["v1", "v1beta1"] {
        let text = served.ask(program, dialect, &dummy_request()).await;
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| text.clone().into());
        // Python prints whole doubles with a fraction. The values are equal.
        let answer: RunFunctionResponse = json::from_value(answer).expect(&text);
        assert_eq!(shown(&answer), expected, "{dialect} at {}", served.running.target());
    }
}

#[tokio::test]
async fn a_go_client_calls_our_function() {
    check_client(&[go("client")]).await;
}

#[tokio::test]
async fn a_python_client_calls_our_function() {
    check_client(&[builds::python("python"), source("function-python/client.py")]).await;
}

/// FN-D5
#[tokio::test]
async fn a_go_client_finds_our_services_by_reflection() {
    let served = serve_dummy(false).await;
    let program = [go("client")];
    let services = served.ask(&program, "services", &dummy_request()).await;
    let services: Vec<&str> = services.lines().collect();
    for service in [
        "apiextensions.fn.proto.v1.FunctionRunnerService",
        "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ] {
        assert!(services.contains(&service), "{service} is not in {services:?}");
    }
    let health = served.ask(&program, "health", &dummy_request()).await;
    assert!(health.contains("SERVING"), "{health}");
}

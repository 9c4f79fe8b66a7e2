//! The line on a terminal that says what is waited for.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use biplane_function::serve::{self, Config, Running};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Function, response};
use nix::pty::openpty;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc};
use tonic::Status;

use crate::support::Folder;

const XR: &str = "{apiVersion: example.org/v1, kind: XApp, metadata: {name: app}}";
const COMPOSITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: apps}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XApp}
  mode: Pipeline
  pipeline:
  - step: slowly
    functionRef: {name: function-slow}
";
const FUNCTIONS: &str = "
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-slow
  annotations:
    render.crossplane.io/runtime: Development
    render.crossplane.io/runtime-development-target: TARGET
";
/// What takes a line away: back to its start, and everything in it erased.
const ERASE: &str = "\r\u{1b}[2K";

/// A function that says when it is called and answers when it may.
struct Gated {
    called: mpsc::UnboundedSender<()>,
    gate: Arc<Semaphore>,
}

#[async_trait]
impl Function for Gated {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        self.called.send(()).unwrap();
        self.gate.acquire().await.unwrap().forget();
        Ok(response::to(&request, response::DEFAULT_TTL))
    }
}

/// A render whose function waits to be told.
struct World {
    runtime: Runtime,
    folder: Folder,
    called: mpsc::UnboundedReceiver<()>,
    gate: Arc<Semaphore>,
    _running: Running,
}

impl World {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let (send, called) = mpsc::unbounded_channel();
        let gate = Arc::new(Semaphore::new(0));
        let config = Config {
            address: "127.0.0.1:0".to_owned(),
            insecure: true,
            metrics_address: None,
            ..Config::default()
        };
        let function = Arc::new(Gated { called: send, gate: gate.clone() });
        let running =
            runtime.block_on(serve::start(function, config, std::future::pending())).unwrap();
        let folder = Folder::new();
        folder.write("xr.yaml", XR);
        folder.write("composition.yaml", COMPOSITION);
        folder.write("functions.yaml", &FUNCTIONS.replace("TARGET", running.target()));
        Self { runtime, folder, called, gate, _running: running }
    }

    /// Starts a render and returns once its function is called.
    fn render(&mut self, stderr: Stdio) -> Child {
        let child = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(["render", "xr.yaml", "composition.yaml", "functions.yaml"])
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        self.runtime.block_on(self.called.recv()).unwrap();
        child
    }
}

#[test]
fn a_terminal_shows_what_is_waited_for_until_it_is_there() {
    let mut world = World::new();
    // The one without a terminal waits longer than the other one.
    let quiet = world.render(Stdio::piped());
    let pty = openpty(None, None).unwrap();
    let shown = world.render(Stdio::from(pty.slave));
    let mut terminal = File::from(pty.master);
    let mut seen = String::new();
    let mut buffer = [0; 1024];
    while !seen.contains("waiting for function-slow in step slowly (") {
        let count = terminal.read(&mut buffer).unwrap();
        seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    world.gate.add_permits(2);
    for child in [quiet, shown] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(output.stdout.starts_with(b"---\napiVersion: example.org/v1\nkind: XApp\n"));
        assert_eq!(output.stderr, b"");
    }
    // A terminal that nobody writes to any more ends in an error.
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    assert!(seen.starts_with(ERASE), "{seen:?}");
    let lines: Vec<_> = seen.split(ERASE).collect();
    let (last, lines) = lines.split_last().unwrap();
    assert_eq!(*last, "", "something is left on the terminal: {seen:?}");
    for line in lines.iter().filter(|line| !line.is_empty()) {
        assert!(line.starts_with("waiting for ") && line.ends_with(" s)"), "{line:?}");
    }
}

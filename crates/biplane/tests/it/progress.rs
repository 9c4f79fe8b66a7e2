//! Tests the progress line on a terminal, which shows what the command is waiting for.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use biplane_function::serve::{self, Config, Running};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Function, response};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc};
use tonic::Status;

use crate::fixtures::{composition, development};
use crate::support::Folder;

const XR: &str = "{apiVersion: example.org/v1, kind: XApp, metadata: {name: app}}";
const COMPOSITION: &str = composition!(
    "  - step: slowly
    functionRef: {name: function-slow}
"
);
/// Erases a line: return to its start and clear it.
const ERASE: &str = "\r\u{1b}[2K";

/// A function that reports that it is called, and waits before it responds.
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

/// A render whose function waits for the test.
struct Fixture {
    runtime: Runtime,
    folder: Folder,
    called: mpsc::UnboundedReceiver<()>,
    gate: Arc<Semaphore>,
    _running: Running,
}

impl Fixture {
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
        folder.write("functions.yaml", &development("function-slow", running.target()));
        Self { runtime, folder, called, gate, _running: running }
    }

    /// Starts a render and returns once its function is called.
    fn render(&mut self, stderr: Stdio) -> Child {
        let child = render(&self.folder, &["functions.yaml"], stderr);
        self.runtime.block_on(self.called.recv()).unwrap();
        child
    }
}

fn render(folder: &Folder, flags: &[&str], stderr: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(["render", "xr.yaml", "composition.yaml"])
        .args(flags)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap()
}

/// Reads from a terminal until a text appears.
fn read_until(terminal: &mut File, wanted: &str) -> String {
    let mut seen = String::new();
    let mut buffer = [0; 1024];
    while !seen.contains(wanted) {
        let count = terminal.read(&mut buffer).unwrap();
        seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    seen
}

/// Reads the remaining output of a terminal. At the end, a terminal without writers returns an
/// error.
fn read_rest(terminal: &mut File, seen: &mut String) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
}

/// Fails if anything except progress lines was shown, or if one of them was not erased.
fn nothing_is_left(seen: &str) {
    assert!(seen.starts_with(ERASE), "{seen:?}");
    let lines: Vec<_> = seen.split(ERASE).collect();
    let (last, lines) = lines.split_last().unwrap();
    assert_eq!(*last, "", "something is left on the terminal: {seen:?}");
    for line in lines.iter().filter(|line| !line.is_empty()) {
        assert!(line.starts_with("waiting for ") && line.ends_with(" s)"), "{line:?}");
    }
}

#[test]
fn a_terminal_shows_what_is_waited_for_until_it_is_there() {
    let mut fixture = Fixture::new();
    // The render without a terminal waits longer than the other one.
    let quiet = fixture.render(Stdio::piped());
    let pty = openpty(None, None).unwrap();
    let shown = fixture.render(Stdio::from(pty.slave));
    let mut terminal = File::from(pty.master);
    let mut seen = read_until(&mut terminal, "waiting for function-slow in step slowly (");
    fixture.gate.add_permits(2);
    for child in [quiet, shown] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(output.stdout.starts_with(b"---\napiVersion: example.org/v1\nkind: XApp\n"));
        assert_eq!(output.stderr, b"");
    }
    read_rest(&mut terminal, &mut seen);
    nothing_is_left(&seen);
}

#[test]
fn the_line_is_as_long_as_the_terminal_allows() {
    let mut fixture = Fixture::new();
    let size = Winsize { ws_row: 10, ws_col: 30, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(Some(&size), None).unwrap();
    let child = fixture.render(Stdio::from(pty.slave));
    let mut terminal = File::from(pty.master);
    let mut seen = read_until(&mut terminal, "waiting for function-slow in ");
    fixture.gate.add_permits(1);
    assert!(child.wait_with_output().unwrap().status.success());
    read_rest(&mut terminal, &mut seen);
    let lines = seen.split(ERASE).filter(|line| !line.is_empty());
    let lines: Vec<_> = lines.filter(|line| line.contains("function-slow")).collect();
    assert!(lines.iter().all(|line| *line == "waiting for function-slow in "), "{seen:?}");
}

#[test]
fn an_interrupt_takes_the_line_away() {
    let mut fixture = Fixture::new();
    let pty = openpty(None, None).unwrap();
    let child = fixture.render(Stdio::from(pty.slave));
    let mut terminal = File::from(pty.master);
    let mut seen = read_until(&mut terminal, "waiting for function-slow in step slowly (");
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(130), &b""[..]));
    read_rest(&mut terminal, &mut seen);
    let lines = seen.strip_suffix("biplane: error: interrupted\r\n");
    nothing_is_left(lines.unwrap_or_else(|| panic!("{seen:?}")));
}

#[test]
fn another_engine_is_waited_for_in_public() {
    let folder = Folder::new();
    folder.write("xr.yaml", XR);
    folder.write("composition.yaml", &COMPOSITION.replace("function-slow", "function-auto-ready"));
    let gate = folder.at("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // Opening a pipe blocks until the other side is open.
    let script = format!(
        "#!/bin/sh\nread go < {}\nexec {} \"$@\"\n",
        gate.display(),
        env!("CARGO_BIN_EXE_biplane")
    );
    let engine = folder.write("engine.sh", &script);
    std::fs::set_permissions(&engine, std::fs::Permissions::from_mode(0o755)).unwrap();
    let pty = openpty(None, None).unwrap();
    let child = render(&folder, &[&format!("--engine={engine}")], Stdio::from(pty.slave));
    let mut terminal = File::from(pty.master);
    let mut seen = read_until(&mut terminal, "waiting for XApp.example.org app to be rendered (");
    std::fs::write(&gate, "go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stdout.starts_with(b"---\napiVersion: example.org/v1\nkind: XApp\n"));
    read_rest(&mut terminal, &mut seen);
    nothing_is_left(&seen);
}

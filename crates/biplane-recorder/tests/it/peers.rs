//! A Go client on the official stubs emits to both sidecars, as control planes and providers do.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use biplane_proto::redact::Mode;
use biplane_recorder::Format;
use serde_json::Value;
use tempfile::TempDir;

use crate::recordings::{lines, recorded};
use crate::world::Sidecar;

/// The program, which is built once.
fn emitter() -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/function-go");
        let mut command = Command::new("go");
        command.arg("build").arg("-o").arg(folder.path().join("emitter")).arg("./emitter");
        let built = command.current_dir(source).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        folder
    });
    folder.path().join("emitter")
}

/// Emits the messages one after another, and returns the name of each status.
async fn emit(socket: &Path, cases: &[Value]) -> Vec<String> {
    let (socket, input) = (socket.to_owned(), cases.iter().map(|case| format!("{case}\n")));
    let input: String = input.collect();
    let run = tokio::task::spawn_blocking(move || {
        let mut child = Command::new(emitter())
            .arg("-socket")
            .arg(socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        writing.join().unwrap().unwrap();
        String::from_utf8(output.stdout).unwrap()
    });
    run.await.unwrap().lines().map(str::to_owned).collect()
}

/// The names that Go has for the recorded codes.
fn codes(cases: &[Value]) -> Vec<&'static str> {
    let name = |case: &Value| match case["code"].as_str().unwrap() {
        "OK" => "OK",
        "INTERNAL" => "Internal",
        other => panic!("{other}"),
    };
    cases.iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn emissions_of_a_control_plane_are_received() {
    let cases = recorded("inspector.jsonl.gz");
    let sidecar = Sidecar::inspector(Format::Json, Mode::Deep).await;
    assert_eq!(emit(&sidecar.socket, &cases).await, codes(&cases));
    assert_eq!(sidecar.printed.take(), cases.iter().map(lines).collect::<String>());
}

/// CL-32
#[tokio::test(flavor = "multi_thread")]
async fn entries_of_a_provider_are_received() {
    let cases = recorded("changelogs.jsonl.gz");
    let sidecar = Sidecar::change_logs(Mode::Deep).await;
    assert_eq!(emit(&sidecar.socket, &cases).await, codes(&cases));
    assert_eq!(sidecar.printed.take(), cases.iter().map(lines).collect::<String>());
}

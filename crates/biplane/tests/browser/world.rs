//! A recorder as users start it, with a store of recorded runs and changes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Instant;

use biplane_recorder::store::{Ledger, LedgerOptions, Location};

use crate::lines;

/// A recorder that serves pages.
pub(crate) struct Recorder {
    child: Child,
    _log: BufReader<ChildStderr>,
    /// Such as `http://127.0.0.1:41234`.
    pub(crate) address: String,
    _folder: tempfile::TempDir,
}

impl Recorder {
    /// A recorder that has the example and more.
    pub(crate) fn with_runs() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let more = folder.path().join("more.jsonl");
        std::fs::write(&more, lines::emissions()).unwrap();
        let example = |name: &str| example().join(name);
        import(&folder, "inspector", &example("emissions.jsonl"));
        import(&folder, "inspector", &more);
        import(&folder, "changelogs", &example("changes.jsonl"));
        Self::start(folder, &[])
    }

    /// A recorder that has received nothing.
    pub(crate) fn empty() -> Self {
        Self::start(tempfile::tempdir().unwrap(), &[])
    }

    /// A recorder whose disk is full, which has lost emissions, and whose runs give a warning.
    pub(crate) fn in_trouble() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fickle = folder.path().join("fickle.jsonl");
        std::fs::write(&fickle, lines::fickle()).unwrap();
        import(&folder, "inspector", &fickle);
        lose(&folder);
        Self::start(folder, &["--min-free=1000TiB"])
    }

    /// A recorder that asks for a token.
    pub(crate) fn with_token() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "a token that nobody guesses").unwrap();
        let flag = format!("--token-file={}", file.display());
        Self::start(folder, &[&flag])
    }

    fn start(folder: tempfile::TempDir, flags: &[&str]) -> Self {
        let at = |name: &str| folder.path().join(name).display().to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(["recorder", "serve", "--listen=127.0.0.1:0", "--print=none", "--source=test"])
            // The runs are of a fixed day.
            .args(["--retain-for=36500d", "--retain-changes-for=36500d"])
            .args(flags)
            .arg(format!("--store={}", at("recorder.db")))
            .arg(format!("--inspector-socket={}", at("inspector.sock")))
            .arg(format!("--changelogs-socket={}", at("changelogs.sock")))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("Recorder listening") {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the recorder has ended");
        }
        let port = line.split("127.0.0.1:").nth(1).unwrap();
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        Self { child, _log: log, address: format!("http://127.0.0.1:{port}"), _folder: folder }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says that emissions of the time of the runs were lost.
fn lose(folder: &tempfile::TempDir) {
    let location = Location::File(folder.path().join("recorder.db"));
    let options =
        LedgerOptions { cluster: String::new(), source: "test".to_owned(), failures_only: false };
    let at = |time: &str| time.parse::<jiff::Timestamp>().unwrap().as_microsecond();
    let (from, until) = (at("2026-11-16T14:40:10Z"), at("2026-11-16T14:40:20Z"));
    let now = (until, Instant::now());
    let mut ledger = Ledger::open(&location, &[1; 16], options, now).unwrap();
    ledger.lose((from, until), "queue full", 12, 98_304).unwrap();
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recorder")
}

fn import(folder: &tempfile::TempDir, command: &str, lines: &Path) {
    let store = format!("--store={}", folder.path().join("recorder.db").display());
    let run = Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args([command, "import", lines.to_str().unwrap(), &store])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stdout));
}

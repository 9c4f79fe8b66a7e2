//! The same inputs given to the original functions, if `BIPLANE_UPSTREAM_BIN` names a folder with
//! their programs.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use biplane_runner::grpc::{Client, Security};

use super::cases::Case;
use super::{setting, verdict};

/// How long the original may take to start, and then for an input. Those that hurt it most would take minutes.
const PATIENCE: Duration = Duration::from_secs(20);
/// What it may take, in KiB. With more it is stopped, before it stops the machine.
const ADDRESS_SPACE: usize = 12 << 20;

/// A server that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Time, peak memory and answer as columns of the table.
pub(super) fn row(case: &Case) -> Option<String> {
    let folder = setting("BIPLANE_UPSTREAM_BIN")?;
    let (name, flags) = case.original();
    let program = PathBuf::from(folder).join(name);
    if !program.exists() {
        return None;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let limited = format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"");
    let process = Command::new("sh")
        .args(["-c", &limited])
        .arg(program)
        .args(["--insecure", "--address", &address])
        .args(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(process);
    let client = Client::new(&address, Security::Plaintext).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (millis, answer) = runtime.block_on(async {
        // The first call waits until the server runs.
        let ready = client.call(super::cases::usual(), Some(PATIENCE)).await;
        drop(ready);
        let start = Instant::now();
        let answer = client.call((case.request)(), Some(PATIENCE)).await;
        (start.elapsed().as_millis(), answer)
    });
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.0.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: Option<usize> = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    let memory = peak.map_or_else(|| "?".to_owned(), |kib| kib.div_ceil(1024).to_string());
    let shown = match (&answer, verdict(&answer).as_str()) {
        (Ok(_), "answered") => "answered",
        (Ok(_), _) => "fatal result",
        (Err(_), _) if peak.is_none() => "it ended",
        (Err(_), _) => "no answer",
    };
    Some(format!("| {millis} ms | {memory} MiB | {shown} |"))
}

//! Runs child processes that end with their owner, however the owner ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::EnvError;
use crate::probe::Probe;

/// Time between two probes of a server that is not ready yet.
const INTERVAL: Duration = Duration::from_millis(50);

/// Number of log lines that an error shows.
const LAST_LINES: usize = 15;

/// A server whose log is in a file. Dropping it kills and reaps the process.
#[derive(Debug)]
pub(crate) struct Server {
    program: &'static str,
    child: Child,
    log: PathBuf,
}

impl Server {
    pub(crate) fn spawn(
        program: &'static str,
        command: &mut Command,
        log: PathBuf,
    ) -> Result<Self, EnvError> {
        let out = File::create(&log).map_err(EnvError::io(format!("write {}", log.display())))?;
        let err = out.try_clone().map_err(EnvError::io(format!("write {}", log.display())))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(EnvError::io(format!("start {program}")))?;
        Ok(Self { program, child, log })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns an error with the last lines of the log if the server has stopped.
    pub(crate) fn still_runs(&mut self) -> Result<(), EnvError> {
        let program = self.program;
        match self.child.try_wait().map_err(EnvError::io(format!("wait for {program}")))? {
            None => Ok(()),
            Some(status) => Err(EnvError::Stopped { program, status, log: self.last_words() }),
        }
    }

    /// Probes the server until it is ready, has stopped, or the time is up.
    pub(crate) fn wait_ready(&mut self, probe: &Probe, limit: Duration) -> Result<(), EnvError> {
        let deadline = Instant::now() + limit;
        loop {
            self.still_runs()?;
            let Err(reason) = probe.ask() else { return Ok(()) };
            if Instant::now() >= deadline {
                return Err(EnvError::NotReady {
                    program: self.program,
                    seconds: limit.as_secs(),
                    reason,
                    log: self.last_words(),
                });
            }
            std::thread::sleep(INTERVAL);
        }
    }

    fn last_words(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Cleans up after an owner that could not: one that was killed or aborted, or that keeps its
/// servers in a static that is never dropped. A shell waits on a pipe that closes when the owner
/// ends.
#[derive(Debug)]
pub(crate) struct Reaper(Child);

impl Reaper {
    const SCRIPT: &'static str = "trap '' INT HUP TERM
while read -r _; do :; done
dir=$1; shift
kill -9 \"$@\" 2>/dev/null
rm -rf \"$dir\"";

    pub(crate) fn watch(dir: &Path, servers: &[&Server]) -> Result<Self, EnvError> {
        Command::new("sh")
            .args(["-c", Self::SCRIPT, "sh"])
            .arg(dir)
            .args(servers.iter().map(|s| s.id().to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(EnvError::io("start the shell that cleans up"))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // Kill the shell before its pipe closes: an owner that ends normally cleans up itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests;

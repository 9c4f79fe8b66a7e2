//! Runs child processes that end with their owner, however the owner ends.

use std::fs::{File, OpenOptions};
use std::io::{PipeWriter, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::EnvError;

/// Time between two probes of a server that is not ready yet.
const INTERVAL: Duration = Duration::from_millis(50);

/// Time after which a server that is not ready yet is mentioned, and mentioned again.
const MENTION: Duration = Duration::from_secs(5);

/// Number of log lines that an error shows.
const LAST_LINES: usize = 15;

/// A server whose log is in a file. Dropping it kills and reaps the process.
#[derive(Debug)]
pub(crate) struct Server {
    program: &'static str,
    child: Child,
    log: PathBuf,
    /// Where the log of this process begins. A restarted server appends to the same file.
    log_start: u64,
    paused: bool,
    /// The process was reaped without `child`, so its id may belong to another one now.
    reaped: bool,
}

impl Server {
    pub(crate) fn spawn(
        program: &'static str,
        command: &mut Command,
        log: PathBuf,
        group: &Group,
    ) -> Result<Self, EnvError> {
        let cannot = || EnvError::io(format!("write {}", log.display()));
        let out = OpenOptions::new().create(true).append(true).open(&log).map_err(cannot())?;
        let err = out.try_clone().map_err(cannot())?;
        let log_start = out.metadata().map_err(cannot())?.len();
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(group.id()?.as_raw())
            .spawn()
            .map_err(EnvError::io(format!("start {program}")))?;
        Ok(Self { program, child, log, log_start, paused: false, reaped: false })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns an error with the last lines of the log if the server has stopped.
    pub(crate) fn still_runs(&mut self) -> Result<(), EnvError> {
        let program = self.program;
        match self.child.try_wait().map_err(EnvError::io(format!("wait for {program}")))? {
            None => Ok(()),
            Some(status) => Err(EnvError::Stopped {
                program,
                status: status.to_string(),
                log: self.last_words(),
            }),
        }
    }

    /// Asks `probe` until the server is ready, has stopped, or the time is up. The probe says why
    /// the server is not ready; `report` hears it every few seconds.
    pub(crate) fn wait_ready(
        &mut self,
        mut probe: impl FnMut() -> Result<(), String>,
        limit: Duration,
        report: &mut dyn FnMut(&str),
    ) -> Result<(), EnvError> {
        let deadline = Instant::now() + limit;
        let mut mention = Instant::now() + MENTION;
        loop {
            self.still_runs()?;
            let Err(reason) = probe() else { return Ok(()) };
            let now = Instant::now();
            if now >= deadline {
                return Err(EnvError::NotReady {
                    program: self.program,
                    seconds: limit.as_secs(),
                    reason,
                    log: self.last_words(),
                });
            }
            if now >= mention {
                report(&format!("{}: not ready yet: {reason}", self.program));
                mention = now + MENTION;
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Stops the process as it is, as if its machine hung. It returns when the process stands still.
    pub(crate) fn pause(&mut self) -> Result<(), EnvError> {
        self.still_runs()?;
        if self.paused {
            return Ok(());
        }
        self.signal(Signal::SIGSTOP)?;
        match waitpid(self.pid()?, Some(WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {
                self.reaped = true;
                Err(EnvError::Stopped {
                    program: self.program,
                    status: "an end of its own while it was paused".into(),
                    log: self.last_words(),
                })
            }
            Ok(_) => {
                self.paused = true;
                Ok(())
            }
            Err(error) => Err(self.cannot("wait for", error)),
        }
    }

    /// Lets a paused process go on.
    pub(crate) fn resume(&mut self) -> Result<(), EnvError> {
        if self.paused {
            self.signal(Signal::SIGCONT)?;
            self.paused = false;
        }
        Ok(())
    }

    /// Asks the process to end, and gives it some time before it is killed.
    pub(crate) fn end(mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        if self.resume().and_then(|()| self.signal(Signal::SIGTERM)).is_ok() {
            while self.still_runs().is_ok() && Instant::now() < deadline {
                std::thread::sleep(INTERVAL);
            }
        }
    }

    fn pid(&self) -> Result<Pid, EnvError> {
        pid(&self.child)
    }

    fn signal(&self, signal: Signal) -> Result<(), EnvError> {
        kill(self.pid()?, signal).map_err(|error| self.cannot("signal", error))
    }

    fn cannot(&self, action: &str, error: nix::errno::Errno) -> EnvError {
        EnvError::io(format!("{action} {}", self.program))(error.into())
    }

    fn last_words(&self) -> String {
        let mut text = Vec::new();
        // A log that cannot be read is an empty one: there is a more important error to report.
        let _ = File::open(&self.log).and_then(|mut log| {
            log.seek(SeekFrom::Start(self.log_start))?;
            log.read_to_end(&mut text)
        });
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn pid(child: &Child) -> Result<Pid, EnvError> {
    i32::try_from(child.id())
        .map(Pid::from_raw)
        .map_err(|error| EnvError::io("use a process id")(std::io::Error::other(error)))
}

/// A process group for servers, which also ends if its owner cannot end it: one that was killed or
/// aborted, or that keeps its servers in a static that is never dropped.
///
/// Two shells wait on a pipe that the system closes when the owner ends. One is the first process of
/// the group, so that others can join. The other one stays outside: it kills the group and then
/// removes the folder. A process joins the group before it runs, so that there is no moment in which
/// it can be left behind.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Child,
    reaper: Child,
    /// As long as it is open, the shells wait.
    alive: Option<PipeWriter>,
}

impl Group {
    const LEADER: &'static str = "trap '' INT HUP TERM; read -r _";
    const REAPER: &'static str = "trap '' INT HUP TERM
read -r _
kill -s KILL -- \"-$1\" 2>/dev/null
[ -z \"$2\" ] || rm -rf \"$2\" || { sleep 1; rm -rf \"$2\"; }";

    /// Starts an empty group. If the owner cannot end it, `folder` is removed after it.
    pub(crate) fn start(folder: Option<&Path>) -> Result<Self, EnvError> {
        let cannot = || EnvError::io("start the shell that cleans up");
        let (end, alive) = std::io::pipe().map_err(cannot())?;
        let shell = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command
                .args(["-c", script, "sh"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                // An interrupt from the terminal is for the owner alone.
                .process_group(0);
            command
        };
        let leader = shell(Self::LEADER)
            .stdin(end.try_clone().map_err(cannot())?)
            .spawn()
            .map_err(cannot())?;
        let reaper = shell(Self::REAPER)
            .arg(leader.id().to_string())
            .arg(folder.unwrap_or(Path::new("")))
            .stdin(end)
            .spawn()
            .map_err(cannot())?;
        Ok(Self { leader, reaper, alive: Some(alive) })
    }

    /// The id with which processes join.
    pub(crate) fn id(&self) -> Result<Pid, EnvError> {
        pid(&self.leader)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Kill the reaper before its pipe closes: an owner that ends normally cleans up itself.
        let _ = self.reaper.kill();
        let _ = self.reaper.wait();
        if let Ok(id) = self.id() {
            let _ = killpg(id, Signal::SIGKILL);
        }
        let _ = self.leader.wait();
        drop(self.alive.take());
    }
}

#[cfg(test)]
mod tests;

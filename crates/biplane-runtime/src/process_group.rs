//! Runs a program in its own process group, so that no child process is left behind.
//!
//! A group ends with this process, also if this process is killed and cannot end it. For that, each
//! group has a watcher: a shell that waits for the end of a pipe whose other end only this process
//! holds. The system closes the pipe however this process ends, and the watcher kills its group.

use std::io::{self, PipeWriter};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Waits for the end of its input, which never has a line, and kills everything in its group.
const WATCH: &str = "read -r _; kill -s KILL 0";

/// A process and all its children. All of them are killed when this is dropped.
#[derive(Debug)]
pub struct ProcessGroup(Mutex<Option<Group>>);

#[derive(Debug)]
struct Group {
    /// The id of the group, which is the id of its first process.
    id: u32,
    watcher: Option<Watcher>,
}

#[derive(Debug)]
struct Watcher {
    process: Child,
    _alive: PipeWriter,
}

impl Watcher {
    /// Starts a watcher as the first process of a new group.
    fn start() -> io::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let (end, alive) = io::pipe()?;
        let process = Command::new("/bin/sh")
            .args(["-c", WATCH])
            .stdin(end)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { process, _alive: alive })
    }
}

impl ProcessGroup {
    /// Starts a program in a group of its own, with stdout and stderr piped.
    pub fn lead(
        program: &mut tokio::process::Command,
    ) -> io::Result<(tokio::process::Child, Self)> {
        let program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Without a shell, the program is the first of its group, and is left behind only if this
        // process is killed.
        let watcher = Watcher::start().ok();
        let group = watcher.as_ref().map(|watcher| watcher.process.id());
        let joined = group.and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
        let group = group.map(|id| Self(Mutex::new(Some(Group { id, watcher }))));
        // If it cannot be started, the watcher ends with its group.
        let leader = program.process_group(joined).spawn()?;
        let group = group
            .unwrap_or_else(|| Self(Mutex::new(leader.id().map(|id| Group { id, watcher: None }))));
        Ok((leader, group))
    }

    /// Kills the rest of the group, once: the group id may be reused later.
    pub fn end(&self) {
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Group { id, watcher }) = group else { return };
        if let Ok(id) = i32::try_from(id) {
            // Fails if the group no longer exists.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
        if let Some(mut watcher) = watcher {
            let _ = watcher.process.kill();
            let _ = watcher.process.wait();
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process that is killed with all its children when this is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    group: Arc<ProcessGroup>,
    /// The folder of its socket, if it has one, which is removed after it has ended.
    _folder: Option<tempfile::TempDir>,
}

impl Program {
    /// Whether its group has been killed.
    #[cfg(test)]
    pub(crate) fn has_ended(&self) -> bool {
        self.group.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    pub(crate) fn new(group: Arc<ProcessGroup>, folder: Option<tempfile::TempDir>) -> Self {
        Self { group, _folder: folder }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The task that waits for the process also holds the group.
        self.group.end();
    }
}

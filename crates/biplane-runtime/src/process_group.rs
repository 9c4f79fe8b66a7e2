//! Runs a program in its own process group, so that no child process is left behind.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// A process and all its children. All of them are killed when this is dropped.
#[derive(Debug)]
pub struct ProcessGroup(Mutex<Option<u32>>);

impl ProcessGroup {
    /// Starts a program as the leader of a group, with stdout and stderr piped.
    pub fn lead(
        program: &mut tokio::process::Command,
    ) -> io::Result<(tokio::process::Child, Self)> {
        let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let leader = program.kill_on_drop(true).process_group(0).spawn()?;
        let group = Self(Mutex::new(leader.id()));
        Ok((leader, group))
    }

    /// Kills the rest of the group, once: the group id may be reused later.
    pub fn end(&self) {
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let group = group.and_then(|group| i32::try_from(group).ok());
        let Some(group) = group else { return };
        // Fails if the group no longer exists.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process that is killed with all its children when this is dropped.
#[derive(Debug)]
pub(crate) struct Program(Arc<ProcessGroup>);

impl Program {
    /// Whether its group has been killed.
    #[cfg(test)]
    pub(crate) fn has_ended(&self) -> bool {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    pub(crate) fn new(group: Arc<ProcessGroup>) -> Self {
        Self(group)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The task that waits for the process also holds the group.
        self.0.end();
    }
}

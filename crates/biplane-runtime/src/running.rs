//! A running function that can be called, wherever it runs.

use std::sync::Arc;

use biplane_runner::FunctionRunner;
use biplane_runner::supervised::Ended;

use crate::process_group::Program;

/// How many log lines are shown when a function has exited.
pub(crate) const LOG_LINES: usize = 20;

/// A function that can be called.
#[derive(Clone)]
pub struct Running {
    /// Calls it.
    pub runner: Arc<dyn FunctionRunner>,
    /// Its gRPC target, if it has one.
    pub target: Option<String>,
    /// For a process or a container: its exit report.
    pub ended: Option<Ended>,
    /// The process, which ends with the last clone.
    #[allow(dead_code)] // dropping it ends the process
    pub(crate) program: Option<Arc<Program>>,
}

impl Running {
    /// A function that is called directly in this process.
    pub fn in_process(runner: Arc<dyn FunctionRunner>) -> Self {
        Self { runner, target: None, ended: None, program: None }
    }

    /// A function at a gRPC target.
    pub(crate) fn at(
        runner: Arc<dyn FunctionRunner>,
        target: String,
        ended: Option<Ended>,
    ) -> Self {
        Self { runner, target: Some(target), ended, program: None }
    }

    /// Whether it can still be called.
    pub(crate) fn is_up(&self) -> bool {
        !self.ended.as_ref().is_some_and(|ended| ended.borrow().is_some())
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("target", &self.target).finish_non_exhaustive()
    }
}

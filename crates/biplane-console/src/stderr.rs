//! Where errors, warnings and the log go.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::progress::Progress;
use crate::terminal;

/// Where errors, warnings and the log go. Copies write to the same place, from any thread.
#[derive(Clone)]
pub struct Stderr {
    out: Arc<Mutex<dyn Write + Send>>,
    is_terminal: bool,
}

impl Stderr {
    /// The stderr of this process.
    pub fn of_process() -> Self {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        Self { out: Arc::new(Mutex::new(stderr)), is_terminal }
    }

    /// Something else, such as a buffer that a test reads.
    pub fn to(out: Arc<Mutex<impl Write + Send + 'static>>) -> Self {
        Self { out, is_terminal: false }
    }

    /// Whether a person reads along.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes a line, or several, with the progress line out of its way.
    pub(crate) fn say(&self, progress: &Progress, line: &str) {
        let line = terminal::harmless(line);
        self.write(progress, format!("{line}\n").as_bytes());
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&self, progress: &Progress, bytes: &[u8]) {
        progress.aside(|| {
            let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
            // A failure to write cannot be reported.
            let _ = out.write_all(bytes).and_then(|()| out.flush());
        });
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stderr").field("is_terminal", &self.is_terminal).finish_non_exhaustive()
    }
}

//! The stderr of a command, which receives errors, warnings and the log.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::progress::Progress;
use crate::terminal;

/// The destination of errors, warnings and the log. Clones write to the same place, from any
/// thread.
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

    /// Another destination, such as a buffer that a test reads.
    pub fn to(out: Arc<Mutex<impl Write + Send + 'static>>) -> Self {
        Self { out, is_terminal: false }
    }

    /// Whether stderr is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes one or more lines while the progress line is erased.
    pub fn say(&self, progress: &Progress, line: &str) {
        let line = terminal::harmless(line);
        self.write(progress, format!("{line}\n").as_bytes());
    }

    /// Writes raw bytes.
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

//! Where a command reads from and writes to: documents on stdout, everything else on stderr.

use std::fmt;
use std::io::{self, IsTerminal as _, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::logging::debug_line;

use crate::logging;
use crate::progress::Progress;
use crate::terminal;

/// The streams of one command.
pub struct Streams<'a> {
    /// What `-` reads.
    pub stdin: &'a mut dyn Read,
    /// The product, and nothing but the product.
    pub stdout: &'a mut dyn Write,
    /// Errors, warnings and the log.
    pub stderr: Stderr,
    /// Whether the log includes debug lines.
    pub verbose: bool,
    /// Where to say what is waited for.
    pub progress: Progress,
}

impl Streams<'_> {
    /// Logs a line if the user asked for it. Fields are in the order of their keys.
    pub fn debug(&mut self, message: &str, fields: &[(&str, &str)]) {
        logging::debug(message, fields);
    }

    /// Writes a line, or several, to stderr. There is nobody to tell when that fails.
    pub fn say(&mut self, line: &str) {
        self.stderr.say(&self.progress, line);
    }
}

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
            // There is nobody to tell when that fails.
            let _ = out.write_all(bytes).and_then(|()| out.flush());
        });
    }
}

/// Passes on what is written, and remembers whether there is nobody left to read it.
pub(crate) struct Reader<'a> {
    out: &'a mut dyn Write,
    /// Whether whoever read has gone away.
    pub gone: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, gone: false }
    }

    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.gone |= done.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe);
        done
    }
}

impl Write for Reader<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.note(done)
    }
}

impl fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("verbose", &self.verbose).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stderr").field("is_terminal", &self.is_terminal).finish_non_exhaustive()
    }
}

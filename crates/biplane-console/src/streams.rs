//! The input and output of a command: documents go to stdout, everything else goes to stderr.

use std::fmt;
use std::io::{self, Read, Write};

use crate::logging;
use crate::progress::Progress;
use crate::stderr::Stderr;

/// The streams of one command.
pub struct Streams<'a> {
    /// The input for the path `-`.
    pub stdin: Box<dyn Read + Send>,
    /// The documents, and nothing else.
    pub stdout: &'a mut dyn Write,
    /// Errors, warnings and the log.
    pub stderr: Stderr,
    /// Whether the log includes debug lines.
    pub verbose: bool,
    /// Shows what the command is waiting for.
    pub progress: Progress,
}

impl Streams<'_> {
    /// Logs a line if debug output is on. Fields are sorted by key.
    pub fn debug(&mut self, message: &str, fields: &[(&str, &str)]) {
        logging::debug(message, fields);
    }

    /// Writes one or more lines to stderr. A failure to write cannot be reported.
    pub fn say(&mut self, line: &str) {
        self.stderr.say(&self.progress, line);
    }
}

/// A writer that records whether its reader has closed the pipe.
pub struct PipeWatch<'a> {
    out: &'a mut dyn Write,
    /// Whether the reader has closed the pipe.
    pub closed: bool,
}

impl<'a> PipeWatch<'a> {
    /// Wraps a writer.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out, closed: false }
    }

    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.closed |= done.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe);
        done
    }
}

impl Write for PipeWatch<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.note(done)
    }
}

impl fmt::Debug for PipeWatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeWatch").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("verbose", &self.verbose).finish_non_exhaustive()
    }
}

//! Where a command reads from and writes to: documents on stdout, everything else on stderr.

use std::fmt;
use std::io::{self, Read, Write};

use crate::progress::Progress;
use crate::terminal;

/// The streams of one command.
pub struct Streams<'a> {
    /// What `-` reads.
    pub stdin: Box<dyn Read + Send>,
    /// The product, and nothing but the product.
    pub stdout: &'a mut dyn Write,
    /// Errors, warnings and progress.
    pub stderr: &'a mut dyn Write,
    /// Whether to log what is being done.
    pub verbose: bool,
    /// Where to say what is waited for.
    pub progress: Progress,
}

impl Streams<'_> {
    /// Logs a line if the user asked for it. Fields are in the order of their keys.
    pub fn debug(&mut self, message: &str, fields: &[(&str, &str)]) {
        if self.verbose {
            self.say(&debug_line(message, fields));
        }
    }

    /// Writes a line, or several, to stderr. A failure to write cannot be reported.
    pub fn say(&mut self, line: &str) {
        let line = terminal::harmless(line);
        let _ = self.progress.aside(|| writeln!(self.stderr, "{line}"));
    }
}

/// A line of the log.
pub fn debug_line(message: &str, fields: &[(&str, &str)]) -> String {
    let fields: serde_json::Map<_, _> =
        fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let fields = serde_json::Value::Object(fields);
    format!("{time}\tDEBUG\t{message}\t{fields}")
}

/// A writer that remembers whether its reader has closed the pipe.
pub struct PipeWatch<'a> {
    out: &'a mut dyn Write,
    /// Whether the reader has closed the pipe.
    pub closed: bool,
}

impl<'a> PipeWatch<'a> {
    /// Watches a writer.
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

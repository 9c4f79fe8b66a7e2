//! Sets up logging, in one place for every command. Log lines go to the stderr of the run that logs
//! them, so that several runs in one process do not mix.

use std::cell::RefCell;
use std::fmt;
use std::io;

use serde_json::{Map, Value};
use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry;

use crate::progress::Progress;
use crate::stderr::Stderr;

/// The log level and the format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least important level that is logged.
    pub level: LevelFilter,
    /// The format of log lines.
    pub format: Format,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, level, message and fields as JSON, separated by tabs.
    Tabs,
    /// Human-readable lines, with the module that logs.
    Text,
    /// One JSON object per line.
    Json,
}

impl Log {
    /// A log that is silent unless debug output is requested.
    pub fn when_asked(debug: bool) -> Self {
        Self::at(if debug { LevelFilter::DEBUG } else { LevelFilter::OFF })
    }

    /// Lines separated by tabs.
    pub fn at(level: LevelFilter) -> Self {
        Self { level, format: Format::Tabs }
    }

    /// Whether debug lines are logged.
    pub fn is_debug(self) -> bool {
        self.level >= LevelFilter::DEBUG
    }

    /// Runs a closure on this thread and sends its log lines to `stderr`.
    pub fn during<T>(self, stderr: &Stderr, progress: &Progress, run: impl FnOnce() -> T) -> T {
        if self.level == LevelFilter::OFF {
            return run();
        }
        let out = Out { stderr: stderr.clone(), progress: progress.clone() };
        dispatcher::with_default(&self.dispatch(out), run)
    }

    fn dispatch(self, out: Out) -> Dispatch {
        let lines = registry().with(self.filter());
        match self.format {
            Format::Tabs => lines.with(Tabs(out)).into(),
            Format::Text => {
                let ansi = out.stderr.is_terminal();
                lines.with(tracing_subscriber::fmt::layer().with_ansi(ansi).with_writer(out)).into()
            }
            Format::Json => {
                lines.with(tracing_subscriber::fmt::layer().json().with_writer(out)).into()
            }
        }
    }

    fn filter(self) -> Targets {
        let level = self.level.min(LevelFilter::INFO);
        Targets::new()
            .with_default(self.level)
            .with_targets(QUIET.map(|target| (target, level)))
            .with_target(REFUSALS, self.level)
    }
}

/// Libraries that log so much about frames and connections that other lines would be lost.
const QUIET: [&str; 9] =
    ["bollard", "h2", "hyper", "hyper_util", "oci_client", "reqwest", "rustls", "tonic", "tower"];

/// Logs why a request is malformed, for example because its authority is the path of a socket. The
/// client only receives a protocol error.
const REFUSALS: &str = "h2::server";

/// Makes the threads of a runtime log to the same place as the current thread.
pub fn on_threads(builder: &mut tokio::runtime::Builder) -> &mut tokio::runtime::Builder {
    thread_local! {
        static LOGGING: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
    }
    let dispatch = dispatcher::get_default(Dispatch::clone);
    builder
        .on_thread_start(move || LOGGING.set(Some(dispatcher::set_default(&dispatch))))
        .on_thread_stop(|| drop(LOGGING.take()))
}

/// The field that holds all fields whose names are not known at compile time, as a JSON object.
const FIELDS: &str = "fields";

/// Logs a line with arbitrary field names.
pub(crate) fn debug(message: &str, fields: &[(&str, &str)]) {
    if tracing::enabled!(target: "biplane", tracing::Level::DEBUG) {
        let fields = Value::Object(object(fields)).to_string();
        tracing::debug!(target: "biplane", fields, "{message}");
    }
}

/// Formats a debug line separated by tabs, for code that logs after the run.
pub fn debug_line(message: &str, fields: &[(&str, &str)]) -> String {
    line(tracing::Level::DEBUG, message, object(fields))
}

fn object(fields: &[(&str, &str)]) -> Map<String, Value> {
    fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect()
}

#[allow(clippy::disallowed_methods)] // log lines have timestamps
fn line(level: tracing::Level, message: &str, fields: Map<String, Value>) -> String {
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let fields = Value::Object(fields);
    format!("{time}\t{level}\t{message}\t{fields}")
}

/// The stderr of a run.
#[derive(Clone)]
struct Out {
    stderr: Stderr,
    progress: Progress,
}

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stderr.write(&self.progress, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Out {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Writes lines separated by tabs.
struct Tabs(Out);

impl<S: Subscriber> Layer<S> for Tabs {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        let line = line(*event.metadata().level(), &said.message, said.fields);
        self.0.stderr.say(&self.0.progress, &line);
    }
}

/// The parts of an event.
#[derive(Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Said {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.set(field, format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match (field.name(), serde_json::from_str(value)) {
            (FIELDS, Ok(Value::Object(fields))) => self.fields.extend(fields),
            _ => self.set(field, value),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }
}

#[cfg(test)]
mod tests;

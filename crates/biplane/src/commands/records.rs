//! What the commands that ask about records share: where records are, time, and the form of answers.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use biplane_console::Streams;
use biplane_proto::redact::Mode;
use biplane_recorder::api::client;
use biplane_recorder::http::{Credentials, Server};
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::{Archive, Error};
use biplane_recorder::query::ask::{self, Question};
use biplane_recorder::query::import::{self, Reading};
use biplane_recorder::query::lines::Lines;
use biplane_recorder::query::print::{self, Format, Options};
use biplane_recorder::query::stored::Stored;
use biplane_recorder::query::time;
use clap::{ArgAction, Args};
use jiff::Timestamp;

use super::sidecar;
use crate::exit::{DIFFERENCES, Exit, USAGE_ERROR};
use crate::values::{self, STDIN};

/// Where records are.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Records")]
pub(super) struct Source {
    /// The store of a recorder: a file, or postgres://USER@HOST/NAME
    #[arg(long, value_name = "LOCATION", env = "BIPLANE_RECORDER", hide_env_values = true)]
    store: Option<String>,
    /// The address of a recorder, such as http://127.0.0.1:7654 or https://recorder.example.org
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// A file with the token that the recorder asks for
    #[arg(long, value_name = "FILE", value_parser = values::path)]
    token_file: Option<PathBuf>,
    /// A file with the certificates that vouch for the recorder, instead of those of the system
    #[arg(long, value_name = "FILE", value_parser = values::path)]
    ca_file: Option<PathBuf>,
    /// Lines that sidecars printed, in the place of a store; - is standard input; repeatable
    #[arg(long, value_name = "FILE", value_parser = values::path, action = ArgAction::Append)]
    from: Vec<PathBuf>,
}

/// Records that can be asked about.
pub(super) enum Records {
    /// In a store or in lines.
    Here(Box<dyn Archive + Send>),
    /// Behind the API of a recorder.
    There(Box<Server>),
}

impl Source {
    /// Opens the records.
    pub(super) fn open(&self, streams: &mut Streams<'_>) -> Result<Records> {
        if !self.from.is_empty() {
            let readings = read_files(&self.from, streams)?;
            for (file, reading) in self.from.iter().zip(&readings) {
                for skipped in &reading.skipped {
                    streams.say(&format!("biplane: {}: {skipped}", file.display()));
                }
            }
            let redactor = sidecar::redactor(Mode::Deep);
            return Ok(Records::Here(Box::new(Lines::new(readings, &redactor))));
        }
        if let Some(server) = &self.server {
            return self.server(server);
        }
        match &self.store {
            Some(server) if is_server(server) => self.server(server),
            Some(store) => {
                let store = values::at_home(store);
                let stored = Stored::open(&store.to_string_lossy()).map_err(failed)?;
                Ok(Records::Here(Box::new(stored)))
            }
            None => Err(usage("name the records with --store, --server or --from").into()),
        }
    }

    /// Records behind the API of a recorder.
    fn server(&self, url: &str) -> Result<Records> {
        let credentials =
            Credentials { token_file: self.token_file.clone(), ca_file: self.ca_file.clone() };
        let server = Server::new(url, &credentials).map_err(|error| failed(error.into()))?;
        Ok(Records::There(Box::new(server)))
    }

    /// Opens records that commands need as a whole.
    pub(super) fn archive(&self, streams: &mut Streams<'_>) -> Result<Box<dyn Archive + Send>> {
        match self.open(streams)? {
            Records::Here(archive) => Ok(archive),
            Records::There(_) => {
                Err(usage("this needs the records themselves: use --store or --from").into())
            }
        }
    }

    /// The store to write to.
    pub(super) fn store(&self) -> Result<String> {
        let store = self.store.as_deref().filter(|store| !is_server(store));
        let store = store.ok_or_else(|| usage("name the store to import into with --store"))?;
        Ok(values::at_home(store).to_string_lossy().into_owned())
    }
}

impl Records {
    /// Asks a question.
    pub(super) fn ask(&self, question: &Question) -> Result<Answer> {
        let answer = match self {
            Self::Here(archive) => ask::answer(archive.as_ref(), question, now()),
            Self::There(server) => client::ask_with(server, question),
        };
        answer.map_err(failed)
    }
}

/// Whether a location is a recorder that runs.
fn is_server(location: &str) -> bool {
    location.starts_with("http://") || location.starts_with("https://")
}

/// Reads what sidecars printed.
pub(super) fn read_files(files: &[PathBuf], streams: &mut Streams<'_>) -> Result<Vec<Reading>> {
    let mut readings = Vec::new();
    for file in files {
        let mut bytes = Vec::new();
        if file.as_os_str() == STDIN {
            streams.stdin.read_to_end(&mut bytes).context("cannot read standard input")?;
        } else {
            let attempted = || format!("cannot read {}", file.display());
            bytes = std::fs::read(file).with_context(attempted)?;
        }
        readings.push(import::read(&String::from_utf8_lossy(&bytes)));
    }
    Ok(readings)
}

/// How answers are printed.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Output {
    /// The form of the answer: table, wide, json, yaml, name or md
    #[arg(long, short, value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// Also show fields that servers keep for themselves: versions, managed fields and times
    #[arg(long)]
    bookkeeping: bool,
}

impl Output {
    /// Prints an answer.
    pub(super) fn show(&self, answer: &Answer, streams: &mut Streams<'_>) -> Result<()> {
        let options = Options { format: self.output, bookkeeping: self.bookkeeping };
        streams.stdout.write_all(print::print(answer, options).as_bytes())?;
        Ok(streams.stdout.flush()?)
    }
}

/// Which part of the records.
#[derive(Clone, Debug, Args)]
pub(super) struct Times {
    /// Only what happened within this time, such as 1h or 7d
    #[arg(long, value_name = "DURATION")]
    since: Option<String>,
    /// Only what happened at this time or later: RFC 3339, a date, or 14:00; UTC without an offset
    #[arg(long, value_name = "TIME", conflicts_with = "since")]
    since_time: Option<String>,
    /// Only what happened before this time
    #[arg(long, value_name = "TIME")]
    until_time: Option<String>,
}

impl Times {
    /// The beginning and the end.
    pub(super) fn range(&self) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
        let now = now();
        let point =
            |text: &String| time::point(text, now).map_err(|error| usage(&error.to_string()));
        let since = match &self.since {
            Some(text) => {
                let wrong =
                    || usage(&format!("expected a duration such as 1h or 7d but got {text:?}"));
                Some(time::back(text, now).ok_or_else(wrong)?)
            }
            None => self.since_time.as_ref().map(point).transpose()?,
        };
        Ok((since, self.until_time.as_ref().map(point).transpose()?))
    }
}

/// The exit code of a comparison.
pub(super) fn differs(differs: bool) -> Result<()> {
    if differs { Err(Exit { code: DIFFERENCES, text: String::new() }.into()) } else { Ok(()) }
}

/// A mistake of the user that clap cannot see.
pub(super) fn usage(text: &str) -> Exit {
    Exit { code: USAGE_ERROR, text: text.to_owned() }
}

/// A question that has no answer.
pub(super) fn failed(error: Error) -> anyhow::Error {
    match error {
        Error::Usage(text) => usage(&text).into(),
        error => error.into(),
    }
}

/// The clock of the process.
#[allow(clippy::disallowed_methods)] // this is where it comes in
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

//! Prints what is received, as the reference sidecars do.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use biplane_proto::changelogs::ChangeLogEntry;
use biplane_proto::redact::{Half, Redacted, Redactor};
use serde_json::Value;
use tonic::{Status, async_trait};

use crate::emission::Emission;
use crate::line::{self, Format};
use crate::output::Output;
use crate::receive::{TakeChange, TakeEmission};

/// Prints emissions.
#[derive(Debug)]
pub struct EmissionPrinter {
    format: Format,
    redactor: Redactor,
    output: Output,
    redacted: Mutex<Spans>,
}

impl EmissionPrinter {
    /// Prints emissions in a format, without what the redactor redacts.
    pub fn new(format: Format, redactor: Redactor, output: Output) -> Self {
        Self { format, redactor, output, redacted: Mutex::default() }
    }

    /// What is printed of an emission.
    pub fn line(&self, emission: &Emission) -> Option<String> {
        let Emission { half, meta, error, .. } = emission;
        let mut spans = self.redacted.lock().unwrap_or_else(PoisonError::into_inner);
        let payload = spans.redacted(&self.redactor, emission);
        drop(spans);
        line::emission(self.format, *half, meta.as_ref(), payload, error)
    }
}

#[async_trait]
impl TakeEmission for EmissionPrinter {
    /// Answers success whatever was received and whether it could be printed: emitting is for
    /// debugging, and the emitter could not do anything about it.
    async fn take(&self, emission: Emission) -> Result<(), Status> {
        let Some(line) = self.line(&emission) else {
            tracing::debug!("cannot print an emission: its metadata has no JSON form");
            return Ok(());
        };
        if let Err(error) = self.output.write(line).await {
            tracing::info!(%error, "cannot print an emission");
        }
        Ok(())
    }
}

/// The calls whose request was redacted and whose response has not come yet. The response has the
/// tag of the request.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    known: BTreeSet<String>,
    oldest_first: VecDeque<String>,
}

/// More calls than a control plane makes at a time.
const MOST_SPANS: usize = 4096;

impl Spans {
    /// The payload of an emission without secrets.
    pub(crate) fn redacted(&mut self, redactor: &Redactor, emission: &Emission) -> Redacted<Value> {
        let Emission { half, meta, payload, .. } = emission;
        let span = meta.as_ref().map(|meta| meta.span_id.as_str()).unwrap_or_default();
        let request_is_redacted = *half == Half::Response && self.take(span);
        let payload = redactor.line_payload(*half, payload, request_is_redacted);
        if *half == Half::Request && payload.is_redacted() {
            self.add(span);
        }
        payload
    }

    fn add(&mut self, span: &str) {
        if self.known.insert(span.to_owned()) {
            self.oldest_first.push_back(span.to_owned());
        }
        while self.oldest_first.len() > MOST_SPANS {
            if let Some(oldest) = self.oldest_first.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Whether a call was added. It is forgotten.
    fn take(&mut self, span: &str) -> bool {
        let known = self.known.remove(span);
        if known && let Some(at) = self.oldest_first.iter().position(|other| other == span) {
            self.oldest_first.remove(at);
        }
        known
    }
}

/// Prints change log entries.
#[derive(Debug)]
pub struct ChangePrinter {
    redactor: Redactor,
    output: Output,
}

impl ChangePrinter {
    /// Prints entries without what the redactor redacts.
    pub fn new(redactor: Redactor, output: Output) -> Self {
        Self { redactor, output }
    }
}

#[async_trait]
impl TakeChange for ChangePrinter {
    /// Answers once the line is written.
    async fn take(&self, entry: ChangeLogEntry) -> Result<(), Status> {
        let failed = |error| Status::internal(format!("Failed to marshall input entry: {error}"));
        let line = line::entry(&self.redactor.entry(entry)).map_err(failed)?;
        let unwritten = |error| Status::internal(format!("Failed to write entry: {error}"));
        self.output.write(line).await.map_err(unwritten)
    }
}

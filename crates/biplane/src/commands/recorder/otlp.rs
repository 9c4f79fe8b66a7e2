//! Flags of `recorder serve` about an OpenTelemetry collector.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use biplane_function::metrics::Metrics;
use biplane_recorder::http::{Credentials, HttpError, Server};
use biplane_recorder::otlp::{Exporter, Options};
use biplane_recorder::recorder::Recorder;
use clap::Args;

use crate::commands::records::usage;
use crate::values;

/// Where spans go.
#[derive(Debug, Args)]
#[command(next_help_heading = "OpenTelemetry")]
pub(super) struct Otlp {
    /// Also send runs, their steps and changes as spans to this collector: OTLP over HTTP in JSON, such
    /// as http://collector:4318
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// A file with the bearer token for the collector
    #[arg(long, value_name = "FILE", requires = "otlp_endpoint", value_parser = values::path)]
    otlp_token_file: Option<PathBuf>,
    /// A file with the certificates that vouch for the collector, instead of those of the system
    #[arg(long, value_name = "FILE", requires = "otlp_endpoint", value_parser = values::path)]
    otlp_ca_file: Option<PathBuf>,
}

impl Otlp {
    /// The collector, if there is one.
    pub(super) fn server(&self) -> Result<Option<Server>> {
        let Some(url) = &self.otlp_endpoint else { return Ok(None) };
        let credentials = Credentials {
            token_file: self.otlp_token_file.clone(),
            ca_file: self.otlp_ca_file.clone(),
        };
        match Server::new(url, &credentials) {
            Ok(server) => Ok(Some(server)),
            Err(HttpError::Url(_)) => {
                let text =
                    format!("expected a collector such as http://collector:4318 but got {url:?}");
                Err(usage(&text).into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Begins to send what a recorder stores.
pub(super) fn start(
    server: Option<Server>,
    store: &str,
    recorder: &Recorder,
    metrics: &Metrics,
) -> Result<Option<Exporter>> {
    let Some(server) = server else { return Ok(None) };
    let options = Options::new(server, store.to_owned());
    let started = Exporter::start(options, recorder.live(), metrics);
    started.map(Some).context("cannot start a thread")
}

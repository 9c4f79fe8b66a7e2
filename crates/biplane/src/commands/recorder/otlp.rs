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
pub(super) struct Collector {
    /// Also send runs, their steps and changes as spans to this collector: OTLP over HTTP in JSON, such
    /// as http://collector:4318
    #[arg(id = "otlp_endpoint", long = "otlp-endpoint", value_name = "URL")]
    endpoint: Option<String>,
    /// A file with the bearer token for the collector
    #[arg(id = "otlp_token_file", long = "otlp-token-file", value_name = "FILE",
        requires = "otlp_endpoint", value_parser = values::path)]
    token_file: Option<PathBuf>,
    /// A file with the certificates that vouch for the collector, instead of those of the system
    #[arg(id = "otlp_ca_file", long = "otlp-ca-file", value_name = "FILE",
        requires = "otlp_endpoint", value_parser = values::path)]
    ca_file: Option<PathBuf>,
}

impl Collector {
    /// The collector, if there is one.
    pub(super) fn server(&self) -> Result<Option<Server>> {
        let Some(url) = &self.endpoint else { return Ok(None) };
        let credentials =
            Credentials { token_file: self.token_file.clone(), ca_file: self.ca_file.clone() };
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

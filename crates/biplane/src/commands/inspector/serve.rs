//! `inspector serve`: receives what pipelines emit and prints it, as the sidecar of a control plane.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use biplane_console::Log;
use biplane_proto::redact::Mode;
use biplane_recorder::serve::{self, INSPECTOR_SOCKET, Options};
use biplane_recorder::{EmissionPrinter, Format};
use clap::{Args, ValueEnum};

use crate::commands::sidecar;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  # As the sidecar of a control plane that runs with --enable-pipeline-inspector
  biplane inspector serve

  # At another socket, for people to read
  biplane inspector serve --socket=/tmp/inspector.sock --format=text

  # What a render emits
  biplane render xr.yaml composition.yaml functions.yaml --inspect=/tmp/inspector.sock";

/// Receive what functions are given and what they answer, and print it
///
/// Serves the Pipeline Inspector at a Unix socket, in the version of released control planes and in
/// that of the design document. Everything received is printed to standard output; logs go to
/// standard error. Secrets are redacted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Emit debug logs in addition to info logs
    #[arg(long, short)]
    debug: bool,
    /// Unix socket path to listen on; a socket that is there is replaced
    #[arg(long, visible_alias = "socket", value_name = "PATH", env = "PIPELINE_INSPECTOR_SOCKET",
        hide_env_values = true, default_value = INSPECTOR_SOCKET, value_parser = sidecar::socket)]
    socket_path: PathBuf,
    /// Output format: json or text
    #[arg(long, value_enum, default_value_t = OutputFormat::Json, hide_possible_values = true)]
    format: OutputFormat,
    /// Maximum gRPC receive message size in bytes
    #[arg(long, value_name = "BYTES", env = "MAX_RECV_MSG_SIZE", hide_env_values = true,
        default_value = "4194304", value_parser = sidecar::size)]
    max_recv_msg_size: usize,
    /// Graceful shutdown timeout
    #[arg(long, value_name = "DURATION", env = "SHUTDOWN_TIMEOUT", hide_env_values = true,
        default_value = "5s", value_parser = values::duration)]
    shutdown_timeout: Duration,
    /// What is redacted: shipped, deep, clear or none
    #[arg(long, value_name = "MODE", default_value_t = Mode::Deep)]
    redaction: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// One line of JSON for each emission.
    Json,
    /// Labels and YAML, for people.
    Text,
}

impl Serve {
    /// The log settings of the command.
    pub(super) fn log(&self, verbose: bool) -> Log {
        sidecar::log(verbose || self.debug)
    }

    /// Runs until the process is interrupted or terminated.
    pub(super) fn run(self) -> Result<()> {
        let (format, name) = match self.format {
            OutputFormat::Json => (Format::Json, "json"),
            OutputFormat::Text => (Format::Text, "text"),
        };
        let redactor = sidecar::redactor(self.redaction);
        let printer = EmissionPrinter::new(format, redactor, sidecar::output()?);
        let socket = self.socket_path.display().to_string();
        let options = Options {
            socket: self.socket_path,
            max_message: self.max_recv_msg_size,
            shutdown: self.shutdown_timeout,
        };
        let bound = || tracing::info!(socket, format = name, "Pipeline Inspector listening");
        sidecar::serve(printer, |printer| serve::inspector(printer, options), bound, Into::into)
    }
}

//! `changelogs serve`: receives what providers did and prints it, as the sidecar of a provider.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use biplane_console::Log;
use biplane_proto::redact::Mode;
use biplane_recorder::ChangePrinter;
use biplane_recorder::serve::{self, CHANGE_LOGS_SOCKET, MAX_MESSAGE, Options, ServeError};
use clap::Args;

use crate::commands::sidecar;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  # As the sidecar of a provider that runs with --enable-changelogs
  biplane changelogs serve

  # At another socket, and exactly what the provider sends
  biplane changelogs serve --socket=/tmp/changelogs.sock --redaction=none";

/// Receive change log entries and print them
///
/// Serves Change Logs at a Unix socket. Each entry is one line of JSON on standard output, which has
/// nothing else; logs go to standard error. Values of Secrets in snapshots are redacted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Emit debug logs in addition to info logs
    #[arg(long, short)]
    debug: bool,
    /// Path to create a Unix domain socket for change logs gRPC; a socket that is there is replaced
    #[arg(long, visible_alias = "socket", value_name = "PATH", default_value = CHANGE_LOGS_SOCKET,
        value_parser = sidecar::socket)]
    socket_path: PathBuf,
    /// Maximum gRPC receive message size in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MAX_MESSAGE, value_parser = sidecar::size)]
    max_recv_msg_size: usize,
    /// Graceful shutdown timeout
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    shutdown_timeout: Duration,
    /// What is redacted: shipped, deep, clear or none
    #[arg(long, value_name = "MODE", default_value_t = Mode::Deep)]
    redaction: Mode,
}

impl Serve {
    /// The log settings of the command.
    pub(super) fn log(&self, verbose: bool) -> Log {
        sidecar::log(verbose || self.debug)
    }

    /// Runs until the process is interrupted or terminated.
    pub(super) fn run(self) -> Result<()> {
        let printer = ChangePrinter::new(sidecar::redactor(self.redaction), sidecar::output()?);
        let options = Options {
            socket: self.socket_path,
            max_message: self.max_recv_msg_size,
            shutdown: self.shutdown_timeout,
        };
        let socket = options.socket.display().to_string();
        let bound = || tracing::debug!(socket, "Change Logs listening");
        sidecar::serve(printer, |printer| serve::change_logs(printer, options), bound, explain)
    }
}

/// The words of the reference.
fn explain(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Remove { socket, reason } => {
            let socket = socket.display();
            anyhow!("failed to remove any existing unix domain socket at {socket}: {reason}")
        }
        ServeError::Listen { socket, reason } => {
            let socket = socket.display();
            anyhow!(
                "failed to listen to unix domain socket at {socket}: listen unix {socket}: {reason}"
            )
        }
        ServeError::Serve(reason) => anyhow!("failed to serve: {reason}"),
    }
}

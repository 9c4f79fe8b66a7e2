//! `recorder serve`: receives what pipelines emit and what providers did, stores it, and shows it.

pub(super) mod local;
mod otlp;
pub(super) mod pages;
mod sizes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use biplane_console::{Log, signals};
use biplane_function::metrics::Metrics;
use biplane_proto::redact::Mode;
use biplane_recorder::Format;
use biplane_recorder::recorder::{Options, Print, Recorder};
use biplane_recorder::serve::{self, Bound, CHANGE_LOGS_SOCKET, INSPECTOR_SOCKET, ServeError};
use biplane_recorder::store::{LedgerOptions, Location, Retention};
use clap::{Args, Subcommand, ValueEnum};
use tokio::sync::watch;

use self::sizes::{days, size};
use super::sidecar;
use crate::values;

/// Record what pipelines emit and what providers did
#[derive(Debug, Subcommand)]
pub enum RecorderCommand {
    Pages(Box<pages::Pages>),
    Serve(Box<Serve>),
}

const EXAMPLES: &str = "\
Examples:
  # As the sidecar of a control plane, with a store in a file
  biplane recorder serve --store=/data/recorder.db --inspector-socket=/var/run/pipeline-inspector/socket

  # As the sidecar of a provider, with a store that others share
  biplane recorder serve --store=postgres://recorder@db/recorder --source=provider-sql \\
    --changelogs-socket=/var/run/changelogs/changelogs.sock

  # What a render emits
  biplane recorder serve --store=runs.db --inspector-socket=/tmp/inspector.sock --print=none
  biplane render xr.yaml composition.yaml functions.yaml --inspect=/tmp/inspector.sock";

/// Receive what functions are given and answer and what providers did, and store it
///
/// Serves the Pipeline Inspector and Change Logs at Unix sockets: both at their usual paths, or those
/// whose flag is given. Emissions are acknowledged when they are queued, change log entries when they
/// are on the disk. Lines go to standard output as those of the sidecars do, logs to standard error.
/// Secrets are redacted: in the store always, in lines as told.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Emit debug logs in addition to info logs
    #[arg(long, short)]
    debug: bool,
    /// Where to store: a file, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "FILE|URL", env = "BIPLANE_RECORDER", hide_env_values = true)]
    store: String,
    /// Unix socket to receive emissions at; a socket that is there is replaced
    #[arg(long, value_name = "PATH", env = "PIPELINE_INSPECTOR_SOCKET", hide_env_values = true,
        value_parser = sidecar::socket)]
    inspector_socket: Option<PathBuf>,
    /// Unix socket to receive change log entries at; a socket that is there is replaced
    #[arg(long, value_name = "PATH", value_parser = sidecar::socket)]
    changelogs_socket: Option<PathBuf>,
    /// The name of this recorder, which no other recorder of the store may have; the name of the
    /// machine unless told otherwise
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// The cluster that everything is about, if a store has several
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    cluster: String,
    #[command(flatten)]
    listening: pages::Listening,
    /// How long runs are kept
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = days)]
    retain_for: Duration,
    /// The oldest runs are removed while the store is larger
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = size)]
    retain_size: u64,
    /// How long change log entries are kept
    #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = days)]
    retain_changes_for: Duration,
    /// How many runs that changed something are kept of a composite resource
    #[arg(long, value_name = "COUNT", default_value = "50", value_parser = values::count::<i64>)]
    retain_per_xr: i64,
    /// How much may wait to be stored; then the oldest run is dropped
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = size)]
    queue_size: u64,
    /// Runs are not stored while the disk has less free space
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    min_free: u64,
    /// Maximum gRPC receive message size
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = size)]
    max_recv_msg_size: u64,
    /// Graceful shutdown timeout
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    shutdown_timeout: Duration,
    /// What is redacted in lines: shipped, deep, clear or none; the store is always deep
    #[arg(long, value_name = "MODE", default_value_t = Mode::Deep)]
    redaction: Mode,
    /// How lines are printed: json, text or none
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Printing::Json,
        hide_possible_values = true)]
    print: Printing,
    /// Store only runs of this kind or in this namespace; repeat it for more
    #[arg(long, value_name = "KIND|NAMESPACE")]
    only: Vec<String>,
    /// Keep only runs that failed; others are counted
    #[arg(long)]
    failures_only: bool,
    #[command(flatten)]
    collector: otlp::Collector,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Printing {
    /// One line of JSON for each emission.
    Json,
    /// Labels and YAML, for people.
    Text,
    /// Nothing.
    None,
}

/// The reserve for change logs on a disk that is full.
const RESERVE: u64 = 16 * 1024 * 1024;

impl RecorderCommand {
    /// The log settings of the command.
    pub fn log(&self, verbose: bool) -> Log {
        sidecar::log(match self {
            Self::Pages(pages) => verbose || pages.debug,
            Self::Serve(serve) => verbose || serve.debug,
        })
    }

    /// Runs until the process is interrupted or terminated.
    pub fn run(self) -> Result<()> {
        match self {
            Self::Pages(pages) => pages.run(),
            Self::Serve(serve) => serve.run(),
        }
    }
}

/// The name of the machine, which in a pod is the name of the pod.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "recorder".to_owned() } else { name.to_owned() }
}

#[allow(clippy::disallowed_methods)] // this is where the clock comes in
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 2)
}

impl Serve {
    fn options(&self) -> Result<Options> {
        let print = match self.print {
            Printing::Json => Some(Format::Json),
            Printing::Text => Some(Format::Text),
            Printing::None => None,
        };
        let print = match print {
            Some(format) => {
                let redactor = sidecar::redactor(self.redaction);
                Some(Print { format, redactor, output: sidecar::output()? })
            }
            None => None,
        };
        #[allow(clippy::disallowed_methods)] // this is where random numbers come in
        let id = *uuid::Uuid::new_v4().as_bytes();
        Ok(Options {
            location: Location::parse(&self.store),
            id,
            ledger: LedgerOptions {
                cluster: self.cluster.clone(),
                source: self.source.clone().unwrap_or_else(machine),
                failures_only: self.failures_only,
            },
            retention: Retention {
                runs_for: micros(self.retain_for),
                changes_for: micros(self.retain_changes_for),
                size: self.retain_size,
                per_owner: self.retain_per_xr,
            },
            queue: usize::try_from(self.queue_size).unwrap_or(usize::MAX),
            min_free: self.min_free,
            reserve: RESERVE,
            probe: None,
            redactor: sidecar::redactor(Mode::Deep),
            print,
            only: self.only.clone(),
            now: Arc::new(now),
        })
    }

    fn max_message(&self) -> usize {
        usize::try_from(self.max_recv_msg_size).unwrap_or(usize::MAX)
    }

    /// The sockets: those that are given, else both at their usual paths.
    fn sockets(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        match (&self.inspector_socket, &self.changelogs_socket) {
            (None, None) => (Some(INSPECTOR_SOCKET.into()), Some(CHANGE_LOGS_SOCKET.into())),
            (inspector, changelogs) => (inspector.clone(), changelogs.clone()),
        }
    }

    fn run(self: Box<Self>) -> Result<()> {
        self.listening.check()?;
        let metrics = Metrics::default();
        let collector = self.collector.server()?;
        let recorder = Recorder::start(self.options()?, &metrics)?;
        let exporter = otlp::start(collector, &self.store, &recorder, &metrics)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        let served = runtime.block_on(self.serve(&recorder, &metrics));
        let whole = recorder.stop(self.shutdown_timeout);
        if exporter.is_some_and(|exporter| !exporter.stop(self.shutdown_timeout)) {
            tracing::warn!("not everything that was stored could be sent to the collector");
        }
        // A reader of standard output that hangs must not keep the process alive.
        runtime.shutdown_background();
        if !whole {
            tracing::warn!("not everything that was received could be stored");
        }
        served
    }

    async fn serve(&self, recorder: &Arc<Recorder>, metrics: &Metrics) -> Result<()> {
        let attempted = "cannot listen for signals";
        let first = signals::first_of(signals::of_servers()).context(attempted)?;
        let second = signals::nth_of(2, signals::of_servers()).context(attempted)?;
        let (inspector, changelogs) = self.sockets();
        let options = |socket: &PathBuf| serve::Options {
            socket: socket.clone(),
            max_message: self.max_message(),
            shutdown: self.shutdown_timeout,
        };
        let mut servers = Vec::new();
        if let Some(socket) = &inspector {
            servers.push(serve::inspector(Arc::clone(recorder), options(socket)).await?);
        }
        if let Some(socket) = &changelogs {
            servers.push(serve::change_logs(Arc::clone(recorder), options(socket)).await?);
        }
        let pages = self.listening.serve(&self.store, pages::of(recorder, metrics)).await?;
        let shown = |socket: &Option<PathBuf>| {
            socket.as_ref().map(|socket| socket.display().to_string()).unwrap_or_default()
        };
        tracing::info!(
            inspector = shown(&inspector),
            changelogs = shown(&changelogs),
            store = %Location::parse(&self.store),
            address = pages.as_ref().map(|pages| pages.address().to_string()).unwrap_or_default(),
            "Recorder listening"
        );
        let (tell, signal) = watch::channel(0_u8);
        let signals = async {
            first.await;
            let _ = tell.send(1);
            second.await;
            let _ = tell.send(2);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = signals => Ok(()),
            done = all(servers, &signal) => done.map_err(Into::into),
        }
    }
}

/// Runs the servers until the first signal, and ends them at once with the second.
async fn all(servers: Vec<Bound>, signal: &watch::Receiver<u8>) -> Result<(), ServeError> {
    let wait = |count: u8| {
        let mut signal = signal.clone();
        async move { drop(signal.wait_for(|received| *received >= count).await) }
    };
    let running: Vec<_> =
        servers.into_iter().map(|server| tokio::spawn(server.run(wait(1), wait(2)))).collect();
    for server in running {
        server.await.map_err(|error| ServeError::Serve(error.to_string()))??;
    }
    Ok(())
}

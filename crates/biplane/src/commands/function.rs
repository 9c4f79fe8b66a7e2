//! `function serve`: serves the built-in functions over gRPC.

mod auto_ready;
mod described;
mod go_templating;
mod offers;

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::Context as _;
use biplane_function::Registry;
use biplane_function::serve::{self, Config, Network};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use crate::values;
use biplane_console::logging::{self, Format, Log};
use biplane_console::signals;

use offers::Offer;

/// Work with the functions in the box
#[derive(Debug, Subcommand)]
pub enum Function {
    /// Serve a function over gRPC
    Serve(Serve),
}

const EXAMPLES: &str = "\
Examples:
  # Where a render finds it with the annotation render.crossplane.io/runtime: Development
  biplane function serve patch-and-transform --insecure

  # As a control plane runs it, with certificates
  biplane function serve function-auto-ready --tls-certs-dir=/tls/server --ttl=10m

  # The flags that only one function has
  biplane function serve auto-ready --help";

/// A subcommand for each function. It has the flags that all functions share, which may be
/// anywhere, and the function's own flags.
#[derive(Debug)]
pub struct Serve {
    flags: Flags,
    /// The function, with or without its prefix.
    name: String,
    /// What was said after its name.
    own: ArgMatches,
}

/// The flags that every function has.
#[derive(Debug, Args)]
pub struct Flags {
    /// Emit debug logs in addition to info logs
    #[arg(long, short, global = true)]
    debug: bool,
    /// Network on which to listen for gRPC connections: tcp or unix
    #[arg(long, global = true, default_value = "tcp")]
    network: Network,
    /// Address at which to listen for gRPC connections
    #[arg(long, global = true, default_value = ":9443")]
    address: String,
    /// Folder with the server's certificate (tls.crt, tls.key) and the CA of its clients (ca.crt)
    #[arg(long, global = true, env = "TLS_SERVER_CERTS_DIR")]
    tls_certs_dir: Option<OsString>,
    /// Run without certificates, whatever --tls-certs-dir says
    #[arg(long, global = true)]
    insecure: bool,
    /// Largest request to accept, in MiB
    #[arg(long, global = true, default_value_t = 4, value_parser = values::count::<usize>)]
    max_recv_message_size: usize,
    /// Address at which to serve metrics; empty for none
    #[arg(long, global = true, default_value = ":8080")]
    metrics_address: String,
    /// Serve gRPC health checks too
    #[arg(long, global = true)]
    health: bool,
}

const MIB: usize = 1024 * 1024;

/// The largest message that callers accept, unless they are configured otherwise, in MiB.
const DEFAULT_SIZE: usize = 4;

/// The tree below `function`, with the user's own functions in addition to the built-in ones.
pub(crate) fn with_own(function: Command, own: &Registry) -> Command {
    function.mut_subcommands(|command| match command.get_name() {
        "serve" => offers::with_own(command, own),
        _ => command,
    })
}

impl Function {
    /// The log settings of the command.
    pub fn log(&self, verbose: bool) -> Log {
        let Self::Serve(serve) = self;
        serve.log(verbose)
    }

    /// Runs until the process is interrupted or terminated.
    pub fn run(self, own: &Registry) -> anyhow::Result<()> {
        let Self::Serve(serve) = self;
        serve.run(own)
    }
}

impl Serve {
    /// Debug logs are human-readable lines; otherwise lines are JSON.
    fn log(&self, verbose: bool) -> Log {
        if verbose || self.flags.debug {
            Log { level: LevelFilter::DEBUG, format: Format::Text }
        } else {
            Log { level: LevelFilter::INFO, format: Format::Json }
        }
    }

    /// Serves until the process is interrupted or terminated. Calls in flight are finished, but not
    /// for long, and not if the process is told a second time.
    pub fn run(self, own: &Registry) -> anyhow::Result<()> {
        let function = self.choose(own)?;
        let config = self.flags.config();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = logging::on_threads(builder.enable_all()).build();
        let runtime = runtime.context("cannot start the runtime")?;
        let served = runtime.block_on(async {
            let attempted = "cannot listen for signals";
            let stop = signals::first_of(signals::of_servers()).context(attempted)?;
            let at_once = signals::nth_of(2, signals::of_servers()).context(attempted)?;
            let running = serve::start(function, config, stop).await?;
            tracing::info!(function = self.name, address = running.target(), "serving");
            Ok(running.wait_or(at_once).await?)
        });
        // Calls that were given up may still compute, but must not keep the process alive.
        runtime.shutdown_background();
        served
    }

    /// The function of that name, configured with its own flags.
    fn choose(&self, own: &Registry) -> anyhow::Result<Arc<dyn biplane_function::Function>> {
        Offer::find(&self.name, own)?.set_up(&self.own)
    }
}

impl Args for Serve {
    fn augment_args(command: Command) -> Command {
        let command = Flags::augment_args(command)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand_value_name("FUNCTION")
            .subcommand_help_heading("Functions")
            .after_help(EXAMPLES);
        offers::with_own(command, &Registry::default())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Some((name, own)) = matches.subcommand() else {
            return Err(clap::Error::new(clap::error::ErrorKind::MissingSubcommand));
        };
        let flags = Flags::from_arg_matches(own)?;
        Ok(Self { flags, name: name.to_owned(), own: own.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Flags {
    fn config(self) -> Config {
        Config {
            network: self.network,
            address: self.address,
            // Deployments without certificates set the variable to an empty string.
            certs_dir: self.tls_certs_dir.filter(|folder| !folder.is_empty()).map(Into::into),
            insecure: self.insecure,
            max_receive_size: self.max_recv_message_size.saturating_mul(MIB),
            // A caller that sends more also accepts more.
            max_send_size: self.max_recv_message_size.max(DEFAULT_SIZE).saturating_mul(MIB),
            health: self.health,
            metrics_address: Some(self.metrics_address).filter(|address| !address.is_empty()),
            ..Config::default()
        }
    }
}

#[cfg(test)]
mod tests;

//! `biplane function`: the functions in the box as servers of their own.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Context, bail};
use biplane_function::serve::{self, Config, Network};
use biplane_functions::registry;
use clap::{Args, Subcommand};

/// Work with the functions in the box
#[derive(Debug, Subcommand)]
pub enum Function {
    /// Serve a function over gRPC
    Serve(Serve),
}

/// Serve a function over gRPC, with the flags that every function has.
#[derive(Debug, Args)]
pub struct Serve {
    /// The function, with or without its prefix: patch-and-transform or function-patch-and-transform
    name: String,
    /// Emit debug logs in addition to info logs
    #[arg(long, short)]
    debug: bool,
    /// Network on which to listen for gRPC connections: tcp or unix
    #[arg(long, default_value = "tcp")]
    network: Network,
    /// Address at which to listen for gRPC connections
    #[arg(long, default_value = ":9443")]
    address: String,
    /// Folder with the server's certificate (tls.crt, tls.key) and the CA of its clients (ca.crt)
    #[arg(long, env = "TLS_SERVER_CERTS_DIR")]
    tls_certs_dir: Option<OsString>,
    /// Run without certificates, whatever --tls-certs-dir says
    #[arg(long)]
    insecure: bool,
    /// Largest request to accept, in MiB
    #[arg(long, default_value_t = 4)]
    max_recv_message_size: usize,
    /// Address at which to serve metrics; empty for none
    #[arg(long, default_value = ":8080")]
    metrics_address: String,
    /// Serve gRPC health checks too
    #[arg(long)]
    health: bool,
}

const MIB: usize = 1024 * 1024;

impl Function {
    /// Runs until told to stop.
    pub fn run(self) -> anyhow::Result<()> {
        let Self::Serve(serve) = self;
        serve.run()
    }
}

impl Serve {
    /// Serves until the process is interrupted or terminated; calls in flight are finished.
    pub fn run(self) -> anyhow::Result<()> {
        log(self.debug);
        let functions = registry();
        let full_name = format!("function-{}", self.name);
        let function = functions.get(&self.name).or_else(|| functions.get(&full_name));
        let Some(function) = function.map(Arc::clone) else {
            let names: Vec<_> = functions.names().collect();
            bail!("there is no function `{}`: choose from {}", self.name, names.join(", "));
        };
        let name = self.name.clone();
        let config = self.config();
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?
            .block_on(async {
                let stop = stop_signal().context("cannot listen for signals")?;
                let running = serve::start(function, config, stop).await?;
                tracing::info!(function = name, address = running.target(), "serving");
                Ok(running.wait().await?)
            })
    }

    fn config(self) -> Config {
        Config {
            network: self.network,
            address: self.address,
            // Deployments set the variable to nothing when there are no certificates.
            certs_dir: self.tls_certs_dir.filter(|folder| !folder.is_empty()).map(Into::into),
            insecure: self.insecure,
            max_receive_size: self.max_recv_message_size.saturating_mul(MIB),
            health: self.health,
            metrics_address: Some(self.metrics_address).filter(|address| !address.is_empty()),
        }
    }
}

fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// People read lines, machines read JSON; both find them on stderr.
fn log(debug: bool) {
    let level = if debug { tracing::Level::DEBUG } else { tracing::Level::INFO };
    let subscriber = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level);
    // A logger that is already there is as good.
    let _ = if debug { subscriber.try_init() } else { subscriber.json().try_init() };
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        function: Function,
    }

    fn parse(arguments: &[&str]) -> Config {
        let line = ["function", "serve", "function-dummy"].iter().chain(arguments);
        let Function::Serve(serve) = Line::try_parse_from(line).unwrap().function;
        serve.config()
    }

    /// FN-D1, FN-D7
    #[test]
    fn defaults_are_those_of_every_function() {
        let config = parse(&["--tls-certs-dir="]);
        assert_eq!(config.address, ":9443");
        assert_eq!(config.network, Network::Tcp);
        assert_eq!(config.max_receive_size, 4_194_304);
        assert_eq!(config.metrics_address.as_deref(), Some(":8080"));
        assert_eq!(config.certs_dir, None);
        assert!(!config.insecure && !config.health);
    }

    /// FN-D7
    #[test]
    fn sizes_are_in_mebibytes_and_no_metrics_address_means_no_metrics() {
        let config = parse(&[
            "--insecure",
            "--network=unix",
            "--address=/run/fn.sock",
            "--max-recv-message-size=16",
            "--metrics-address=",
        ]);
        assert_eq!(config.max_receive_size, 16_777_216);
        assert_eq!(config.network, Network::Unix);
        assert_eq!(config.metrics_address, None);
        assert!(config.insecure);
    }

    #[test]
    fn an_unknown_function_is_told_from_those_in_the_box() {
        let line = ["function", "serve", "function-nope", "--insecure"];
        let Function::Serve(serve) = Line::try_parse_from(line).unwrap().function;
        let text = serve.run().unwrap_err().to_string();
        assert!(text.starts_with("there is no function `function-nope`: choose from "), "{text}");
        assert!(text.contains("function-dummy"), "{text}");
    }
}

//! `biplane function`: the functions in the box as servers of their own.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::sync::Arc;

use anyhow::{Context, bail};
use biplane_function::Registry;
use biplane_function::serve::{self, Config, Network};
use biplane_functions::auto_ready::{AutoReady, GoDuration};
use biplane_functions::registry;
use clap::{Args, Subcommand};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::values;

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
  biplane function serve function-auto-ready --tls-certs-dir=/tls/server --ttl=10m";

/// Serve a function over gRPC, with the flags that every function has.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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
    #[arg(long, default_value_t = 4, value_parser = values::count::<usize>)]
    max_recv_message_size: usize,
    /// Address at which to serve metrics; empty for none
    #[arg(long, default_value = ":8080")]
    metrics_address: String,
    /// Serve gRPC health checks too
    #[arg(long)]
    health: bool,
    /// function-auto-ready: how long answers may be cached when the input does not say, such as 10m
    #[arg(long)]
    ttl: Option<GoDuration>,
    /// function-auto-ready: features to turn on or off, as Name=true,Other=false
    #[arg(long)]
    feature_gates: Option<String>,
}

/// The one function with flags of its own.
const AUTO_READY: &str = "function-auto-ready";

const MIB: usize = 1024 * 1024;

impl Function {
    /// Runs until told to stop.
    pub fn run(self, own: &Registry) -> anyhow::Result<()> {
        let Self::Serve(serve) = self;
        serve.run(own)
    }
}

impl Serve {
    /// Serves until the process is interrupted or terminated; calls in flight are finished.
    pub fn run(self, own: &Registry) -> anyhow::Result<()> {
        log(self.debug);
        let function = self.choose(own)?;
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

    /// The function of that name, set up with the flags that only it has.
    fn choose(&self, own: &Registry) -> anyhow::Result<Arc<dyn biplane_function::Function>> {
        let functions = registry().and(own);
        let names = [self.name.clone(), format!("function-{}", self.name)];
        let Some((full_name, function)) =
            names.iter().find_map(|name| Some((name, functions.get(name)?)))
        else {
            let names: Vec<_> = functions.names().collect();
            bail!("there is no function `{}`: choose from {}", self.name, names.join(", "));
        };
        if full_name == AUTO_READY && own.get(AUTO_READY).is_none() {
            return Ok(Arc::new(self.auto_ready()?));
        }
        let own =
            [("--ttl", self.ttl.is_some()), ("--feature-gates", self.feature_gates.is_some())];
        if let Some((flag, _)) = own.iter().find(|(_, given)| *given) {
            bail!("{full_name} has no flag {flag}: it is one of {AUTO_READY}");
        }
        Ok(Arc::clone(function))
    }

    fn auto_ready(&self) -> anyhow::Result<AutoReady> {
        let mut function = AutoReady::default();
        if let Some(ttl) = self.ttl {
            function = function.with_ttl(ttl);
        }
        if let Some(gates) = &self.feature_gates {
            function = function.with_feature_gates(gates).context("cannot set feature gates")?;
        }
        Ok(function)
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
            ..Config::default()
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

/// What lies below functions says so much about its frames that nothing else would be seen.
const QUIET: [&str; 6] = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower"];

/// People read lines, machines read JSON; both find them on stderr.
fn log(debug: bool) {
    let mut filter = Targets::new().with_default(if debug { Level::DEBUG } else { Level::INFO });
    filter = filter.with_targets(QUIET.map(|target| (target, Level::INFO)));
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(Level::TRACE);
    // A logger that is already there is as good.
    let _ = if debug {
        lines.finish().with(filter).try_init()
    } else {
        lines.json().finish().with(filter).try_init()
    };
}

#[cfg(test)]
mod tests {
    use biplane_proto::json;
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        function: Function,
    }

    fn serve(name: &str, arguments: &[&str]) -> Serve {
        let line = ["function", "serve", name];
        let line = line.iter().chain(arguments);
        let Function::Serve(serve) = Line::try_parse_from(line).unwrap().function;
        serve
    }

    fn parse(arguments: &[&str]) -> Config {
        serve("function-dummy", arguments).config()
    }

    /// What the function with these flags answers to a request.
    async fn answer(name: &str, arguments: &[&str], request: Value) -> Value {
        let function = serve(name, arguments).choose(&Registry::default()).unwrap();
        let answer = function.run(json::from_value(request).unwrap()).await.unwrap();
        json::to_value(&answer).unwrap()
    }

    fn refusal(name: &str, arguments: &[&str]) -> String {
        let refused = serve(name, arguments).choose(&Registry::default()).err().unwrap();
        format!("{refused:#}")
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
        let text = serve.run(&Registry::default()).unwrap_err().to_string();
        assert!(text.starts_with("there is no function `function-nope`: choose from "), "{text}");
        assert!(text.contains("function-dummy"), "{text}");
    }

    #[tokio::test]
    async fn functions_of_ones_own_are_served_too_and_come_first() {
        use biplane_functions::dummy::Dummy;
        let own = Registry::default().with("mine", Dummy).with(AUTO_READY, Dummy);
        let input = json!({"response": {"results": [{"message": "mine"}]}});
        for name in ["mine", "auto-ready", AUTO_READY] {
            let function = serve(name, &[]).choose(&own).unwrap();
            let request = json::from_value(json!({"input": input})).unwrap();
            assert_eq!(function.run(request).await.unwrap().results[0].message, "mine", "{name}");
        }
        let refused = serve("yours", &[]).choose(&own).err().unwrap().to_string();
        assert!(refused.ends_with(", mine"), "{refused}");
    }

    /// AR-1, AR-6
    #[tokio::test]
    async fn auto_ready_takes_its_ttl_from_the_flag_unless_the_input_has_one() {
        for name in ["auto-ready", "function-auto-ready"] {
            let ten = answer(name, &["--ttl=10m"], json!({})).await;
            assert_eq!(ten["meta"]["ttl"], "600s");
        }
        let five = answer("auto-ready", &["--ttl=10m"], json!({"input": {"ttl": "5m"}})).await;
        assert_eq!(five["meta"]["ttl"], "300s");
        assert_eq!(answer("auto-ready", &[], json!({})).await["meta"]["ttl"], "60s");
        let wrong = ["function", "serve", "auto-ready", "--ttl=soon"];
        let text = Line::try_parse_from(wrong).unwrap_err().to_string();
        assert!(text.contains("time: invalid duration \"soon\""), "{text}");
    }

    /// AR-2
    #[tokio::test]
    async fn auto_ready_asks_rules_only_where_the_gate_is_open() {
        let resource = json!({"resource": {"apiVersion": "example.org/v1", "kind": "Thing"}});
        let request = json!({
            "input": {"celHealthCheckCustomization": {"example.org_v1_Thing": "true"}},
            "observed": {"resources": {"thing": resource}},
            "desired": {"resources": {"thing": resource}},
        });
        for (flags, ready) in [
            (
                &["--feature-gates=CELHealthcheckCustomizations=true"] as &[&str],
                "READY_TRUE".into(),
            ),
            (&["--feature-gates=CELHealthcheckCustomizations=false"], Value::Null),
            (&["--feature-gates="], Value::Null),
            (&[], Value::Null),
        ] {
            let answer = answer("auto-ready", flags, request.clone()).await;
            assert_eq!(answer["desired"]["resources"]["thing"]["ready"], ready, "{flags:?}");
        }
        assert_eq!(
            refusal("auto-ready", &["--feature-gates=Nope=true"]),
            "cannot set feature gates: unrecognized feature gate: Nope"
        );
    }

    #[test]
    fn flags_of_one_function_are_refused_for_the_others() {
        assert_eq!(
            refusal("dummy", &["--ttl=10m"]),
            "function-dummy has no flag --ttl: it is one of function-auto-ready"
        );
        assert_eq!(
            refusal("function-patch-and-transform", &["--feature-gates=AllAlpha=true"]),
            "function-patch-and-transform has no flag --feature-gates: it is one of \
             function-auto-ready"
        );
    }
}

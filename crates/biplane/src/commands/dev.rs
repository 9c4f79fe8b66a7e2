//! `dev`: a control plane on this machine, with an API server of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use biplane_cluster::Cluster;
use biplane_console::logging::{self, Format, Log};
use biplane_console::{Progress, Stderr, Streams, signals};
use biplane_controlplane::start::{self, Server, Settings};
use biplane_controlplane::webhooks::{CertificateSource, Webhooks};
use biplane_controlplane::{composite, definitions, functions, init};
use biplane_devenv::ApiServer;
use biplane_engine::SystemClock;
use biplane_function::Registry;
use biplane_function::metrics::Metrics;
use biplane_function::server::{Listener, Network};
use biplane_kube::Endpoint;
use clap::Args;
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;

use super::recorder::local::Local;
use crate::{inspection, values};

/// The longest path of a folder that has a socket. The system allows 107 bytes for all of it.
const LONGEST: usize = 90;

const EXAMPLES: &str = "\
Examples:
  # Until Ctrl-C; nothing is left behind
  biplane dev

  # Keep everything in a folder, and go on with it the next time
  biplane dev --data=./control-plane

  # In another terminal, with the path that it prints
  export KUBECONFIG=./control-plane/kubeconfig.yaml
  kubectl apply -f xrd.yaml -f composition.yaml -f functions.yaml";

/// Run a control plane on this machine, without Docker and without a cluster
///
/// Starts etcd, kube-apiserver and kube-controller-manager, installs the control plane's kinds, and
/// runs the control plane. The functions in the box run in this process. What pipelines do is
/// recorded, and shown on pages. The first start builds the Kubernetes programs, which needs Go and
/// takes a while; they are kept.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Dev {
    /// Folder in which everything is kept; without one, everything is removed at the end
    #[arg(long, value_name = "FOLDER", value_parser = values::path)]
    data: Option<PathBuf>,
    /// Port of the API server; without one, any that is free
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Let webhooks validate XRDs, and Compositions with the schemas of what they compose
    #[arg(long)]
    enable_composition_webhook_schema_validation: bool,
    /// Address of the pages that show what pipelines did; without one, 127.0.0.1:7654 or any that
    /// is free; empty for none
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Log what is being done
    #[arg(short, long)]
    debug: bool,
}

impl Dev {
    /// Lines are for people. Without `--debug` there are only warnings.
    pub fn log(&self, verbose: bool) -> Log {
        let level = if verbose || self.debug { LevelFilter::DEBUG } else { LevelFilter::WARN };
        Log { level, format: Format::Text }
    }

    /// Runs until the process is told to stop.
    pub fn run(self, own: &Registry, streams: &mut Streams<'_>) -> anyhow::Result<()> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = logging::on_threads(builder.enable_all()).build();
        let runtime = runtime.context("cannot start the runtime")?;
        let ended = runtime.block_on(async {
            let attempted = "cannot listen for signals";
            let stop = signals::first_of(signals::of_servers()).context(attempted)?;
            let at_once = signals::nth_of(2, signals::of_servers()).context(attempted)?;
            tokio::select! {
                ended = self.serve(own, streams, stop) => ended,
                () = at_once => Ok(()),
            }
        });
        runtime.shutdown_background();
        ended
    }

    async fn serve(
        &self,
        own: &Registry,
        streams: &mut Streams<'_>,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let mut stop = std::pin::pin!(stop);
        let server = tokio::select! {
            server = self.api_server(Voice::of(streams)) => server?,
            () = &mut stop => return Ok(()),
        };
        let endpoint = Endpoint {
            url: server.url.clone(),
            ca_pem: server.ca_pem.clone(),
            token: server.token.clone(),
        };
        let metrics = Metrics::default();
        let options = biplane_kube::Options::default();
        let (cluster, counters) = start::connect(&Server::At(endpoint), options, &metrics).await?;
        let cluster: Arc<dyn Cluster> = Arc::new(cluster);
        streams.say("Installing the kinds of the control plane...");
        let socket = self.webhook_socket().await?;
        let wanted = init::Options {
            webhooks: socket.as_ref().map(webhooks_at).transpose()?,
            ..init::Options::default()
        };
        tokio::select! {
            done = init::run(Arc::clone(&cluster), &SystemClock, &wanted) => done?,
            () = &mut stop => return Ok(()),
        }
        let hooks = match socket {
            Some(socket) => {
                let (namespace, name) = (wanted.namespace, wanted.secrets.server);
                let certificate = CertificateSource::Secret { namespace, name };
                Some(Webhooks::serve(socket, Arc::clone(&cluster), &certificate, true).await?)
            }
            None => None,
        };
        let kubeconfig = server.kubeconfig.clone();
        let voice = Voice::of(streams);
        let recording = self.record(&kubeconfig, &voice).await?;
        let pages = recording.as_ref().and_then(Local::address);
        let ready = move || voice.say(&announcement(&kubeconfig, pages.as_deref()));
        let settings = settings(own, recording.as_ref().map(|recording| &recording.socket));
        start::run(cluster, counters, settings, &metrics, ready, stop).await?;
        if let Some(hooks) = hooks {
            hooks.stop().await;
        }
        streams.say("Stopping...");
        if let Some(recording) = recording {
            recording.stop().await;
        }
        // Stops the servers, and removes what is not kept.
        tokio::task::spawn_blocking(move || drop(server)).await?;
        Ok(())
    }

    /// The socket of webhooks, if they are wanted. It is made first, because the API server is told
    /// its port.
    async fn webhook_socket(&self) -> anyhow::Result<Option<Listener>> {
        if !self.enable_composition_webhook_schema_validation {
            return Ok(None);
        }
        let socket = Listener::bind(Network::Tcp, "127.0.0.1:0").await;
        Ok(Some(socket.context("cannot listen for webhooks")?))
    }

    /// Records what pipelines emit, beside the kubeconfig.
    async fn record(&self, kubeconfig: &Path, voice: &Voice) -> anyhow::Result<Option<Local>> {
        let folder = kubeconfig.parent().unwrap_or(Path::new("."));
        if self.listen.as_deref() == Some("") {
            return Ok(None);
        }
        if folder.as_os_str().len() > LONGEST {
            voice.say("The path of the folder is too long for a socket: nothing is recorded.");
            return Ok(None);
        }
        Local::start(folder, self.listen.as_deref()).await.map(Some)
    }

    /// Starts the servers on a thread of its own: it may build them first, and an interrupt must not
    /// wait for that.
    async fn api_server(&self, voice: Voice) -> anyhow::Result<ApiServer> {
        let mut options = ApiServer::options().controllers();
        if let Some(folder) = &self.data {
            options = options.data(folder.clone());
        }
        if let Some(port) = self.port {
            options = options.port(port);
        }
        let (send, started) = oneshot::channel();
        std::thread::spawn(move || {
            let server = options.start_reporting(&mut |line| voice.say(line));
            // Nobody waits for it after an interrupt.
            let _ = send.send(server);
        });
        Ok(started.await.context("the thread that starts the servers has ended")??)
    }
}

/// Tells the user something, from any thread.
#[derive(Clone)]
struct Voice {
    stderr: Stderr,
    progress: Progress,
}

impl Voice {
    fn of(streams: &Streams<'_>) -> Self {
        Self { stderr: streams.stderr.clone(), progress: streams.progress.clone() }
    }

    fn say(&self, line: &str) {
        self.stderr.say(&self.progress, line);
    }
}

/// The webhooks behind a socket on this machine.
fn webhooks_at(socket: &Listener) -> anyhow::Result<init::Webhooks> {
    let url = format!("https://{}", socket.target()).parse().map_err(anyhow::Error::msg)?;
    Ok(init::Webhooks { at: init::Address::Url(url), validation: true })
}

fn announcement(kubeconfig: &Path, pages: Option<&str>) -> String {
    let pages = match pages {
        Some(address) => format!("What pipelines do is shown at {address}\n\n"),
        None => String::new(),
    };
    format!(
        "Ready. In another terminal:\n\n  export KUBECONFIG={}\n  kubectl api-resources --api-group=apiextensions.crossplane.io\n\n{pages}Ctrl-C ends it.",
        kubeconfig.display()
    )
}

fn settings(own: &Registry, inspector: Option<&PathBuf>) -> Settings {
    Settings {
        skipping: biplane_cluster::Skipping::Skip,
        sync_interval: None,
        composites: composite::Settings::default(),
        definitions: definitions::Options::default(),
        functions: functions::Options {
            built_in: biplane_functions::registry().and(own),
            in_process: true,
            inspection: inspector.map(|socket| inspection::of_control_plane(socket.clone())),
            ..functions::Options::default()
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

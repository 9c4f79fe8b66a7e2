//! Runs a control plane on an API server until it is told to stop, and ends gracefully.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{Cluster, Skipping};
use biplane_engine::{Clock as _, SystemClock, SystemIds, in_process};
use biplane_function::metrics::Metrics;
use biplane_kube::metrics::Counters;
use biplane_kube::{ConnectError, Endpoint, EventSink, KubeCluster};
use tokio::time::Instant;

use crate::functions::LoadError;
use crate::leader::{self, Candidate, Leadership, Lost, Times};
use crate::plane::{self, ControlPlane};
use crate::probes::{self, Hooks, Readiness, ServeError, State};
use crate::webhooks::{self, WebhookError, Webhooks};
use crate::{composite, definitions, functions};

/// How long events may take to be written after everything else has ended.
const LAST_EVENTS: Duration = Duration::from_secs(2);
/// The field manager of events.
const MANAGER: &str = "crossplane";

/// How a control plane runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What happens to applies that would change nothing.
    pub skipping: Skipping,
    /// How often every object is looked at although nothing happened to it, if at all.
    pub sync_interval: Option<Duration>,
    /// How composite resources are reconciled.
    pub composites: composite::Settings,
    /// How definitions, claims and Compositions are treated.
    pub definitions: definitions::Options,
    /// How functions are run.
    pub functions: functions::Options,
    /// The version of this program.
    pub version: String,
}

/// What surrounds a control plane in its process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// The namespace of the Lease. Without one, this process does not ask who leads.
    pub election: Option<String>,
    /// The address of probes.
    pub probes: Option<String>,
    /// The address of metrics.
    pub metrics: Option<String>,
    /// The webhooks.
    pub webhooks: Option<webhooks::Options>,
}

/// Where the API server is.
#[derive(Clone, Debug)]
pub enum Server {
    /// As a kubeconfig or the environment says.
    Configured,
    /// Here.
    At(Endpoint),
}

/// Why a control plane cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The API server cannot be used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The certificates of functions cannot be used.
    #[error(transparent)]
    Certificates(#[from] LoadError),
    /// Probes or metrics cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Webhooks cannot be served.
    #[error(transparent)]
    Webhooks(#[from] WebhookError),
    /// Another process leads.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Runs a control plane in this process until `stop` is ready or the Lease is lost.
pub async fn start(
    server: &Server,
    options: biplane_kube::Options,
    process: &Process,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let (metrics, readiness) = (Metrics::default(), Readiness::default());
    if process.webhooks.is_some() {
        readiness.set_hooks(Hooks::Starting);
    }
    let _probes = match &process.probes {
        Some(address) => Some(probes::serve_health(address, readiness.clone()).await?),
        None => None,
    };
    let _metrics = match &process.metrics {
        Some(address) => Some(probes::serve_metrics(address, metrics.clone()).await?),
        None => None,
    };
    let (cluster, counters) = connect(server, options, &metrics).await?;
    let cluster: Arc<dyn Cluster> = Arc::new(cluster);
    let mut stop = pin!(stop);
    // Whoever leads, every process answers the API server.
    let hooks = match &process.webhooks {
        Some(options) => tokio::select! {
            served = Webhooks::start(Arc::clone(&cluster), options) => {
                readiness.set_hooks(Hooks::Serving);
                Some(served?)
            }
            () = &mut stop => return Ok(()),
        },
        None => None,
    };
    let mut leadership: Option<Leadership> = None;
    if let Some(namespace) = &process.election {
        readiness.set(State::Standby);
        let candidate = Candidate {
            cluster: Arc::clone(&cluster),
            namespace: namespace.clone(),
            lease: leader::LEASE.to_owned(),
            identity: leader::identity(&SystemIds),
            times: Times::default(),
            clock: Arc::new(SystemClock),
        };
        tokio::select! {
            leads = candidate.lead() => leadership = Some(leads),
            () = &mut stop => return Ok(()),
        }
    }
    let mut lost = None;
    let until = async {
        match &mut leadership {
            None => stop.await,
            Some(leadership) => tokio::select! {
                () = &mut stop => {}
                why = leadership.hold() => lost = Some(why),
            },
        }
    };
    let ready = move || readiness.set(State::Running);
    run(cluster, counters, settings, &metrics, ready, until).await?;
    if let Some(hooks) = hooks {
        hooks.stop().await;
    }
    match (lost, leadership) {
        (Some(lost), _) => return Err(lost.into()),
        (None, Some(leadership)) => {
            if let Err(error) = leadership.release().await {
                tracing::warn!(%error, "cannot release the lease");
            }
        }
        (None, None) => {}
    }
    Ok(())
}

/// Connects to an API server. Its requests are counted in the metrics.
pub async fn connect(
    server: &Server,
    options: biplane_kube::Options,
    metrics: &Metrics,
) -> Result<(KubeCluster, Counters), ConnectError> {
    let counters = Counters::default();
    metrics.add(|registry| counters.register(registry));
    let options = biplane_kube::Options { counters: counters.clone(), ..options };
    let cluster = match server {
        Server::Configured => KubeCluster::connect(&options).await?,
        Server::At(endpoint) => KubeCluster::at(endpoint, &options)?,
    };
    Ok((cluster, counters))
}

/// Runs a control plane until `stop` is ready. `ready` is called when it has seen what exists. After
/// `stop` running reconciles get ten seconds to end, and
/// events two more to be written.
pub async fn run(
    cluster: Arc<dyn Cluster>,
    counters: Counters,
    settings: Settings,
    metrics: &Metrics,
    ready: impl FnOnce() + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let now = Arc::new(|| SystemClock.now());
    let events = Arc::new(EventSink::new(Arc::clone(&cluster), counters, MANAGER, now));
    let in_process = in_process_functions(&settings);
    let options = plane::Options {
        composites: settings.composites,
        skipping: settings.skipping,
        sync_interval: settings.sync_interval,
        functions: settings.functions,
        metrics: metrics.clone(),
        ..plane::Options::default()
    };
    let mut plane = ControlPlane::new(cluster, events.clone(), options)?;
    plane.add_definitions(&settings.definitions);
    let reconciler = in_process(plane.context().clone());
    plane.add(definitions::functions(reconciler));
    plane.when_ready(ready);
    tracing::info!(version = settings.version, "control plane started");
    plane.run(stop).await;
    if !events.flush(Instant::now() + LAST_EVENTS).await {
        tracing::warn!("some events were not written");
    }
    tracing::info!("control plane ended");
    Ok(())
}

/// The reconciler of Functions that run in this process.
fn in_process_functions(
    settings: &Settings,
) -> impl FnOnce(biplane_engine::Context) -> in_process::Reconciler + use<> {
    let built_in = settings.functions.built_in.names().map(str::to_owned).collect();
    let (all, version) = (settings.functions.in_process, settings.version.clone());
    move |context| in_process::Reconciler { context, built_in, all, version }
}

//! Runs a control plane on an API server until it is told to stop, and ends gracefully.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{Cluster, Skipping};
use biplane_engine::{Clock as _, SystemClock, in_process};
use biplane_function::metrics::Metrics;
use biplane_kube::metrics::Counters;
use biplane_kube::{ConnectError, Endpoint, EventSink, KubeCluster};
use tokio::time::Instant;

use crate::functions::LoadError;
use crate::plane::{self, ControlPlane};
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
    /// How composite resources are reconciled.
    pub composites: composite::Settings,
    /// How definitions, claims and Compositions are treated.
    pub definitions: definitions::Options,
    /// How functions are run.
    pub functions: functions::Options,
    /// The version of this program.
    pub version: String,
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

/// Runs a control plane until `stop` is ready. Then running reconciles get ten seconds to end, and
/// events two more to be written.
pub async fn run(
    cluster: Arc<dyn Cluster>,
    counters: Counters,
    settings: Settings,
    metrics: &Metrics,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let now = Arc::new(|| SystemClock.now());
    let events = Arc::new(EventSink::new(Arc::clone(&cluster), counters, MANAGER, now));
    let in_process = in_process_functions(&settings);
    let options = plane::Options {
        composites: settings.composites,
        skipping: settings.skipping,
        functions: settings.functions,
        metrics: metrics.clone(),
        ..plane::Options::default()
    };
    let mut plane = ControlPlane::new(cluster, events.clone(), options)?;
    plane.add_definitions(&settings.definitions);
    let reconciler = in_process(plane.context().clone());
    plane.add(definitions::functions(reconciler));
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

//! Serves a function over gRPC: both dialects, reflection, health, metrics.

mod handler;
mod listen;
mod metrics;
mod scrape;
mod words;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;

use biplane_proto::function::{v1, v1beta1};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tonic::transport::Server;

use crate::function::Function;
use crate::metrics::Metrics;
use crate::tls;

use handler::{Dialect, Handler, Runs};
use listen::Listener;
use words::Words;

pub use listen::Network;
pub use metrics::ServerMetrics;

/// How a function is served. The defaults are those that control planes expect.
#[derive(Clone, Debug)]
pub struct Config {
    /// What kind of socket to listen on.
    pub network: Network,
    /// Where to listen, as Go writes it: `:9443` is every address of the machine.
    pub address: String,
    /// A folder with `tls.crt`, `tls.key` and `ca.crt`.
    pub certs_dir: Option<PathBuf>,
    /// Serve without certificates, whatever `certs_dir` says.
    pub insecure: bool,
    /// The largest request that is accepted, in bytes.
    pub max_receive_size: usize,
    /// Whether to serve gRPC health checks.
    pub health: bool,
    /// The registry that the server adds its metrics to. Each server needs its own.
    pub metrics: Metrics,
    /// Where to serve metrics over HTTP, if anywhere.
    pub metrics_address: Option<String>,
    /// How many calls compute at a time if the function only computes; more wait. Each takes a thread,
    /// and every thread keeps memory of its own. Four for each core unless that is few or many.
    pub max_computing: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            network: Network::Tcp,
            address: ":9443".to_owned(),
            certs_dir: None,
            insecure: false,
            max_receive_size: 4 * 1024 * 1024,
            health: false,
            metrics: Metrics::default(),
            metrics_address: Some(":8080".to_owned()),
            max_computing: (4 * cores()).clamp(8, 64),
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Why a function cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The certificates cannot be used.
    #[error("cannot apply ServeOption: {0}")]
    Certificates(#[from] tls::CertificateError),
    /// It was not said how to protect calls.
    #[error("no credentials provided - did you specify the Insecure or MTLSCertificates options?")]
    NoCredentials,
    /// The address cannot be listened on.
    #[error("cannot listen for {network} connections at address {address:?}: {reason}")]
    Listen {
        /// What kind of socket.
        network: Network,
        /// The address as it was given.
        address: String,
        /// What is in the way.
        reason: String,
    },
    /// Serving ended with an error.
    #[error("cannot serve mTLS gRPC connections: {0}")]
    Serve(String),
}

/// A server that runs.
#[derive(Debug)]
pub struct Running {
    target: String,
    metrics_address: Option<String>,
    metrics: Arc<ServerMetrics>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Running {
    /// Where the server listens, as a gRPC target.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> Option<&str> {
        self.metrics_address.as_deref()
    }

    /// What has been counted so far.
    pub fn metrics(&self) -> &ServerMetrics {
        &self.metrics
    }

    /// Waits until the server has stopped.
    pub async fn wait(self) -> Result<(), ServeError> {
        match self.task.await {
            Ok(served) => served.map_err(|e| ServeError::Serve(e.to_string())),
            Err(error) => Err(ServeError::Serve(error.to_string())),
        }
    }
}

const SERVICES: [&str; 2] = [
    "apiextensions.fn.proto.v1.FunctionRunnerService",
    "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
];

const HEALTH: &str = "grpc.health.v1.Health";

const REFLECTION: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// Starts to serve a function. Once `shutdown` is ready, calls in flight are finished and no more
/// are taken.
pub async fn start(
    function: Arc<dyn Function>,
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<Running, ServeError> {
    // Insecure wins: certificates that nobody will show need not be readable.
    let tls = match (&config.certs_dir, config.insecure) {
        (_, true) => None,
        (Some(folder), false) => Some(tls::server(folder)?),
        (None, false) => return Err(ServeError::NoCredentials),
    };
    let listener = Listener::bind(config.network, &config.address).await?;
    let target = listener.target();

    let metrics = Arc::new(ServerMetrics::new(&config.metrics));
    // Where nothing may compute, nothing would ever be answered.
    let turns = config.max_computing.clamp(1, Semaphore::MAX_PERMITS);
    let runs = Runs { function, turns: Arc::new(Semaphore::new(turns)) };
    let v1 = Handler::new(runs.clone(), Dialect::V1, Arc::clone(&metrics));
    let v1beta1 = Handler::new(runs, Dialect::V1Beta1, Arc::clone(&metrics));
    let v1 = v1::function_runner_service_server::FunctionRunnerServiceServer::new(v1)
        .max_decoding_message_size(config.max_receive_size);
    let v1beta1 =
        v1beta1::function_runner_service_server::FunctionRunnerServiceServer::new(v1beta1)
            .max_decoding_message_size(config.max_receive_size);
    let reflection = || {
        let mut builder = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(biplane_proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(
                tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
            )
            .include_reflection_service(false);
        for name in SERVICES.iter().chain(&REFLECTION) {
            builder = builder.with_service_name(*name);
        }
        if config.health {
            builder = builder
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
                .with_service_name(HEALTH);
        }
        builder
    };
    let broken = |e: tonic_reflection::server::Error| ServeError::Serve(e.to_string());
    let reflection_v1 = reflection().build_v1().map_err(broken)?;
    let reflection_v1alpha = reflection().build_v1alpha().map_err(broken)?;
    let health = if config.health {
        let (reporter, service) = tonic_health::server::health_reporter();
        for name in SERVICES {
            reporter.set_service_status(name, tonic_health::ServingStatus::Serving).await;
        }
        Some(service)
    } else {
        None
    };

    // Functions work without metrics: an address that is taken is not a reason to stop.
    let metrics_address = match &config.metrics_address {
        Some(address) => scrape::serve(address, config.metrics, Arc::downgrade(&metrics)).await,
        None => None,
    };
    let services = SERVICES.into_iter().chain(REFLECTION).chain(config.health.then_some(HEALTH));
    let services: Arc<[&str]> = services.collect();
    let router = Server::builder()
        .layer(tower::layer::layer_fn(move |inner| Words::new(inner, Arc::clone(&services))))
        .add_service(v1)
        .add_service(v1beta1)
        .add_service(reflection_v1)
        .add_service(reflection_v1alpha)
        .add_optional_service(health);
    let socket = listener.socket();
    let incoming = listener.incoming(tls);
    let task = tokio::spawn(async move {
        let served = router.serve_with_incoming_shutdown(incoming, shutdown).await;
        if let Some(path) = socket {
            let _ = tokio::fs::remove_file(path).await;
        }
        served
    });
    Ok(Running { target, metrics_address, metrics, task })
}

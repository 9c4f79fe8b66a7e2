//! A gRPC server for functions: both protocol versions, reflection, health checks, metrics.

mod authority;
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

pub use authority::SocketAuthority;
pub use listen::Network;
pub use metrics::ServerMetrics;

/// The configuration of a server. The defaults are those that control planes expect.
#[derive(Clone, Debug)]
pub struct Config {
    /// The type of the socket.
    pub network: Network,
    /// The address in Go's format: `:9443` listens on every address of the machine.
    pub address: String,
    /// A folder with `tls.crt`, `tls.key` and `ca.crt`.
    pub certs_dir: Option<PathBuf>,
    /// Serve without TLS, even if `certs_dir` is set.
    pub insecure: bool,
    /// The size limit of requests, in bytes.
    pub max_receive_size: usize,
    /// Whether to serve gRPC health checks.
    pub health: bool,
    /// The registry that the server adds its metrics to. Each server needs its own.
    pub metrics: Metrics,
    /// The HTTP address for metrics, if they are served.
    pub metrics_address: Option<String>,
    /// The number of concurrent calls of a function that only computes. Further calls wait. Each
    /// call takes a thread, and every thread has its own memory. The default is four per core,
    /// but at least 8 and at most 64.
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

/// Why a function could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The certificates cannot be used.
    #[error("cannot apply ServeOption: {0}")]
    Certificates(#[from] tls::CertificateError),
    /// Neither certificates nor insecure serving was configured.
    #[error("no credentials provided - did you specify the Insecure or MTLSCertificates options?")]
    NoCredentials,
    /// Listening on the address failed.
    #[error("cannot listen for {network} connections at address {address:?}: {reason}")]
    Listen {
        /// The type of the socket.
        network: Network,
        /// The configured address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// Serving ended with an error.
    #[error("cannot serve mTLS gRPC connections: {0}")]
    Serve(String),
}

/// A running server.
#[derive(Debug)]
pub struct Running {
    target: String,
    metrics_address: Option<String>,
    metrics: Arc<ServerMetrics>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Running {
    /// Returns the gRPC target of the server.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the address at which metrics are served.
    pub fn metrics_address(&self) -> Option<&str> {
        self.metrics_address.as_deref()
    }

    /// Returns the counters.
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

/// Starts serving a function. Once `shutdown` completes, the server accepts no more calls and
/// finishes the running ones.
pub async fn start(
    function: Arc<dyn Function>,
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<Running, ServeError> {
    // Insecure takes precedence: certificates that are not used need not be readable.
    let tls = match (&config.certs_dir, config.insecure) {
        (_, true) => None,
        (Some(folder), false) => Some(tls::server(folder)?),
        (None, false) => return Err(ServeError::NoCredentials),
    };
    let listener = Listener::bind(config.network, &config.address).await?;
    let target = listener.target();

    let metrics = Arc::new(ServerMetrics::new(&config.metrics));
    // With a limit of zero, no call would ever be answered.
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

    // Functions work without metrics, so an address in use is not an error.
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

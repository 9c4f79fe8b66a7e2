//! A gRPC server for functions: both protocol versions, reflection, health checks, metrics.

mod handler;
mod metrics;
mod scrape;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;

use biplane_proto::function::{v1, v1beta1};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::function::Function;
use crate::metrics::Metrics;
use crate::server::{self, Limits, Listener, ReloadingTls, Words};
use crate::tls;

use handler::{Dialect, Handler, Runs};

pub use crate::server::Network;
pub use metrics::ServerMetrics;

/// The configuration of a server. The defaults are those that control planes expect.
#[derive(Clone, Debug)]
pub struct Config {
    /// The type of the socket.
    pub network: Network,
    /// The address in Go's format: `:9443` listens on every address of the machine.
    pub address: String,
    /// A folder with `tls.crt`, `tls.key` and `ca.crt`. They are read again when they change.
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
    /// The number of calls that may go on computing beside those, once they have computed for 50
    /// milliseconds: slow calls do not hold up quick ones. The default is that of `max_computing`.
    pub max_slow: usize,
    /// The number of calls that may still compute after their callers have gone, because they do not
    /// check their budget. Then further calls are refused.
    pub max_abandoned: usize,
    /// The number of calls that may wait to compute. Further calls are refused.
    pub max_waiting: usize,
    /// The size limit of responses, in bytes. The default is what control planes accept.
    pub max_send_size: usize,
    /// The limits for connections and for the end of the server.
    pub limits: Limits,
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
            max_slow: (4 * cores()).clamp(8, 64),
            max_abandoned: 64,
            max_waiting: 256,
            max_send_size: 4 * 1024 * 1024,
            limits: Limits::default(),
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
    at_once: Arc<Notify>,
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
        self.wait_or(std::future::pending()).await
    }

    /// Waits until the server has stopped. Once `at_once` completes, it gives up the calls that are
    /// still running.
    pub async fn wait_or(mut self, at_once: impl Future<Output = ()>) -> Result<(), ServeError> {
        let served = tokio::select! {
            served = &mut self.task => served,
            () = at_once => {
                self.at_once.notify_one();
                self.task.await
            }
        };
        match served {
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
/// finishes the running ones, as far as `config.limits` allows.
pub async fn start(
    function: Arc<dyn Function>,
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<Running, ServeError> {
    // Insecure takes precedence: certificates that are not used need not be readable.
    let tls = match (&config.certs_dir, config.insecure) {
        (_, true) => None,
        (Some(folder), false) => Some(Arc::new(ReloadingTls::read(folder)?)),
        (None, false) => return Err(ServeError::NoCredentials),
    };
    let listener = Listener::bind(config.network, &config.address).await;
    let listener = listener.map_err(|error| {
        let Config { network, address, .. } = &config;
        let reason = format!("listen {network} {address}: {error}");
        ServeError::Listen { network: *network, address: address.clone(), reason }
    })?;
    let target = listener.target().to_owned();

    let metrics = Arc::new(ServerMetrics::new(&config.metrics));
    let runs = Runs::new(function, &config);
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
    let scrapes = match &config.metrics_address {
        Some(address) => scrape::serve(address, config.metrics).await,
        None => None,
    };
    let metrics_address = scrapes.as_ref().map(|server| server.address().to_owned());
    let services = SERVICES.into_iter().chain(REFLECTION).chain(config.health.then_some(HEALTH));
    let services: Arc<[&str]> = services.collect();
    let router = server::builder(&config.limits)
        .layer(tower::layer::layer_fn(move |inner| Words::new(inner, Arc::clone(&services))))
        .add_service(v1)
        .add_service(v1beta1)
        .add_service(reflection_v1)
        .add_service(reflection_v1alpha)
        .add_optional_service(health);
    let at_once = Arc::new(Notify::new());
    let (limits, now) = (config.limits, Arc::clone(&at_once));
    let task = tokio::spawn(async move {
        let now = async move { now.notified().await };
        let served = server::run(listener, tls, &limits, shutdown, now, |incoming, stopping| {
            router.serve_with_incoming_shutdown(incoming, stopping)
        });
        let served = served.await;
        drop(scrapes);
        // A server that had to be given up was told to stop as well.
        served.unwrap_or(Ok(()))
    });
    Ok(Running { target, metrics_address, metrics, at_once, task })
}

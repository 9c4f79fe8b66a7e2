//! Serves the receiving services on Unix sockets, until told to stop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use biplane_function::server::{self, Limits, ListenError, Listener, ReplaceError, Words};
use biplane_proto::changelogs::change_log_service_server::ChangeLogServiceServer;
use biplane_proto::inspector::{design, shipped};
use tokio::sync::Notify;
use tonic::service::Routes;
use tonic_health::ServingStatus;

use crate::receive::{Changes, Receiver, TakeChange, TakeEmission};

/// Where inspectors listen unless told otherwise.
pub const INSPECTOR_SOCKET: &str = "/var/run/pipeline-inspector/socket";
/// Where change logs are received unless told otherwise.
pub const CHANGE_LOGS_SOCKET: &str = "/var/run/changelogs/changelogs.sock";
/// The largest message unless told otherwise: the default of gRPC.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// How long open calls may take after the first signal, unless told otherwise.
pub const SHUTDOWN: Duration = Duration::from_secs(5);

/// Who runs as the same user or group may connect. The containers of a pod do.
const SOCKET_MODE: u32 = 0o660;

const HEALTH: &str = "grpc.health.v1.Health";
const INSPECTOR: [&str; 2] = [
    "crossplane.pipeline.v1alpha1.PipelineInspectorService",
    "crossplane.pipelineinspector.v1alpha1.PipelineInspectorService",
];
const CHANGE_LOGS: &str = "changelogs.proto.v1alpha1.ChangeLogService";

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// The path of the socket. A socket that is there is replaced.
    pub socket: PathBuf,
    /// The largest message.
    pub max_message: usize,
    /// How long open calls may take when the server stops.
    pub shutdown: Duration,
}

/// Why a server could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The path is taken.
    #[error("cannot remove existing socket: {reason}")]
    Remove {
        /// The path.
        socket: PathBuf,
        /// The reason.
        reason: ListenError,
    },
    /// The socket cannot be made.
    #[error("cannot listen on socket: listen unix {}: {reason}", socket.display())]
    Listen {
        /// The path.
        socket: PathBuf,
        /// The reason.
        reason: ListenError,
    },
    /// The server failed later.
    #[error("server error: {0}")]
    Serve(String),
}

/// A server that listens.
#[derive(Debug)]
pub struct Bound {
    listener: Listener,
    options: Options,
    routes: Routes,
    services: Vec<&'static str>,
}

/// Listens for emissions in both dialects.
pub async fn inspector<T: TakeEmission>(
    take: Arc<T>,
    options: Options,
) -> Result<Bound, ServeError> {
    use design::pipeline_inspector_service_server::PipelineInspectorServiceServer as Design;
    use shipped::pipeline_inspector_service_server::PipelineInspectorServiceServer as Shipped;
    let receiver = Receiver::new(take);
    let limit = options.max_message;
    let shipped = Shipped::new(receiver.clone()).max_decoding_message_size(limit);
    let design = Design::new(receiver).max_decoding_message_size(limit);
    let routes = Routes::new(shipped).add_service(design);
    bind(options, routes, INSPECTOR.to_vec()).await
}

/// Listens for change log entries.
pub async fn change_logs<T: TakeChange>(
    take: Arc<T>,
    options: Options,
) -> Result<Bound, ServeError> {
    let service = ChangeLogServiceServer::new(Changes::new(take));
    let service = service.max_decoding_message_size(options.max_message);
    bind(options, Routes::new(service), vec![CHANGE_LOGS]).await
}

async fn bind(
    options: Options,
    routes: Routes,
    mut services: Vec<&'static str>,
) -> Result<Bound, ServeError> {
    let socket = options.socket.clone();
    let listener = Listener::replace(&options.socket, SOCKET_MODE).await;
    let listener = listener.map_err(|error| match error {
        ReplaceError::Remove(reason) => ServeError::Remove { socket, reason },
        ReplaceError::Listen(reason) => ServeError::Listen { socket, reason },
    })?;
    let (health, service) = tonic_health::server::health_reporter();
    for service in &services {
        health.set_service_status(service, ServingStatus::Serving).await;
    }
    services.push(HEALTH);
    Ok(Bound { listener, options, routes: routes.add_service(service), services })
}

impl Bound {
    /// Serves until `stop`. Open calls are finished, but not for longer than the options allow, and
    /// not after `at_once`.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        at_once: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let Self { listener, options, routes, services } = self;
        let services: Arc<[&str]> = services.into();
        let limits = Limits { shutdown: options.shutdown + BACKSTOP, ..Limits::default() };
        let router = server::builder(&limits)
            .layer(tower::layer::layer_fn(move |inner| Words::new(inner, Arc::clone(&services))))
            .add_routes(routes);
        let stopping = Notify::new();
        let stop = async {
            stop.await;
            tracing::info!("Shutting down");
            stopping.notify_one();
        };
        let at_once = async {
            let too_long = async {
                stopping.notified().await;
                tokio::time::sleep(options.shutdown).await;
                tracing::info!("Graceful shutdown timed out, forcing stop");
            };
            tokio::select! {
                () = too_long => {}
                () = at_once => {}
            }
        };
        let served = server::run(listener, None, &limits, stop, at_once, |incoming, stopping| {
            router.serve_with_incoming_shutdown(incoming, stopping)
        });
        // A server that had to be given up was told to stop.
        served.await.unwrap_or(Ok(())).map_err(|error| ServeError::Serve(error.to_string()))
    }
}

/// The server ends the connections itself somewhat later, if it has to.
const BACKSTOP: Duration = Duration::from_secs(1);

//! `internal serve`: the render engine as a gRPC server, for callers that render many times.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use biplane_engine::render::{RenderError, Settings, connect, render};
use biplane_function::serve::SocketAuthority;
use biplane_proto::render::service::render_service_server::{RenderService, RenderServiceServer};
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_runner::Connections;
use clap::Args;
use prost::Message;
use prost_types::Any;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};
use tracing_subscriber::filter::LevelFilter;

use super::Common;
use biplane_console::Streams;
use biplane_console::logging::{self, Log};
use biplane_console::signals;

/// Serves `biplane.render.v1alpha1.RenderService`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen: unix:///path/to/socket, or host:port for TCP. Calls are not encrypted, so
    /// listen where only trusted programs can reach
    #[arg(long, value_name = "ADDRESS")]
    address: String,
    /// The largest request, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    max_recv_message_size: usize,
    #[command(flatten)]
    common: Common,
}

impl Serve {
    pub(super) fn log(&self, verbose: bool) -> Log {
        let debug = verbose || self.common.debug;
        Log::at(if debug { LevelFilter::DEBUG } else { LevelFilter::ERROR })
    }

    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = logging::on_threads(builder.enable_all()).build()?;
        runtime.block_on(self.serve(streams))
    }

    async fn serve(self, streams: &mut Streams<'_>) -> Result<()> {
        // Before listening, so that a program that finds the socket can also stop the server.
        let stop = signals::first_of(signals::of_servers()).context("cannot listen for signals")?;
        let (health, health_service) = tonic_health::server::health_reporter();
        let engine =
            Engine { settings: self.common.settings(), connections: Connections::default() };
        let service = RenderServiceServer::new(engine)
            .max_decoding_message_size(self.max_recv_message_size.saturating_mul(1024 * 1024))
            .max_encoding_message_size(usize::MAX);
        health.set_serving::<RenderServiceServer<Engine>>().await;
        let undescribed = "cannot describe the service";
        let router = Server::builder()
            .add_service(service)
            .add_service(health_service)
            .add_service(reflection().build_v1().context(undescribed)?)
            .add_service(reflection().build_v1alpha().context(undescribed)?);
        let address = &self.address;
        let cannot = || format!("cannot listen at {address}");
        if let Some(path) =
            address.strip_prefix("unix://").or_else(|| address.strip_prefix("unix:"))
        {
            let socket = Socket::bind(Path::new(path)).with_context(cannot)?;
            streams.say(&format!("listening on unix://{path}"));
            let incoming = UnixListenerStream::new(socket.listener);
            let incoming = incoming.map(|accepted| accepted.map(SocketAuthority::new));
            let served = router.serve_with_incoming_shutdown(incoming, stop).await;
            // New connections must be refused from now on.
            let _ = std::fs::remove_file(&socket.path);
            served.context("cannot serve")
        } else {
            let listener = TcpListener::bind(address.as_str()).await.with_context(cannot)?;
            streams.say(&format!("listening on {}", listener.local_addr()?));
            router
                .serve_with_incoming_shutdown(undelayed(listener), stop)
                .await
                .context("cannot serve")
        }
    }
}

/// Connections over TCP without Nagle's algorithm, which would delay each call by tens of
/// milliseconds.
fn undelayed(listener: TcpListener) -> TcpIncoming {
    TcpIncoming::from(listener).with_nodelay(Some(true))
}

/// Describes the services to clients, in both versions of gRPC reflection.
fn reflection() -> tonic_reflection::server::Builder<'static> {
    let mut builder = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(biplane_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
        .include_reflection_service(false);
    for service in SERVICES {
        builder = builder.with_service_name(service);
    }
    builder
}

const SERVICES: [&str; 4] = [
    "biplane.render.v1alpha1.RenderService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Binds the socket. A stale socket is replaced; a socket that is in use, or any other file, is
    /// not.
    fn bind(path: &Path) -> Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                bail!("{} exists and is not a socket", path.display());
            }
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                bail!("another server listens there");
            }
            std::fs::remove_file(path)?;
        }
        Ok(Self { listener: UnixListener::bind(path)?, path: path.to_owned() })
    }
}

/// Renders, and keeps connections to functions.
#[derive(Clone)]
struct Engine {
    settings: Settings,
    connections: Connections,
}

#[tonic::async_trait]
impl RenderService for Engine {
    async fn render(
        &self,
        request: Request<RenderRequest>,
    ) -> Result<Response<RenderResponse>, Status> {
        let request = request.into_inner();
        tracing::debug!(bytes = request.encoded_len(), "read render request");
        let functions = connect(&request, &self.connections).map_err(|error| {
            Status::invalid_argument(format!("cannot connect to functions: {error}"))
        })?;
        let functions = Arc::new(functions);
        let settings = self.settings.clone();
        // A panic affects only its own render, and a caller that disconnects cancels only its own.
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { render(request, functions, &settings).await });
        match tasks.join_next().await {
            Some(Ok(Ok(response))) => {
                tracing::debug!(bytes = response.encoded_len(), "rendered");
                Ok(Response::new(response))
            }
            Some(Ok(Err(RenderError::Fatal { text, partial, .. }))) => {
                tracing::debug!(error = text, "a function ended the render");
                Err(fatal(&text, &partial))
            }
            Some(Ok(Err(RenderError::Failed(text)))) => {
                tracing::debug!(error = text, "render failed");
                Err(Status::failed_precondition(text))
            }
            Some(Err(error)) => {
                tracing::error!(%error, "render died");
                Err(Status::internal("the render engine failed unexpectedly"))
            }
            None => Err(Status::internal("the render engine did not start")),
        }
    }
}

/// The partial response is attached to the status as a detail, where clients of any language find
/// it.
fn fatal(text: &str, partial: &RenderResponse) -> Status {
    let details = tonic_types::Status {
        code: Code::Aborted as i32,
        message: text.to_owned(),
        details: vec![Any {
            type_url: "type.googleapis.com/crossplane.render.v1alpha1.RenderResponse".to_owned(),
            value: partial.encode_to_vec(),
        }],
    };
    Status::with_details(Code::Aborted, text, details.encode_to_vec().into())
}

#[cfg(test)]
mod tests;

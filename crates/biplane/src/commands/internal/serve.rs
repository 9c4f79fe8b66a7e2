//! `internal serve`: the render engine as a gRPC server, for callers that render many times.

use std::sync::Arc;

use anyhow::{Context, Result};
use biplane_engine::render::{RenderError, Settings, connect, render};
use biplane_function::server::{self, Limits, Listener, Network};
use biplane_proto::render::service::render_service_server::{RenderService, RenderServiceServer};
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_runner::Connections;
use clap::Args;
use prost::Message;
use prost_types::Any;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
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
        let served = runtime.block_on(self.serve(streams));
        // Renders that were given up must not keep the process alive.
        runtime.shutdown_background();
        served
    }

    async fn serve(self, streams: &mut Streams<'_>) -> Result<()> {
        // Before listening, so that a program that finds the socket can also stop the server.
        let stop = signals::first_of(signals::of_servers()).context("cannot listen for signals")?;
        let at_once =
            signals::nth_of(2, signals::of_servers()).context("cannot listen for signals")?;
        let (health, health_service) = tonic_health::server::health_reporter();
        let engine = Engine::new(self.common.settings());
        let service = RenderServiceServer::new(engine)
            .max_decoding_message_size(self.max_recv_message_size.saturating_mul(1024 * 1024))
            .max_encoding_message_size(usize::MAX);
        health.set_serving::<RenderServiceServer<Engine>>().await;
        let undescribed = "cannot describe the service";
        let limits = Limits::default();
        let router = server::builder(&limits)
            .add_service(service)
            .add_service(health_service)
            .add_service(reflection().build_v1().context(undescribed)?)
            .add_service(reflection().build_v1alpha().context(undescribed)?);
        let address = &self.address;
        let path = address.strip_prefix("unix://").or_else(|| address.strip_prefix("unix:"));
        let (network, at) = match path {
            Some(path) => (Network::Unix, path),
            None => (Network::Tcp, address.as_str()),
        };
        let listener = Listener::bind(network, at).await;
        let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
        let listens = match listener.tcp_address() {
            Some(bound) => bound.to_string(),
            None => format!("unix://{at}"),
        };
        streams.say(&format!("listening on {listens}"));
        let served = server::run(listener, None, &limits, stop, at_once, |incoming, stopping| {
            router.serve_with_incoming_shutdown(incoming, stopping)
        });
        // A server that had to be given up was told to stop.
        served.await.unwrap_or(Ok(())).context("cannot serve")
    }
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

/// How many renders run at a time. Each has a thread, which mostly waits for functions.
const MAX_RENDERS: usize = 256;

/// How many renders may wait to run.
const MAX_WAITING: usize = 1024;

/// Renders, and keeps connections to functions.
struct Engine {
    settings: Settings,
    connections: Connections,
    running: Semaphore,
    waiting: Semaphore,
}

impl Engine {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            connections: Connections::default(),
            running: Semaphore::new(MAX_RENDERS),
            waiting: Semaphore::new(MAX_WAITING),
        }
    }

    /// Waits until another render may run, unless too many do.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Status> {
        let _place = self.waiting.try_acquire().map_err(|_| {
            Status::resource_exhausted(format!("{MAX_WAITING} renders are waiting already"))
        })?;
        let turn = self.running.acquire().await;
        turn.map_err(|_| Status::unavailable("the server is closing"))
    }
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
        let _turn = self.turn().await?;
        // A panic affects only its own render, and a caller that disconnects cancels only its own.
        let (_caller, gone) = oneshot::channel::<()>();
        let runtime = Handle::current();
        // Not on the threads that read and write: a render computes.
        let task = tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                tokio::select! {
                    rendered = render(request, functions, &settings) => Some(rendered),
                    _ = gone => None,
                }
            })
        });
        match task.await.transpose() {
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
            None => Err(Status::cancelled("context canceled")),
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

//! The render engine as a server, for callers that render many times.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use biplane_engine::failure::quoted;
use biplane_engine::render::{RenderError, Settings, functions, render, runner};
use biplane_proto::render::service::render_service_server::{RenderService, RenderServiceServer};
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_runner::{FunctionRunner, Named};
use clap::Args;
use prost::Message;
use prost_types::Any;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};

use super::Common;
use biplane_console::Streams;

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
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.serve(streams))
    }

    async fn serve(self, streams: &mut Streams<'_>) -> Result<()> {
        // Asked for before listening, so that whoever sees the socket can also stop us.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let stop = async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        };
        let (health, health_service) = tonic_health::server::health_reporter();
        let engine = Engine { settings: self.common.settings(), runners: Arc::default() };
        let service = RenderServiceServer::new(engine)
            .max_decoding_message_size(self.max_recv_message_size.saturating_mul(1024 * 1024))
            .max_encoding_message_size(usize::MAX);
        health.set_serving::<RenderServiceServer<Engine>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(biplane_proto::DESCRIPTORS)
            .build_v1()
            .context("cannot describe the service")?;
        let router = Server::builder()
            .add_service(service)
            .add_service(health_service)
            .add_service(reflection);
        let address = &self.address;
        let cannot = || format!("cannot listen at {address}");
        if let Some(path) =
            address.strip_prefix("unix://").or_else(|| address.strip_prefix("unix:"))
        {
            let socket = Socket::bind(Path::new(path)).with_context(cannot)?;
            streams.say(&format!("listening on unix://{path}"));
            let incoming = UnixListenerStream::new(socket.listener);
            let served = router.serve_with_incoming_shutdown(incoming, stop).await;
            // Whoever connects from now on should hear that nobody is there.
            let _ = std::fs::remove_file(&socket.path);
            served.context("cannot serve")
        } else {
            let listener = TcpListener::bind(address.as_str()).await.with_context(cannot)?;
            streams.say(&format!("listening on {}", listener.local_addr()?));
            let incoming = TcpListenerStream::new(listener);
            router.serve_with_incoming_shutdown(incoming, stop).await.context("cannot serve")
        }
    }
}

struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// A socket that a server left behind is replaced; one that answers is not, nor is any other file.
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
    runners: Arc<Mutex<BTreeMap<String, Arc<dyn FunctionRunner>>>>,
}

/// How many addresses of functions are kept connected. Batch callers use a handful; one that makes
/// up addresses should not cost more and more.
const MAX_RUNNERS: usize = 256;

impl Engine {
    fn dial(&self, request: &RenderRequest) -> Result<Named, Status> {
        let mut known = self.runners.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Named::default();
        for function in functions(request) {
            let runner = if let Some(runner) = known.get(&function.address) {
                runner.clone()
            } else {
                let runner = runner(&function.address).map_err(|e| {
                    Status::invalid_argument(format!(
                        "cannot connect to functions: cannot connect to function {} at {}: {e}",
                        quoted(&function.name),
                        quoted(&function.address)
                    ))
                })?;
                if known.len() >= MAX_RUNNERS {
                    known.clear();
                }
                known.insert(function.address.clone(), runner.clone());
                runner
            };
            all.insert(&function.name, runner);
        }
        Ok(all)
    }
}

#[tonic::async_trait]
impl RenderService for Engine {
    async fn render(
        &self,
        request: Request<RenderRequest>,
    ) -> Result<Response<RenderResponse>, Status> {
        let request = request.into_inner();
        let functions: Arc<dyn FunctionRunner> = Arc::new(self.dial(&request)?);
        let settings = self.settings.clone();
        // A panic in one render is that render's alone, and a caller that goes away ends its own.
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { render(request, functions, &settings).await });
        match tasks.join_next().await {
            Some(Ok(Ok(response))) => Ok(Response::new(response)),
            Some(Ok(Err(RenderError::Fatal { text, partial, .. }))) => Err(fatal(&text, &partial)),
            Some(Ok(Err(RenderError::Failed(text)))) => Err(Status::failed_precondition(text)),
            died => {
                tracing::error!(?died, "render died");
                Err(Status::internal("the render engine failed unexpectedly"))
            }
        }
    }
}

/// The partial response travels with the status, where clients of any language look for details.
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

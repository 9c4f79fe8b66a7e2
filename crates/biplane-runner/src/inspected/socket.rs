//! Emits to a receiver at a Unix socket, in either dialect of the Pipeline Inspector.
//!
//! The first call connects. It is sent in the dialect of released control planes, and in the one of
//! the design document if the receiver does not know the first.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use biplane_proto::inspector::{design, shipped};
use biplane_proto::redact::Half;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::emission::{Details, Emission, EmitError, Inspector};
use super::pause::Pause;
use crate::grpc::dial_text;
use crate::status;

/// How long one emission may take, connecting included.
pub const TIMEOUT: Duration = Duration::from_millis(100);

/// The metadata of an emission: how long the call took, in microseconds.
pub const TOOK: &str = "biplane-took-us";
/// The metadata of an emission: whether a cache answered.
pub const CACHED: &str = "biplane-cached";
/// The metadata of an emission: the revision of the function.
pub const REVISION: &str = "biplane-function-revision";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Shipped,
    Design,
}

/// Emits to the receiver at a socket.
#[derive(Debug)]
pub struct SocketInspector {
    path: PathBuf,
    timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    channel: Option<Channel>,
    /// What the receiver is known to speak.
    dialect: Option<Dialect>,
    pause: Pause,
}

impl SocketInspector {
    /// Creates the client. The socket need not exist.
    pub fn new(path: &Path) -> Self {
        Self::with_timeout(path, TIMEOUT)
    }

    /// The same with another time limit.
    pub fn with_timeout(path: &Path, timeout: Duration) -> Self {
        Self { path: path.to_owned(), timeout, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, unless nothing is to be sent now.
    fn channel(&self) -> Option<(Channel, Option<Dialect>)> {
        let mut state = self.state();
        if !state.pause.may_call(Instant::now()) {
            return None;
        }
        let dialect = state.dialect;
        let channel = state.channel.get_or_insert_with(|| {
            let path = self.path.clone();
            let connect = tower::service_fn(move |_| {
                let path = path.clone();
                async move { UnixStream::connect(path).await.map(TokioIo::new) }
            });
            Endpoint::from_static("http://localhost").connect_with_connector_lazy(connect)
        });
        Some((channel.clone(), dialect))
    }

    /// Sends in the dialect that the receiver speaks, which is found out if it is not known.
    async fn send(
        &self,
        channel: Channel,
        dialect: Option<Dialect>,
        emission: Emission,
    ) -> Result<Dialect, Status> {
        if let Some(dialect) = dialect {
            return self.send_in(channel, dialect, emission).await.map(|()| dialect);
        }
        let again = emission.clone();
        match self.send_in(channel.clone(), Dialect::Shipped, emission).await {
            Err(status) if status.code() == Code::Unimplemented => {
                self.send_in(channel, Dialect::Design, again).await.map(|()| Dialect::Design)
            }
            sent => sent.map(|()| Dialect::Shipped),
        }
    }

    async fn send_in(
        &self,
        channel: Channel,
        dialect: Dialect,
        emission: Emission,
    ) -> Result<(), Status> {
        let Emission { half, meta, payload, error, details } = emission;
        let payload = payload.into_inner();
        match dialect {
            Dialect::Shipped => {
                use shipped::pipeline_inspector_service_client::PipelineInspectorServiceClient;
                let mut client = PipelineInspectorServiceClient::new(channel);
                let meta = Some(meta);
                match half {
                    Half::Request => {
                        let message = shipped::EmitRequestRequest { request: payload, meta };
                        client.emit_request(self.request(message, &details)).await.map(drop)
                    }
                    Half::Response => {
                        let message =
                            shipped::EmitResponseRequest { response: payload, error, meta };
                        client.emit_response(self.request(message, &details)).await.map(drop)
                    }
                }
            }
            Dialect::Design => {
                use design::pipeline_inspector_service_client::PipelineInspectorServiceClient;
                // This dialect has no words for Operations.
                let Some(meta) = flat(meta) else { return Ok(()) };
                let mut client = PipelineInspectorServiceClient::new(channel);
                let meta = Some(meta);
                match half {
                    Half::Request => {
                        let message = design::EmitRequestRequest { request: payload, meta };
                        client.emit_request(self.request(message, &details)).await.map(drop)
                    }
                    Half::Response => {
                        let message =
                            design::EmitResponseRequest { response: payload, error, meta };
                        client.emit_response(self.request(message, &details)).await.map(drop)
                    }
                }
            }
        }
    }

    fn request<T>(&self, message: T, details: &Details) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        let metadata = request.metadata_mut();
        insert(metadata, TOOK, details.took.map(|took| took.as_micros().to_string()));
        insert(metadata, CACHED, details.cached.map(|cached| cached.to_string()));
        insert(metadata, REVISION, details.revision.clone());
        request
    }

    fn failed(&self, half: Half, function: &str, bytes: usize, failed: Status) -> EmitError {
        let mut state = self.state();
        state.pause.answered();
        // Another receiver may be next.
        state.dialect = None;
        drop(state);
        match failed.code() {
            Code::ResourceExhausted | Code::OutOfRange => {
                EmitError::too_large(half, function, bytes, failed)
            }
            _ => EmitError::status(half, function, self.explained(failed)),
        }
    }

    /// Says why there is no connection, in the words of Go.
    fn explained(&self, failed: Status) -> Status {
        let mut source = failed.source();
        while let Some(error) = source {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                let reason = dial_text(&self.path, error);
                return Status::new(failed.code(), format!("connection error: desc = {reason:?}"));
            }
            source = error.source();
        }
        failed
    }

    fn timed_out(&self) -> Status {
        let mut state = self.state();
        if state.pause.timed_out(Instant::now()) {
            // A receiver that was replaced has another connection.
            state.channel = None;
            state.dialect = None;
        }
        status::deadline_exceeded()
    }
}

#[async_trait]
impl Inspector for SocketInspector {
    async fn emit(&self, emission: Emission) -> Result<(), EmitError> {
        let (half, bytes) = (emission.half, emission.payload.get().len());
        let function = emission.meta.function_name.clone();
        let Some((channel, dialect)) = self.channel() else {
            return Err(EmitError::paused(half, &function));
        };
        let sent = self.send(channel, dialect, emission);
        match tokio::time::timeout(self.timeout, sent).await {
            Ok(Ok(dialect)) => {
                let mut state = self.state();
                state.pause.answered();
                state.dialect = Some(dialect);
                Ok(())
            }
            Ok(Err(failed)) if is_timeout(&failed) => {
                Err(EmitError::status(half, &function, self.timed_out()))
            }
            Ok(Err(failed)) => Err(self.failed(half, &function, bytes, failed)),
            Err(_) => Err(EmitError::status(half, &function, self.timed_out())),
        }
    }
}

/// The receiver has the deadline too, and may be the first to notice that it is over.
fn is_timeout(status: &Status) -> bool {
    matches!(status.code(), Code::DeadlineExceeded)
        || (status.code() == Code::Cancelled && status.message() == "Timeout expired")
}

/// The metadata of a composition in the dialect of the design document.
fn flat(meta: shipped::StepMeta) -> Option<design::StepMeta> {
    let Some(shipped::step_meta::Context::CompositionMeta(composition)) = meta.context else {
        return None;
    };
    Some(design::StepMeta {
        trace_id: meta.trace_id,
        span_id: meta.span_id,
        step_index: meta.step_index,
        iteration: meta.iteration,
        function_name: meta.function_name,
        composition_name: composition.composition_name,
        composite_resource_uid: composition.composite_resource_uid,
        composite_resource_name: composition.composite_resource_name,
        composite_resource_namespace: composition.composite_resource_namespace,
        composite_resource_api_version: composition.composite_resource_api_version,
        composite_resource_kind: composition.composite_resource_kind,
        timestamp: meta.timestamp,
    })
}

/// A value that is not ASCII is left out.
fn insert(metadata: &mut MetadataMap, key: &'static str, value: Option<String>) {
    if let Some(value) = value.and_then(|value| MetadataValue::<Ascii>::try_from(value).ok()) {
        metadata.insert(key, value);
    }
}

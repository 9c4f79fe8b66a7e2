//! The gRPC services: both dialects of the Pipeline Inspector, and Change Logs.

use std::sync::Arc;

use biplane_proto::changelogs::change_log_service_server::ChangeLogService;
use biplane_proto::changelogs::{ChangeLogEntry, SendChangeLogRequest, SendChangeLogResponse};
use biplane_proto::inspector::{design, shipped};
use biplane_proto::redact::Half;
use tonic::{Request, Response, Status, async_trait};

use crate::emission::{Details, Dialect, Emission, normalized};

/// Takes emissions.
#[async_trait]
pub trait TakeEmission: Send + Sync + 'static {
    /// Takes one. The emitter gets the answer when this returns, and does not wait for long.
    async fn take(&self, emission: Emission) -> Result<(), Status>;
}

/// Takes change log entries.
#[async_trait]
pub trait TakeChange: Send + Sync + 'static {
    /// Takes one. The provider gets the answer when this returns.
    async fn take(&self, entry: ChangeLogEntry) -> Result<(), Status>;
}

/// Receives emissions in both dialects.
#[derive(Debug)]
pub struct Receiver<T>(Arc<T>);

impl<T> Receiver<T> {
    /// Hands emissions on.
    pub fn new(take: Arc<T>) -> Self {
        Self(take)
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[async_trait]
impl<T: TakeEmission> shipped::pipeline_inspector_service_server::PipelineInspectorService
    for Receiver<T>
{
    async fn emit_request(
        &self,
        request: Request<shipped::EmitRequestRequest>,
    ) -> Result<Response<shipped::EmitRequestResponse>, Status> {
        let details = Details::read(request.metadata());
        let shipped::EmitRequestRequest { request: payload, meta } = request.into_inner();
        let (dialect, half, error) = (Dialect::Shipped, Half::Request, String::new());
        self.0.take(Emission { dialect, half, meta, payload, error, details }).await?;
        Ok(Response::new(shipped::EmitRequestResponse {}))
    }

    async fn emit_response(
        &self,
        request: Request<shipped::EmitResponseRequest>,
    ) -> Result<Response<shipped::EmitResponseResponse>, Status> {
        let details = Details::read(request.metadata());
        let shipped::EmitResponseRequest { response: payload, error, meta } = request.into_inner();
        let (dialect, half) = (Dialect::Shipped, Half::Response);
        self.0.take(Emission { dialect, half, meta, payload, error, details }).await?;
        Ok(Response::new(shipped::EmitResponseResponse {}))
    }
}

#[async_trait]
impl<T: TakeEmission> design::pipeline_inspector_service_server::PipelineInspectorService
    for Receiver<T>
{
    async fn emit_request(
        &self,
        request: Request<design::EmitRequestRequest>,
    ) -> Result<Response<design::EmitRequestResponse>, Status> {
        let details = Details::read(request.metadata());
        let design::EmitRequestRequest { request: payload, meta } = request.into_inner();
        let (dialect, half, error) = (Dialect::Design, Half::Request, String::new());
        let meta = meta.map(normalized);
        self.0.take(Emission { dialect, half, meta, payload, error, details }).await?;
        Ok(Response::new(design::EmitRequestResponse {}))
    }

    async fn emit_response(
        &self,
        request: Request<design::EmitResponseRequest>,
    ) -> Result<Response<design::EmitResponseResponse>, Status> {
        let details = Details::read(request.metadata());
        let design::EmitResponseRequest { response: payload, error, meta } = request.into_inner();
        let (dialect, half) = (Dialect::Design, Half::Response);
        let meta = meta.map(normalized);
        self.0.take(Emission { dialect, half, meta, payload, error, details }).await?;
        Ok(Response::new(design::EmitResponseResponse {}))
    }
}

/// Receives change log entries.
#[derive(Debug)]
pub struct Changes<T>(Arc<T>);

impl<T> Changes<T> {
    /// Hands entries on.
    pub fn new(take: Arc<T>) -> Self {
        Self(take)
    }
}

#[async_trait]
impl<T: TakeChange> ChangeLogService for Changes<T> {
    async fn send_change_log(
        &self,
        request: Request<SendChangeLogRequest>,
    ) -> Result<Response<SendChangeLogResponse>, Status> {
        let entry = request.into_inner().entry;
        let missing = || Status::internal("Request and change logs entry must not be nil");
        let mut entry = entry.ok_or_else(missing)?;
        // Entries are known by the second.
        if let Some(timestamp) = &mut entry.timestamp {
            timestamp.nanos = 0;
        }
        self.0.take(entry).await?;
        Ok(Response::new(SendChangeLogResponse {}))
    }
}

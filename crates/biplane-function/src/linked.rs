//! Runs functions that were written with another SDK and linked into this process.
//!
//! Such an SDK exposes a function as a gRPC service. The service is called directly, without a
//! connection. Neither SDK needs to know the types of the other or its version of tonic.

use async_trait::async_trait;
use biplane_proto::function::v1::function_runner_service_client::FunctionRunnerServiceClient;
use tonic::codegen::{Body, Bytes, Service, StdError, http};
use tonic::{Request, Status};

use crate::function::Function;
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

/// A function that is a gRPC service, such as the `FunctionRunnerServiceServer` of the official SDK
/// for Rust.
///
/// Services refuse requests above a size limit, which is 4 MiB by default. Change it with
/// `FunctionRunnerServiceServer::new(function).max_decoding_message_size(size)`.
#[derive(Clone, Copy, Debug)]
pub struct Linked<S>(S);

impl<S> Linked<S> {
    /// Wraps a service.
    pub fn new(service: S) -> Self {
        Self(service)
    }
}

#[async_trait]
impl<S, B> Function for Linked<S>
where
    S: Service<http::Request<tonic::body::Body>, Response = http::Response<B>>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Error: Into<StdError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut client =
            FunctionRunnerServiceClient::new(self.0.clone()).max_decoding_message_size(usize::MAX);
        Ok(client.run_function(Request::new(request)).await?.into_inner())
    }
}

//! The gRPC handler: passes requests of either protocol version to the function and counts them.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_proto::function::{v1, v1beta1};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::{Code, Request, Response, Status};

use crate::function::Function;
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

use super::metrics::ServerMetrics;

/// The service that a handler implements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dialect {
    V1,
    V1Beta1,
}

impl Dialect {
    fn service(self) -> &'static str {
        match self {
            Self::V1 => super::SERVICES[0],
            Self::V1Beta1 => super::SERVICES[1],
        }
    }
}

pub(super) struct Handler {
    runs: Runs,
    dialect: Dialect,
    metrics: Arc<ServerMetrics>,
}

impl Handler {
    pub(super) fn new(runs: Runs, dialect: Dialect, metrics: Arc<ServerMetrics>) -> Self {
        Self { runs, dialect, metrics }
    }

    async fn handle(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let service = self.dialect.service();
        self.metrics.begin(service);
        let tag = request.meta.as_ref().map_or("", |meta| meta.tag.as_str());
        tracing::debug!(tag, "running the function");
        let answer = self.runs.run(request).await;
        self.metrics.end(service, answer.as_ref().err().map_or(Code::Ok, Status::code));
        answer
    }
}

/// A function, and the semaphore that limits concurrent computation.
#[derive(Clone)]
pub(super) struct Runs {
    pub(super) function: Arc<dyn Function>,
    pub(super) turns: Arc<Semaphore>,
}

impl Runs {
    /// Runs the function in its own task, so that a panic fails only this call. A dropped call is
    /// cancelled, unless the function only computes. Such a function runs on a blocking thread,
    /// where it does not delay I/O. Once started, it runs to its end, which is soon.
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let function = Arc::clone(&self.function);
        let mut tasks = JoinSet::new();
        if function.is_pure() {
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            let runtime = tokio::runtime::Handle::current();
            tasks.spawn_blocking(move || {
                let _turn = turn;
                runtime.block_on(function.run(request))
            });
        } else {
            tasks.spawn(async move { function.run(request).await });
        }
        match tasks.join_next().await {
            Some(Ok(answer)) => answer,
            died => {
                let error = died.and_then(Result::err).map(|error| error.to_string());
                tracing::error!(error, "the function panicked");
                Err(Status::internal("the function panicked"))
            }
        }
    }
}

#[async_trait]
impl v1::function_runner_service_server::FunctionRunnerService for Handler {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        self.handle(request.into_inner()).await.map(Response::new)
    }
}

#[async_trait]
impl v1beta1::function_runner_service_server::FunctionRunnerService for Handler {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        self.handle(request.into_inner()).await.map(Response::new)
    }
}

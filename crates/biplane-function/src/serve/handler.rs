//! Hands requests of either dialect to the function, and counts.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_proto::function::{v1, v1beta1};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::{Code, Request, Response, Status};

use crate::function::Function;
use crate::metrics::Counter;
use crate::status::code_name;
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

/// Which of the two services a handler stands behind.
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

/// What a server counts, under the names that gRPC servers in Go use.
#[derive(Debug)]
pub struct Metrics {
    /// Calls begun.
    pub started: Counter,
    /// Calls ended, by code.
    pub handled: Counter,
    /// Messages received.
    pub received: Counter,
    /// Messages sent.
    pub sent: Counter,
}

const METHOD: &[&str] = &["grpc_type", "grpc_service", "grpc_method"];

impl Metrics {
    pub(super) fn new() -> Self {
        let metrics = Self {
            started: Counter::new(
                "grpc_server_started_total",
                "Total number of RPCs started on the server.",
                METHOD,
            ),
            handled: Counter::new(
                "grpc_server_handled_total",
                "Total number of RPCs completed on the server, regardless of success or failure.",
                &["grpc_type", "grpc_service", "grpc_method", "grpc_code"],
            ),
            received: Counter::new(
                "grpc_server_msg_received_total",
                "Total number of RPC stream messages received on the server.",
                METHOD,
            ),
            sent: Counter::new(
                "grpc_server_msg_sent_total",
                "Total number of gRPC stream messages sent by the server.",
                METHOD,
            ),
        };
        // Every series is there from the start, so that the first failure is seen as an increase.
        for service in super::SERVICES {
            let method = method(service);
            for counter in [&metrics.started, &metrics.received, &metrics.sent] {
                counter.add(&method, 0);
            }
            for code in 0..=16 {
                metrics.ended(service, Code::from(code), 0);
            }
        }
        metrics
    }

    fn ended(&self, service: &str, code: Code, n: u64) {
        self.handled.add(&["unary", service, "RunFunction", code_name(code)], n);
    }

    /// All of it in Prometheus' text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for counter in [&self.started, &self.handled, &self.received, &self.sent] {
            counter.write(&mut text);
        }
        text
    }
}

fn method(service: &str) -> [&str; 3] {
    ["unary", service, "RunFunction"]
}

pub(super) struct Handler {
    runs: Runs,
    dialect: Dialect,
    metrics: Arc<Metrics>,
}

impl Handler {
    pub(super) fn new(runs: Runs, dialect: Dialect, metrics: Arc<Metrics>) -> Self {
        Self { runs, dialect, metrics }
    }

    async fn handle(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let service = self.dialect.service();
        self.metrics.started.add(&method(service), 1);
        self.metrics.received.add(&method(service), 1);
        let tag = request.meta.as_ref().map_or("", |meta| meta.tag.as_str());
        tracing::debug!(tag, "running the function");
        let answer = self.runs.run(request).await;
        match &answer {
            Ok(_) => {
                self.metrics.sent.add(&method(service), 1);
                self.metrics.ended(service, Code::Ok, 1);
            }
            Err(status) => self.metrics.ended(service, status.code(), 1),
        }
        answer
    }
}

/// A function, and whose turn it is to compute.
#[derive(Clone)]
pub(super) struct Runs {
    pub(super) function: Arc<dyn Function>,
    pub(super) turns: Arc<Semaphore>,
}

impl Runs {
    /// Runs the function in a task of its own: a panic fails this call only, and a caller that goes
    /// away takes its call with it, unless the function only computes: that is done where it holds up
    /// nobody's input and output, and once it is its turn it runs to its end, which is near.
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

//! Tests of installed functions: which endpoint is called, when connections are reused and dropped.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::metrics::{Answered, Sent};
use super::*;
use biplane_function::metrics::Metrics;
use biplane_function::serve::{self, Config, Running};
use biplane_function::{PureFunction, response};
use tokio::time::Instant;

#[derive(Clone, Default)]
struct Installed {
    active: Arc<Mutex<BTreeMap<String, Endpoint>>>,
    names: Arc<Mutex<BTreeSet<String>>>,
    broken: bool,
}

#[async_trait]
impl Endpoints for Installed {
    async fn active(&self, function: &str) -> Result<Option<Endpoint>, Cause> {
        if self.broken {
            return Err("no connection".into());
        }
        Ok(self.active.lock().unwrap().get(function).cloned())
    }

    async fn installed(&self) -> Result<BTreeSet<String>, Cause> {
        if self.broken {
            return Err("no connection".into());
        }
        Ok(self.names.lock().unwrap().clone())
    }
}

impl Installed {
    fn at(target: &str) -> Self {
        let installed = Self::default();
        installed.moved(target);
        installed.names.lock().unwrap().insert("fn".into());
        installed
    }

    fn moved(&self, target: &str) {
        let endpoint = Endpoint {
            target: target.into(),
            revision: "fn-1".into(),
            package: "example.org/fn:v1".into(),
        };
        self.active.lock().unwrap().insert("fn".into(), endpoint);
    }
}

struct Hello(&'static str);

impl PureFunction for Hello {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, tonic::Status> {
        let mut answer = response::to(&request, response::DEFAULT_TTL);
        response::warning(&mut answer, self.0);
        Ok(answer)
    }
}

async fn serve(text: &'static str) -> Running {
    let config = Config {
        address: "127.0.0.1:0".into(),
        insecure: true,
        metrics_address: None,
        ..Config::default()
    };
    serve::start(Arc::new(Hello(text)), config, std::future::pending()).await.unwrap()
}

fn packaged(installed: Installed) -> Packaged<Installed> {
    Packaged::new(installed, Security::Plaintext, CallMetrics::new(&Metrics::default()))
}

/// The labels of a response of the installed function.
fn answered(target: &str, version: &str, code: &'static str, severity: &'static str) -> Answered {
    let grpc_method = match version {
        "v1" => "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
        _ => "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction",
    };
    let sent = Sent {
        function_name: "fn".into(),
        function_package: "example.org/fn:v1".into(),
        grpc_target: target.into(),
        grpc_method,
    };
    Answered { sent, grpc_code: code, result_severity: severity }
}

async fn run<E: Endpoints>(runner: &Packaged<E>) -> Result<String, String> {
    let deadline = Some(Instant::now() + Duration::from_mins(1));
    let call = Call { function: "fn".into(), deadline, ..Call::default() };
    let answer = runner.run(&call, RunFunctionRequest::default()).await;
    answer.map(|rsp| rsp.results[0].message.clone()).map_err(|e| e.to_string())
}

async fn refusal(installed: Installed) -> String {
    let text = run(&packaged(installed)).await.unwrap_err();
    let prefix = "cannot get gRPC client connection for Function \"fn\": ";
    text.strip_prefix(prefix).unwrap_or(&text).to_owned()
}

/// FN-P2
#[tokio::test]
async fn what_keeps_a_function_from_being_called_is_said() {
    assert_eq!(
        refusal(Installed { broken: true, ..Installed::default() }).await,
        "cannot list FunctionRevisions: no connection"
    );
    assert_eq!(
        refusal(Installed::default()).await,
        "cannot find an active FunctionRevision (a FunctionRevision with spec.desiredState: Active)"
    );
    assert_eq!(
        refusal(Installed::at("")).await,
        "cannot determine gRPC target: active FunctionRevision \"fn-1\" has an empty status.endpoint"
    );
    assert_eq!(
        refusal(Installed::at("%zz")).await,
        "cannot gRPC dial target \"%zz\" from status.endpoint of active FunctionRevision \"fn-1\": \
         parse \"dns:///%zz\": invalid URL escape \"%zz\""
    );
}

/// FN-P1, FN-P3
#[tokio::test]
async fn the_endpoint_is_looked_up_for_every_call() {
    let (first, second) = (serve("first").await, serve("second").await);
    let installed = Installed::at(first.target());
    let runner = packaged(installed.clone());
    assert_eq!(run(&runner).await.unwrap(), "first");
    assert_eq!(run(&runner).await.unwrap(), "first");
    installed.moved(second.target());
    assert_eq!(run(&runner).await.unwrap(), "second");
    assert_eq!(runner.clients.read().unwrap().len(), 1);
}

/// FN-P4
#[tokio::test]
async fn clients_of_functions_that_are_gone_are_dropped() {
    let running = serve("hello").await;
    let installed = Installed::at(running.target());
    let runner = packaged(installed.clone());
    run(&runner).await.unwrap();
    assert_eq!(runner.collect_garbage().await.unwrap(), 0);
    installed.names.lock().unwrap().clear();
    assert_eq!(runner.collect_garbage().await.unwrap(), 1);
    assert_eq!(runner.collect_garbage().await.unwrap(), 0);

    let broken = packaged(Installed { broken: true, ..Installed::default() });
    assert_eq!(broken.collect_garbage().await.unwrap(), 0, "nobody is asked for nothing");
    broken.clients.write().unwrap().extend(
        Client::new("localhost:1", Security::Plaintext).map(|client| ("fn".to_owned(), client)),
    );
    assert_eq!(
        broken.collect_garbage().await.unwrap_err().to_string(),
        "cannot List Functions to determine which gRPC client connections to garbage collect.: \
         no connection"
    );
}

/// FN-M1, FN-M2, FN-M3
#[tokio::test]
async fn attempts_and_answers_are_counted() {
    let running = serve("hello").await;
    let runner = packaged(Installed::at(running.target()));
    run(&runner).await.unwrap();
    let labels = answered(running.target(), "v1", "OK", "Warning");
    let metrics = &runner.metrics;
    assert_eq!(metrics.requests.get_or_create(&labels.sent).get(), 1);
    assert_eq!(metrics.responses.get_or_create(&labels).get(), 1);
    assert_eq!(metrics.seconds.get_or_create(&labels).count(), 1);
}

/// FN-M1, FN-M2, FN-M3
#[test]
fn metrics_go_by_the_names_of_the_field() {
    let metrics = Metrics::default();
    let calls = CallMetrics::new(&metrics);
    let labels = answered("localhost:1", "v1", "OK", "Normal");
    calls.requests.get_or_create(&labels.sent).inc();
    calls.responses.get_or_create(&labels).inc();
    calls.seconds.get_or_create(&labels).observe(0.3);
    let text = metrics.text();
    let sent = "function_name=\"fn\",function_package=\"example.org/fn:v1\",\
                grpc_target=\"localhost:1\",\
                grpc_method=\"/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction\"";
    let answered = format!("{sent},grpc_code=\"OK\",result_severity=\"Normal\"");
    for line in [
        format!("function_run_function_request_total{{{sent}}} 1"),
        format!("function_run_function_response_total{{{answered}}} 1"),
        format!("function_run_function_seconds_bucket{{le=\"0.5\",{answered}}} 1"),
        format!("function_run_function_seconds_sum{{{answered}}} 0.3"),
        format!("function_run_function_seconds_count{{{answered}}} 1"),
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
}

struct Beta;

#[async_trait]
impl biplane_proto::function::v1beta1::function_runner_service_server::FunctionRunnerService
    for Beta
{
    async fn run_function(
        &self,
        request: tonic::Request<RunFunctionRequest>,
    ) -> Result<tonic::Response<RunFunctionResponse>, tonic::Status> {
        PureFunction::run(&Hello("beta"), request.into_inner()).map(tonic::Response::new)
    }
}

/// FN-P7, FN-M1
#[tokio::test]
async fn a_function_that_speaks_v1beta1_only_costs_two_attempts() {
    use biplane_proto::function::v1beta1::function_runner_service_server as beta;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    let service = beta::FunctionRunnerServiceServer::new(Beta);
    tokio::spawn(
        tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming),
    );
    let runner = packaged(Installed::at(&target));
    for _ in 0..2 {
        assert_eq!(run(&runner).await.unwrap(), "beta");
    }
    let count = |version, code, severity| {
        let labels = answered(&target, version, code, severity);
        runner.metrics.responses.get_or_create(&labels).get()
    };
    assert_eq!(count("v1", "Unimplemented", "Normal"), 2);
    assert_eq!(count("v1beta1", "OK", "Warning"), 2);
}

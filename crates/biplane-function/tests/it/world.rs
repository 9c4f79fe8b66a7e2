//! What the tests share: a function, ways to serve it, ways to call it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use biplane_function::grpc::{Client, Security};
use biplane_function::serve::{self, Config, Running};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Function, PureFunction, response};
use serde_json::Value;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::Status;

/// Long enough for anything that is going to happen at all.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Long enough to have tried, for what is never going to happen.
pub(crate) const BRIEF: Duration = Duration::from_secs(1);

/// Carries everything over, fails or panics if the input says so, and counts its calls.
#[derive(Clone, Default)]
pub(crate) struct Echo(pub(crate) Arc<AtomicUsize>);

impl PureFunction for Echo {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let text = |key| request.input.as_ref().and_then(|i| i.get(key)).and_then(Value::as_str);
        if let Some(text) = text("fail") {
            return Err(Status::failed_precondition(text));
        }
        assert!(text("panic").is_none(), "asked to");
        let mut answer = response::to(&request, response::DEFAULT_TTL);
        response::normal(&mut answer, "hello");
        Ok(answer)
    }
}

pub(crate) fn request(tag: &str, input: &Value) -> RunFunctionRequest {
    serde_json::from_value(serde_json::json!({
        "meta": {"tag": tag},
        "input": input,
        "desired": {"composite": {"resource": {"spec": {"replicas": 3, "ratio": 0.5}}}},
    }))
    .unwrap()
}

/// A configuration that harms nobody: any free port, no metrics.
pub(crate) fn config() -> Config {
    Config {
        address: "127.0.0.1:0".into(),
        insecure: true,
        metrics_address: None,
        ..Config::default()
    }
}

pub(crate) async fn serve(function: impl Function + 'static) -> Running {
    serve::start(Arc::new(function), config(), std::future::pending()).await.unwrap()
}

pub(crate) fn client(target: &str) -> Client {
    Client::new(target, Security::Plaintext).unwrap()
}

pub(crate) async fn call(target: &str) -> Result<RunFunctionResponse, Status> {
    client(target).call(request("t", &Value::Null), Some(PATIENCE)).await
}

/// The error of a call, as users read it.
pub(crate) async fn error(target: &str, patience: Duration) -> String {
    let answer = client(target).call(request("t", &Value::Null), Some(patience)).await;
    biplane_function::status::text(&answer.unwrap_err())
}

/// A wire in the middle that counts connections and can be cut.
pub(crate) struct Wire {
    pub(crate) address: String,
    pub(crate) connections: Arc<AtomicUsize>,
    cut: watch::Sender<usize>,
}

impl Wire {
    pub(crate) async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let (cut, is_cut) = watch::channel(0);
        let (count, target) = (Arc::clone(&connections), target.to_owned());
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let (target, mut is_cut) = (target.clone(), is_cut.clone());
                tokio::spawn(async move {
                    is_cut.mark_unchanged();
                    let mut far = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        _ = is_cut.changed() => {}
                    }
                });
            }
        });
        Self { address, connections, cut }
    }

    /// Breaks all connections; new ones are possible.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }
}

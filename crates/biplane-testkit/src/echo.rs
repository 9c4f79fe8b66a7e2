//! A function for tests that counts its calls, and a server for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use biplane_function::serve::{self, Config, Running};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Function, PureFunction, Status, Value, response};

/// Returns the desired state unchanged and counts its calls. It fails or panics if the input
/// requests it.
#[derive(Clone, Debug, Default)]
pub struct Echo(pub Arc<AtomicUsize>);

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

/// Creates a request with this tag and input.
pub fn request(tag: &str, input: &Value) -> RunFunctionRequest {
    serde_json::from_value(serde_json::json!({
        "meta": {"tag": tag},
        "input": input,
        "desired": {"composite": {"resource": {"spec": {"replicas": 3, "ratio": 0.5}}}},
    }))
    .expect("a request")
}

/// A configuration with any free port and no metrics.
pub fn config() -> Config {
    Config {
        address: "127.0.0.1:0".into(),
        insecure: true,
        metrics_address: None,
        ..Config::default()
    }
}

/// Serves a function until the test ends.
pub async fn serve(function: impl Function + 'static) -> Running {
    serve::start(Arc::new(function), config(), std::future::pending()).await.expect("it starts")
}

//! Shared test helpers to call a function.

use std::time::Duration;

use biplane_function::Status;
use biplane_function::v1::RunFunctionResponse;
use biplane_runner::grpc::{Client, Security};
use serde_json::Value;

pub(crate) use biplane_testkit::echo::{Echo, config, request, serve};

/// A timeout for operations that will complete.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn client(target: &str) -> Client {
    Client::new(target, Security::Plaintext).unwrap()
}

pub(crate) async fn call(target: &str) -> Result<RunFunctionResponse, Status> {
    client(target).call(request("t", &Value::Null), Some(PATIENCE)).await
}

//! Replays functions from a recording: checks each request and returns the recorded response.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use biplane_function::Function;
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, FunctionRunner, RunError};
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::Status;

use crate::Recording;

/// One recorded call.
#[derive(Clone, Debug, Deserialize)]
struct Recorded {
    function: String,
    request: Value,
    response: RunFunctionResponse,
}

/// Returns recorded responses, in order.
#[derive(Debug)]
pub struct Player {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    calls: std::vec::IntoIter<Recorded>,
    wrong: Vec<String>,
}

impl Player {
    /// Replays the calls of a recording. A recording without calls expects none.
    pub fn new(recording: &Recording) -> Self {
        let calls = recording.json("calls.json").unwrap_or_else(|| json!([]));
        let calls: Vec<Recorded> = match serde_json::from_value(calls) {
            Ok(calls) => calls,
            Err(e) => panic!("cannot read calls.json of {}: {e}", recording.name),
        };
        Self { state: Mutex::new(State { calls: calls.into_iter(), wrong: Vec::new() }) }
    }

    /// The differences from the recording, including calls that were not made.
    pub fn complaints(&self) -> Vec<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = state.calls.clone().map(|c| format!("{} was not called", c.function));
        state.wrong.iter().cloned().chain(missing).collect()
    }

    /// Returns the response to one request.
    fn answer(
        &self,
        function: Option<&str>,
        request: &RunFunctionRequest,
    ) -> Option<RunFunctionResponse> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recorded) = state.calls.next() else {
            state
                .wrong
                .push(format!("{} was called once too often", function.unwrap_or("a function")));
            return None;
        };
        if function.is_some_and(|function| function != recorded.function) {
            state.wrong.push(format!("called {function:?} instead of {}", recorded.function));
        }
        let ours = serde_json::to_value(request).unwrap_or_default();
        let (ours, theirs) = (comparable(ours), comparable(recorded.request));
        if let Some(difference) = difference("request", &ours, &theirs) {
            state.wrong.push(format!("call of {}: {difference}", recorded.function));
        }
        Some(recorded.response)
    }
}

#[async_trait]
impl FunctionRunner for Player {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        self.answer(Some(&call.function), &request)
            .ok_or_else(|| RunError::Other("the recording has no further call".into()))
    }
}

/// Implements a function that can be called over gRPC. All functions of a recording share one
/// player.
#[async_trait]
impl Function for Player {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        self.answer(None, &request)
            .ok_or_else(|| Status::internal("the recording has no further call"))
    }
}

/// A request without timestamps and the tag that depends on them, which differ in every run.
fn comparable(mut request: Value) -> Value {
    if let Some(meta) = request.get_mut("meta").and_then(Value::as_object_mut) {
        meta.remove("tag");
    }
    same_time(&mut request);
    request
}

/// Replaces every transition time.
pub fn same_time(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == "lastTransitionTime" && value.is_string() {
                    *value = "2024-01-01T00:00:00Z".into();
                } else {
                    same_time(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(same_time),
        _ => {}
    }
}

/// Where two values first differ. Numbers are compared by value.
pub fn difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let absent = json!("(absent)");
            let ours = a.iter().find_map(|(key, a)| {
                difference(&format!("{path}.{key}"), a, b.get(key).unwrap_or(&absent))
            });
            ours.or_else(|| {
                let (key, b) = b.iter().find(|(key, _)| !a.contains_key(*key))?;
                difference(&format!("{path}.{key}"), &absent, b)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(i, (a, b))| difference(&format!("{path}[{i}]"), a, b))
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: ours {a}, recorded {b}")),
    }
}

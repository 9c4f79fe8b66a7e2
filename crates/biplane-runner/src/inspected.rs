//! Emits what functions are given and what they answer, for debugging. The name of the feature is
//! Pipeline Inspector.
//!
//! No outcome of an emission changes the outcome of a call.

mod emission;
mod meta;
mod metrics;
mod pause;
pub mod socket;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use biplane_function::metrics::Metrics;
use biplane_proto::redact::{Half, Mode, Redactor, TagKey};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::cached::Now;
use crate::notes::{Noted, Notes};
use crate::runner::{Call, FunctionRunner, RunError};
use crate::status;
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

pub use emission::{Details, Emission, EmitError, Inspector};
pub use metrics::InspectorMetrics;

use biplane_proto::inspector::shipped::StepMeta;
use socket::SocketInspector;

/// Where the receiver listens unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/var/run/pipeline-inspector/socket";
/// The environment variable that names another socket.
pub const SOCKET_VARIABLE: &str = "PIPELINE_INSPECTOR_SOCKET";

/// What one emission is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// A step of a pipeline, with the final response of its function.
    #[default]
    Step,
    /// Each call of a function that a step consists of.
    Iteration,
}

/// What the command line says about inspection. Without it, nothing of this module exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The socket of the receiver. It need not exist.
    pub socket: PathBuf,
    /// What one emission is about.
    pub granularity: Granularity,
    /// What is redacted.
    pub mode: Mode,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            socket: DEFAULT_SOCKET.into(),
            granularity: Granularity::default(),
            mode: Mode::default(),
        }
    }
}

/// The sources of time and randomness.
#[derive(Clone)]
pub struct Sources {
    /// The current time.
    pub now: Now,
    /// A new UUID in its usual form.
    pub uuid: Arc<dyn Fn() -> String + Send + Sync>,
    /// The key for tags, which hash what is redacted.
    pub tag_key: TagKey,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

/// Emits calls. Clones share the receiver.
#[derive(Clone)]
pub struct Inspection(Arc<Parts>);

struct Parts {
    inspector: Arc<dyn Inspector>,
    granularity: Granularity,
    redactor: Redactor,
    sources: Sources,
    metrics: Option<InspectorMetrics>,
    failures: Mutex<Failures>,
}

/// The emissions that did not arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many there were.
    pub count: u64,
    /// Why the last one did not arrive.
    pub last: String,
}

impl Inspection {
    /// Emits to the receiver at a socket. With metrics, failures are counted. This must be done only
    /// once for each set of metrics.
    pub fn over_socket(options: &Options, sources: Sources, metrics: Option<&Metrics>) -> Self {
        let inspector = Arc::new(SocketInspector::new(&options.socket));
        Self::new(inspector, options, sources, metrics.map(InspectorMetrics::new))
    }

    /// Emits to any receiver.
    pub fn new(
        inspector: Arc<dyn Inspector>,
        options: &Options,
        sources: Sources,
        metrics: Option<InspectorMetrics>,
    ) -> Self {
        let redactor = Redactor::new(options.mode, sources.tag_key.clone());
        let granularity = options.granularity;
        let failures = Mutex::default();
        Self(Arc::new(Parts { inspector, granularity, redactor, sources, metrics, failures }))
    }

    /// The emissions that did not arrive so far.
    pub fn failures(&self) -> Failures {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What one emission is about.
    pub fn granularity(&self) -> Granularity {
        self.0.granularity
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection")
            .field("granularity", &self.0.granularity)
            .finish_non_exhaustive()
    }
}

impl Parts {
    /// Emits a request. Returns whether anything in it was redacted.
    async fn emit_request(
        &self,
        meta: &StepMeta,
        call: &Call,
        request: &RunFunctionRequest,
        details: Details,
    ) -> bool {
        let payload = self.redactor.request_payload(request, &call.memory.observed);
        let payload = match payload {
            Ok(payload) => payload,
            Err(error) => {
                self.failed(&EmitError::marshal(Half::Request, &call.function, error));
                // In doubt, the response is treated as if something was.
                return true;
            }
        };
        let is_redacted = payload.is_redacted();
        self.emit(Emission {
            half: Half::Request,
            meta: meta.clone(),
            payload,
            error: String::new(),
            details,
        })
        .await;
        is_redacted
    }

    /// What to emit about an answer. `None` if it cannot be encoded.
    fn response(
        &self,
        meta: StepMeta,
        answer: Result<&RunFunctionResponse, String>,
        request_is_redacted: bool,
        details: Details,
    ) -> Option<Emission> {
        let (payload, error) = match answer {
            Ok(response) => match self.redactor.response_payload(response, request_is_redacted) {
                Ok(payload) => (payload, String::new()),
                Err(error) => {
                    self.failed(&EmitError::marshal(Half::Response, &meta.function_name, error));
                    return None;
                }
            },
            Err(error) => (self.redactor.no_payload(), error),
        };
        Some(Emission { half: Half::Response, meta, payload, error, details })
    }

    async fn emit(&self, emission: Emission) {
        if let Err(error) = self.inspector.emit(emission).await {
            self.failed(&error);
        }
    }

    fn failed(&self, error: &EmitError) {
        {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.count += 1;
            failures.last = error.to_string();
        }
        let function = error.function();
        if let Some(metrics) = &self.metrics {
            metrics.error(function, error.half());
        }
        if error.is_pause() {
            // Why it pauses was logged already.
            tracing::debug!(function, %error, "skipping inspection");
            return;
        }
        let bytes = error.bytes();
        match error.half() {
            Half::Request => {
                tracing::info!(function, %error, bytes, "failed to inspect request for function");
            }
            Half::Response => {
                tracing::info!(function, %error, bytes, "failed to inspect response for function");
            }
        }
    }
}

/// Which calls are emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every call.
    Always,
    /// Calls that a cache answers. They are emitted afterwards.
    Cached,
}

/// Wraps a runner and emits its calls.
#[derive(Clone, Debug)]
pub struct Inspected<R> {
    inner: R,
    inspection: Inspection,
    when: When,
}

impl<R> Inspected<R> {
    /// Emits the calls that go through `inner`.
    pub fn new(inner: R, inspection: Inspection, when: When) -> Self {
        Self { inner, inspection, when }
    }
}

#[async_trait]
impl<R: FunctionRunner> FunctionRunner for Inspected<R> {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let parts = &self.inspection.0;
        let meta = match meta::of(call, &request, &parts.sources) {
            Ok(meta) => meta,
            Err(error) => {
                let function = call.function.as_str();
                tracing::info!(
                    function,
                    error,
                    "failed to extract step metadata, skipping inspection"
                );
                return self.inner.run(call, request).await;
            }
        };
        let call = Call { notes: Notes::wanted(), ..call.clone() };
        if self.when == When::Cached {
            return self.run_cached(&call, request, meta).await;
        }
        let is_redacted = parts.emit_request(&meta, &call, &request, Details::default()).await;
        let mut open = Open {
            parts,
            meta: Some(meta),
            is_redacted,
            notes: call.notes.clone(),
            since: Instant::now(),
        };
        let answer = self.inner.run(&call, request).await;
        open.close(answer.as_ref().map_err(ToString::to_string)).await;
        answer
    }
}

impl<R: FunctionRunner> Inspected<R> {
    /// Calls the function, and emits the call if a cache answered.
    async fn run_cached(
        &self,
        call: &Call,
        request: RunFunctionRequest,
        meta: StepMeta,
    ) -> Result<RunFunctionResponse, RunError> {
        let since = Instant::now();
        let answer = self.inner.run(call, request.clone()).await;
        let noted = call.notes.noted();
        if noted.cached {
            let parts = &self.inspection.0;
            let details = Details::of(noted, since.elapsed());
            let is_redacted = parts.emit_request(&meta, call, &request, details.clone()).await;
            let answer = answer.as_ref().map_err(ToString::to_string);
            if let Some(emission) = parts.response(meta, answer, is_redacted, details) {
                parts.emit(emission).await;
            }
        }
        answer
    }
}

/// A call whose request was emitted.
struct Open<'a> {
    parts: &'a Arc<Parts>,
    /// Absent once the response was emitted.
    meta: Option<StepMeta>,
    is_redacted: bool,
    notes: Notes,
    since: Instant,
}

impl Open<'_> {
    /// Emits the response and waits for it. The emission goes on if the caller does not wait: when a
    /// function has used up the time of its caller, that is what is interesting.
    async fn close(&mut self, answer: Result<&RunFunctionResponse, String>) {
        if let Some(emission) = self.emission(answer) {
            let parts = Arc::clone(self.parts);
            // It cannot panic, and a runtime that ends does not need it.
            let _ = tokio::spawn(async move { parts.emit(emission).await }).await;
        }
    }

    fn emission(&mut self, answer: Result<&RunFunctionResponse, String>) -> Option<Emission> {
        let details = Details::of(self.notes.noted(), self.since.elapsed());
        self.parts.response(self.meta.take()?, answer, self.is_redacted, details)
    }
}

impl Drop for Open<'_> {
    /// The call was cancelled.
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let cancelled = status::text(&tonic::Status::cancelled("context canceled"));
        if let Some(emission) = self.emission(Err(cancelled)) {
            let parts = Arc::clone(self.parts);
            runtime.spawn(async move { parts.emit(emission).await });
        }
    }
}

impl Details {
    fn of(noted: Noted, took: std::time::Duration) -> Self {
        Self { took: Some(took), cached: Some(noted.cached), revision: noted.revision }
    }
}

#[cfg(test)]
mod tests;

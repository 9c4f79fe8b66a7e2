//! Keeps responses on disk for as long as their functions allow, and answers from there.
//!
//! One file a response, `<function>/<request tag>`. A failing disk costs time, never an answer.

mod store;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use crate::runner::{Call, FunctionRunner, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::metrics::{Counter, Histogram};

use store::{Key, Miss, Store};

/// Says what time it is.
pub type Now = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Wraps a runner and keeps its responses.
pub struct Cached<R> {
    inner: R,
    store: Arc<Store>,
    max_ttl: Duration,
    metrics: Arc<Metrics>,
}

impl<R> Cached<R> {
    /// Keeps responses of `inner` in a folder, each for at most `max_ttl`; zero means no limit.
    pub fn new(inner: R, folder: impl Into<PathBuf>, max_ttl: Duration, now: Now) -> Self {
        let metrics = Arc::new(Metrics::new());
        let store = Arc::new(Store::new(folder.into(), now, Arc::clone(&metrics)));
        Self { inner, store, max_ttl, metrics }
    }

    /// What has been counted so far.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Deletes what has expired and says how many responses that were.
    pub async fn collect_garbage(&self) -> std::io::Result<usize> {
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || store.collect_garbage()).await?
    }
}

#[async_trait]
impl<R: FunctionRunner> FunctionRunner for Cached<R> {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let started = Instant::now();
        let function = call.function.as_str();
        let tag = request.meta.as_ref().map(|meta| meta.tag.as_str()).unwrap_or_default();
        let Some(key) = Key::new(function, tag) else {
            self.missed(function, &Miss::EmptyTag);
            return self.inner.run(call, request).await;
        };
        match self.store.read(&key).await {
            Ok(response) => {
                tracing::debug!(name = function, "RunFunctionResponse cache hit");
                self.metrics.hits.add(&[function], 1);
                self.metrics.read_seconds.observe(&[function], started.elapsed());
                return Ok(response);
            }
            Err(miss) => self.missed(function, &miss),
        }

        let response = self.inner.run(call, request).await?;
        let started = Instant::now();
        let Some(ttl) = ttl(&response) else { return Ok(response) };
        // Only the deadline is cut short: the function's own word stays in the response.
        let ttl = if self.max_ttl.is_zero() { ttl } else { ttl.min(self.max_ttl) };
        match self.store.write(&key, &response, ttl).await {
            Ok(bytes) => {
                self.metrics.writes.add(&[function], 1);
                self.metrics.bytes_written.add(&[function], bytes);
                self.metrics.write_seconds.observe(&[function], started.elapsed());
            }
            Err(error) => {
                tracing::info!(name = function, %error, "RunFunctionResponse cache write error");
                self.metrics.errors.add(&[function], 1);
            }
        }
        Ok(response)
    }
}

impl<R> Cached<R> {
    fn missed(&self, function: &str, miss: &Miss) {
        let reason = miss.reason();
        self.metrics.misses.add(&[function], 1);
        if let Miss::Error(error) = miss {
            tracing::info!(name = function, reason, %error, "RunFunctionResponse cache miss");
            self.metrics.errors.add(&[function], 1);
        } else {
            tracing::debug!(name = function, reason, "RunFunctionResponse cache miss");
        }
    }
}

/// How long the function allows its response to be reused, if it does.
fn ttl(response: &RunFunctionResponse) -> Option<Duration> {
    let ttl = response.meta.as_ref()?.ttl?;
    Duration::try_from(ttl).ok().filter(|ttl| !ttl.is_zero())
}

/// What a cache counts.
#[derive(Debug)]
#[allow(missing_docs)] // the names and help texts below say it
pub struct Metrics {
    pub hits: Counter,
    pub misses: Counter,
    pub errors: Counter,
    pub writes: Counter,
    pub deletes: Counter,
    pub bytes_written: Counter,
    pub bytes_deleted: Counter,
    pub read_seconds: Histogram,
    pub write_seconds: Histogram,
}

macro_rules! family {
    ($type:ident, $name:literal, $help:literal) => {
        $type::new(
            concat!("function_run_function_response_cache_", $name),
            $help,
            &["function_name"],
        )
    };
}

impl Metrics {
    fn new() -> Self {
        Self {
            hits: family!(Counter, "hits_total", "Total number of RunFunctionResponse cache hits."),
            misses: family!(
                Counter,
                "misses_total",
                "Total number of RunFunctionResponse cache misses."
            ),
            errors: family!(
                Counter,
                "errors_total",
                "Total number of RunFunctionResponse cache errors."
            ),
            writes: family!(
                Counter,
                "writes_total",
                "Total number of RunFunctionResponses cache writes."
            ),
            deletes: family!(
                Counter,
                "deletes_total",
                "Total number of RunFunctionResponses cache deletes."
            ),
            bytes_written: family!(
                Counter,
                "bytes_written_total",
                "Total number of RunFunctionResponse bytes written."
            ),
            bytes_deleted: family!(
                Counter,
                "bytes_deleted_total",
                "Total number of RunFunctionResponse bytes deleted."
            ),
            read_seconds: family!(
                Histogram,
                "read_seconds",
                "Histogram of RunFunctionResponse cache read time (seconds)."
            ),
            write_seconds: family!(
                Histogram,
                "write_seconds",
                "Histogram of RunFunctionResponse cache write time (seconds)."
            ),
        }
    }

    /// Appends all of it in Prometheus' text format.
    pub fn write(&self, out: &mut String) {
        for counter in [
            &self.hits,
            &self.misses,
            &self.errors,
            &self.writes,
            &self.deletes,
            &self.bytes_written,
            &self.bytes_deleted,
        ] {
            counter.write(out);
        }
        self.read_seconds.write(out);
        self.write_seconds.write(out);
    }
}

impl<R> fmt::Debug for Cached<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").field("store", &self.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

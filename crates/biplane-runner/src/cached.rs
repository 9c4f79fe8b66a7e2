//! A response cache on disk, which keeps each response for as long as its function allows.
//!
//! Each response is one file, `<function>/<request tag>`. A disk error never fails a call. The
//! function is called instead.

mod metrics;
mod store;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use crate::runner::{Call, FunctionRunner, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

use store::{Key, Miss, Store};

pub use metrics::CacheMetrics;

/// A source of the current time.
pub type Now = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Wraps a runner and caches its responses.
pub struct Cached<R> {
    inner: R,
    store: Arc<Store>,
    max_ttl: Duration,
    metrics: CacheMetrics,
}

impl<R> Cached<R> {
    /// Caches responses of `inner` in a folder, each for at most `max_ttl`. Zero means no limit.
    pub fn new(
        inner: R,
        folder: impl Into<PathBuf>,
        max_ttl: Duration,
        now: Now,
        metrics: CacheMetrics,
    ) -> Self {
        let store = Arc::new(Store::new(folder.into(), now, metrics.clone()));
        Self { inner, store, max_ttl, metrics }
    }

    /// Deletes expired responses and returns their number.
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
                self.metrics.hit(function, started.elapsed());
                call.notes.cached();
                return Ok(response);
            }
            Err(miss) => self.missed(function, &miss),
        }

        let response = self.inner.run(call, request).await?;
        let started = Instant::now();
        let Some(ttl) = ttl(&response) else { return Ok(response) };
        // Only the deadline is limited. The response keeps the function's TTL.
        let ttl = if self.max_ttl.is_zero() { ttl } else { ttl.min(self.max_ttl) };
        match self.store.write(&key, &response, ttl).await {
            Ok(bytes) => self.metrics.write(function, bytes, started.elapsed()),
            Err(error) => {
                tracing::info!(name = function, %error, "RunFunctionResponse cache write error");
                self.metrics.error(function);
            }
        }
        Ok(response)
    }
}

impl<R> Cached<R> {
    fn missed(&self, function: &str, miss: &Miss) {
        let reason = miss.reason();
        self.metrics.miss(function);
        if let Miss::Error(error) = miss {
            tracing::info!(name = function, reason, %error, "RunFunctionResponse cache miss");
            self.metrics.error(function);
        } else {
            tracing::debug!(name = function, reason, "RunFunctionResponse cache miss");
        }
    }
}

/// Returns how long the function allows its response to be reused, if it does.
fn ttl(response: &RunFunctionResponse) -> Option<Duration> {
    let ttl = response.meta.as_ref()?.ttl?;
    Duration::try_from(ttl).ok().filter(|ttl| !ttl.is_zero())
}

impl<R> fmt::Debug for Cached<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").field("store", &self.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

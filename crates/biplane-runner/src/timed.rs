//! A runner that measures the duration of each call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::runner::{Call, FunctionRunner, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

/// The measured calls, in the order in which they ended.
#[derive(Clone, Debug, Default)]
pub struct Timings(Arc<Mutex<Vec<(Call, Duration)>>>);

impl Timings {
    /// Returns the completed calls and their durations.
    pub fn calls(&self) -> Vec<(Call, Duration)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Wraps a runner and measures its calls.
#[derive(Clone, Debug)]
pub struct Timed<R> {
    inner: R,
    timings: Timings,
}

impl<R> Timed<R> {
    /// Measures the calls that go through `inner`.
    pub fn new(inner: R, timings: Timings) -> Self {
        Self { inner, timings }
    }
}

#[async_trait]
impl<R: FunctionRunner> FunctionRunner for Timed<R> {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let _measured = Measured { call, timings: &self.timings, start: Instant::now() };
        self.inner.run(call, request).await
    }
}

/// Records a call when it is dropped, so that cancelled calls are also recorded.
struct Measured<'a> {
    call: &'a Call,
    timings: &'a Timings,
    start: Instant,
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        let measured = (self.call.clone(), self.start.elapsed());
        self.timings.0.lock().unwrap_or_else(PoisonError::into_inner).push(measured);
    }
}

#[cfg(test)]
mod tests {
    use biplane_function::v1::RunFunctionRequest;

    use super::*;

    struct Stuck;

    #[async_trait]
    impl FunctionRunner for Stuck {
        async fn run(
            &self,
            _: &Call,
            _: RunFunctionRequest,
        ) -> Result<RunFunctionResponse, RunError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_call_is_recorded_too() {
        let timings = Timings::default();
        let timed = Timed::new(Stuck, timings.clone());
        let call = Call { step: "a".to_owned(), ..Call::default() };
        let run = timed.run(&call, RunFunctionRequest::default());
        let late = tokio::time::timeout(Duration::from_secs(1), run).await;
        assert!(late.is_err());
        let calls = timings.calls();
        assert_eq!(calls.iter().map(|(call, _)| call.step.as_str()).collect::<Vec<_>>(), ["a"]);
    }
}

//! The gRPC handler: passes requests of either protocol version to the function and counts them.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use biplane_proto::function::{v1, v1beta1};
use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tonic::{Code, Request, Response, Status};

use crate::budget::Budget;
use crate::function::Function;
use crate::threads::{Refused, Threads};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

use super::Config;
use super::metrics::ServerMetrics;

/// The service that a handler implements.
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

pub(super) struct Handler {
    runs: Runs,
    dialect: Dialect,
    metrics: Arc<ServerMetrics>,
}

impl Handler {
    pub(super) fn new(runs: Runs, dialect: Dialect, metrics: Arc<ServerMetrics>) -> Self {
        Self { runs, dialect, metrics }
    }

    async fn handle(
        &self,
        request: RunFunctionRequest,
        deadline: Option<Instant>,
    ) -> Result<RunFunctionResponse, Status> {
        let service = self.dialect.service();
        self.metrics.begin(service);
        let tag = request.meta.as_ref().map_or("", |meta| meta.tag.as_str());
        tracing::debug!(tag, "running the function");
        let answer = self.runs.run(request, deadline).await;
        self.metrics.end(service, answer.as_ref().err().map_or(Code::Ok, Status::code));
        answer
    }
}

/// A function, and what limits its calls.
#[derive(Clone)]
pub(super) struct Runs {
    function: Arc<dyn Function>,
    /// The calls that compute.
    turns: Arc<Semaphore>,
    /// The calls that have computed for so long that others may begin meanwhile.
    slow: Arc<Semaphore>,
    /// The calls that wait for their turn.
    waiting: Arc<Semaphore>,
    /// Where they compute, also those whose callers have gone.
    threads: Arc<Threads>,
    max_waiting: usize,
    max_send_size: usize,
}

/// How long a call computes before others may begin although no turn is free.
const QUICK: Duration = Duration::from_millis(50);

/// How long a thread waits for another call before it ends.
const IDLE: Duration = Duration::from_secs(10);

impl Runs {
    pub(super) fn new(function: Arc<dyn Function>, config: &Config) -> Self {
        let room = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        // With a limit of zero, no call would ever be answered.
        let computing = config.max_computing.max(1);
        let threads =
            computing.saturating_add(config.max_slow).saturating_add(config.max_abandoned);
        Self {
            function,
            turns: room(computing),
            slow: room(config.max_slow),
            waiting: room(config.max_waiting),
            threads: Arc::new(Threads::new(threads, IDLE)),
            max_waiting: config.max_waiting,
            max_send_size: config.max_send_size,
        }
    }

    /// Runs the function in its own task, so that a panic fails only this call. A dropped call is
    /// cancelled.
    async fn run(
        &self,
        request: RunFunctionRequest,
        deadline: Option<Instant>,
    ) -> Result<RunFunctionResponse, Status> {
        let budget = Budget::until(deadline);
        if self.function.is_pure() {
            return self.compute(request, budget).await;
        }
        let function = Arc::clone(&self.function);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { function.run_within(request, &budget).await });
        match tasks.join_next().await {
            Some(ended) => answer(ended),
            None => Err(Status::internal("the function did not start")),
        }
    }

    /// Computes on a thread of its own, where it does not delay I/O. When the caller goes, its turn is
    /// given back at once, and the function ends when it next checks its budget.
    async fn compute(
        &self,
        request: RunFunctionRequest,
        budget: Budget,
    ) -> Result<RunFunctionResponse, Status> {
        let mut turn = self.turn().await?;
        let _caller = budget.caller();
        let (function, max) = (Arc::clone(&self.function), self.max_send_size);
        let runtime = tokio::runtime::Handle::current();
        let computing = self.threads.run(move || {
            budget.check()?;
            let answer = runtime.block_on(function.run_within(request, &budget))?;
            let size = answer.encoded_len();
            if size > max {
                return Err(Status::resource_exhausted(format!(
                    "grpc: trying to send message larger than max ({size} vs. {max})"
                )));
            }
            Ok(answer)
        });
        let mut computing = computing.map_err(|refused| {
            Status::resource_exhausted(match refused {
                Refused::AllWork => {
                    "too many calls still compute after their callers have gone".to_owned()
                }
                Refused::CannotStart(_) => refused.to_string(),
            })
        })?;
        if let Ok(ended) = tokio::time::timeout(QUICK, &mut computing).await {
            return answer(ended);
        }
        if let Ok(slow) = Arc::clone(&self.slow).try_acquire_owned() {
            turn = slow;
        }
        let ended = computing.await;
        drop(turn);
        answer(ended)
    }

    /// Waits for a turn, unless too many calls do.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, Status> {
        let closed = |_| Status::unavailable("the server is closing");
        if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() {
            return Ok(turn);
        }
        let _place = self.waiting.try_acquire().map_err(|_| {
            let max = self.max_waiting;
            Status::resource_exhausted(format!("{max} calls are waiting for their turn already"))
        })?;
        Arc::clone(&self.turns).acquire_owned().await.map_err(closed)
    }
}

fn answer(
    ended: Result<Result<RunFunctionResponse, Status>, impl Display>,
) -> Result<RunFunctionResponse, Status> {
    ended.unwrap_or_else(|error| {
        tracing::error!(%error, "the function panicked");
        Err(Status::internal("the function panicked"))
    })
}

/// The time until which the caller waits, from the header of the call.
fn deadline<T>(request: &Request<T>) -> Option<Instant> {
    let text = request.metadata().get("grpc-timeout")?.to_str().ok()?;
    Instant::now().checked_add(timeout(text)?)
}

/// Parses up to eight digits and a unit.
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[async_trait]
impl v1::function_runner_service_server::FunctionRunnerService for Handler {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        let deadline = deadline(&request);
        self.handle(request.into_inner(), deadline).await.map(Response::new)
    }
}

#[async_trait]
impl v1beta1::function_runner_service_server::FunctionRunnerService for Handler {
    async fn run_function(
        &self,
        request: Request<RunFunctionRequest>,
    ) -> Result<Response<RunFunctionResponse>, Status> {
        let deadline = deadline(&request);
        self.handle(request.into_inner(), deadline).await.map(Response::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_digits_and_a_unit() {
        for (text, expected) in [
            ("2S", Some(Duration::from_secs(2))),
            ("1H", Some(Duration::from_hours(1))),
            ("3M", Some(Duration::from_mins(3))),
            ("1500m", Some(Duration::from_millis(1500))),
            ("10u", Some(Duration::from_micros(10))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("", None),
            ("S", None),
            ("1", None),
            ("1x", None),
            ("-1S", None),
            ("123456789S", None),
            ("1é", None),
        ] {
            assert_eq!(timeout(text), expected, "{text}");
        }
    }
}

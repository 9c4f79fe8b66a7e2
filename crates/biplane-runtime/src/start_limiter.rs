//! Limits how many functions start at the same time.

use std::sync::Arc;
use std::time::Duration;

use biplane_runner::supervised::{self, Ended};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::docker::Cancelled;
use crate::placement::Placement;

/// How often to check whether a process listens.
const LOOK: Duration = Duration::from_millis(50);

/// Hands out permits to start.
#[derive(Clone, Debug)]
pub(crate) struct StartLimiter {
    left: Arc<Semaphore>,
    scarce: bool,
    cancelled: Arc<watch::Sender<Option<Cancelled>>>,
}

/// A permit to start, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _held: OwnedSemaphorePermit,
    cancelled: watch::Receiver<Option<Cancelled>>,
}

impl StartLimiter {
    pub(crate) fn new<'a>(at_once: usize, planned: impl Iterator<Item = &'a Placement>) -> Self {
        let starts = |placement: &&Placement| {
            matches!(placement, Placement::Docker(_) | Placement::Process(_))
        };
        Self {
            left: Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS))),
            scarce: planned.filter(starts).count() > at_once,
            cancelled: Arc::new(watch::Sender::new(None)),
        }
    }

    /// Whether more functions start than there are permits.
    pub(crate) fn is_scarce(&self) -> bool {
        self.scarce
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(&self) -> Result<Permit, Cancelled> {
        let mut cancelled = self.cancelled.subscribe();
        let permit = tokio::select! {
            biased;
            reason = cancellation(&mut cancelled) => return Err(reason),
            permit = self.left.clone().acquire_owned() => permit,
        };
        match permit {
            Ok(permit) => Ok(Permit { _held: permit, cancelled }),
            Err(_) => Err(Cancelled::Pointless),
        }
    }

    /// Cancels every wait for a permit.
    pub(crate) fn cancel(&self, reason: Cancelled) {
        self.cancelled.send_if_modified(|set| set.is_none() && set.replace(reason).is_none());
    }
}

impl Permit {
    /// Keeps the permit until the process listens or exits, or the start is cancelled.
    pub(crate) async fn until_listening(mut self, target: &str, ended: Ended) {
        let listens = async {
            while !listens(target).await {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = listens => {}
            _ = supervised::end_of(ended) => {}
            _ = cancellation(&mut self.cancelled) => {}
        }
    }
}

/// Whether somebody listens at a gRPC target.
async fn listens(target: &str) -> bool {
    match target.strip_prefix("unix://") {
        Some(path) => UnixStream::connect(path).await.is_ok(),
        None => TcpStream::connect(target).await.is_ok(),
    }
}

async fn cancellation(cancelled: &mut watch::Receiver<Option<Cancelled>>) -> Cancelled {
    match cancelled.wait_for(Option::is_some).await.ok().and_then(|reason| *reason) {
        Some(reason) => reason,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(at_once: usize, programs: usize) -> StartLimiter {
        let planned = vec![Placement::Process(Vec::new()); programs];
        let other = [Placement::InProcess(String::new())];
        StartLimiter::new(at_once, planned.iter().chain(&other))
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_free_when_another_is_dropped() {
        let limiter = limiter(2, 3);
        assert!(limiter.is_scarce());
        let (first, _second) = (limiter.acquire().await.unwrap(), limiter.acquire().await.unwrap());
        let mut third = Box::pin(limiter.acquire());
        assert!(by_now(&mut third).await.is_none());
        drop(first);
        assert!(third.await.is_ok());
    }

    #[tokio::test]
    async fn no_start_waits_after_cancellation() {
        let limiter = limiter(1, 3);
        let _first = limiter.acquire().await.unwrap();
        let (waiting, cancel) = tokio::join!(limiter.acquire(), async {
            limiter.cancel(Cancelled::Deadline);
            limiter.cancel(Cancelled::Pointless);
        });
        assert_eq!((waiting.unwrap_err(), cancel), (Cancelled::Deadline, ()));
        assert_eq!(limiter.acquire().await.unwrap_err(), Cancelled::Deadline);
    }

    #[test]
    fn only_what_is_started_takes_limiter() {
        assert!(!limiter(3, 3).is_scarce());
        assert!(!limiter(usize::MAX, 3).is_scarce());
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_held_until_the_program_listens_or_has_ended() {
        let limiter = limiter(1, 2);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap().to_string();
        let (end, ended) = watch::channel(None);
        limiter.acquire().await.unwrap().until_listening(&target, ended.clone()).await;
        drop(listener);
        let mut waiting =
            Box::pin(limiter.acquire().await.unwrap().until_listening(&target, ended));
        assert!(by_now(&mut waiting).await.is_none());
        end.send_replace(Some("it has ended".to_owned()));
        waiting.await;
    }

    /// The future's output if it is ready once all other tasks are idle, which is when paused time
    /// advances.
    async fn by_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = tokio::time::sleep(LOOK * 3) => None,
        }
    }
}

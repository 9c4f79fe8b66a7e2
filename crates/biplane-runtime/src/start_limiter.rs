//! Who may start now: what is started takes turns where it is more than may start at the same time.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::docker::Cancelled;
use super::runtime::Runtime;
use super::watched::{self, Ended};

/// How often to look whether a program listens.
const LOOK: Duration = Duration::from_millis(50);

/// The turns that are left.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    left: Arc<Semaphore>,
    scarce: bool,
    cancelled: Arc<watch::Sender<Option<Cancelled>>>,
}

/// A turn, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
    cancelled: watch::Receiver<Option<Cancelled>>,
}

impl Turns {
    pub(super) fn new<'a>(at_once: usize, planned: impl Iterator<Item = &'a Runtime>) -> Self {
        let starts =
            |runtime: &&Runtime| matches!(runtime, Runtime::Docker(_) | Runtime::Process(_));
        Self {
            left: Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS))),
            scarce: planned.filter(starts).count() > at_once,
            cancelled: Arc::new(watch::Sender::new(None)),
        }
    }

    /// Whether anybody has to wait.
    pub(super) fn are_scarce(&self) -> bool {
        self.scarce
    }

    /// Waits for a turn.
    pub(super) async fn next(&self) -> Result<Turn, Cancelled> {
        let mut cancelled = self.cancelled.subscribe();
        let permit = tokio::select! {
            biased;
            reason = given_up(&mut cancelled) => return Err(reason),
            permit = self.left.clone().acquire_owned() => permit,
        };
        match permit {
            Ok(permit) => Ok(Turn { _permit: permit, cancelled }),
            Err(_) => Err(Cancelled::Pointless),
        }
    }

    /// Ends the wait of all who wait.
    pub(super) fn cancel(&self, reason: Cancelled) {
        self.cancelled.send_if_modified(|set| set.is_none() && set.replace(reason).is_none());
    }
}

impl Turn {
    /// Keeps the turn until something listens there, has ended, or is given up.
    pub(super) async fn until_listening(mut self, target: &str, ended: Ended) {
        let listens = async {
            while TcpStream::connect(target).await.is_err() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = listens => {}
            _ = watched::end_of(ended) => {}
            _ = given_up(&mut self.cancelled) => {}
        }
    }
}

async fn given_up(cancelled: &mut watch::Receiver<Option<Cancelled>>) -> Cancelled {
    match cancelled.wait_for(Option::is_some).await.ok().and_then(|reason| *reason) {
        Some(reason) => reason,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(at_once: usize, programs: usize) -> Turns {
        let planned = vec![Runtime::Process(Vec::new()); programs];
        let other = [Runtime::InProcess(String::new())];
        Turns::new(at_once, planned.iter().chain(&other))
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_begins_when_another_ends() {
        let turns = turns(2, 3);
        assert!(turns.are_scarce());
        let (first, _second) = (turns.next().await.unwrap(), turns.next().await.unwrap());
        let mut third = Box::pin(turns.next());
        assert!(by_now(&mut third).await.is_none());
        drop(first);
        assert!(third.await.is_ok());
    }

    #[tokio::test]
    async fn nobody_waits_for_a_turn_once_all_is_given_up() {
        let turns = turns(1, 3);
        let _first = turns.next().await.unwrap();
        let (waiting, cancel) = tokio::join!(turns.next(), async {
            turns.cancel(Cancelled::Deadline);
            turns.cancel(Cancelled::Pointless);
        });
        assert_eq!((waiting.unwrap_err(), cancel), (Cancelled::Deadline, ()));
        assert_eq!(turns.next().await.unwrap_err(), Cancelled::Deadline);
    }

    #[test]
    fn only_what_is_started_takes_turns() {
        assert!(!turns(3, 3).are_scarce());
        assert!(!turns(usize::MAX, 3).are_scarce());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_lasts_until_something_listens_or_has_ended() {
        let turns = turns(1, 2);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap().to_string();
        let (end, ended) = watch::channel(None);
        turns.next().await.unwrap().until_listening(&target, ended.clone()).await;
        drop(listener);
        let mut waiting = Box::pin(turns.next().await.unwrap().until_listening(&target, ended));
        assert!(by_now(&mut waiting).await.is_none());
        end.send_replace(Some("it has ended".to_owned()));
        waiting.await;
    }

    /// What a future has come to once there is nothing left to do; that is when paused time goes on.
    async fn by_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = tokio::time::sleep(LOOK * 3) => None,
        }
    }
}

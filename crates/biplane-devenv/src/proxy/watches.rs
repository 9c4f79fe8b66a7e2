//! The open watches of a proxy: passes their events on, late or never if rules say so.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Action;
use super::asked::Asked;
use super::rules::{Decision, Rules};
use super::status::status;
use super::unanswered::Unanswered;

/// Events that may wait for a slow client.
const BUFFER: usize = 16;

/// What a test does to an open watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    End,
    Cut,
    Expire,
}

/// The open watches.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    last: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    asked: Asked,
    interrupt: mpsc::UnboundedSender<Interruption>,
}

impl Watches {
    pub(super) fn count(&self, applies: impl Fn(&Asked) -> bool) -> usize {
        self.registry().open.values().filter(|open| applies(&open.asked)).count()
    }

    pub(super) fn interrupt(
        &self,
        applies: impl Fn(&Asked) -> bool,
        interruption: Interruption,
    ) -> usize {
        let mut registry = self.registry();
        let mut told = 0;
        // A watch that was interrupted is not open any more, even if its client is slow to notice.
        registry.open.retain(|_, open| {
            let told_now = applies(&open.asked) && open.interrupt.send(interruption).is_ok();
            told += usize::from(told_now);
            !told_now
        });
        told
    }

    fn enter(&self, asked: &Asked) -> (u64, mpsc::UnboundedReceiver<Interruption>) {
        let (interrupt, interruptions) = mpsc::unbounded_channel();
        let mut registry = self.registry();
        registry.last += 1;
        let id = registry.last;
        registry.open.insert(id, Open { asked: asked.clone(), interrupt });
        (id, interruptions)
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of the answer, complete up to the end of an event if it is JSON.
struct Piece {
    arrived: Instant,
    content: Result<Bytes, Unanswered>,
}

/// Passes a watch on. Returns the body for the client.
pub(super) fn pass_on(
    events: Incoming,
    is_json: bool,
    asked: Asked,
    begun: Option<Decision>,
    rules: Arc<Rules>,
    watches: Arc<Watches>,
) -> Events {
    let (to_client, body) = mpsc::channel(BUFFER);
    let (pieces, mut arrived) = mpsc::unbounded_channel();
    let (id, mut interruptions) = watches.enter(&asked);
    let reader = tokio::spawn(read(events, is_json, pieces));
    tokio::spawn(async move {
        let mut pending = None;
        loop {
            let content = tokio::select! {
                biased;
                () = to_client.closed() => break,
                Some(interruption) = interruptions.recv() => {
                    let last = match interruption {
                        Interruption::End => break,
                        Interruption::Expire if is_json => Ok(Bytes::from(expired())),
                        Interruption::Expire | Interruption::Cut => Err(Unanswered::new("cut off")),
                    };
                    // A client that has gone needs no last words.
                    let _ = to_client.send(last).await;
                    break;
                }
                content = next(&mut arrived, &mut pending, &asked, begun.as_ref(), &rules) => content,
            };
            let Some(content) = content else { break };
            if to_client.send(content).await.is_err() {
                break;
            }
        }
        // Ends the watch at the server too.
        reader.abort();
        watches.registry().open.remove(&id);
    });
    Events(body)
}

/// Reads what the server says, as fast as it says it.
async fn read(mut events: Incoming, is_json: bool, pieces: mpsc::UnboundedSender<Piece>) {
    let mut rest = Vec::new();
    while let Some(frame) = events.frame().await {
        let content = match frame {
            Err(error) => Err(Unanswered::new(error)),
            Ok(frame) => {
                // Trailers say nothing about events.
                let Ok(data) = frame.into_data() else { continue };
                rest.extend_from_slice(&data);
                let complete = match rest.iter().rposition(|byte| *byte == b'\n') {
                    Some(end) if is_json => end + 1,
                    None if is_json => continue,
                    _ => rest.len(),
                };
                let later = rest.split_off(complete);
                Ok(Bytes::from(std::mem::replace(&mut rest, later)))
            }
        };
        let failed = content.is_err();
        if pieces.send(Piece { arrived: Instant::now(), content }).is_err() || failed {
            return;
        }
    }
}

/// The next piece, when the rules let it pass. It stays in `pending` if the call is given up.
async fn next(
    arrived: &mut mpsc::UnboundedReceiver<Piece>,
    pending: &mut Option<Piece>,
    asked: &Asked,
    begun: Option<&Decision>,
    rules: &Rules,
) -> Option<Result<Bytes, Unanswered>> {
    if pending.is_none() {
        *pending = arrived.recv().await;
    }
    let since = pending.as_ref()?.arrived;
    pass(asked, begun, rules, since).await;
    pending.take().map(|piece| piece.content)
}

/// Waits until the rules let pass what the server said at some time.
pub(super) async fn pass(asked: &Asked, begun: Option<&Decision>, rules: &Rules, said: Instant) {
    let mut changes = rules.changes();
    loop {
        match rules.now(asked, begun) {
            Some(Action::Hold) => {
                if changes.changed().await.is_err() {
                    return;
                }
            }
            Some(Action::Delay(time)) => {
                let changed = tokio::time::timeout_at(said + time, changes.changed()).await;
                if changed.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// What a server says to a watch whose version it has forgotten.
fn expired() -> String {
    let event = serde_json::json!({"type": "ERROR", "object": status(410)});
    format!("{event}\n")
}

/// The body of a watch's answer.
#[derive(Debug)]
pub(super) struct Events(mpsc::Receiver<Result<Bytes, Unanswered>>);

impl Body for Events {
    type Data = Bytes;
    type Error = Unanswered;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unanswered>>> {
        self.0.poll_recv(context).map(|content| content.map(|content| content.map(Frame::data)))
    }
}

//! What every gRPC server shares: its socket, limits for connections and peers, and an end in time.
//! A server of HTTPS requests with bodies has the same.

mod accept;
mod authority;
mod certificates;
mod connection;
mod listen;
mod plain_http;
mod posts;
mod words;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tower::layer::util::{Identity, Stack};

use accept::Admission;

pub use certificates::ReloadingTls;
pub use connection::{CallMark, Incoming, MarkCalls};
pub use listen::{ListenError, Listener, Network, ReplaceError};
pub use plain_http::{Asked, Page, PlainHttp};
pub use posts::{Posted, serve_posts};
pub use words::Words;

/// What one peer, and all of them together, may take of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of concurrent connections. Further ones wait until one ends.
    pub connections: usize,
    /// The number of concurrent calls of one connection. Clients hold further ones back.
    pub streams: u32,
    /// The time for the TLS handshake and the first bytes of HTTP/2.
    pub handshake: Duration,
    /// The time until the first call of a connection.
    pub first_call: Duration,
    /// How often peers are asked for a sign of life.
    pub keepalive_interval: Duration,
    /// How long they may take to give it.
    pub keepalive_timeout: Duration,
    /// How long calls may take to finish once the server is told to stop.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            streams: 256,
            handshake: Duration::from_secs(20),
            first_call: Duration::from_mins(1),
            keepalive_interval: Duration::from_mins(1),
            keepalive_timeout: Duration::from_secs(20),
            shutdown: Duration::from_secs(10),
        }
    }
}

/// The time that connections have to notice that they were ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Completes when a server must begin to stop.
pub type Stopping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A gRPC server without services, with the limits that each connection has.
pub fn builder(limits: &Limits) -> tonic::transport::Server<Stack<MarkCalls, Identity>> {
    tonic::transport::Server::builder()
        .max_concurrent_streams(limits.streams)
        .http2_keepalive_interval(Some(limits.keepalive_interval))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout))
        .layer(MarkCalls)
}

/// Serves the connections of a listener. After `stop`, running calls are finished, but not for
/// longer than the limit. After `at_once`, they are given up. Returns the result of `serve`, or
/// `None` if it had to be given up as well.
pub async fn run<T, F: Future<Output = T>>(
    listener: Listener,
    tls: Option<Arc<ReloadingTls>>,
    limits: &Limits,
    stop: impl Future<Output = ()>,
    at_once: impl Future<Output = ()>,
    serve: impl FnOnce(Incoming, Stopping) -> F,
) -> Option<T> {
    let (begin, stopping) = oneshot::channel::<()>();
    let (end, ended) = watch::channel(false);
    // The file is removed however this function ends.
    let (socket, file) = listener.into_parts();
    let admission = Admission::new(tls, limits, ended);
    let mut serving =
        std::pin::pin!(serve(admission.incoming(socket), Box::pin(async { drop(stopping.await) })));
    // It is polled again after it has completed.
    let mut at_once = std::pin::pin!(fused(at_once));
    tokio::select! {
        served = &mut serving => return Some(served),
        () = stop => {}
        () = &mut at_once => {}
    }
    drop(file);
    let _ = begin.send(());
    tokio::select! {
        biased;
        served = &mut serving => return Some(served),
        () = &mut at_once => {}
        () = tokio::time::sleep(limits.shutdown) => {
            let seconds = limits.shutdown.as_secs();
            tracing::info!(seconds, "ending the connections that are still open");
        }
    }
    end.send_replace(true);
    tokio::time::timeout(LAST_WORDS, serving).await.ok()
}

/// A future that may be polled after it has completed and is ready then.
fn fused(future: impl Future<Output = ()>) -> impl Future<Output = ()> {
    let mut future = Some(Box::pin(future));
    poll_fn(move |context| {
        let ready = future.as_mut().is_none_or(|future| future.as_mut().poll(context).is_ready());
        if ready {
            future = None;
            return Poll::Ready(());
        }
        Poll::Pending
    })
}

#[cfg(test)]
mod tests;

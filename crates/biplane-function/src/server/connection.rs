//! A connection that ends when its peer stays silent, or when the server must end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, Sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::{Service, http};
use tonic::transport::server::Connected;

use super::Limits;

/// A stream of bytes of any type.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Connections that are ready to be served.
pub type Incoming = ReceiverStream<io::Result<Connection>>;

/// The number of bytes with which every HTTP/2 client begins.
const PREFACE: usize = 24;

/// What a connection must keep to from its first moment.
pub(super) struct Terms {
    begun: Instant,
    handshake: Duration,
    first_call: Duration,
    ended: watch::Receiver<bool>,
}

impl Terms {
    pub(super) fn begin(limits: &Limits, ended: watch::Receiver<bool>) -> Self {
        let Limits { handshake, first_call, .. } = *limits;
        Self { begun: Instant::now(), handshake, first_call, ended }
    }
}

/// Whether a connection has been used for a call. It is part of every request.
#[derive(Clone, Debug, Default)]
pub struct CallMark(Arc<AtomicBool>);

impl CallMark {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection of any type.
pub struct Connection {
    io: Box<dyn Io>,
    /// Completes when the server must end.
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    has_ended: bool,
    /// The time limit until the first call.
    opening: Option<Opening>,
    mark: CallMark,
    _slot: OwnedSemaphorePermit,
}

struct Opening {
    timer: Pin<Box<Sleep>>,
    first_call: Instant,
    /// How many bytes the client has sent, up to the preface.
    sent: usize,
}

impl Connection {
    pub(super) fn new(io: Box<dyn Io>, terms: Terms, slot: OwnedSemaphorePermit) -> Self {
        let Terms { begun, handshake, first_call, mut ended } = terms;
        // It also ends when nobody is left who could tell it to.
        let ended = async move { drop(ended.wait_for(|ended| *ended).await) };
        let opening = Opening {
            timer: Box::pin(tokio::time::sleep_until(begun + handshake)),
            first_call: begun + first_call,
            sent: 0,
        };
        Self {
            io,
            ended: Box::pin(ended),
            has_ended: false,
            opening: Some(opening),
            mark: CallMark::default(),
            _slot: slot,
        }
    }

    /// Fails once the connection must end. Otherwise the task is woken when it must.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.has_ended || self.ended.as_mut().poll(context).is_ready() {
            self.has_ended = true;
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server ends"));
        }
        if self.mark.is_set() {
            self.opening = None;
        }
        if let Some(opening) = &mut self.opening
            && opening.is_over(context)
        {
            self.has_ended = true;
            tracing::debug!("ended a connection that made no call");
            return Err(io::Error::new(io::ErrorKind::TimedOut, "there was no call"));
        }
        Ok(())
    }
}

impl Opening {
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        while self.timer.as_mut().poll(context).is_ready() {
            let deadline = self.timer.deadline();
            if self.sent < PREFACE || deadline >= self.first_call {
                return true;
            }
            self.timer.as_mut().reset(self.first_call);
        }
        false
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("mark", &self.mark).finish_non_exhaustive()
    }
}

impl Connected for Connection {
    type ConnectInfo = CallMark;

    fn connect_info(&self) -> CallMark {
        self.mark.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if let Some(opening) = &mut self.opening {
            opening.sent = opening.sent.saturating_add(buf.filled().len() - before);
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// Marks connections as used when a call arrives.
#[derive(Clone, Copy, Debug)]
pub struct MarkCalls;

impl<S> tower::Layer<S> for MarkCalls {
    type Service = MarkingCalls<S>;

    fn layer(&self, inner: S) -> Self::Service {
        MarkingCalls(inner)
    }
}

/// A service that marks the connections of its requests.
#[derive(Clone, Debug)]
pub struct MarkingCalls<S>(S);

impl<S, B> Service<http::Request<B>> for MarkingCalls<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if let Some(mark) = request.extensions().get::<CallMark>() {
            mark.set();
        }
        self.0.call(request)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::sync::Semaphore;

    use super::*;

    /// A new connection with its client, and what ends it.
    fn connection() -> (Connection, DuplexStream, watch::Sender<bool>) {
        let (end, ended) = watch::channel(false);
        let (client, server) = tokio::io::duplex(1024);
        let slot = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let terms = Terms::begin(&Limits::default(), ended);
        (Connection::new(Box::new(server), terms, slot), client, end)
    }

    /// How long reading everything takes, in seconds, and how it ends.
    async fn read(mut connection: Connection) -> (u64, io::ErrorKind) {
        let begun = Instant::now();
        let error = connection.read_to_end(&mut Vec::new()).await.unwrap_err();
        (begun.elapsed().as_secs(), error.kind())
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_sent_away_early_and_one_without_calls_later() {
        let (silent, _client, _end) = connection();
        assert_eq!(read(silent).await, (20, io::ErrorKind::TimedOut));
        let (slow, mut client, _end) = connection();
        client.write_all(b"PRI * HTTP/2.0").await.unwrap();
        assert_eq!(read(slow).await, (20, io::ErrorKind::TimedOut));
        let (idle, mut client, _end) = connection();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        assert_eq!(read(idle).await, (60, io::ErrorKind::TimedOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_called_may_stay_until_the_server_ends() {
        let (used, _client, end) = connection();
        used.mark.set();
        let ending = async {
            tokio::time::sleep(Duration::from_hours(1)).await;
            end.send_replace(true);
        };
        let (ended, ()) = tokio::join!(read(used), ending);
        assert_eq!(ended, (3600, io::ErrorKind::ConnectionAborted));
    }
}

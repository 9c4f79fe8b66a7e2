//! Accepts connections, one slot for each, and lets them in after the TLS handshake.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::Limits;
use super::authority::SocketAuthority;
use super::certificates::ReloadingTls;
use super::connection::{Connection, Incoming, Io, Terms};
use super::listen::{Network, Socket};

/// How long to wait after a failure, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// A source of connections.
pub(crate) trait Accept {
    /// A connection.
    type Io;

    /// Waits for the next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

impl Accept for TcpListener {
    type Io = tokio::net::TcpStream;

    /// Accepts a connection without Nagle's algorithm, which would delay each call by tens of
    /// milliseconds.
    async fn accept(&self) -> io::Result<Self::Io> {
        let (stream, _) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Accept for Socket {
    type Io = Box<dyn Io>;

    async fn accept(&self) -> io::Result<Self::Io> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(Accept::accept(listener).await?),
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

/// Accepts connections for ever, each with one of the slots. A failure to accept one, for example
/// because too many files are open, is temporary.
pub(crate) async fn each_connection<A: Accept>(
    listener: &A,
    slots: &Arc<Semaphore>,
    mut handle: impl FnMut(A::Io, OwnedSemaphorePermit),
) {
    loop {
        let slot = if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
            slot
        } else {
            tracing::info!("there are too many connections: others wait until one ends");
            // Fails only if the semaphore is closed, which it never is.
            let Ok(slot) = Arc::clone(slots).acquire_owned().await else { return };
            slot
        };
        match listener.accept().await {
            Ok(io) => handle(io, slot),
            Err(error) => {
                tracing::info!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// What connections go through before they are served.
#[derive(Clone)]
pub(super) struct Admission {
    tls: Option<Arc<ReloadingTls>>,
    limits: Limits,
    /// Becomes true when all connections must end.
    ended: watch::Receiver<bool>,
}

impl Admission {
    pub(super) fn new(
        tls: Option<Arc<ReloadingTls>>,
        limits: &Limits,
        ended: watch::Receiver<bool>,
    ) -> Self {
        Self { tls, limits: limits.clone(), ended }
    }

    /// Returns the incoming connections, after the TLS handshake.
    pub(super) fn incoming(self, socket: Socket) -> Incoming {
        let (sender, receiver) = mpsc::channel(1);
        let network = socket.network();
        // Without a slot, no connection would ever be accepted.
        let slots = self.limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        let slots = Arc::new(Semaphore::new(slots));
        tokio::spawn(async move {
            let accept = each_connection(&socket, &slots, |io, slot| {
                // A slow handshake does not delay other connections.
                let (admission, sender) = (self.clone(), sender.clone());
                tokio::spawn(async move {
                    if let Some(connection) = admission.admit(io, network, slot).await {
                        let _ = sender.send(Ok(connection)).await;
                    }
                });
            });
            tokio::select! {
                () = accept => {}
                () = sender.closed() => {}
            }
        });
        ReceiverStream::new(receiver)
    }

    async fn admit(
        self,
        io: Box<dyn Io>,
        network: Network,
        slot: OwnedSemaphorePermit,
    ) -> Option<Connection> {
        let terms = Terms::begin(&self.limits, self.ended);
        let io: Box<dyn Io> = match self.tls {
            None => io,
            Some(tls) => {
                let handshake = async {
                    let config = tls.current().await;
                    tokio_rustls::TlsAcceptor::from(config).accept(io).await
                };
                match tokio::time::timeout(self.limits.handshake, handshake).await {
                    Ok(Ok(stream)) => Box::new(stream),
                    Ok(Err(error)) => {
                        tracing::debug!(%error, "refused a connection");
                        return None;
                    }
                    Err(_) => {
                        tracing::debug!("refused a connection: no handshake");
                        return None;
                    }
                }
            }
        };
        let io: Box<dyn Io> = match network {
            Network::Tcp => io,
            Network::Unix => Box::new(SocketAuthority::new(io)),
        };
        Some(Connection::new(io, terms, slot))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn answers_over_tcp_are_sent_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) =
            tokio::join!(TcpStream::connect(address), Accept::accept(&listener));
        assert!(!client.unwrap().nodelay().unwrap(), "the system's default is to wait");
        assert!(accepted.unwrap().nodelay().unwrap());
    }

    /// Fails at first, as when too many files are open, and then has connections without end.
    struct Failing(AtomicUsize);

    impl Accept for Failing {
        type Io = usize;

        async fn accept(&self) -> io::Result<usize> {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0..3 => Err(io::Error::from_raw_os_error(24)),
                n => Ok(n),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn accepting_goes_on_after_failures_and_stops_at_the_limit() {
        let (accepted, slots) = (std::sync::Mutex::new(Vec::new()), Arc::new(Semaphore::new(2)));
        let listener = Failing(AtomicUsize::new(0));
        let keep = |io, slot| accepted.lock().unwrap().push((io, slot));
        let mut accepting = Box::pin(each_connection(&listener, &slots, keep));
        let ids = || accepted.lock().unwrap().iter().map(|(io, _)| *io).collect::<Vec<_>>();
        // Paused time advances when there is nothing else to do.
        for want in [vec![3, 4], vec![3, 4]] {
            assert!(tokio::time::timeout(PAUSE * 10, &mut accepting).await.is_err());
            assert_eq!(ids(), want);
        }
        drop(accepted.lock().unwrap().remove(0));
        assert!(tokio::time::timeout(PAUSE * 10, &mut accepting).await.is_err());
        assert_eq!(ids(), [4, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_sent_away() {
        let certs = biplane_testkit::certs::Certs::new(&["localhost"]);
        let tls = Some(Arc::new(ReloadingTls::read(&certs.server()).unwrap()));
        let (_end, ended) = watch::channel(false);
        let (mut client, server) = tokio::io::duplex(64);
        let slot = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        let admission = Admission::new(tls, &Limits::default(), ended);
        let admitted = admission.admit(Box::new(server), Network::Tcp, slot).await;
        assert!(admitted.is_none(), "it was let in");
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    }
}

//! Listening sockets, with Go's network names and addresses, and their incoming connections.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::ServeError;
use super::authority::SocketAuthority;

/// The type of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// TCP.
    #[default]
    Tcp,
    /// A Unix domain socket in the file system.
    Unix,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        })
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tcp" | "tcp4" | "tcp6" => Ok(Self::Tcp),
            "unix" => Ok(Self::Unix),
            _ => Err(format!("unknown network {text}: expected tcp or unix")),
        }
    }
}

pub(super) enum Listener {
    Tcp(TcpListener, String),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    pub(super) async fn bind(network: Network, address: &str) -> Result<Self, ServeError> {
        let failed = |error: &io::Error| ServeError::Listen {
            network,
            address: address.to_owned(),
            reason: format!("listen {network} {address}: {}", reason(error)),
        };
        match network {
            Network::Tcp => {
                let listener = bind_tcp(address).await.map_err(|e| failed(&e))?;
                let bound = listener.local_addr().map_err(|e| failed(&e))?;
                let host = if bound.ip().is_unspecified() {
                    "localhost".to_owned()
                } else if bound.is_ipv6() {
                    format!("[{}]", bound.ip())
                } else {
                    bound.ip().to_string()
                };
                Ok(Self::Tcp(listener, format!("{host}:{}", bound.port())))
            }
            Network::Unix => {
                let listener = UnixListener::bind(address).map_err(|e| failed(&e))?;
                let path = std::path::absolute(address).map_err(|e| failed(&e))?;
                Ok(Self::Unix(listener, path))
            }
        }
    }

    /// Returns the gRPC target of the listener.
    pub(super) fn target(&self) -> String {
        match self {
            Self::Tcp(_, target) => target.clone(),
            Self::Unix(_, path) => format!("unix://{}", path.display()),
        }
    }

    /// Returns the socket file to remove at the end.
    pub(super) fn socket(&self) -> Option<PathBuf> {
        match self {
            Self::Tcp(..) => None,
            Self::Unix(_, path) => Some(path.clone()),
        }
    }

    fn network(&self) -> Network {
        match self {
            Self::Tcp(..) => Network::Tcp,
            Self::Unix(..) => Network::Unix,
        }
    }

    async fn accept(&self) -> io::Result<Box<dyn Io>> {
        Ok(match self {
            Self::Tcp(listener, _) => Box::new(accept_tcp(listener).await?),
            Self::Unix(listener, _) => Box::new(listener.accept().await?.0),
        })
    }

    /// Returns the incoming connections, after the TLS handshake.
    pub(super) fn incoming(
        self,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> ReceiverStream<io::Result<Connection>> {
        let (sender, receiver) = mpsc::channel(1);
        let admission = Admission { tls, network: self.network() };
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = self.accept() => accepted,
                    () = sender.closed() => return,
                };
                match accepted {
                    // A slow handshake does not delay other connections.
                    Ok(io) => drop(tokio::spawn(admit(io, admission.clone(), sender.clone()))),
                    // For example too many open files, which is temporary.
                    Err(error) => {
                        tracing::info!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        });
        ReceiverStream::new(receiver)
    }
}

/// Accepts a connection without Nagle's algorithm, which would delay each call by tens of
/// milliseconds.
async fn accept_tcp(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The time limit of the TLS handshake. It is the same as in Go's servers.
const HANDSHAKE_LIMIT: Duration = Duration::from_mins(2);

/// What connections go through before they are served.
#[derive(Clone)]
struct Admission {
    tls: Option<Arc<rustls::ServerConfig>>,
    network: Network,
}

async fn admit(
    io: Box<dyn Io>,
    admission: Admission,
    sender: mpsc::Sender<io::Result<Connection>>,
) {
    let io = match admission.tls {
        None => io,
        Some(config) => {
            let handshake = tokio_rustls::TlsAcceptor::from(config).accept(io);
            match tokio::time::timeout(HANDSHAKE_LIMIT, handshake).await {
                Ok(Ok(stream)) => Box::new(stream),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "refused a connection");
                    return;
                }
                Err(_) => {
                    tracing::debug!("refused a connection: no handshake");
                    return;
                }
            }
        }
    };
    let io = match admission.network {
        Network::Tcp => io,
        Network::Unix => Box::new(SocketAuthority::new(io)),
    };
    let _ = sender.send(Ok(Connection(io))).await;
}

/// Binds like Go: an empty host is every address, and `localhost` is resolved.
pub(super) async fn bind_tcp(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else { return TcpListener::bind(address).await };
    let port = port.parse::<u16>().map_err(|_| io::Error::other("unknown port"))?;
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        bound => bound,
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "bind: address already in use".to_owned(),
        io::ErrorKind::PermissionDenied => "bind: permission denied".to_owned(),
        io::ErrorKind::NotFound => "bind: no such file or directory".to_owned(),
        io::ErrorKind::AddrNotAvailable => "bind: cannot assign requested address".to_owned(),
        _ => error.to_string(),
    }
}

pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection of any type.
pub(super) struct Connection(Box<dyn Io>);

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use rustls::server::ResolvesServerCertUsingSni;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn answers_over_tcp_are_sent_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), accept_tcp(&listener));
        assert!(!client.unwrap().nodelay().unwrap(), "the system's default is to wait");
        assert!(accepted.unwrap().nodelay().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_sent_away() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        let (mut client, server) = tokio::io::duplex(64);
        let (sender, mut receiver) = mpsc::channel(1);
        admit(
            Box::new(server),
            Admission { tls: Some(Arc::new(config)), network: Network::Tcp },
            sender,
        )
        .await;
        assert!(receiver.recv().await.is_none(), "it was let in");
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    }
}

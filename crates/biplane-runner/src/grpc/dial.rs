//! Opens connections, and detects whether the server speaks HTTP/2.
//!
//! A connection is ready once the first frame of the server has arrived, which must be its
//! settings. This distinguishes a server that fails a call from an endpoint that accepts
//! connections but is not a gRPC server yet, for example the proxy of a container that is still
//! starting.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::target::Address;

/// The transport security of calls.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// No TLS.
    #[default]
    Plaintext,
    /// Mutual TLS.
    MutualTls(Arc<ClientConfig>),
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Why a connection failed, with the messages of Go's gRPC.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("transport: Error while dialing: dial {address}: {}", go_io(source))]
    Connect { address: Address, source: io::Error },
    #[error("transport: authentication handshake failed: {0}")]
    Handshake(String),
}

/// Whether the server's settings have arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ready(Arc<Arrival>);

#[derive(Debug, Default)]
struct Arrival {
    settings: AtomicBool,
    /// Why the connection could not be read.
    error: OnceLock<String>,
}

impl Ready {
    pub(crate) fn get(&self) -> bool {
        self.0.settings.load(Ordering::Acquire)
    }

    /// Why the connection could not be read, if that is known. Who uses the connection learns only
    /// that it is closed.
    pub(crate) fn error(&self) -> Option<&str> {
        self.0.error.get().map(String::as_str)
    }
}

pub(crate) async fn dial(
    address: &Address,
    server_name: &str,
    security: &Security,
    ready: Ready,
) -> Result<PrefaceDetecting, DialError> {
    let failed = |source| DialError::Connect { address: address.clone(), source };
    let io: Box<dyn Io> = match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await.map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            Box::new(stream)
        }
        Address::Unix(path) => Box::new(UnixStream::connect(path).await.map_err(failed)?),
        Address::Abstract(name) => Box::new(connect_abstract(name).map_err(failed)?),
    };
    let io = match security {
        Security::Plaintext => io,
        Security::MutualTls(config) => handshake(io, server_name, config).await?,
    };
    ready.0.settings.store(false, Ordering::Release);
    Ok(PrefaceDetecting { io, ready, seen: 0 })
}

#[cfg(target_os = "linux")]
fn connect_abstract(name: &str) -> io::Result<UnixStream> {
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    // Connecting to a local socket does not block: either it has a listener or it fails.
    let stream = std::os::unix::net::UnixStream::connect_addr(&address)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

#[cfg(not(target_os = "linux"))]
fn connect_abstract(_: &str) -> io::Result<UnixStream> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "abstract sockets are a feature of Linux"))
}

async fn handshake(
    io: Box<dyn Io>,
    server_name: &str,
    config: &Arc<ClientConfig>,
) -> Result<Box<dyn Io>, DialError> {
    let name = ServerName::try_from(server_name.to_owned())
        .map_err(|e| DialError::Handshake(format!("{server_name:?} is no server name: {e}")))?;
    let stream = tokio_rustls::TlsConnector::from(config.clone())
        .connect(name, io)
        .await
        .map_err(|e| DialError::Handshake(go_tls(&e, server_name)))?;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        let text = "credentials: cannot check peer: missing selected ALPN property";
        return Err(DialError::Handshake(text.to_owned()));
    }
    Ok(Box::new(stream))
}

fn go_tls(error: &io::Error, server_name: &str) -> String {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(problem)) => {
            let reason = match problem {
                // A new CA with the same name as the old one causes a bad signature.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    "certificate signed by unknown authority".to_owned()
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => {
                    format!("certificate is not valid for {server_name}")
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    "certificate has expired or is not yet valid".to_owned()
                }
                other => other.to_string(),
            };
            format!("tls: failed to verify certificate: x509: {reason}")
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        Some(other) => format!("tls: {other}"),
        None => go_io(error),
    }
}

/// What the other side said when it refused us, like Go. It checks our certificate after we have
/// checked its own, so the handshake is over for us by then.
fn remote_alert(error: &io::Error) -> Option<String> {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>())?;
    let rustls::Error::AlertReceived(alert) = inner else { return None };
    let said = match alert {
        AlertDescription::AccessDenied => "access denied",
        AlertDescription::BadCertificate => "bad certificate",
        AlertDescription::CertificateExpired => "expired certificate",
        AlertDescription::CertificateRequired => "certificate required",
        AlertDescription::CertificateRevoked => "revoked certificate",
        AlertDescription::CertificateUnknown => "unknown certificate",
        AlertDescription::HandshakeFailure => "handshake failure",
        AlertDescription::UnknownCA => "unknown certificate authority",
        AlertDescription::UnsupportedCertificate => "unsupported certificate",
        other => return Some(format!("remote error: tls: {other:?}")),
    };
    Some(format!("remote error: tls: {said}"))
}

/// Says that a Unix socket cannot be reached, like Go's gRPC.
pub(crate) fn dial_text(path: &std::path::Path, error: &io::Error) -> String {
    format!("transport: Error while dialing: dial unix {}: {}", path.display(), go_io(error))
}

/// Formats an I/O error like Go.
pub(crate) fn go_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::BrokenPipe => "write: broken pipe".to_owned(),
        io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        io::ErrorKind::NotFound => "connect: no such file or directory".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        _ => error.to_string(),
    }
}

/// A connection that detects whether the server's settings arrive first.
pub(crate) struct PrefaceDetecting {
    io: Box<dyn Io>,
    ready: Ready,
    seen: usize,
}

/// The offset of the type in a frame header, and the type of a settings frame.
const TYPE_OFFSET: usize = 3;
const SETTINGS: u8 = 4;

impl AsyncRead for PrefaceDetecting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let this = &mut *self;
        let polled = Pin::new(&mut this.io).poll_read(cx, buf);
        if this.seen <= TYPE_OFFSET
            && let Some(new) = buf.filled().get(before..)
        {
            if new.get(TYPE_OFFSET - this.seen) == Some(&SETTINGS) {
                this.ready.0.settings.store(true, Ordering::Release);
            }
            this.seen += new.len();
        }
        if let Poll::Ready(Err(error)) = &polled
            && let Some(text) = remote_alert(error)
        {
            // The first one is the reason of the others.
            let _ = this.ready.0.error.set(text);
        }
        polled
    }
}

impl AsyncWrite for PrefaceDetecting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_the_other_side_is_quoted() {
        let said = |error| remote_alert(&io::Error::new(io::ErrorKind::InvalidData, error));
        for (alert, text) in [
            (AlertDescription::CertificateExpired, "remote error: tls: expired certificate"),
            (AlertDescription::UnknownCA, "remote error: tls: unknown certificate authority"),
            (AlertDescription::CertificateRequired, "remote error: tls: certificate required"),
            (AlertDescription::InternalError, "remote error: tls: InternalError"),
        ] {
            assert_eq!(said(rustls::Error::AlertReceived(alert)).as_deref(), Some(text));
        }
        assert_eq!(said(rustls::Error::DecryptError), None);
        assert_eq!(remote_alert(&io::Error::from(io::ErrorKind::UnexpectedEof)), None);
    }
}

//! Serves a site at an address, encrypted or not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use crate::http::{self, Body};
use crate::site::Site;
use crate::tls::Certificate;

/// How many connections there may be: readers with news have one each.
const CONNECTIONS: usize = 512;
/// How long a handshake and writing an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait if no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    serving: AbortHandle,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// The address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Whether an address in Go's format is one that only this machine reaches. `:7654` is every
/// address of the machine.
pub fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Serves a site.
pub async fn serve(
    site: Site,
    address: &str,
    certificate: Option<Arc<Certificate>>,
) -> io::Result<Server> {
    let listener = bind(address).await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(async move {
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (site, certificate) = (site.clone(), certificate.clone());
            tokio::spawn(async move {
                if let Err(error) = connection(stream, &site, certificate).await {
                    tracing::debug!(%error, "a connection ended early");
                }
                drop(slot);
            });
        }
    });
    Ok(Server { address, serving: serving.abort_handle() })
}

async fn bind(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else { return TcpListener::bind(address).await };
    let port = port.parse::<u16>().map_err(|_| io::Error::other("unknown port"))?;
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        bound => bound,
    }
}

async fn connection(
    stream: TcpStream,
    site: &Site,
    certificate: Option<Arc<Certificate>>,
) -> io::Result<()> {
    let Some(certificate) = certificate else { return exchange(stream, site).await };
    let config = tokio::task::spawn_blocking(move || certificate.current()).await;
    let config = config.map_err(io::Error::other)?;
    let handshake = TlsAcceptor::from(config).accept(stream);
    exchange(tokio::time::timeout(PATIENCE, handshake).await??, site).await
}

/// Answers the one request of a connection.
async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    site: &Site,
) -> io::Result<()> {
    let (response, with_body) = match http::read(&mut stream).await? {
        Ok(None) => return Ok(()),
        Ok(Some(request)) => {
            let with_body = request.method != "HEAD";
            (site.answer(request).await, with_body)
        }
        Err(refused) => (refused, true),
    };
    let is_stream = matches!(response.body, Body::Stream(_));
    let writing = http::write(&mut stream, response, with_body);
    if is_stream {
        return writing.await;
    }
    tokio::time::timeout(PATIENCE, writing).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_machine_itself_are_loopback() {
        for address in ["127.0.0.1:7654", "127.8.8.8:1", "[::1]:7654", "localhost:0", "LOCALHOST:1"]
        {
            assert!(is_loopback(address), "{address}");
        }
        for address in [":7654", "0.0.0.0:7654", "[::]:7654", "10.0.0.1:1", "example.org:80", ""] {
            assert!(!is_loopback(address), "{address}");
        }
    }
}

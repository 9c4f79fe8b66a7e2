//! TLS to PostgreSQL, with rustls. Certificates are always verified.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{future, io};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::store::sql::Error;
use crate::trust;

/// A location without `sslrootcert`, which the driver does not know, and its value.
pub(super) fn roots_of(location: &str) -> (String, Option<String>) {
    let Some((address, query)) = location.split_once('?') else {
        return (location.to_owned(), None);
    };
    let (roots, kept): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|part| part.starts_with("sslrootcert="));
    let roots = roots.last().and_then(|part| part.strip_prefix("sslrootcert="));
    let location =
        if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) };
    (location, roots.map(str::to_owned))
}

/// Makes TLS connections.
#[derive(Clone)]
pub(super) struct Connector(Option<TlsConnector>);

impl Connector {
    pub(super) fn new(config: &Config, roots: Option<&str>) -> Result<Self, Error> {
        if config.get_ssl_mode() == SslMode::Disable {
            return Ok(Self(None));
        }
        let roots = roots.map(std::path::Path::new);
        let client = trust::client(roots).map_err(|error| Error::Failed(error.to_string()))?;
        Ok(Self(Some(TlsConnector::from(Arc::new(client)))))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Connect> {
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other);
        // Over a Unix socket there is no name and no TLS.
        Ok(Connect { connector: self.0.clone(), name: name.ok() })
    }
}

/// A connection to be made.
pub(super) struct Connect {
    connector: Option<TlsConnector>,
    name: Option<ServerName<'static>>,
}

type Connecting<S> = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connect {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Connecting<S>;

    fn connect(self, stream: S) -> Connecting<S> {
        match (self.connector, self.name) {
            (Some(connector), Some(name)) => {
                Box::pin(async move { connector.connect(name, stream).await.map(Stream) })
            }
            _ => Box::pin(future::ready(Err(io::Error::other("TLS is not possible here")))),
        }
    }
}

/// A TLS connection.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}

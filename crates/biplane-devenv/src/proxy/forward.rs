//! Accepts connections and passes requests on.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::Action;
use super::asked::Asked;
use super::rules::Rules;
use super::status::status;
use super::unanswered::Unanswered;
use super::watches::{self, Watches};
use crate::EnvError;
use crate::certificates::Identity;
use crate::client::tls_config;

type Answer = Response<UnsyncBoxBody<Bytes, Unanswered>>;

/// Headers that are about one connection. HTTP/2 refuses them.
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What every connection needs.
pub(super) struct Gate {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    target: u16,
    watch_target: WatchTarget,
    rules: Arc<Rules>,
    watches: Arc<Watches>,
}

/// The port of the API server that answers watches. Zero for the one that answers all requests.
pub(super) type WatchTarget = Arc<AtomicU16>;

impl Gate {
    pub(super) fn new(
        identity: &Identity,
        target: u16,
        watch_target: WatchTarget,
        rules: Arc<Rules>,
        watches: Arc<Watches>,
    ) -> Result<Self, EnvError> {
        let malformed = |error: rustls::pki_types::pem::Error| {
            EnvError::from(rustls::Error::General(error.to_string()))
        };
        let certificates = CertificateDer::pem_slice_iter(identity.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(malformed)?;
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(malformed)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(certificates, key)?;
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut client = tls_config(&identity.ca)?;
        client.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self {
            acceptor: Arc::new(server).into(),
            connector: Arc::new(client).into(),
            target,
            watch_target,
            rules,
            watches,
        })
    }

    /// The port of the API server for a request.
    fn port(&self, asked: &Asked) -> u16 {
        match self.watch_target.load(Ordering::SeqCst) {
            port if asked.watch && port != 0 => port,
            _ => self.target,
        }
    }
}

/// The tasks of open connections.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<BTreeMap<u64, AbortHandle>>);

impl Connections {
    pub(super) fn cut(&self) {
        let open = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in open.into_values() {
            connection.abort();
        }
    }

    fn enter(&self, number: u64, connection: AbortHandle) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, connection| !connection.is_finished());
        open.insert(number, connection);
    }
}

/// Accepts connections until the runtime ends.
pub(super) async fn accept(listener: TcpListener, gate: Arc<Gate>, connections: Arc<Connections>) {
    for number in 0.. {
        // Fails if the client has gone already, or if there are too many files.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let connection = tokio::spawn(serve(stream, gate.clone()));
        connections.enter(number, connection.abort_handle());
    }
}

/// Serves one connection. Its errors are the client's to notice.
async fn serve(stream: TcpStream, gate: Arc<Gate>) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = gate.acceptor.accept(stream).await else { return };
    let upstream = Arc::new(Upstream::default());
    let service = service_fn(move |request| {
        let (gate, upstream) = (gate.clone(), upstream.clone());
        async move { answer(&gate, &upstream, request).await }
    });
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Answers one request. An error means that the client gets no answer.
async fn answer(
    gate: &Gate,
    upstream: &Upstream,
    request: Request<Incoming>,
) -> Result<Answer, Unanswered> {
    let (method, uri) = (request.method().as_str(), request.uri());
    let asked = Asked::new(method, uri.path(), uri.query().unwrap_or_default());
    let begun = gate.rules.begin(&asked);
    match begun.as_ref().map(|decision| &decision.action) {
        Some(Action::Cut) => return Err(Unanswered::new("cut off")),
        Some(Action::Respond { code, retry_after }) => return refusal(*code, *retry_after),
        _ => {}
    }
    let port = gate.port(&asked);
    let mut sender = upstream.sender(gate, port).await?;
    let response =
        sender.send_request(for_server(request, port)?).await.map_err(Unanswered::new)?;
    if let Some(Action::LoseAnswer) = begun.as_ref().map(|decision| &decision.action) {
        // The server has done everything when its answer is complete.
        let _ = response.into_body().collect().await;
        return Err(Unanswered::new("the answer was lost"));
    }
    let (mut parts, body) = response.into_parts();
    strip(&mut parts.headers);
    parts.version = Version::HTTP_11;
    let body = if asked.watch && parts.status == StatusCode::OK {
        let is_json = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        let (rules, watches) = (gate.rules.clone(), gate.watches.clone());
        watches::pass_on(body, is_json, asked, begun, rules, watches).boxed_unsync()
    } else {
        watches::pass(&asked, begun.as_ref(), &gate.rules, Instant::now()).await;
        body.map_err(Unanswered::new).boxed_unsync()
    };
    Ok(Response::from_parts(parts, body))
}

/// The request in the form that HTTP/2 needs.
fn for_server(request: Request<Incoming>, target: u16) -> Result<Request<Incoming>, Unanswered> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = Uri::builder()
        .scheme("https")
        .authority(format!("127.0.0.1:{target}"))
        .path_and_query(path)
        .build()
        .map_err(Unanswered::new)?;
    parts.version = Version::HTTP_2;
    strip(&mut parts.headers);
    Ok(Request::from_parts(parts, body))
}

fn strip(headers: &mut HeaderMap) {
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

fn refusal(code: u16, retry_after: Option<u32>) -> Result<Answer, Unanswered> {
    let body = Full::new(Bytes::from(status(code).to_string()));
    let mut response = Response::new(body.map_err(Unanswered::new).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).map_err(Unanswered::new)?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    Ok(response)
}

/// The connections to API servers that belong to a connection of a client.
#[derive(Default)]
struct Upstream {
    requests: Kept,
    /// Used if another server answers watches, which may hang.
    watches: Kept,
}

type Kept = tokio::sync::Mutex<Option<SendRequest<Incoming>>>;

impl Upstream {
    /// A connection that is open. If the server was restarted, it is a new one.
    async fn sender(&self, gate: &Gate, port: u16) -> Result<SendRequest<Incoming>, Unanswered> {
        let kept = if port == gate.target { &self.requests } else { &self.watches };
        let mut kept = kept.lock().await;
        if let Some(sender) = kept.as_mut().filter(|sender| !sender.is_closed())
            && sender.ready().await.is_ok()
        {
            return Ok(sender.clone());
        }
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map_err(Unanswered::new)?;
        tcp.set_nodelay(true).map_err(Unanswered::new)?;
        let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let tls = gate.connector.connect(name, tcp).await.map_err(Unanswered::new)?;
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tls))
                .await
                .map_err(Unanswered::new)?;
        // It ends when the last sender and the last answer are gone.
        tokio::spawn(connection);
        *kept = Some(sender.clone());
        Ok(sender)
    }
}

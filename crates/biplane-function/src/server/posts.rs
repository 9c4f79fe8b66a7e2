//! Serves requests with bodies over HTTPS, in HTTP/1.1 and HTTP/2, within limits.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use tonic::codegen::{Body as _, http};

use super::{Limits, Listener, Page, ReloadingTls};

/// How many bodies of the largest size are held at a time, and how many requests are answered at a
/// time. Further ones wait.
const BODIES: usize = 32;
/// Bodies take room in these steps. What has not arrived takes none, so those who send slowly do not
/// keep others waiting.
const STEP: usize = 4096;
/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The path, without its query.
    pub path: String,
    /// The header `Content-Type`. Empty if there is none.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
    /// When the request arrived. Whoever sent it has waited since.
    pub since: Instant,
}

/// Answers `POST` requests of a listener until `stop`, as [`super::run`] does. A body of more than
/// `largest` bytes is refused.
pub async fn serve_posts<F: Future<Output = Page> + Send + 'static>(
    listener: Listener,
    tls: Arc<ReloadingTls>,
    limits: &Limits,
    largest: usize,
    stop: impl Future<Output = ()>,
    answer: impl Fn(Posted) -> F + Clone + Send + Sync + 'static,
) -> Result<(), tonic::transport::Error> {
    let room = Room { steps: Arc::new(Semaphore::new(BODIES * largest.div_ceil(STEP))), largest };
    let turns = Arc::new(Semaphore::new(BODIES));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (answer, room, turns) = (answer.clone(), room.clone(), Arc::clone(&turns));
        async move {
            let page = match posted(request, &room).await {
                Ok((posted, _held)) => {
                    // Fails only if the semaphore is closed, which it never is.
                    let _turn = turns.acquire_owned().await;
                    answer(posted).await
                }
                Err(refusal) => refusal,
            };
            Ok::<_, Infallible>(response(page))
        }
    });
    let server = super::builder(limits).accept_http1(true);
    let never = std::future::pending();
    let served = super::run(listener, Some(tls), limits, stop, never, |incoming, stopping| {
        server.serve_with_incoming_shutdown(service, incoming, stopping)
    });
    // A server that had to be given up was told to stop.
    served.await.unwrap_or(Ok(()))
}

/// The room that bodies share.
#[derive(Clone)]
struct Room {
    steps: Arc<Semaphore>,
    /// The largest body.
    largest: usize,
}

impl Room {
    /// Waits until there is room for a body of this length.
    async fn make(&self, length: usize, held: &mut Option<OwnedSemaphorePermit>) {
        let more =
            length.div_ceil(STEP) - held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        // Fails only if the semaphore is closed, which it never is.
        let Ok(permit) = Arc::clone(&self.steps).acquire_many_owned(more).await else { return };
        match held {
            Some(held) => held.merge(permit),
            None => *held = Some(permit),
        }
    }
}

async fn posted(
    request: http::Request<Body>,
    room: &Room,
) -> Result<(Posted, Option<OwnedSemaphorePermit>), Page> {
    let since = Instant::now();
    if request.method() != http::Method::POST {
        return Err(Page::text(405, "method not allowed\n"));
    }
    let (head, body) = request.into_parts();
    let content_type = head.headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (body, held) = match timeout_at(since + PATIENCE, collect(body, room)).await {
        Ok(body) => body?,
        Err(_) => return Err(Page::text(408, "the request did not arrive in time\n")),
    };
    let (path, content_type) = (head.uri.path().to_owned(), content_type.to_owned());
    Ok((Posted { path, content_type, body, since }, held))
}

async fn collect(
    mut body: Body,
    room: &Room,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Page> {
    let (mut collected, mut held) = (Vec::new(), None);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame
            .map_err(|error| Page::text(400, format!("the request did not arrive: {error}\n")))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = collected.len() + data.len();
        let largest = room.largest;
        if length > largest {
            let text = format!("request entity is too large; limit is {largest} bytes\n");
            return Err(Page::text(413, text));
        }
        room.make(length, &mut held).await;
        collected.extend_from_slice(&data);
    }
    Ok((collected, held))
}

fn response(page: Page) -> http::Response<Body> {
    let mut response = http::Response::new(Body::new(page.body));
    *response.status_mut() =
        http::StatusCode::from_u16(page.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = http::HeaderValue::from_static(page.content_type);
    response.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use biplane_testkit::certs::Certs;
    use rustls::pki_types::ServerName;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;
    use crate::server::Network;
    use crate::tls::Certificates;

    async fn connect(certs: &Certs, target: &str) -> tokio_rustls::client::TlsStream<TcpStream> {
        let files = Certificates::read(&certs.server()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(files.roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(target).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.unwrap()
    }

    /// Sends requests over one connection and returns everything that is answered.
    async fn ask(certs: &Certs, target: &str, requests: &str) -> String {
        let mut stream = connect(certs, target).await;
        stream.write_all(requests.as_bytes()).await.unwrap();
        let mut answers = Vec::new();
        // A server that refuses a body need not close the connection in style.
        let _ = stream.read_to_end(&mut answers).await;
        String::from_utf8(answers).unwrap()
    }

    type Server = tokio::task::JoinHandle<Result<(), tonic::transport::Error>>;

    /// A server that answers with what it was sent, its address and its end.
    async fn echo(certs: &Certs, largest: usize) -> (Server, String, oneshot::Sender<()>) {
        let tls = Arc::new(ReloadingTls::read_https(&certs.server()).unwrap());
        let listener = Listener::bind(Network::Tcp, "127.0.0.1:0").await.unwrap();
        let target = listener.target().to_owned();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            let echo = |posted: Posted| async move {
                let body = String::from_utf8(posted.body).unwrap();
                Page::text(200, format!("{} {} {body}", posted.path, posted.content_type))
            };
            serve_posts(listener, tls, &Limits::default(), largest, stopped, echo).await
        });
        (server, target, stop)
    }

    #[tokio::test]
    async fn those_who_send_slowly_do_not_keep_others_waiting() {
        let certs = Certs::new(&["localhost"]);
        let (server, target, stop) = echo(&certs, 16 * STEP).await;
        let mut slow = Vec::new();
        for _ in 0..=BODIES {
            let mut stream = connect(&certs, &target).await;
            let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nhe";
            stream.write_all(head.as_bytes()).await.unwrap();
            slow.push(stream);
        }
        let request = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
        let answer = ask(&certs, &target, request).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        for stream in &mut slow {
            let answer = tokio::time::timeout(Duration::ZERO, stream.read_u8()).await;
            assert!(answer.is_err(), "it was given up before the other was answered");
        }
        drop(slow);
        stop.send(()).unwrap();
        server.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn requests_are_answered_one_after_another_and_within_limits() {
        let certs = Certs::new(&["localhost"]);
        let (server, target, stop) = echo(&certs, 8).await;
        let close = "Host: localhost\r\nConnection: close\r\n\r\n";
        let first = "POST /a?b HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\r\nhi";
        let answers = ask(&certs, &target, &format!("{first}GET / HTTP/1.1\r\n{close}")).await;
        assert!(answers.starts_with("HTTP/1.1 200 OK"), "{answers}");
        assert!(answers.contains("/a text/x hi"), "{answers}");
        assert!(answers.contains("HTTP/1.1 405 Method Not Allowed"), "{answers}");
        let large = format!("POST / HTTP/1.1\r\nContent-Length: 9\r\n{close}123456789");
        let answer = ask(&certs, &target, &large).await;
        assert!(answer.starts_with("HTTP/1.1 413 Payload Too Large"), "{answer}");
        assert!(answer.ends_with("limit is 8 bytes\n"), "{answer}");
        stop.send(()).unwrap();
        server.await.unwrap().unwrap();
    }
}

//! The HTTP servers that a control plane has for others: probes of its health, and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use biplane_function::metrics::{CONTENT_TYPE, Metrics};
use biplane_function::server::{ListenError, Page, PlainHttp};

/// A server that cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve {what} at {address}: {source}")]
pub struct ServeError {
    what: &'static str,
    address: String,
    source: ListenError,
}

/// What a control plane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It has not seen yet what exists.
    Starting,
    /// Another process leads. This one is ready to take over.
    Standby,
    /// Its controllers run.
    Running,
}

/// What the webhooks of a control plane do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Hooks {
    /// There are none.
    Off,
    /// They are not served yet.
    Starting,
    /// They are served.
    Serving,
}

/// What a control plane does, for whoever asks. Clones share it.
#[derive(Clone, Debug)]
pub struct Readiness {
    state: Arc<AtomicU8>,
    hooks: Arc<AtomicU8>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            state: Arc::new(AtomicU8::new(State::Starting as u8)),
            hooks: Arc::new(AtomicU8::new(Hooks::Off as u8)),
        }
    }
}

impl Readiness {
    /// Changes the state.
    pub fn set(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Changes what the webhooks do.
    pub fn set_hooks(&self, hooks: Hooks) {
        self.hooks.store(hooks as u8, Ordering::Relaxed);
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        self.state.load(Ordering::Relaxed) != State::Starting as u8
    }

    fn has_hooks(&self) -> bool {
        self.hooks.load(Ordering::Relaxed) != Hooks::Off as u8
    }

    fn waits_for_hooks(&self) -> bool {
        self.hooks.load(Ordering::Relaxed) == Hooks::Starting as u8
    }
}

/// Answers probes at `/healthz` and `/readyz` until the server is dropped.
pub async fn serve_health(address: &str, readiness: Readiness) -> Result<PlainHttp, ServeError> {
    let served = PlainHttp::start(address, move |path| health(path, &readiness)).await;
    served.map_err(|source| ServeError { what: "probes", address: address.into(), source })
}

fn health(path: &str, readiness: &Readiness) -> Page {
    match path.strip_suffix('/').unwrap_or(path) {
        "/healthz/webhook" | "/readyz/webhook" if !readiness.has_hooks() => {
            Page::text(404, "404 page not found\n")
        }
        "/healthz" | "/readyz" | "/healthz/webhook" | "/readyz/webhook"
            if readiness.waits_for_hooks() =>
        {
            Page::text(500, "[-]webhook failed: the webhook server has not been started yet\n")
        }
        "/healthz" | "/healthz/ping" | "/readyz/ping" | "/healthz/webhook" | "/readyz/webhook" => {
            Page::text(200, "ok")
        }
        "/readyz" if readiness.is_ready() => Page::text(200, "ok"),
        "/readyz" => Page::text(500, "[-]watches failed: the first lists are not complete\n"),
        _ => Page::text(404, "404 page not found\n"),
    }
}

/// Serves the metrics of the process at `/metrics` until the server is dropped.
pub async fn serve_metrics(address: &str, metrics: Metrics) -> Result<PlainHttp, ServeError> {
    let page = move |path: &str| match path {
        "/metrics" => Page { status: 200, content_type: CONTENT_TYPE, body: metrics.text() },
        _ => Page::text(404, "404 page not found\n"),
    };
    let served = PlainHttp::start(address, page).await;
    served.map_err(|source| ServeError { what: "metrics", address: address.into(), source })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn ask(server: &PlainHttp, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    async fn get(server: &PlainHttp, path: &str) -> (String, String) {
        ask(server, &format!("GET {path} HTTP/1.1\r\nHost: probe\r\n\r\n")).await
    }

    fn ok() -> (String, String) {
        ("HTTP/1.1 200 OK".into(), "ok".into())
    }

    /// MET-1
    #[tokio::test]
    async fn a_standby_is_ready_and_a_starting_control_plane_is_healthy() {
        let readiness = Readiness::default();
        let server = serve_health("127.0.0.1:0", readiness.clone()).await.unwrap();
        assert_eq!(get(&server, "/healthz").await, ok());
        assert_eq!(get(&server, "/healthz/ping").await, ok());
        assert_eq!(get(&server, "/readyz/ping").await, ok());
        assert_eq!(get(&server, "/readyz").await.0, "HTTP/1.1 500 Internal Server Error");
        for state in [State::Standby, State::Running] {
            readiness.set(state);
            assert_eq!(get(&server, "/readyz?verbose").await, ok(), "{state:?}");
        }
        readiness.set(State::Starting);
        assert_eq!(get(&server, "/readyz/").await.0, "HTTP/1.1 500 Internal Server Error");
        assert_eq!(get(&server, "/metrics").await.0, "HTTP/1.1 404 Not Found");
    }

    /// MET-1
    #[tokio::test]
    async fn webhooks_must_be_served_if_there_are_any() {
        let readiness = Readiness::default();
        readiness.set(State::Running);
        let server = serve_health("127.0.0.1:0", readiness.clone()).await.unwrap();
        assert_eq!(get(&server, "/readyz/webhook").await.0, "HTTP/1.1 404 Not Found");
        readiness.set_hooks(Hooks::Starting);
        for path in ["/healthz", "/readyz", "/healthz/webhook", "/readyz/webhook"] {
            let answer = get(&server, path).await;
            assert_eq!(answer.0, "HTTP/1.1 500 Internal Server Error", "{path}");
            assert!(answer.1.starts_with("[-]webhook failed"), "{path}");
        }
        assert_eq!(get(&server, "/healthz/ping").await, ok());
        readiness.set_hooks(Hooks::Serving);
        for path in ["/healthz", "/readyz", "/healthz/webhook", "/readyz/webhook"] {
            assert_eq!(get(&server, path).await, ok(), "{path}");
        }
    }

    #[tokio::test]
    async fn requests_with_other_methods_are_refused() {
        let server = serve_health("127.0.0.1:0", Readiness::default()).await.unwrap();
        let (status, body) = ask(&server, "HEAD /healthz HTTP/1.1\r\n\r\n").await;
        assert_eq!((status.as_str(), body.as_str()), ("HTTP/1.1 200 OK", ""));
        let (status, _) = ask(&server, "POST /healthz HTTP/1.1\r\n\r\n").await;
        assert_eq!(status, "HTTP/1.1 405 Method Not Allowed");
    }

    /// MET-2
    #[tokio::test]
    async fn metrics_are_served_at_their_path() {
        let metrics = Metrics::default();
        let plane = crate::metrics::PlaneMetrics::new(&metrics);
        plane.controller_started("defined/compositeresourcedefinition");
        let server = serve_metrics("127.0.0.1:0", metrics).await.unwrap();
        let (status, body) = get(&server, "/metrics").await;
        assert_eq!(status, "HTTP/1.1 200 OK");
        let line = "engine_controllers_started_total{\
                    controller=\"defined/compositeresourcedefinition\"} 1";
        assert!(body.lines().any(|l| l == line), "{body}");
        assert_eq!(get(&server, "/").await.0, "HTTP/1.1 404 Not Found");
    }

    #[tokio::test]
    async fn an_address_in_use_is_named() {
        let first = serve_health("127.0.0.1:0", Readiness::default()).await.unwrap();
        let address = first.address().to_owned();
        let error = serve_metrics(&address, Metrics::default()).await.unwrap_err();
        let want = format!("cannot serve metrics at {address}: bind: address already in use");
        assert_eq!(error.to_string(), want);
        drop(first);
    }
}

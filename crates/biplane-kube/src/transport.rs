//! HTTP to the API server: TLS, credentials and connections.
//!
//! kube's own client speaks HTTP/1.1 and opens a connection for every watch and every request in
//! flight. Here, all requests share one HTTP/2 connection. Watches have connections of their own,
//! because a server limits the streams of a connection to a hundred, and watches never end: they
//! would leave no room for requests. Nor do requests pass through a task of kube's, which would cost
//! each of them two more switches between tasks.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

use crate::options::{ConnectError, tls};

/// How many watches share a connection.
const WATCHES: usize = 64;
const CONNECT: Duration = Duration::from_secs(10);
/// A peer that has vanished is noticed after these two.
const PING_AFTER: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(10);
/// What a server may send before we have read it: a stream of a busy kind must not wait for round
/// trips.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Sends requests on a connection, which is made when it is needed.
type Client = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// Connections to one API server.
pub(crate) struct Transport {
    config: Config,
    tls: Arc<rustls::ClientConfig>,
    user_agent: HeaderValue,
    requests: Client,
    watches: Mutex<Vec<(Client, Arc<Semaphore>)>>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("server", &self.config.cluster_url)
            .finish_non_exhaustive()
    }
}

impl Transport {
    /// Prepares connections. None is made before the first request.
    pub(crate) fn new(config: Config, user_agent: &str) -> Result<Self, ConnectError> {
        if let Some(proxy) = &config.proxy_url {
            return Err(ConnectError::Proxy(proxy.to_string()));
        }
        let tls = tls(&config)?;
        let user_agent = HeaderValue::from_str(user_agent).map_err(ConnectError::configuration)?;
        let requests = client(&config, &tls)?;
        Ok(Self { config, tls, user_agent, requests, watches: Mutex::default() })
    }

    /// Sends a request on the shared connection.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, String> {
        self.send_on(&self.requests, request).await
    }

    /// Sends a request whose answer does not end. The permit is returned with the answer and frees
    /// its place on the connection when it is dropped.
    pub(crate) async fn stream(
        &self,
        request: Request<Body>,
    ) -> Result<(Response<Incoming>, OwnedSemaphorePermit), String> {
        let (client, permit) = self.place()?;
        Ok((self.send_on(&client, request).await?, permit))
    }

    /// Finds a connection with room for a watch, or prepares one.
    fn place(&self) -> Result<(Client, OwnedSemaphorePermit), String> {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let free = watches.iter().find_map(|(client, room)| {
            Some((client.clone(), Arc::clone(room).try_acquire_owned().ok()?))
        });
        if let Some(place) = free {
            return Ok(place);
        }
        let client = client(&self.config, &self.tls).map_err(|error| error.to_string())?;
        let room = Arc::new(Semaphore::new(WATCHES));
        let permit = Arc::clone(&room).try_acquire_owned().map_err(|error| error.to_string())?;
        watches.push((client.clone(), room));
        Ok((client, permit))
    }

    async fn send_on(
        &self,
        client: &Client,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, String> {
        request.headers_mut().insert(header::USER_AGENT, self.user_agent.clone());
        client.clone().oneshot(request).await.map_err(|error| reason(&*error))
    }
}

/// An error with its causes. kube's own words for them are left out.
pub(crate) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        let text = error.to_string();
        // Many errors repeat the text of their cause.
        if next.is_none_or(|cause| !text.contains(&cause.to_string())) {
            words.push(text);
        }
    }
    words.dedup();
    words.join(": ")
}

fn client(config: &Config, tls: &Arc<rustls::ClientConfig>) -> Result<Client, ConnectError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    let mut https = HttpsConnectorBuilder::new().with_tls_config((**tls).clone()).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(ConnectError::configuration)?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PONG_WITHIN)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(https.enable_all_versions().wrap_connector(tcp));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(ConnectError::configuration)?)
        .layer(config.extra_headers_layer().map_err(ConnectError::configuration)?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service))
}

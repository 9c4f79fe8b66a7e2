//! Round-robin connections to all addresses of a target.
//!
//! A call never waits for an unreachable address while another one is connected. If none is
//! connected, the call waits. A call to a function that is still starting therefore succeeds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use super::dial::{Ready, Security, dial};
use super::target::{Address, Target};

/// The connections of one target.
#[derive(Debug)]
pub(crate) struct Balance {
    target: Target,
    security: Security,
    endpoint: Endpoint,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    members: Vec<Member>,
    /// The index of the next connection to use.
    next: usize,
    /// A counter that numbers members, to distinguish a connection from its replacement.
    made: u64,
    is_connecting: bool,
    /// When to retry addresses that have no connection.
    retry_at: Option<Instant>,
    waiting: usize,
    last_error: Option<String>,
}

/// A connection to one address.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    id: u64,
    address: Address,
    pub(crate) channel: Channel,
    pub(crate) ready: Ready,
}

/// The retry interval of an unreachable address while others are connected.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How often the server is asked for a sign of life while a call waits for its answer. Servers in Go
/// close a connection on the fourth time within five minutes without an answer to a call.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(50);
/// Without a sign of life for so long, a connection counts as broken.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of a single connection attempt, the same as in gRPC.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

impl Balance {
    pub(crate) fn new(target: Target, security: Security) -> Result<Self, tonic::transport::Error> {
        let scheme = match security {
            Security::Plaintext => "http",
            Security::MutualTls(_) => "https",
        };
        // Connections are opened below. The address of the endpoint is never used.
        let origin = format!("{scheme}://{}", target.authority());
        let origin = Endpoint::from_shared(origin)?.uri().clone();
        let endpoint = Endpoint::from_static("http://localhost")
            .origin(origin)
            .user_agent("biplane")?
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
        Ok(Self { target, security, endpoint, state: Mutex::default(), changed: Notify::new() })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error of the last connection attempt, if it failed.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.state().last_error.clone()
    }

    /// Removes a broken member and records the error.
    pub(crate) fn discard(&self, member: &Member, error: Option<String>) {
        let mut state = self.state();
        state.members.retain(|m| m.id != member.id);
        state.retry_at = Some(Instant::now());
        if error.is_some() {
            state.last_error = error;
        }
    }

    /// Returns the next member, and waits until there is one.
    pub(crate) async fn pick(self: &Arc<Self>) -> Member {
        let _waiting = Waiting::new(self);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state();
                let is_due = state.retry_at.is_some_and(|at| at <= Instant::now());
                if !state.is_connecting && (is_due || state.members.is_empty()) {
                    state.is_connecting = true;
                    tokio::spawn(connect_all(Arc::clone(self)));
                }
                let turn = state.next;
                let place = turn.checked_rem(state.members.len());
                if let Some(member) = place.and_then(|place| state.members.get(place)).cloned() {
                    state.next = turn.wrapping_add(1);
                    return member;
                }
            }
            changed.await;
        }
    }

    /// Connects to all addresses of the target that have no connection. Returns whether all are
    /// connected afterwards.
    async fn connect_missing(self: &Arc<Self>) -> bool {
        let addresses = match self.target.resolve().await {
            Ok(addresses) if !addresses.is_empty() => addresses,
            Ok(_) => {
                self.failed("name resolver error: produced zero addresses".to_owned());
                return false;
            }
            Err(error) => {
                self.failed(format!("name resolver error: {error}"));
                return false;
            }
        };
        let mut attempts = JoinSet::new();
        {
            let mut state = self.state();
            state.members.retain(|m| addresses.contains(&m.address));
            for address in addresses {
                if state.members.iter().all(|m| m.address != address) {
                    attempts.spawn(Arc::clone(self).connect(address));
                }
            }
        }
        let mut complete = true;
        while let Some(attempt) = attempts.join_next().await {
            complete &= attempt.unwrap_or(false);
        }
        complete
    }

    fn failed(&self, error: String) {
        tracing::debug!(target = self.target.as_str(), error, "cannot reach function");
        self.state().last_error = Some(error);
    }

    async fn connect(self: Arc<Self>, address: Address) -> bool {
        let ready = Ready::default();
        let connector = {
            let (address, ready) = (address.clone(), ready.clone());
            let (name, security) = (self.target.server_name().to_owned(), self.security.clone());
            tower::service_fn(move |_: http::Uri| {
                let (address, ready) = (address.clone(), ready.clone());
                let (name, security) = (name.clone(), security.clone());
                async move { dial(&address, &name, &security, ready).await.map(TokioIo::new) }
            })
        };
        let attempt = self.endpoint.connect_with_connector(connector);
        let channel = match tokio::time::timeout(CONNECT_TIMEOUT, attempt).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => {
                self.failed(connection_error(&root_cause(&error)));
                return false;
            }
            Err(_) => {
                let text = format!("transport: Error while dialing: dial {address}: i/o timeout");
                self.failed(connection_error(&text));
                return false;
            }
        };
        let mut state = self.state();
        state.made += 1;
        state.last_error = None;
        let id = state.made;
        state.members.push(Member { id, address, channel, ready });
        drop(state);
        self.changed.notify_waiters();
        true
    }
}

/// Formats a connection error like Go.
pub(crate) fn connection_error(text: &str) -> String {
    format!("connection error: desc = {text:?}")
}

/// Returns the deepest error of this crate, or else the deepest error.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    loop {
        if error.is::<super::dial::DialError>() {
            return error.to_string();
        }
        match error.source() {
            Some(source) => error = source,
            None => return error.to_string(),
        }
    }
}

/// Retries while calls are waiting.
async fn connect_all(balance: Arc<Balance>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let complete = balance.connect_missing().await;
        {
            let mut state = balance.state();
            if complete || state.waiting == 0 || !state.members.is_empty() {
                state.is_connecting = false;
                state.retry_at = (!complete).then(|| Instant::now() + RETRY_INTERVAL);
                drop(state);
                balance.changed.notify_waiters();
                return;
            }
        }
        tokio::time::sleep(pause).await;
        pause = longer(pause);
    }
}

/// Returns the next, longer pause.
pub(crate) fn longer(pause: Duration) -> Duration {
    (pause * 8 / 5).clamp(FIRST_PAUSE, LONGEST_PAUSE)
}

/// Counts a waiting call until it is dropped.
struct Waiting<'a>(&'a Balance);

impl<'a> Waiting<'a> {
    fn new(balance: &'a Balance) -> Self {
        balance.state().waiting += 1;
        Self(balance)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

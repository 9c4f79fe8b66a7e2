//! Connections to every address of a target, used in turn.
//!
//! Calls never wait for an address that does not answer while another one does. With none ready
//! they wait: whoever calls a function that is still starting gets an answer, not an error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use super::dial::{Ready, Security, dial};
use super::target::{Address, Target};

/// Connections of one target.
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
    /// Whose turn it is.
    next: usize,
    /// Numbers members, to tell a connection from its successor.
    made: u64,
    is_connecting: bool,
    /// When to look again for addresses that have no connection.
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

/// How long an address that does not answer is left alone while others do.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// As long as gRPC gives a single attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

impl Balance {
    pub(crate) fn new(target: Target, security: Security) -> Result<Self, tonic::transport::Error> {
        let scheme = match security {
            Security::Plaintext => "http",
            Security::MutualTls(_) => "https",
        };
        // Connections are opened below: the address in the endpoint is never looked at.
        let origin = format!("{scheme}://{}", target.authority());
        let origin = Endpoint::from_shared(origin)?.uri().clone();
        let endpoint =
            Endpoint::from_static("http://localhost").origin(origin).user_agent("biplane")?;
        Ok(Self { target, security, endpoint, state: Mutex::default(), changed: Notify::new() })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the last attempt to connect failed, if it did.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.state().last_error.clone()
    }

    /// Notes that a member is of no use, and why.
    pub(crate) fn discard(&self, member: &Member, error: Option<String>) {
        let mut state = self.state();
        state.members.retain(|m| m.id != member.id);
        state.retry_at = Some(Instant::now());
        if error.is_some() {
            state.last_error = error;
        }
    }

    /// The member whose turn it is, as soon as there is one.
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

    /// Connects to whatever the target stands for and has no connection yet. Says whether all of it
    /// is connected then.
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

/// Go's wrapping of why there is no connection.
pub(crate) fn connection_error(text: &str) -> String {
    format!("connection error: desc = {text:?}")
}

/// The deepest error of ours, or else the deepest of all.
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

/// Keeps trying as long as somebody waits.
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

/// The pause after this one.
pub(crate) fn longer(pause: Duration) -> Duration {
    (pause * 8 / 5).clamp(FIRST_PAUSE, LONGEST_PAUSE)
}

/// Counts a caller in for as long as it waits, also when it gives up.
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

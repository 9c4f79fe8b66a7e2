//! A proxy in front of an API server that delays, holds back, cuts and refuses requests and watches,
//! so that tests can show that a client copes.
//!
//! The proxy listens on the loopback address with TLS. It presents the certificate of the API server,
//! so that a client needs nothing but another URL, and tokens never travel in the clear. It speaks
//! HTTP/1.1 and HTTP/2 with clients and HTTP/2 with the API server, on one connection for each client
//! connection. Requests keep their tokens: the audit log names the user, not the proxy. Upgraded
//! connections (`exec`, `port-forward`) are not supported.

mod asked;
mod forward;
mod rules;
mod status;
mod unanswered;
mod watches;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub use asked::Asked;
pub use rules::RuleId;

use crate::EnvError;
use crate::client::Client;
use crate::common::{Common, url};
use forward::Gate;
use rules::{Rule, Rules};
use watches::{Interruption, Watches};

/// A running proxy. Dropping it closes all connections.
#[derive(Debug)]
pub struct Proxy {
    pub url: String,
    port: u16,
    watch_target: forward::WatchTarget,
    rules: Arc<Rules>,
    watches: Arc<Watches>,
    connections: Arc<forward::Connections>,
    common: Arc<Common>,
    /// The proxy has a runtime of its own: tests without one use it too, and a test that blocks
    /// its threads does not block the proxy.
    runtime: Option<tokio::runtime::Runtime>,
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// What the server says arrives later: each event of a watch, the answer to another request. The
    /// order stays the same.
    Delay(Duration),
    /// What the server says is held back until the rule is removed: events of a watch, also of one
    /// that is open already, and the answer to another request.
    Hold,
    /// The server does not see the request. The client gets an answer with this code and, in
    /// seconds, `Retry-After`.
    Respond { code: u16, retry_after: Option<u32> },
    /// The server does not see the request, and the client gets no answer.
    Cut,
    /// The server does what is asked for, and the client gets no answer.
    LoseAnswer,
}

impl Action {
    /// The answer to a watch from a version that the server has forgotten.
    pub const GONE: Self = Self::Respond { code: 410, retry_after: None };
}

impl Proxy {
    pub(crate) fn start(common: Arc<Common>, target: u16) -> Result<Self, EnvError> {
        let cannot = || EnvError::io("start the proxy");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(cannot())?;
        listener.set_nonblocking(true).map_err(cannot())?;
        let port = listener.local_addr().map_err(cannot())?.port();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("biplane-devenv-proxy")
            .enable_all()
            .build()
            .map_err(cannot())?;
        let (rules, watches) = (Arc::<Rules>::default(), Arc::<Watches>::default());
        let connections = Arc::<forward::Connections>::default();
        let watch_target = forward::WatchTarget::default();
        let (rule, open) = (rules.clone(), watches.clone());
        let gate = Gate::new(&common.identity, target, watch_target.clone(), rule, open)?;
        let listener = {
            let _in_runtime = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(cannot())?
        };
        runtime.spawn(forward::accept(listener, Arc::new(gate), connections.clone()));
        let runtime = Some(runtime);
        let url = url(port);
        Ok(Self { url, port, watch_target, rules, watches, connections, common, runtime })
    }

    /// Writes a kubeconfig of a user that leads through the proxy.
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf, EnvError> {
        self.common.kubeconfig(&format!("proxy-{}", self.port), self.port, user)
    }

    /// A client that sends exactly one request for each call, through the proxy.
    pub fn client(&self, user: &str) -> Result<Client, EnvError> {
        self.common.client(self.port, user)
    }

    /// From now on, lets another API server answer watches.
    pub(crate) fn watch_at(&self, port: u16) {
        self.watch_target.store(port, Ordering::SeqCst);
    }

    /// From now on, does `action` with the requests for which `applies` is true. The first rule that
    /// applies decides.
    pub fn add(
        &self,
        applies: impl Fn(&Asked) -> bool + Send + Sync + 'static,
        action: Action,
    ) -> RuleId {
        self.rules.add(Rule::new(applies, action, None))
    }

    /// Like [`Proxy::add`], for the next `times` requests. [`Action::Delay`] and [`Action::Hold`]
    /// concern all events of such a watch.
    pub fn add_times(
        &self,
        times: usize,
        applies: impl Fn(&Asked) -> bool + Send + Sync + 'static,
        action: Action,
    ) -> RuleId {
        self.rules.add(Rule::new(applies, action, Some(times)))
    }

    /// Removes a rule, and lets go what it held back.
    pub fn remove(&self, rule: RuleId) {
        self.rules.remove(rule);
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.rules.clear();
    }

    /// The number of open watches.
    pub fn watches(&self, applies: impl Fn(&Asked) -> bool) -> usize {
        self.watches.count(applies)
    }

    /// Ends open watches in order, as a server does after some minutes. Returns how many.
    pub fn end_watches(&self, applies: impl Fn(&Asked) -> bool) -> usize {
        self.watches.interrupt(applies, Interruption::End)
    }

    /// Cuts open watches off. Returns how many.
    pub fn cut_watches(&self, applies: impl Fn(&Asked) -> bool) -> usize {
        self.watches.interrupt(applies, Interruption::Cut)
    }

    /// Tells open watches that their version is too old (410, `Expired`), and ends them. What was
    /// held back for them is lost. Returns how many. Watches in Protobuf are cut off instead.
    pub fn expire_watches(&self, applies: impl Fn(&Asked) -> bool) -> usize {
        self.watches.interrupt(applies, Interruption::Expire)
    }

    /// Closes all connections of clients, whatever they do.
    pub fn cut_connections(&self) {
        self.connections.cut();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Does not wait, because a test may drop the proxy in a runtime of its own.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

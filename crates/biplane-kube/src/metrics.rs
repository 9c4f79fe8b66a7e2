//! What is counted: requests, failed watches, events.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Request {
    /// The verb, as in a role: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    /// A server-side apply is an `apply`.
    pub verb: &'static str,
    /// The resource: `plural.group`, or `plural` for the core group. For other requests, what is
    /// asked for: `discovery`, `openapi`.
    pub resource: String,
    /// The status code of the answer, or `error` without one.
    pub code: String,
}

/// The labels of a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Watch {
    /// The resource.
    pub resource: String,
    /// Why it was started again: `error`, or `expired` if everything had to be listed anew.
    pub reason: &'static str,
}

/// The labels of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Sent {
    /// What became of it: `written`, `failed`, or `dropped` because the queue was full.
    pub outcome: &'static str,
}

/// The counters of a cluster. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Requests to the API server.
    pub requests: Family<Request, Counter>,
    /// Watches that were started again after a failure.
    pub restarts: Family<Watch, Counter>,
    /// Events about objects.
    pub events: Family<Sent, Counter>,
}

impl Counters {
    /// Adds the counters to a registry. The encoder adds `_total` to their names.
    pub fn register(&self, registry: &mut Registry) {
        let requests = self.requests.clone();
        registry.register("rest_client_requests", "Requests to the API server", requests);
        let restarts = self.restarts.clone();
        registry.register("watch_restarts", "Watches started again after a failure", restarts);
        registry.register("events", "Events about objects", self.events.clone());
    }
}

//! The `Cluster` port on a Kubernetes API server.
//!
//! Everything is JSON: there are no typed kinds. kube-rs reads kubeconfigs, refreshes credentials and
//! sets up TLS; requests, retries, watches and caches are ours.
//!
//! - [`KubeCluster`] has the verbs. All requests share one HTTP/2 connection, have a deadline and are
//!   bounded in number. Reads, and writes that name the version they replace, are sent again twice
//!   after a passing failure; other writes never are. A server that asks for patience gets it, within
//!   the deadline.
//! - The hub has one watch per kind and selection. Subscriptions and cached reads share it. A cached
//!   read is never older than what this process has read or written: the answer to every request
//!   goes into the cache, and the newest version of an object wins.
//! - Kinds are discovered once, and again when a CustomResourceDefinition changes.
//! - [`EventSink`] writes events about objects, behind a queue.
//!
//! Only this crate may use a Kubernetes client, so that `render` and the reconcilers compile none.

mod api;
mod body;
mod cluster;
mod events;
mod failure;
mod hub;
mod kinds;
mod limit;
pub mod metrics;
mod options;
mod transport;
mod warnings;

pub use cluster::KubeCluster;
pub use events::{EventSink, Now};
pub use options::{ConnectError, Endpoint, Options};

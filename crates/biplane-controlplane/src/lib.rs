//! Runs the engine's reconcilers as controllers: on an API server in real time, or in memory in
//! virtual time.
//!
//! One [`dispatcher::Dispatcher`] owns all watches and all queues. A change of an object is mapped to
//! keys, what the last reconcile of a key has seen already is dropped, the circuit breaker may hold
//! the rest back, and the queue decides when each key is reconciled.
//!
//! What prepares an API server and runs on one is behind the feature `kubernetes`, so that `render`
//! compiles no Kubernetes client.

pub mod breaker;
pub mod composite;
pub mod controller;
pub mod definitions;
pub mod dependencies;
pub mod dispatcher;
pub mod functions;
#[cfg(feature = "kubernetes")]
pub mod init;
#[cfg(feature = "kubernetes")]
pub mod leader;
pub mod metrics;
pub mod plane;
#[cfg(feature = "kubernetes")]
pub mod probes;
pub mod queue;
pub mod registry;
mod scraped;
pub mod seen;
#[cfg(feature = "kubernetes")]
pub mod start;
pub mod timeline;
#[cfg(feature = "kubernetes")]
pub mod webhooks;

pub use breaker::{Breaker, Limits as BreakerLimits};
pub use composite::{CompositeSpec, Perform};
pub use controller::{Controller, Reconcile, Watch};
pub use plane::{ControlPlane, Options};
pub use queue::Key;
pub use registry::{Registry, StartError, Started};
pub use timeline::Timeline;

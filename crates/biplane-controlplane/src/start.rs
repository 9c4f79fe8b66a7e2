//! Runs a control plane on an API server: connects, waits to become the leader, serves probes and
//! metrics, and ends gracefully.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{Cluster, Events, Skipping};
use biplane_engine::SystemClock;
use biplane_engine::Clock as _;
use biplane_function::metrics::Metrics;
use biplane_kube::{ConnectError, EventSink, KubeCluster};
use tokio::time::Instant;

use crate::plane::{self, ControlPlane};
use crate::{composite, definitions, functions};

/// How long events may take to be written after everything else has ended.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// The field manager of events.
const MANAGER: &str = "crossplane";

/// How a control plane runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of its Secrets and its Lease.
    pub namespace: String,
    /// Whether it works only while it holds the Lease.
    pub leader_election: bool,
    /// The port of metrics.
    pub metrics_port: Option<u16>,
    /// The port of probes.
    pub probe_port: Option<u16>,
    /// What happens to applies that would change nothing.
    pub skipping: Skipping,
    /// How composite resources are reconciled.
    pub composites: composite::Settings,
    /// How definitions, claims and Compositions are treated.
    pub definitions: definitions::Options,
    /// How functions are run.
    pub functions: functions::Options,
}

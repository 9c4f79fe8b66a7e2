//! What every reconciler works with: the cluster, the events, the functions, and the sources of
//! time and randomness.

use std::sync::Arc;

use biplane_cluster::{Cluster, Events};
use biplane_runner::{FunctionRunner, Requirements};

use crate::sources::{Clock, Ids};

/// What every reconciler works with.
#[derive(Clone)]
pub struct Context {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Takes events.
    pub events: Arc<dyn Events>,
    /// Runs functions, with all wrappers.
    pub runner: Arc<dyn FunctionRunner>,
    /// Fetches the resources that steps require up front.
    pub requirements: Arc<dyn Requirements>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of unique ids.
    pub ids: Arc<dyn Ids>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

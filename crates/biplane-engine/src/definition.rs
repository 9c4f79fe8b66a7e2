//! The reconciler of definitions (XRDs) that establishes the kind of their composite resources: the
//! CRD, and the controller.

use std::sync::Arc;
use std::time::Duration;

use biplane_schema::xcrd::Kind;

use crate::context::Context;
use crate::controllers::Controllers;
use crate::defining::{self, Defining};
use crate::reconcile::{ReconcileError, Requeue, TIMEOUT};

/// The name of the controller of definitions, on every event of it.
pub const CONTROLLER: &str = defining::DEFINED;

/// Reconciles definitions.
#[derive(Debug)]
pub struct Reconciler {
    inner: Defining,
}

impl Reconciler {
    /// A reconciler that lets `controllers` run.
    pub fn new(context: Context, controllers: Arc<dyn Controllers>) -> Self {
        Self { inner: Defining::new(Kind::Composite, context, controllers, TIMEOUT) }
    }

    /// Sets the time limit of one reconcile.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.inner.timeout = timeout.min(TIMEOUT);
        self
    }

    /// Sets whether composite resources have environments.
    #[must_use]
    pub fn with_environments(mut self, environments: bool) -> Self {
        self.inner.environments = environments;
        self
    }

    /// Establishes the kind of composite resources, or removes it with its definition.
    ///
    /// A conflict is not a failure, wherever it happens. The next reconcile sees the other write.
    pub async fn reconcile(&self, _namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
        self.inner.reconcile(name).await
    }
}

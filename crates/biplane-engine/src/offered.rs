//! The reconciler of definitions (XRDs) that offers claims of their composite resources: the CRD of
//! the claims, and their controller.

use std::sync::Arc;
use std::time::Duration;

use biplane_schema::xcrd::Kind;

use crate::context::Context;
use crate::controllers::Controllers;
use crate::defining::{self, Defining};
use crate::reconcile::{ReconcileError, Requeue};

/// The name of the controller of offered claims, on every event of it.
pub const CONTROLLER: &str = defining::OFFERED;

const TIMEOUT: Duration = Duration::from_mins(1);

/// Reconciles definitions that offer claims. Others are left alone.
#[derive(Debug)]
pub struct Reconciler {
    inner: Defining,
}

impl Reconciler {
    /// A reconciler that lets `controllers` run.
    pub fn new(context: Context, controllers: Arc<dyn Controllers>) -> Self {
        Self { inner: Defining::new(Kind::Claim, context, controllers, TIMEOUT) }
    }

    /// Offers claims, or removes them with their definition.
    ///
    /// A conflict is not a failure, wherever it happens. The next reconcile sees the other write.
    pub async fn reconcile(&self, _namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
        self.inner.reconcile(name).await
    }
}

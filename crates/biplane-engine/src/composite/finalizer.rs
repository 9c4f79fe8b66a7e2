//! The finalizer that keeps a composite resource until the reconciler has handled its deletion.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_cluster::Cluster;
use biplane_cluster::cluster::Optional;
use biplane_model::{Object, Value};

use super::XR;
use crate::failure::{Attempted, Failure};

const FINALIZER: &str = "composite.apiextensions.crossplane.io";

/// Adds and removes the finalizer.
#[async_trait]
pub trait Finalizer: Send + Sync {
    /// Adds the finalizer if it is missing. It is written with the other changes.
    fn add(&self, xr: &mut XR);
    /// Removes the finalizer if it is set. Returns the stored object if anything was written.
    async fn remove(&self, xr: &Object) -> Result<Option<Object>, Failure>;
}

/// A finalizer that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFinalizer;

#[async_trait]
impl Finalizer for NoFinalizer {
    fn add(&self, _xr: &mut XR) {}

    async fn remove(&self, _xr: &Object) -> Result<Option<Object>, Failure> {
        Ok(None)
    }
}

/// Adds and removes the finalizer in the cluster.
#[derive(Clone)]
pub struct RealFinalizer(pub Arc<dyn Cluster>);

impl std::fmt::Debug for RealFinalizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RealFinalizer")
    }
}

fn finalizers(xr: &Object) -> Vec<Value> {
    let all = xr.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    all.cloned().unwrap_or_default()
}

#[async_trait]
impl Finalizer for RealFinalizer {
    fn add(&self, xr: &mut XR) {
        let mut all = finalizers(&xr.object);
        if !all.iter().any(|f| f == FINALIZER) {
            all.push(FINALIZER.into());
            xr.object.set_at(&["metadata", "finalizers"], all);
            xr.changed();
        }
    }

    async fn remove(&self, xr: &Object) -> Result<Option<Object>, Failure> {
        let mut all = finalizers(xr);
        let before = all.len();
        all.retain(|f| f != FINALIZER);
        if all.len() == before {
            return Ok(None);
        }
        let mut object = xr.clone();
        if all.is_empty() {
            object.remove_at(&["metadata", "finalizers"]);
        } else {
            object.set_at(&["metadata", "finalizers"], all);
        }
        self.0.update(&object).await.optional().attempted("cannot update object")
    }
}

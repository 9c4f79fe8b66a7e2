//! Publishes connection details to the connection secret of a legacy composite resource.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_cluster::cluster::Optional;
use biplane_cluster::{Cluster, Patch, Source};
use biplane_model::owner::{OwnerReference, controller_of, set_controller};
use biplane_model::{Gvk, Map, Object, ObjectId, Value};
use serde_json::json;

use super::observe::Details;
use crate::failure::{Attempted, Failure};
use biplane_go::fmt::quote;
use biplane_model::layout::Layout;

const SECRET_TYPE: &str = "connection.crossplane.io/v1alpha1";

/// Publishes connection details.
#[async_trait]
pub trait Publish: Send + Sync {
    /// Publishes the details and returns whether anything was written.
    async fn publish(&self, xr: &Object, details: &Details) -> Result<bool, Failure>;
}

/// A publisher that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPublisher;

#[async_trait]
impl Publish for NoPublisher {
    async fn publish(&self, _xr: &Object, _details: &Details) -> Result<bool, Failure> {
        Ok(false)
    }
}

/// Publishes to a Secret.
#[derive(Clone)]
pub struct SecretPublisher {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Where the reference to the Secret is.
    pub layout: Layout,
    /// The keys to publish. All keys if empty.
    pub keys: BTreeSet<String>,
}

impl std::fmt::Debug for SecretPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretPublisher").field("keys", &self.keys).finish_non_exhaustive()
    }
}

#[async_trait]
impl Publish for SecretPublisher {
    async fn publish(&self, xr: &Object, details: &Details) -> Result<bool, Failure> {
        let Some(reference) = self.layout.connection_secret(xr) else { return Ok(false) };
        let data: Map<String, Value> = details
            .iter()
            .filter(|(key, _)| self.keys.is_empty() || self.keys.contains(*key))
            .map(|(key, value)| (key.clone(), STANDARD.encode(value).into()))
            .collect();
        let id = ObjectId::new(Gvk::new("v1", "Secret"), &reference.namespace, &reference.name);
        self.apply(xr, &id, data).await.attempted("cannot apply connection secret")
    }
}

impl SecretPublisher {
    async fn apply(
        &self,
        xr: &Object,
        id: &ObjectId,
        data: Map<String, Value>,
    ) -> Result<bool, Failure> {
        let mut secret = Object::new();
        secret.set_at(&["apiVersion"], "v1");
        secret.set_at(&["kind"], "Secret");
        secret.set_meta("name", &id.name);
        secret.set_meta("namespace", &id.namespace);
        secret.set_at(&["type"], SECRET_TYPE);
        set_controller(&mut secret, OwnerReference::controller(xr))
            .map_err(|e| Failure::new(e.to_string()))?;
        secret.set_at(&["data"], data.clone());
        let current = self.cluster.get(id, Source::Live).await.optional();
        let Some(current) = current.attempted("cannot get object")? else {
            self.cluster.create(secret).await.attempted("cannot create object")?;
            return Ok(true);
        };
        match controller_of(&current) {
            None if current.str_at(&["type"]) != SECRET_TYPE => {
                return Err(Failure::new(format!(
                    "refusing to modify uncontrolled secret of type {}",
                    quote(current.str_at(&["type"]))
                )));
            }
            Some(controller) if controller.uid != xr.uid() => {
                return Err(Failure::new(format!(
                    "existing secret is not controlled by UID {}",
                    quote(xr.uid())
                )));
            }
            _ => {}
        }
        // Other keys of the Secret are kept, so they do not count as a difference.
        if data.iter().all(|(key, value)| current.at(&["data", key]) == Some(value)) {
            return Ok(false);
        }
        let owners = secret.at(&["metadata", "ownerReferences"]).cloned().unwrap_or_default();
        let patch =
            json!({"metadata": {"ownerReferences": owners}, "type": SECRET_TYPE, "data": data});
        self.cluster.patch(id, &Patch::Merge(patch)).await.attempted("cannot patch object")?;
        Ok(true)
    }
}

//! Writes connection secrets: Secrets with connection details that a composite resource or a claim
//! owns.

use biplane_cluster::{Cluster, Optional, Part, Patch, Precondition, Source, Write};
use biplane_go::fmt::quote;
use biplane_model::owner::{OwnerReference, controller_of, set_controller};
use biplane_model::{Gvk, Map, Object, ObjectId, Value};
use serde_json::json;
use tokio::time::Instant;

use crate::draft::MANAGER;
use crate::failure::{Attempted, Failure};

const TYPE: &str = "connection.crossplane.io/v1alpha1";

/// The id of a Secret.
pub(crate) fn id(namespace: &str, name: &str) -> ObjectId {
    ObjectId::new(Gvk::new("v1", "Secret"), namespace, name)
}

/// What happens to keys that a Secret has and that are not to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherKeys {
    /// They stay, and do not count as a difference.
    Keep,
    /// They are removed.
    Remove,
}

/// Writes a Secret that `owner` controls, if its data differ. Returns whether anything was written.
pub(crate) async fn write(
    cluster: &dyn Cluster,
    owner: &Object,
    id: &ObjectId,
    data: Map<String, Value>,
    others: OtherKeys,
    by: Instant,
) -> Result<bool, Failure> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": TYPE, "data": data,
        "metadata": {"name": id.name, "namespace": id.namespace},
    });
    let mut secret = Object::from_value(secret).unwrap_or_default();
    set_controller(&mut secret, OwnerReference::controller(owner))
        .map_err(|e| Failure::new(e.to_string()))?;
    let current = cluster.get(id, Source::Cache, by).await.optional();
    let Some(current) = current.attempted("cannot get object")? else {
        let created = cluster.create(secret, &Write::by(MANAGER), by).await;
        created.attempted("cannot create object")?;
        return Ok(true);
    };
    match controller_of(&current) {
        None if current.str_at(&["type"]) != TYPE => {
            return Err(Failure::new(format!(
                "refusing to modify uncontrolled secret of type {}",
                quote(current.str_at(&["type"]))
            )));
        }
        Some(controller) if controller.uid != owner.uid() => {
            return Err(Failure::new(format!(
                "existing secret is not controlled by UID {}",
                quote(owner.uid())
            )));
        }
        _ => {}
    }
    let mut changes = data;
    let what = match others {
        OtherKeys::Keep => "cannot patch object",
        OtherKeys::Remove => {
            let present = current.get("data").and_then(Value::as_object);
            for key in present.into_iter().flat_map(Map::keys) {
                changes.entry(key.clone()).or_insert(Value::Null);
            }
            "cannot update object"
        }
    };
    if changes.iter().all(|(key, value)| current.at(&["data", key]) == Some(value)) {
        return Ok(false);
    }
    let owners = secret.at(&["metadata", "ownerReferences"]).cloned().unwrap_or_default();
    let patch = json!({"metadata": {"ownerReferences": owners}, "type": TYPE, "data": changes});
    // The checks above hold for this very Secret only.
    let how = Write::by(MANAGER).only_if(Precondition::unchanged(&current));
    let patched = cluster.patch(id, Part::Main, &Patch::Merge(patch), &how, by).await;
    patched.attempted(what)?;
    Ok(true)
}

//! Publishes connection details to the connection secret of a legacy composite resource.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_cluster::{Optional, Part, Patch, Precondition, Source, Write};
use biplane_go::fmt::quote;
use biplane_model::owner::{OwnerReference, controller_of, set_controller};
use biplane_model::{Gvk, Map, Object, ObjectId, Value};
use serde_json::json;

use super::observe::Details;
use super::pass::Pass;
use super::persist::MANAGER;
use crate::failure::{Attempted, Failure};

const SECRET_TYPE: &str = "connection.crossplane.io/v1alpha1";

/// Publishes the details and returns whether anything was written.
pub(super) async fn publish(
    pass: &Pass<'_>,
    xr: &Object,
    details: &Details,
) -> Result<bool, Failure> {
    let Some(keys) = &pass.behaviour().publish else { return Ok(false) };
    let Some(reference) = pass.layout().connection_secret(xr) else { return Ok(false) };
    let data: Map<String, Value> = details
        .iter()
        .filter(|(key, _)| keys.is_empty() || keys.contains(*key))
        .map(|(key, value)| (key.clone(), STANDARD.encode(value).into()))
        .collect();
    let id = ObjectId::new(Gvk::new("v1", "Secret"), &reference.namespace, &reference.name);
    apply(pass, xr, &id, data).await.attempted("cannot apply connection secret")
}

async fn apply(
    pass: &Pass<'_>,
    xr: &Object,
    id: &ObjectId,
    data: Map<String, Value>,
) -> Result<bool, Failure> {
    let cluster = pass.cluster();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "data": data,
        "metadata": {"name": id.name, "namespace": id.namespace},
    });
    let mut secret = Object::from_value(secret).unwrap_or_default();
    set_controller(&mut secret, OwnerReference::controller(xr))
        .map_err(|e| Failure::new(e.to_string()))?;
    let current = cluster.get(id, Source::Cache, pass.by).await.optional();
    let Some(current) = current.attempted("cannot get object")? else {
        let created = cluster.create(secret, &Write::by(MANAGER), pass.by).await;
        created.attempted("cannot create object")?;
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
    let patch = json!({"metadata": {"ownerReferences": owners}, "type": SECRET_TYPE, "data": data});
    // The checks above hold for this very Secret only.
    let how = Write::by(MANAGER).only_if(Precondition::unchanged(&current));
    let patched = cluster.patch(id, Part::Main, &Patch::Merge(patch), &how, pass.by).await;
    patched.attempted("cannot patch object")?;
    Ok(true)
}

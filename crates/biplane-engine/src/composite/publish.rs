//! Publishes connection details to the connection secret of a legacy composite resource.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_model::{Map, Object, Value};

use super::observe::Details;
use super::pass::Pass;
use crate::connection_secret::{self, OtherKeys};
use crate::failure::{Attempted, Failure};

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
    let id = connection_secret::id(&reference.namespace, &reference.name);
    connection_secret::write(pass.cluster(), xr, &id, data, OtherKeys::Keep, pass.by)
        .await
        .attempted("cannot apply connection secret")
}

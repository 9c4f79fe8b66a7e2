//! Propagates connection details from the connection secret of a composite resource to that of its
//! claim.

use biplane_cluster::Source;
use biplane_model::layout::Layout;
use biplane_model::owner::controller_of;
use biplane_model::{Object, Value};

use super::Pass;
use crate::connection_secret::{self, OtherKeys};
use crate::failure::{Attempted, Failure};

/// What was done with connection details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagated {
    /// One of the two does not want them.
    Nothing,
    /// The claim's Secret had them already.
    Already,
    /// The claim's Secret was written.
    Written,
}

/// Propagates connection details to the claim.
pub(super) async fn propagate(
    pass: &Pass<'_>,
    claim: &Object,
    xr: &Object,
) -> Result<Propagated, Failure> {
    let to = claim.at(&["spec", "writeConnectionSecretToRef"]).filter(|to| to.is_object());
    let (Some(from), Some(to)) = (Layout::Legacy.connection_secret(xr), to) else {
        return Ok(Propagated::Nothing);
    };
    let id = connection_secret::id(&from.namespace, &from.name);
    let found = pass.cluster().get(&id, Source::Cache, pass.by).await;
    let secret = found.attempted("cannot get composite resource's connection secret")?;
    // Otherwise a composite resource could be used to read any Secret.
    if controller_of(&secret).is_none_or(|controller| controller.uid != xr.uid()) {
        return Err(Failure::new("cannot establish control of existing connection secret"));
    }
    let data = secret.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
    let name = to.get("name").and_then(Value::as_str).unwrap_or_default();
    let id = connection_secret::id(claim.namespace(), name);
    let (others, by) = (OtherKeys::Remove, pass.by);
    let written = connection_secret::write(pass.cluster(), claim, &id, data, others, by).await;
    let written = written.attempted("cannot create or update connection secret")?;
    Ok(if written { Propagated::Written } else { Propagated::Already })
}

//! Sets the label and the reference that a composite resource needs before it is composed.

use biplane_model::pipeline::CompositionSpec;
use biplane_model::{labels, layout::Layout};

use super::pass::XR;
use crate::failure::Failure;

/// Sets the label and the reference to the connection secret if they are missing.
pub(super) fn configure(
    layout: Layout,
    xr: &mut XR,
    revision: &CompositionSpec,
) -> Result<(), Failure> {
    if xr.object.label(labels::COMPOSITE).is_empty() {
        let name = xr.object.name().to_owned();
        xr.object.add_texts("labels", [(labels::COMPOSITE, name.as_str())]);
        xr.changed();
    }
    let kind = &revision.composite_type_ref;
    if kind.api_version != xr.object.api_version() || kind.kind != xr.object.kind() {
        return Err(Failure::new(
            "referenced composition is not compatible with this composite resource",
        ));
    }
    if layout.connection_secret(&xr.object).is_none()
        && let Some(namespace) = &revision.write_connection_secrets_to_namespace
    {
        let name = xr.object.uid().to_owned();
        // A spec that is not an object cannot hold the reference. Crossplane ignores that.
        let _ = layout.set_connection_secret(&mut xr.object, &name, namespace);
        // Modern composite resources have no such reference, but Crossplane writes them anyway.
        xr.changed();
    }
    Ok(())
}

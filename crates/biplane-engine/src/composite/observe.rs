//! Reads the observed state: the composed resources that a composite resource references, and
//! connection details.

use std::collections::BTreeMap;

use biplane_cluster::{Optional, Source};
use biplane_go::json;
use biplane_model::owner::is_controlled_by_another;
use biplane_model::{Gvk, Object, ObjectId};
use biplane_proto::function::v1::{Resource, State};

use super::pass::Pass;
use crate::failure::{Attempted, Failure};
use crate::pipeline::secret_data;
use biplane_go::fmt::quote;
use biplane_model::labels;

/// Connection details: decoded bytes by key.
pub(super) type Details = BTreeMap<String, Vec<u8>>;

/// A composed resource that exists.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The object.
    pub(super) object: Object,
    /// Its connection details.
    pub(super) details: Details,
}

/// Returns the existing composed resources, by their name in the pipeline.
pub(super) async fn composed(
    pass: &Pass<'_>,
    xr: &Object,
) -> Result<BTreeMap<String, Observed>, Failure> {
    let mut all = BTreeMap::new();
    for reference in pass.layout().resources(xr) {
        if reference.name.is_empty() {
            continue;
        }
        let namespace =
            if xr.namespace().is_empty() { &reference.namespace } else { xr.namespace() };
        let gvk = Gvk::new(&reference.api_version, &reference.kind);
        let id = ObjectId::new(gvk, namespace, &reference.name);
        let Some(object) = get(pass, &id).await.attempted("cannot get composed resource")? else {
            continue;
        };
        has_kind(&object).attempted("cannot get composed resource")?;
        if is_controlled_by_another(&object, xr.uid()) {
            continue;
        }
        let name = object.annotation(labels::RESOURCE_NAME).to_owned();
        if name.is_empty() {
            return Err(Failure::new(format!(
                "encountered composed resource without required \"{}\" annotation",
                labels::RESOURCE_NAME
            )));
        }
        let details = details(pass, &object).await.attempted(format_args!(
            "cannot fetch connection details for composed resource {} (a {} named {})",
            quote(&name),
            object.kind(),
            object.name()
        ))?;
        all.insert(name, Observed { object, details });
    }
    Ok(all)
}

/// Fails for a stored object without a kind, which cannot be read.
pub(super) fn has_kind(object: &Object) -> Result<(), Failure> {
    if object.kind().is_empty() {
        let text = json::to_string(&object.to_value());
        return Err(Failure::new(format!("Object 'Kind' is missing in '{text}'")));
    }
    Ok(())
}

/// Reads from the cache, then from the server: the cache may miss a recently created object.
pub(super) async fn get(pass: &Pass<'_>, id: &ObjectId) -> Result<Option<Object>, Failure> {
    match pass.cluster().get(id, Source::Cache, pass.by).await.optional()? {
        Some(object) => Ok(Some(object)),
        None => Ok(pass.cluster().get(id, Source::Live, pass.by).await.optional()?),
    }
}

/// Returns the connection details of the object's `spec.writeConnectionSecretToRef`.
pub(super) async fn details(pass: &Pass<'_>, owner: &Object) -> Result<Details, Failure> {
    let reference = ["spec", "writeConnectionSecretToRef"];
    if !owner.at(&reference).is_some_and(biplane_model::Value::is_object) {
        return Ok(Details::new());
    }
    let at = |key| owner.str_at(&[reference[0], reference[1], key]);
    // The reference of a namespaced object is to its own namespace. In v1 it was not.
    let given = owner.namespace().is_empty()
        || (pass.behaviour().release.is_v1() && !at("namespace").is_empty());
    let namespace = if given { at("namespace") } else { owner.namespace() };
    let id = ObjectId::new(Gvk::new("v1", "Secret"), namespace, at("name"));
    let what = "cannot get connection secret of composed resource";
    match pass.cluster().get(&id, Source::Cache, pass.by).await.optional().attempted(what)? {
        Some(secret) => secret_data(&secret).attempted(what),
        None => Ok(Details::new()),
    }
}

/// Builds the observed state of a function request.
pub(super) fn state(xr: &Object, details: Details, composed: &BTreeMap<String, Observed>) -> State {
    let resource = |object: &Object, details: Details| Resource {
        resource: Some(object.clone().into()),
        connection_details: details,
        ..Resource::default()
    };
    State {
        composite: Some(resource(xr, details)),
        resources: composed
            .iter()
            .map(|(name, observed)| {
                (name.clone(), resource(&observed.object, observed.details.clone()))
            })
            .collect(),
    }
}

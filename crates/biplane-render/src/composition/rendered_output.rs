//! Writes the outcome of a reconcile by another engine to the API server, as the reconciler would have
//! done it.

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_cluster::{
    Apply, Delete, Effect, Optional as _, Part, Patch, Propagation, Source, Write,
};
use biplane_engine::Requeue;
use biplane_engine::composite::dependencies::{Requirement, Tracked};
use biplane_engine::composite::{COMPOSITE_MANAGER, Reconciler, composed_manager};
use biplane_model::labels::{COMPOSITE, RESOURCE_NAME};
use biplane_model::{Object, ObjectId, Value};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::CompositeOutput;
use serde_json::json;
use tokio::time::Instant;

/// The field manager of everything but composed resources and the status.
const MANAGER: &str = "crossplane";

/// Writes the outcome, and remembers what the composite resource depends on.
pub(super) async fn write(
    reconciler: &Reconciler,
    xr: &Object,
    composition: &str,
    output: CompositeOutput,
    by: Instant,
) -> Result<Requeue> {
    let (cluster, id) = (&reconciler.context.cluster, xr.id());
    let mut wrote = false;
    for deleted in &output.deleted_resources {
        let how = Delete::with(Propagation::Foreground);
        let gone = cluster.delete(&deleted.id(), &how, by).await.optional();
        wrote |= gone.map_err(|error| anyhow!(error.to_string()))?.is_some();
    }
    let after = output.composite_resource.unwrap_or_default();
    if is_update(&after) && !after.annotation(RESOURCE_NAME).is_empty() {
        bail!("a composite resource composes itself: {id} composes {id}");
    }
    if let Some(changes) = changes(reconciler, xr, composition, &after) {
        let (how, patch) = (Write::by(MANAGER), Patch::Merge(changes));
        let patched = cluster.patch(&id, Part::Main, &patch, &how, by).await;
        patched
            .map_err(|error| anyhow!(error.to_string()))
            .context(format!("cannot update {id}"))?;
    }
    let how = Apply::forced(composed_manager(xr));
    let mut tracked = Tracked::default();
    for composed in &output.composed_resources {
        let composed_id = composed.id();
        let known = cluster.get(&composed_id, Source::Cache, by).await.ok();
        let applied = cluster.apply(composed.object(), Part::Main, known.as_ref(), &how, by).await;
        let applied = applied
            .map_err(|error| anyhow!(error.to_string()))
            .with_context(|| format!("cannot apply {composed_id}"))?;
        wrote |= matches!(applied.effect, Effect::Created | Effect::Changed);
        tracked.composed.push(composed_id);
    }
    let told = write_status(reconciler, &id, xr, &after, by).await?;
    tracked.requirements = output.required_resources.iter().filter_map(requirement).collect();
    reconciler.dependencies.track(&id, tracked).await.map_err(|error| anyhow!("{error}"))?;
    Ok(if wrote || told { Requeue::Again } else { Requeue::No })
}

/// Whether the engine returned only the changed fields of a composite resource. If nothing was
/// reconciled, for example because it is paused, the engine returns the whole input with its
/// resource version.
fn is_update(after: &Struct) -> bool {
    after.resource_version().is_empty()
}

/// What the reconciler writes to a composite resource besides its status: references, and once the
/// Composition and the label with the name of the top-level composite resource.
fn changes(
    reconciler: &Reconciler,
    xr: &Object,
    composition: &str,
    after: &Struct,
) -> Option<Value> {
    let mut changes = Object::new();
    if let Some(spec) = after.get("spec").filter(|spec| spec.is_object()) {
        changes.set_at_or_ignore(&["spec"], spec.clone());
    }
    if is_update(after) {
        if xr.label(COMPOSITE).is_empty() {
            changes.set_at_or_ignore(&["metadata", "labels", COMPOSITE], xr.name());
        }
        let machinery = reconciler.behaviour.layout.machinery();
        let path = [machinery, &["compositionRef", "name"]].concat();
        changes.set_at_or_ignore(&path, composition);
    }
    (!changes.is_empty()).then(|| changes.into_value())
}

/// Writes the status. Returns whether functions see something new in it.
async fn write_status(
    reconciler: &Reconciler,
    id: &ObjectId,
    xr: &Object,
    after: &Struct,
    by: Instant,
) -> Result<bool> {
    let cluster = &reconciler.context.cluster;
    let mut intent = json!({"apiVersion": id.gvk.api_version(), "kind": id.gvk.kind,
        "metadata": {"name": id.name}});
    if let Some(status) = after.get("status").filter(|status| status.is_object()) {
        intent["status"] = status.clone();
    }
    let mut intent = Object::from_value(intent).unwrap_or_default();
    intent.set_meta("namespace", &id.namespace);
    let how = Apply::forced(COMPOSITE_MANAGER);
    let applied = cluster.apply(&intent, Part::Status, None, &how, by).await;
    let applied = applied
        .map_err(|error| anyhow!(error.to_string()))
        .with_context(|| format!("cannot update the status of {id}"))?;
    let fields = |object: &Object| {
        let status = object.get("status").and_then(Value::as_object);
        let mut fields = status.cloned().unwrap_or_default();
        fields.remove("conditions");
        fields
    };
    Ok(fields(xr) != fields(&applied.object))
}

/// A requirement that an engine tells of. It does not say which step it is of.
fn requirement(selector: &Struct) -> Option<Requirement> {
    let selector = serde_json::from_value(selector.object().to_value()).ok()?;
    Some(Requirement { step: String::new(), name: String::new(), selector })
}

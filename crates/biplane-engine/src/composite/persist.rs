//! How a composite resource is written: its metadata and spec, its references, its status.
//!
//! [`Writing::Stepwise`] makes the calls of Crossplane. [`Writing::AtOnce`] gathers everything in
//! one patch before the first composed resource is applied and one write of the status at the end.
//! Both hold a lock in the form of the version that was read: a write that happened in between is a
//! conflict, and the next reconcile sees it.
//!
//! At once, the status is applied when the pipeline has run to its end, so that fields which
//! functions do not desire any more are removed. Otherwise, what functions desire is not known: the
//! status is patched, and fields that the functions set earlier stay.

use biplane_cluster::{Apply, Optional, Part, Patch, Precondition, Write};
use biplane_model::condition::{conditions, merge, replace_conditions};
use biplane_model::{Object, Value};
use serde_json::json;
use tokio::time::Instant;

use super::behaviour::Writing;
use super::pass::{Pass, XR};
use super::{HANDLED_REQUEST, mark_responsive};
pub(super) use crate::draft::MANAGER;
use crate::draft::{difference, difference_but_status, finalizers};
use crate::failure::{Attempted, Failure};

/// The field manager of the references and the status of composite resources.
pub const COMPOSITE_MANAGER: &str = "apiextensions.crossplane.io/composite";
const FINALIZER: &str = "composite.apiextensions.crossplane.io";

/// Writes everything but the status, if it differs. Keeps the pending status, because the response
/// has only the stored one.
pub(super) async fn write(pass: &Pass<'_>, xr: &mut XR, by: Instant) -> Result<(), Failure> {
    const WHAT: &str = "cannot update composite resource";
    match pass.behaviour().writing {
        Writing::Stepwise => {
            if !std::mem::take(&mut xr.unwritten) {
                return Ok(());
            }
            let pending = conditions(&xr.object);
            let token = xr.object.at(&HANDLED_REQUEST).cloned();
            let how = Write::by(MANAGER);
            let written = pass.cluster().update(&xr.object, Part::Main, &how, by).await;
            xr.object = written.attempted(WHAT)?;
            xr.stored = xr.object.clone();
            if conditions(&xr.object) != pending {
                replace_conditions(&mut xr.object, &pending);
            }
            if let Some(token) = token {
                xr.object.set_at_or_ignore(&HANDLED_REQUEST, token);
            }
            Ok(())
        }
        Writing::AtOnce { .. } => {
            xr.unwritten = false;
            let Some(changes) = difference_but_status(&xr.stored, &xr.object) else {
                return Ok(());
            };
            let how = Write::by(MANAGER).only_if(Precondition::unchanged(&xr.stored));
            let (id, patch) = (xr.stored.id(), Patch::Merge(changes));
            let written = pass.cluster().patch(&id, Part::Main, &patch, &how, by).await;
            let written = written.attempted(WHAT)?;
            answered(xr, written);
            // The write counts as a new generation if it changed the spec.
            mark_responsive(pass, xr, &id);
            Ok(())
        }
    }
}

/// Takes over the server's answer to a write of everything but the status. The pending status stays.
fn answered(xr: &mut XR, written: Object) {
    let pending = xr.object.get("status").cloned();
    xr.object = written.clone();
    xr.stored = written;
    if let Some(status) = pending {
        xr.object.make_mut().insert("status".into(), status);
    }
}

/// Gives up the status that functions desire, because the server refuses it. What the reconciler
/// adds to the stored status is kept.
pub(super) fn without_desired_status(xr: &mut XR) {
    let pending = conditions(&xr.object);
    let object = xr.object.make_mut();
    match xr.stored.get("status") {
        Some(status) => object.insert("status".into(), status.clone()),
        None => object.remove("status"),
    };
    replace_conditions(&mut xr.object, &pending);
    xr.whole_status = false;
}

/// Writes the status.
pub(super) async fn write_status(pass: &Pass<'_>, xr: &mut XR) -> Result<(), Failure> {
    const WHAT: &str = "cannot update composite resource status";
    let cluster = pass.cluster();
    match pass.behaviour().writing {
        Writing::Stepwise => {
            let how = Write::by(MANAGER);
            let written = cluster.update(&xr.object, Part::Status, &how, pass.status_by).await;
            written.attempted(WHAT)?;
        }
        Writing::AtOnce { .. } if xr.whole_status => {
            let mut intent = identity(&xr.object);
            intent.set_meta("uid", xr.object.uid());
            if let Some(status) = xr.object.get("status") {
                intent.make_mut().insert("status".into(), status.clone());
            }
            let fence = Precondition::unchanged(&xr.stored);
            let how = Apply::forced(COMPOSITE_MANAGER).only_if(fence);
            let (part, known) = (Part::Status, Some(&xr.stored));
            let applied = cluster.apply(&intent, part, known, &how, pass.status_by).await;
            xr.stored = applied.attempted(WHAT)?.object;
            // What a patch has added to a condition, such as the message of a failure, an apply
            // cannot remove.
            let there = ["status", "conditions"];
            if xr.stored.at(&there) == xr.object.at(&there) {
                return Ok(());
            }
            let mut all = conditions(&xr.stored);
            merge(&mut all, conditions(&xr.object));
            if all != conditions(&xr.stored) {
                let how = Write::by(MANAGER).only_if(Precondition::unchanged(&xr.stored));
                let patch = Patch::Merge(json!({"status": {"conditions": all}}));
                let id = xr.stored.id();
                let written = cluster.patch(&id, Part::Status, &patch, &how, pass.status_by).await;
                xr.stored = written.attempted(WHAT)?;
            }
        }
        Writing::AtOnce { .. } => {
            let changes = difference(xr.stored.get("status"), xr.object.get("status"));
            let Some(changes) = changes else { return Ok(()) };
            let how = Write::by(MANAGER).only_if(Precondition::unchanged(&xr.stored));
            let (id, patch) = (xr.stored.id(), Patch::Merge(json!({"status": changes})));
            let written = cluster.patch(&id, Part::Status, &patch, &how, pass.status_by).await;
            xr.stored = written.attempted(WHAT)?;
        }
    }
    Ok(())
}

/// The identity of an object, to apply to it.
pub(super) fn identity(xr: &Object) -> Object {
    let mut intent = Object::new();
    for (key, value) in [("apiVersion", xr.api_version()), ("kind", xr.kind())] {
        intent.make_mut().insert(key.to_owned(), value.into());
    }
    intent.set_meta("namespace", xr.namespace());
    intent.set_meta("name", xr.name());
    intent
}

/// Adds the finalizer if it is missing. It is written with the other changes.
pub(super) fn add_finalizer(pass: &Pass<'_>, xr: &mut XR) -> Result<(), Failure> {
    let mut all = finalizers(&xr.object);
    if pass.behaviour().finalizer && !all.iter().any(|f| f == FINALIZER) {
        all.push(FINALIZER.into());
        xr.object.set_at(&["metadata", "finalizers"], all)?;
        xr.changed();
    }
    Ok(())
}

/// Removes the finalizer if it is set. Returns whether the composite resource is gone.
pub(super) async fn remove_finalizer(pass: &Pass<'_>, xr: &mut XR) -> Result<bool, Failure> {
    const WHAT: &str = "cannot update object";
    let mut all = finalizers(&xr.object);
    let before = all.len();
    all.retain(|f| f != FINALIZER);
    if !pass.behaviour().finalizer || all.len() == before {
        return Ok(false);
    }
    let pending = conditions(&xr.object);
    let written = match pass.behaviour().writing {
        Writing::Stepwise => {
            let mut object = xr.object.clone();
            if all.is_empty() {
                object.remove_at(&["metadata", "finalizers"]);
            } else {
                object.set_at(&["metadata", "finalizers"], all)?;
            }
            pass.cluster().update(&object, Part::Main, &Write::by(MANAGER), pass.by).await
        }
        Writing::AtOnce { .. } => {
            let all = if all.is_empty() { Value::Null } else { all.into() };
            let patch = Patch::Merge(json!({"metadata": {"finalizers": all}}));
            let how = Write::by(MANAGER).only_if(Precondition::unchanged(&xr.stored));
            pass.cluster().patch(&xr.stored.id(), Part::Main, &patch, &how, pass.by).await
        }
    };
    let Some(written) = written.optional().attempted(WHAT)? else {
        return Ok(pass.behaviour().writing != Writing::Stepwise);
    };
    match pass.behaviour().writing {
        Writing::Stepwise => {
            xr.object = written;
            replace_conditions(&mut xr.object, &pending);
            Ok(false)
        }
        Writing::AtOnce { .. } => {
            answered(xr, written);
            Ok(finalizers(&xr.stored).is_empty())
        }
    }
}

//! Syncs a claim with its composite resource, with server-side apply or with patches.

use biplane_cluster::{Apply, Optional, Part, Patch, Precondition, Source, Write};
use biplane_model::claim::{
    self, bind, bound_to, fill_spec, intent, merge_status, replace_status, status_of,
};
use biplane_model::layout::Layout;
use biplane_model::{Map, Object, ObjectId, Value, names};

use super::{Pass, Syncing};
use crate::draft::{self, Draft, missing};
use crate::failure::{Attempted, Failure};

/// The field manager of what a claim says about its composite resource.
pub(super) const MANAGER: &str = "apiextensions.crossplane.io/claim";
/// How often a free name is looked for.
const TRIES: usize = 10;
/// Fields that a claim takes over from its composite resource if it has none of its own.
const TAKEN_OVER: [&str; 2] = ["compositionRef", "compositionRevisionSelector"];

/// The name of the claim's composite resource, or a new one that is free.
pub(super) async fn name(pass: &Pass<'_>, claim: &Object) -> Result<String, Failure> {
    const WHAT: &str = "cannot generate a name for composite resource";
    if !bound_to(claim).is_empty() {
        return Ok(bound_to(claim).to_owned());
    }
    for _ in 0..TRIES {
        let random = names::spread(pass.reconciler.context.ids.number());
        let name = names::generated(&claim::prefix(claim), random);
        let id = ObjectId::new(pass.behaviour().xr.clone(), "", &name);
        let taken = pass.cluster().get(&id, Source::Cache, pass.by).await.optional();
        if taken.attempted(WHAT)?.is_none() {
            return Ok(name);
        }
    }
    Err(Failure::new("cannot generate a name for a resource").wrap(WHAT))
}

/// What the claim says about its composite resource, and what the composite resource said to the
/// claim before that.
pub(super) fn prepare(
    pass: &Pass<'_>,
    claim: &mut Draft,
    xr: Option<&Object>,
    name: &str,
    enforced: bool,
) -> Result<Object, Failure> {
    let kind = &pass.behaviour().xr;
    let intent = intent(&claim.object, kind, name, enforced, xr);
    let mut intent = intent.map_err(|error| Failure::new(error.to_string()))?;
    bind(&mut claim.object, kind, name);
    if let (Some(xr), Syncing::ServerSide) = (xr, pass.behaviour().syncing) {
        claim::follow(&mut claim.object, xr, enforced);
        leave_out_what_it_said(&mut intent, xr);
    }
    Ok(intent)
}

/// Leaves out what the claim has from the composite resource itself. An apply would only add an
/// owner.
fn leave_out_what_it_said(intent: &mut Object, xr: &Object) {
    for field in TAKEN_OVER {
        let path = ["spec", field];
        if intent.at(&path).is_some() && intent.at(&path) == xr.at(&path) && !owns(xr, field) {
            intent.remove_at(&path);
        }
    }
}

/// Whether the claim's manager owns a field of the spec.
fn owns(xr: &Object, field: &str) -> bool {
    let managers = xr.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    managers.into_iter().flatten().any(|entry| {
        entry.get("manager").and_then(Value::as_str) == Some(MANAGER)
            && entry.pointer(&format!("/fieldsV1/f:spec/f:{field}")).is_some()
    })
}

/// Writes the composite resource. Returns it as it is then.
pub(super) async fn apply(
    pass: &Pass<'_>,
    intent: &Object,
    xr: Option<&Object>,
) -> Result<Object, Failure> {
    const WHAT: &str = "cannot apply composite resource";
    match pass.behaviour().syncing {
        Syncing::ServerSide => {
            // What was read about an object does not hold for another one that got its name.
            let fence = xr.map(Precondition::same).unwrap_or_default();
            let how = Apply::forced(MANAGER).only_if(fence);
            let applied = pass.cluster().apply(intent, Part::Main, xr, &how, pass.by).await;
            Ok(applied.attempted(WHAT)?.object)
        }
        Syncing::ClientSide => patch(pass, intent, xr).await.attempted(WHAT),
    }
}

/// Creates the composite resource, or patches what differs.
async fn patch(pass: &Pass<'_>, intent: &Object, xr: Option<&Object>) -> Result<Object, Failure> {
    let how = Write::by(draft::MANAGER);
    let Some(xr) = xr else {
        let created = pass.cluster().create(intent.clone(), &how, pass.by).await;
        return created.attempted("cannot create object");
    };
    let Some(changes) = missing(xr, intent) else { return Ok(xr.clone()) };
    let how = how.only_if(Precondition::unchanged(xr));
    let (id, changes) = (xr.id(), Patch::Merge(changes));
    let patched = pass.cluster().patch(&id, Part::Main, &changes, &how, pass.by).await;
    patched.attempted("cannot patch object")
}

/// Takes over into the claim what the composite resource says now.
pub(super) fn follow(
    pass: &Pass<'_>,
    claim: &mut Draft,
    xr: &Object,
    enforced: bool,
) -> Result<(), Failure> {
    let claim = &mut claim.object;
    let status = status_of(xr).map_err(|error| Failure::new(error.to_string()))?;
    match pass.behaviour().syncing {
        Syncing::ServerSide => {
            if let Some(status) = status {
                replace_status(claim, status);
            }
        }
        Syncing::ClientSide => {
            merge_status(claim, &status.unwrap_or_default());
            claim::follow(claim, xr, enforced);
            let layout = Layout::Legacy;
            if layout.update_policy(xr) == "Automatic" && layout.revision(xr).is_none() {
                claim.remove_at(&["spec", "compositionRevisionRef"]);
            }
            fill_spec(claim, xr.get("spec").and_then(Value::as_object).unwrap_or(&Map::new()));
        }
    }
    Ok(())
}

//! Takes away what a definition brought into being: first its objects, then the controller and the
//! CRD, then the finalizer.

use biplane_cluster::{
    Delete, EventType, Form, List, Optional, Patch, Precondition, Query, ReadError, Source,
    WriteError,
};
use biplane_model::condition::Condition;
use biplane_model::owner::controller_of;
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_schema::xcrd::{self, Kind};
use serde_json::json;

use super::pass::{Pass, Problem, failed_controller};
use super::{finalizers, has_finalizer};
use crate::failure::{Attempted, Failure};
use crate::reconcile::Requeue;

/// How many objects are listed at a time.
const PAGE: usize = 500;

pub(super) async fn terminate(
    pass: &Pass<'_>,
    definition: &mut Object,
) -> Result<Requeue, Problem> {
    let words = pass.words();
    let told =
        |what: String| move |failure: Failure| Problem::told(words.terminate, failure.wrap(what));
    if !has_finalizer(definition, words.finalizer) {
        return Ok(Requeue::No);
    }
    let stored = definition.get("status").cloned();
    pass.mark(definition, Condition::new(words.condition, "False", words.terminating));
    pass.write_status(definition, stored.as_ref()).await.map_err(|failure| {
        match pass.defining.kind {
            Kind::Composite => Problem::untold(failure),
            Kind::Claim => Problem::told(words.terminate, failure),
        }
    })?;

    let getting = format!("cannot get {} CustomResourceDefinition", words.what);
    let found = find_crd(pass, definition).await.map_err(Failure::from).map_err(told(getting))?;
    let ours = |crd: &Object| controller_of(crd).is_some_and(|o| o.uid == definition.uid());
    let Some(crd) = found.filter(ours) else {
        stop(pass, definition).await?;
        return remove_finalizer(pass, definition)
            .await
            .map_err(told(format!("cannot remove {} finalizer", words.what)));
    };
    if crd.is_being_deleted() {
        return Ok(Requeue::Now);
    }

    let gvk = defined(&crd);
    let listing = format!("cannot list defined {}s", words.what);
    let all = list(pass, &gvk).await.map_err(told(listing.clone()))?;
    for object in all.iter().filter(|object| !object.is_being_deleted()) {
        delete(pass, object).await.map_err(told(words.delete.to_owned()))?;
    }
    if !all.is_empty() && !list(pass, &gvk).await.map_err(told(listing))?.is_empty() {
        let text = format!("waiting for defined {}s to be deleted", words.what);
        pass.event(definition, EventType::Normal, words.terminate, &text);
        return Ok(Requeue::Now);
    }
    // Only now: the controller has to let go of its objects.
    stop(pass, definition).await?;
    let deleting = format!("cannot delete {} CustomResourceDefinition", words.what);
    delete(pass, &crd).await.map_err(told(deleting))?;
    pass.defining.written.forget(crd.uid());
    let text = format!("Deleted {} CustomResourceDefinition: {}", words.what, crd.name());
    pass.event(definition, EventType::Normal, words.terminate, &text);
    Ok(Requeue::Now)
}

async fn stop(pass: &Pass<'_>, definition: &Object) -> Result<(), Problem> {
    let words = pass.words();
    let stopped = pass.defining.controllers.stop(&words.controller(definition.name())).await;
    stopped.map_err(|error| Problem::told(words.terminate, failed_controller(words, &error)))
}

/// The CRD of the definition. Claim names can be taken away from a definition, so a CRD of claims
/// is also known by its owner.
async fn find_crd(pass: &Pass<'_>, definition: &Object) -> Result<Option<Object>, ReadError> {
    let kind = Gvk::new(biplane_schema::crd::API_VERSION, biplane_schema::crd::KIND);
    let name = match pass.defining.kind {
        Kind::Composite => definition.name().to_owned(),
        Kind::Claim => xcrd::claim_crd_name(definition),
    };
    if !name.is_empty() {
        let id = ObjectId::new(kind, "", &name);
        return pass.cluster().get(&id, Source::Live, pass.by).await.optional();
    }
    let all = pass.cluster().list(&kind, &Query::default(), &List::live(), pass.by).await?.objects;
    let of_claims = |crd: &Object| {
        let categories = crd.at(&["spec", "names", "categories"]).and_then(Value::as_array);
        categories.is_some_and(|categories| categories.iter().any(|c| c == xcrd::CLAIM))
            && controller_of(crd).is_some_and(|owner| owner.uid == definition.uid())
    };
    Ok(all.into_iter().find(of_claims))
}

/// The kind that a CRD defines, in the version that is stored.
fn defined(crd: &Object) -> Gvk {
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array);
    let mut versions = versions.into_iter().flatten();
    let stored = versions.find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let version = stored.and_then(|v| v.get("name")).and_then(Value::as_str).unwrap_or_default();
    Gvk {
        group: crd.str_at(&["spec", "group"]).to_owned(),
        version: version.to_owned(),
        kind: crd.str_at(&["spec", "names", "kind"]).to_owned(),
    }
}

/// All objects of a kind, as the API server has them now. None if it does not know the kind.
async fn list(pass: &Pass<'_>, gvk: &Gvk) -> Result<Vec<Object>, Failure> {
    let mut how = List { form: Form::Metadata, limit: PAGE, ..List::live() };
    let mut all = Vec::new();
    loop {
        match pass.cluster().list(gvk, &Query::default(), &how, pass.by).await {
            Ok(page) => {
                all.extend(page.objects);
                if page.next.is_empty() {
                    return Ok(all);
                }
                how.next = page.next;
            }
            Err(ReadError::UnknownKind(_) | ReadError::NotFound(_)) => return Ok(all),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Deletes an object, which may be gone already.
async fn delete(pass: &Pass<'_>, object: &Object) -> Result<(), Failure> {
    let how = Delete { only_if: Precondition::same(object), ..Delete::default() };
    match pass.cluster().delete(&object.id(), &how, pass.by).await {
        Ok(_) | Err(WriteError::NotFound(_) | WriteError::UnknownKind(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn remove_finalizer(pass: &Pass<'_>, definition: &mut Object) -> Result<Requeue, Failure> {
    let mut left = finalizers(definition);
    left.retain(|finalizer| finalizer != pass.words().finalizer);
    let gone = left.is_empty();
    let left = if gone { Value::Null } else { left.into() };
    let patch = Patch::Merge(json!({"metadata": {"finalizers": left}}));
    let written = pass.patch(definition, &patch).await.optional();
    written.attempted("cannot update object")?;
    if gone {
        pass.defining.context.events.forget(definition.uid());
    }
    Ok(Requeue::No)
}

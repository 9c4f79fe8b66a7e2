//! Deletes old revisions of a Composition that nothing uses.

use std::collections::BTreeSet;
use std::time::Duration;

use biplane_cluster::{Delete, EventType, List, Optional, Precondition, Query, ReadError};
use biplane_model::composition::{API_VERSION, number};
use biplane_model::layout::Layout;
use biplane_model::{Gvk, Object, Value};

use super::Pass;
use crate::failure::{Attempted, Failure};
use crate::reconcile::Requeue;

const DELETE: &str = "DeleteRevision";
const WHAT: &str = "cannot delete old CompositionRevisions";
/// How long until revisions that are still in use are looked at again. Nothing tells when composite
/// resources have moved on.
const INTERVAL: Duration = Duration::from_mins(10);

/// Deletes the oldest revisions that are neither the newest one nor used, until the limit is kept.
pub(super) async fn trim(
    pass: &Pass<'_>,
    composition: &Object,
    mut revisions: Vec<Object>,
) -> Result<Requeue, Failure> {
    let limit = pass.history_limit;
    revisions.sort_by_key(|revision| std::cmp::Reverse(number(revision)));
    if limit == 0 || revisions.len() <= limit + 1 {
        return Ok(Requeue::No);
    }
    let old = revisions.split_off(1);
    // What the cache says is enough to keep a revision, but not to delete it.
    let candidates = unused(pass, composition, &old, &List::cached()).await?;
    if candidates.is_empty() {
        return Ok(Requeue::After(INTERVAL));
    }
    let surplus = unused(pass, composition, &old, &List::live()).await?;
    for revision in surplus.iter().rev() {
        let deleted = delete(pass, composition, revision).await;
        deleted.map_err(|f| pass.failed(composition, DELETE, WHAT, f))?;
    }
    let kept_in_use = old.len() > surplus.len() + limit;
    Ok(if kept_in_use { Requeue::After(INTERVAL) } else { Requeue::No })
}

/// The revisions to delete, newest first.
async fn unused<'a>(
    pass: &Pass<'_>,
    composition: &Object,
    old: &'a [Object],
    how: &List,
) -> Result<Vec<&'a Object>, Failure> {
    let used = used(pass, composition, how).await;
    let used = used.map_err(|f| pass.failed(composition, DELETE, WHAT, f))?;
    let Some(used) = used else { return Ok(Vec::new()) };
    let is_unused = |revision: &&Object| !used.contains(revision.name());
    Ok(old.iter().filter(is_unused).skip(pass.history_limit).collect())
}

async fn delete(pass: &Pass<'_>, composition: &Object, revision: &Object) -> Result<(), Failure> {
    let how = Delete { only_if: Precondition::unchanged(revision), ..Delete::default() };
    let deleted = pass.context.cluster.delete(&revision.id(), &how, pass.by).await;
    if deleted.optional().attempted("cannot delete CompositionRevision")?.is_some() {
        let text = format!("Deleted revision that nothing uses: {}", revision.name());
        pass.event(composition, EventType::Normal, DELETE, &text);
    }
    Ok(())
}

/// The names of the revisions that composite resources and claims refer to. `None` if that cannot
/// be known, because the kind of composite resource is not served.
async fn used(
    pass: &Pass<'_>,
    composition: &Object,
    how: &List,
) -> Result<Option<BTreeSet<String>>, Failure> {
    let field = |key| composition.str_at(&["spec", "compositeTypeRef", key]);
    let kind = Gvk::new(field("apiVersion"), field("kind"));
    let mut used = BTreeSet::new();
    let Some(xrs) = all(pass, &kind, how).await? else { return Ok(None) };
    for xr in &xrs {
        for layout in [Layout::Modern, Layout::Legacy] {
            used.extend(layout.revision(xr).map(|reference| reference.name));
        }
    }
    // A claim may have asked for a revision that its composite resource does not use yet.
    let definitions = Gvk::new(API_VERSION, "CompositeResourceDefinition");
    for definition in all(pass, &definitions, how).await?.unwrap_or_default() {
        let of_kind = definition.str_at(&["spec", "group"]) == kind.group
            && definition.str_at(&["spec", "names", "kind"]) == kind.kind;
        let claims = definition.at(&["spec", "claimNames", "kind"]).and_then(Value::as_str);
        if let Some(claims) = claims.filter(|_| of_kind) {
            let claims = Gvk { kind: claims.to_owned(), ..kind.clone() };
            for claim in all(pass, &claims, how).await?.unwrap_or_default() {
                used.extend(Layout::Legacy.revision(&claim).map(|reference| reference.name));
            }
        }
    }
    Ok(Some(used))
}

/// All objects of a kind. `None` if it is not served.
async fn all(pass: &Pass<'_>, kind: &Gvk, how: &List) -> Result<Option<Vec<Object>>, Failure> {
    let listed = pass.context.cluster.list(kind, &Query::default(), how, pass.by).await;
    match listed {
        Ok(page) => Ok(Some(page.objects)),
        Err(ReadError::UnknownKind(_) | ReadError::NotFound(_)) => Ok(None),
        Err(error) => Err(Failure::from(error).wrap(format!("cannot list {}", kind.group_kind()))),
    }
}

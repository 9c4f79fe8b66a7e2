//! Writes rendered resources: creates those that do not exist, and merges into those that do.

use biplane_cluster::{Apply, Part, Patch as Change, Precondition, Write, WriteError};
use biplane_go::fmt::quote;
use biplane_model::owner::is_controlled_by_another;
use biplane_model::{Map, Object, Value};
use biplane_patch::document::Document;
use biplane_patch::patch;
use biplane_patch::prepared::PatchKind;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;

use super::Slot;
use crate::composite::behaviour::Writing;
use crate::composite::observe;
use crate::composite::outcome::ComposeError;
use crate::composite::pass::Pass;
use crate::composite::persist::MANAGER;
use crate::composite::report::Report;
use crate::composite::v1_spec::templates::Template;
use crate::failure::{Attempted, Cause, Failure};

/// The place of a resource, the resource as rendered, and as it is stored, with whether that changed.
type Answer = (usize, Object, Result<(Object, bool), Failure>);

/// Writes all rendered resources. Afterwards they are as the server stores them. A resource that the
/// server calls invalid is reported and does not stop the others. Returns whether anything changed.
pub(super) async fn apply(
    pass: &Pass<'_>,
    xr: &Object,
    slots: &mut [Slot<'_>],
    report: &mut Report,
) -> Result<bool, ComposeError> {
    let parallel = match pass.behaviour().writing {
        Writing::Stepwise => 1,
        Writing::AtOnce { parallel } => parallel.max(1),
    };
    // Boxed, because the compiler cannot tell otherwise that these futures may move to other threads.
    let requests: Vec<BoxFuture<'_, Answer>> = slots
        .iter()
        .enumerate()
        .filter_map(|(index, slot)| {
            let (template, current) = (slot.template, slot.current.as_ref());
            let desired = slot.rendered.clone()?;
            let answer = async move {
                let written = write(pass, xr, template, current, desired.clone()).await;
                (index, desired, written)
            };
            Some(Box::pin(answer) as BoxFuture<'_, Answer>)
        })
        .collect();
    let mut written = Vec::with_capacity(requests.len());
    let mut answers = stream::iter(requests).buffered(parallel);
    while let Some((index, desired, answer)) = answers.next().await {
        // Here an anonymous template is called by its number alone.
        let name = match slots.get(index).map(|slot| slot.template.name.as_str()) {
            Some("") | None => (index + 1).to_string(),
            Some(name) => name.to_owned(),
        };
        let what = format!("cannot apply composed resource {}", quote(&name));
        match answer {
            Ok((object, news)) => written.push((index, Some(object), news)),
            Err(failure) if matches!(failure.cause(), Cause::Write(WriteError::Invalid(_))) => {
                report.warn("ComposeResources", failure.wrap(what).to_string());
                written.push((index, None, false));
            }
            Err(failure) => return Err(ComposeError::resource(failure.wrap(what), &desired)),
        }
    }
    drop(answers);
    let mut any = false;
    for (index, object, news) in written {
        any |= news;
        if let Some(slot) = slots.get_mut(index) {
            slot.rendered = object;
        }
    }
    Ok(any)
}

/// Writes one resource. Returns it as it is stored, and whether that changed.
async fn write(
    pass: &Pass<'_>,
    xr: &Object,
    template: &Template,
    known: Option<&Object>,
    mut desired: Object,
) -> Result<(Object, bool), Failure> {
    let current = match known.filter(|known| known.same_id(&desired)) {
        Some(known) => Some(known.clone()),
        // A patch may have named another object.
        None => observe::get(pass, &desired.id()).await.attempted("cannot get object")?,
    };
    if let Some(current) = &current {
        if is_controlled_by_another(current, xr.uid()) {
            return Err(Failure::new(format!(
                "existing object is not controlled by UID {}",
                quote(xr.uid())
            )));
        }
        desired = merged(template, current, desired)?;
    }
    let cluster = pass.cluster();
    match (pass.behaviour().writing, current) {
        // A render shows what is sent, and reads what the server would make of it.
        (Writing::Stepwise, current) => {
            let how = Apply::forced(MANAGER);
            cluster.apply(&desired, Part::Main, None, &how, pass.by).await?;
            let stored = match current {
                Some(current) => merge_patch(current.into_value(), &desired.to_value()),
                None => desired.into_value(),
            };
            Ok((Object::from_value(stored).unwrap_or_default(), true))
        }
        (Writing::AtOnce { .. }, None) => {
            let created = cluster.create(desired, &Write::by(MANAGER), pass.by).await;
            Ok((created.attempted("cannot create object")?, true))
        }
        (Writing::AtOnce { .. }, Some(current)) => {
            let Some(changes) = changes(&current, &desired) else { return Ok((current, false)) };
            let how = Write::by(MANAGER).only_if(Precondition::same(&current));
            let (id, change) = (current.id(), Change::Merge(changes));
            let patched = cluster.patch(&id, Part::Main, &change, &how, pass.by).await;
            let patched = patched.attempted("cannot patch object")?;
            let news = patched.resource_version() != current.resource_version();
            Ok((patched, news))
        }
    }
}

/// What is to be written to an object that exists: patches may say how their fields are merged with
/// it, and a Usage keeps its owners.
fn merged(template: &Template, current: &Object, mut desired: Object) -> Result<Object, Failure> {
    let gvk = desired.gvk();
    let is_usage = matches!(gvk.kind.as_str(), "Usage" | "ClusterUsage")
        && matches!(gvk.group.as_str(), "apiextensions.crossplane.io" | "protection.crossplane.io");
    if is_usage && let Some(owners) = current.at(&["metadata", "ownerReferences"]) {
        desired.set_at_or_ignore(&["metadata", "ownerReferences"], owners.clone());
    }
    let live = Document::from_json(current.clone());
    let mut desired = Document::from_json(desired);
    for patch in template.patches.iter().filter(|patch| patch.kind == PatchKind::FromComposite) {
        patch::merge_live(patch, &live, &mut desired)
            .map_err(|error| Failure::new(error.to_string()))?;
    }
    Ok(desired.into_object())
}

/// The part of an object that another one does not have yet. `None` if it has everything.
fn changes(current: &Map<String, Value>, desired: &Map<String, Value>) -> Option<Value> {
    let mut all = Map::new();
    for (key, desired) in desired {
        let change = match (current.get(key), desired) {
            (None | Some(Value::Null), Value::Null) => None,
            (Some(Value::Object(current)), Value::Object(desired)) => changes(current, desired),
            (Some(current), desired) if current == desired => None,
            _ => Some(desired.clone()),
        };
        if let Some(change) = change {
            all.insert(key.clone(), change);
        }
    }
    (!all.is_empty()).then_some(Value::Object(all))
}

/// What a JSON merge patch makes of a value.
fn merge_patch(value: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut merged = match value {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    for (key, change) in patch {
        if change.is_null() {
            merged.remove(key);
        } else {
            let before = merged.remove(key).unwrap_or_default();
            merged.insert(key.clone(), merge_patch(before, change));
        }
    }
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_changes_what_it_names() {
        let current = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2]});
        let desired = json!({"a": 1, "b": {"c": 4, "d": null}, "e": [3], "f": null});
        let merged = merge_patch(current.clone(), &desired);
        assert_eq!(merged, json!({"a": 1, "b": {"c": 4}, "e": [3]}));
        let (current, desired) = (current.as_object().unwrap(), desired.as_object().unwrap());
        let wanted = json!({"b": {"c": 4, "d": null}, "e": [3]});
        assert_eq!(changes(current, desired), Some(wanted));
        assert_eq!(changes(merged.as_object().unwrap(), desired), None);
    }
}

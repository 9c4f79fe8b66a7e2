//! Assigns observed resources to the composite resources that are rendered. An observed resource
//! belongs to one of them, or is an earlier state of one of them.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use biplane_engine::render::composite_uid;
use biplane_model::labels::{COMPOSITE, RESOURCE_NAME};
use biplane_model::owner::{OwnerReference, controller_of};
use biplane_model::{Object, ObjectId, Value};

use super::changes;
use super::cluster::DEEPEST;

/// The observed resources of each composite resource.
pub(super) type Ownership = BTreeMap<ObjectId, Vec<Object>>;

/// Assigns its observed resources and its earlier state to each composite resource.
pub(super) fn assign(composites: &mut [Object], observed: Vec<Object>) -> Result<Ownership> {
    let composed = remember(composites, observed);
    if let [composite] = composites {
        // The engine rejects resources of other owners.
        return Ok(Ownership::from([(composite.id(), composed)]));
    }
    let family = Family::new(composites, &composed);
    let (mut ownership, mut strays) = (Ownership::new(), Vec::new());
    for object in &composed {
        match family.top(object) {
            Some(composite) => ownership.entry(composite.id()).or_default().push(object.clone()),
            None => strays.push(object.id().to_string()),
        }
    }
    if !strays.is_empty() {
        bail!(
            "invalid observed resources: these belong to none of the composite resources, or to several: {}\n\
             Say whose they are by an owner reference or by the label {COMPOSITE}, or leave them out.",
            changes::list(strays.into_iter())
        );
    }
    Ok(ownership)
}

/// The conditions that every reconcile sets again.
const RECONCILED: [&str; 3] = ["Responsive", "Synced", "Ready"];

/// Copies the fields that only the control plane writes from the earlier state of a composite
/// resource: its UID and its status, unless they are set. Returns all other observed resources.
fn remember(composites: &mut [Object], observed: Vec<Object>) -> Vec<Object> {
    let places = composites.iter().enumerate().map(|(place, composite)| (composite.id(), place));
    let places: BTreeMap<_, _> = places.filter(|(id, _)| !id.name.is_empty()).collect();
    let mut others = Vec::new();
    for object in observed {
        let Some(now) = places.get(&object.id()).and_then(|place| composites.get_mut(*place))
        else {
            others.push(object);
            continue;
        };
        if now.uid().is_empty() && !object.uid().is_empty() {
            now.set_meta("uid", object.uid());
        }
        if let (None, Some(Value::Object(status))) = (now.get("status"), object.get("status")) {
            let mut status = status.clone();
            if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
                let is_ours = |condition: &Value| {
                    let name = condition.get("type").and_then(Value::as_str).unwrap_or_default();
                    RECONCILED.contains(&name)
                };
                conditions.retain(|condition| !is_ours(condition));
                if conditions.is_empty() {
                    status.remove("conditions");
                }
            }
            if !status.is_empty() {
                now.set_at_or_ignore(&["status"], status);
            }
        }
    }
    others
}

/// Warnings about resources with the same name in one Composition.
pub(super) fn rivals(ownership: &Ownership) -> Vec<String> {
    let mut warnings = Vec::new();
    for (composite, observed) in ownership {
        let mut seen = BTreeMap::<_, ObjectId>::new();
        for object in observed {
            let resource = object.annotation(RESOURCE_NAME);
            if resource.is_empty() {
                continue;
            }
            // Resources of a nested composite resource belong to another Composition.
            let owner = controller_of(object)
                .filter(|owner| owner.kind != composite.gvk.kind || owner.name != composite.name)
                .map(|owner| (owner.kind, owner.name));
            let id = object.id();
            if let Some(other) = seen.insert((owner, resource), id.clone())
                && other != id
            {
                warnings.push(format!(
                    "observed resources {other} and {id} are both {resource:?} of the Composition; the last one counts"
                ));
            }
        }
    }
    warnings
}

/// Composite resources and their possible composed resources, indexed by owner references.
struct Family<'a> {
    by_uid: BTreeMap<String, &'a Object>,
    by_name: BTreeMap<(&'a str, &'a str), Vec<&'a Object>>,
    /// By the name in the label of all resources below them.
    by_label: BTreeMap<&'a str, Vec<&'a Object>>,
    /// Composed resources, which may be composite resources themselves.
    composed: BTreeMap<(&'a str, &'a str), Vec<&'a Object>>,
}

impl<'a> Family<'a> {
    fn new(composites: &'a [Object], composed: &'a [Object]) -> Self {
        let label = |composite: &'a Object| match composite.label(COMPOSITE) {
            "" => composite.name(),
            label => label,
        };
        let named = |object: &'a Object| (object.kind(), object.name());
        Self {
            by_uid: composites.iter().map(|one| (composite_uid(one), one)).collect(),
            by_name: grouped(composites, named),
            by_label: grouped(composites, label),
            composed: grouped(composed, named),
        }
    }

    /// The top-level composite resource that an object belongs to.
    fn top(&self, object: &Object) -> Option<&'a Object> {
        let mut at = object;
        for _ in 0..=DEEPEST {
            let Some(owner) = controller_of(at) else { break };
            let found = self.by_uid.get(&owner.uid).copied();
            if let Some(top) = found.or_else(|| find(&self.by_name, at, &owner)) {
                return Some(top);
            }
            let Some(above) = find(&self.composed, at, &owner) else { break };
            at = above;
        }
        let labelled = self.by_label.get(object.label(COMPOSITE)).into_iter().flatten();
        only(labelled.copied().filter(|composite| may_own(composite, object)))
    }
}

fn grouped<'a, K: Ord>(
    objects: &'a [Object],
    key: impl Fn(&'a Object) -> K,
) -> BTreeMap<K, Vec<&'a Object>> {
    let mut groups = BTreeMap::<K, Vec<&Object>>::new();
    for object in objects {
        groups.entry(key(object)).or_default().push(object);
    }
    groups
}

/// The object that an owner reference refers to.
fn find<'a>(
    objects: &BTreeMap<(&'a str, &'a str), Vec<&'a Object>>,
    owned: &Object,
    owner: &OwnerReference,
) -> Option<&'a Object> {
    let named = objects.get(&(owner.kind.as_str(), owner.name.as_str())).into_iter().flatten();
    only(named.copied().filter(|one| one.api_version() == owner.api_version && may_own(one, owned)))
}

/// A namespaced object cannot own objects in another namespace or in none.
fn may_own(owner: &Object, owned: &Object) -> bool {
    ["", owned.namespace()].contains(&owner.namespace())
}

fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next();
    if all.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests;

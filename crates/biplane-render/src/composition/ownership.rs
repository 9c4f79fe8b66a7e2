//! Whose observed resources are: each belongs to one of the composite resources that are rendered,
//! or is one of them as it was before.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use biplane_engine::render::composite_uid;
use biplane_model::labels::{COMPOSITE, RESOURCE_NAME};
use biplane_model::owner::{OwnerReference, controller_of};
use biplane_model::{Object, ObjectId, Value};

use super::changes;
use super::world::DEEPEST;

/// By composite resource: the observed resources that are its own.
pub(super) type Ownership = BTreeMap<ObjectId, Vec<Object>>;

/// Gives each composite resource its observed resources, and what is known of it from before.
pub(super) fn assign(composites: &mut [Object], observed: Vec<Object>) -> Result<Ownership> {
    let composed = remember(composites, observed);
    if let [composite] = composites {
        // What is not its own is for the engine to refuse.
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

/// The conditions that every reconcile sets anew.
const RECONCILED: [&str; 3] = ["Responsive", "Synced", "Ready"];

/// Takes from an earlier state of a composite resource what only the control plane writes: its UID
/// and its status, unless there are others now. Returns what is none.
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
                now.set_at(&["status"], status);
            }
        }
    }
    others
}

/// What there is to say about resources that pass for one and the same of a Composition.
pub(super) fn rivals(ownership: &Ownership) -> Vec<String> {
    let mut warnings = Vec::new();
    for (composite, observed) in ownership {
        let mut seen = BTreeMap::<_, ObjectId>::new();
        for object in observed {
            let resource = object.annotation(RESOURCE_NAME);
            if resource.is_empty() {
                continue;
            }
            // Those of a nested composite resource are of another Composition.
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

/// Composite resources and what they may be composed of, by what owner references say of them.
struct Family<'a> {
    by_uid: BTreeMap<String, &'a Object>,
    by_name: BTreeMap<(&'a str, &'a str), Vec<&'a Object>>,
    /// By the name that the label of all that is below them has.
    by_label: BTreeMap<&'a str, Vec<&'a Object>>,
    /// Composed resources, which may be composite resources too.
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

    /// The composite resource at the top of those that an object is composed by.
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

/// The object that an owner reference speaks of.
fn find<'a>(
    objects: &BTreeMap<(&'a str, &'a str), Vec<&'a Object>>,
    owned: &Object,
    owner: &OwnerReference,
) -> Option<&'a Object> {
    let named = objects.get(&(owner.kind.as_str(), owner.name.as_str())).into_iter().flatten();
    only(named.copied().filter(|one| one.api_version() == owner.api_version && may_own(one, owned)))
}

/// What is in a namespace owns nothing outside of it.
fn may_own(owner: &Object, owned: &Object) -> bool {
    ["", owned.namespace()].contains(&owner.namespace())
}

fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next();
    if all.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests;

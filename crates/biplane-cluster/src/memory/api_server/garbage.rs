//! Garbage collection, which runs immediately: the dependents of a removed object are deleted or
//! orphaned.

use std::collections::BTreeSet;

use biplane_model::{Object, ObjectId, Value};

use super::definitions::{self, CLEANUP};
use super::{Server, Store, field_manager, keep, metadata, start_deletion};
use crate::cluster::{Part, Propagation};
use crate::memory::store::Presentation;

/// The finalizer that keeps an object until its dependents are orphaned.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer that keeps an object until its dependents are deleted.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The field manager that orphans dependents in a real cluster.
const COLLECTOR: &str = "kube-controller-manager";

/// Removes an object from the store. [`collect`] processes its dependents.
pub(super) fn remove(store: &mut Store, id: &ObjectId) {
    store.server.terminating.remove(&Server::key(id.clone()));
    if let Some(object) = store.take(id) {
        store.server.kinds.forget(&object);
        store.server.gone.push(object.uid().to_owned());
    }
}

/// Processes dependents until nothing is left to do.
pub(super) fn collect(store: &mut Store) {
    loop {
        if let Some(uid) = store.server.gone.pop() {
            for dependent in dependents(store, &uid) {
                release_or_delete(store, &dependent, &uid, Propagation::Background);
            }
            continue;
        }
        let holding = store.server.terminating.iter().find(|id| {
            let Some(object) = store.objects.get(id) else { return false };
            let finalizers = metadata::finalizers(object);
            let held = |name: &str| finalizers.iter().any(|f| f == name);
            held(ORPHAN)
                || (held(FOREGROUND) && ready_to_go(store, object))
                || (held(CLEANUP) && definitions::can_go_on(store, object))
        });
        let holding = holding.cloned();
        let Some(id) = holding else { return };
        let Some(owner) = store.objects.get(&id).cloned() else { return };
        if metadata::finalizers(&owner).iter().any(|f| f == ORPHAN) {
            for dependent in dependents(store, owner.uid()) {
                release(store, &dependent, owner.uid());
            }
            drop_finalizer(store, &id, ORPHAN);
            continue;
        }
        if metadata::finalizers(&owner).iter().any(|f| f == CLEANUP)
            && definitions::can_go_on(store, &owner)
        {
            let instances = definitions::instances(store, &owner);
            if instances.is_empty() {
                drop_finalizer(store, &id, CLEANUP);
            }
            for instance in instances {
                start_deletion(store, &instance, Propagation::Background);
            }
            continue;
        }
        for dependent in dependents(store, owner.uid()) {
            let deeper = store
                .objects
                .get(&dependent)
                .is_some_and(|object| !dependents(store, object.uid()).is_empty());
            let how = if deeper { Propagation::Foreground } else { Propagation::Background };
            release_or_delete(store, &dependent, owner.uid(), how);
        }
        if blockers(store, owner.uid()).is_empty() {
            drop_finalizer(store, &id, FOREGROUND);
        }
    }
}

/// Whether an owner that waits for its dependents can be processed.
fn ready_to_go(store: &Store, owner: &Object) -> bool {
    let waiting =
        |id: &ObjectId| store.objects.get(id).is_some_and(|object| !object.is_being_deleted());
    blockers(store, owner.uid()).is_empty() || dependents(store, owner.uid()).iter().any(waiting)
}

fn references(object: &Object) -> Vec<&Value> {
    let list = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    list.into_iter().flatten().collect()
}

fn uid_of(reference: &Value) -> &str {
    reference.get("uid").and_then(Value::as_str).unwrap_or_default()
}

fn dependents(store: &Store, uid: &str) -> Vec<ObjectId> {
    let depends = |object: &Object| references(object).into_iter().any(|r| uid_of(r) == uid);
    let found = store.objects.iter().filter(|(_, object)| !uid.is_empty() && depends(object));
    found.map(|(id, _)| id.clone()).collect()
}

/// The dependents that block the deletion of their owner.
fn blockers(store: &Store, uid: &str) -> Vec<ObjectId> {
    let blocks = |reference: &Value| {
        let blocks = reference.get("blockOwnerDeletion").and_then(Value::as_bool);
        uid_of(reference) == uid && blocks == Some(true)
    };
    let mut found = dependents(store, uid);
    found.retain(|id| {
        store.objects.get(id).is_some_and(|object| references(object).into_iter().any(blocks))
    });
    found
}

/// Deletes a dependent, or only drops the owner reference if it has another existing owner.
fn release_or_delete(store: &mut Store, id: &ObjectId, owner: &str, how: Propagation) {
    let Some(dependent) = store.objects.get(id) else { return };
    let living: BTreeSet<&str> = store
        .objects
        .iter()
        .map(|(_, object)| object)
        .filter(|o| !metadata::finalizers(o).iter().any(|f| f == FOREGROUND))
        .map(Object::uid)
        .collect();
    let others = references(dependent)
        .into_iter()
        .map(uid_of)
        .any(|uid| uid != owner && living.contains(uid));
    if others {
        release(store, id, owner);
    } else if !dependent.is_being_deleted() {
        start_deletion(store, id, how);
    }
}

/// Removes an owner reference.
fn release(store: &mut Store, id: &ObjectId, owner: &str) {
    let Some(live) = store.objects.get(id).cloned() else { return };
    let left: Vec<Value> =
        references(&live).into_iter().filter(|r| uid_of(r) != owner).cloned().collect();
    let mut new = live.clone();
    if left.is_empty() {
        new.remove_at(&["metadata", "ownerReferences"]);
    } else {
        new.set_at_or_ignore(&["metadata", "ownerReferences"], left);
    }
    store_as_collector(store, &live, &new);
}

fn drop_finalizer(store: &mut Store, id: &ObjectId, name: &str) {
    let Some(live) = store.objects.get(id).cloned() else { return };
    let mut left = metadata::finalizers(&live);
    left.retain(|finalizer| finalizer != name);
    if left.is_empty() {
        remove(store, id);
        return;
    }
    let mut new = live.clone();
    new.set_at_or_ignore(&["metadata", "finalizers"], left);
    store_as_collector(store, &live, &new);
}

fn store_as_collector(store: &mut Store, live: &Object, new: &Object) {
    let kind = store.server.kinds.of(live);
    let mut new =
        field_manager(store, &kind, Part::Main, |fm| fm.update(Some(live), new, COLLECTOR));
    new.set_meta("resourceVersion", &store.server.next_revision());
    keep(store, &new);
}

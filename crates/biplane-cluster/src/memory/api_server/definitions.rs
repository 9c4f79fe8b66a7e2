//! What the server does with CustomResourceDefinitions: it accepts their names, serves their kinds,
//! and deletes their objects with them.

use biplane_model::condition::{Condition, set_conditions};
use biplane_model::{Gvk, Object, ObjectId, Value};

use super::kinds::{Kinds, is_definition};
use super::{Part, Presentation as _, Server, Store, field_manager, keep};

/// The finalizer that keeps a definition until its objects are gone.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// The field manager of the server's own writes.
const MANAGER: &str = "kube-apiserver";

/// Accepts the names of a definition and establishes it, unless that has happened. This is a write
/// of the server itself, after the one of the client.
pub(super) fn accept(store: &mut Store, definition: &Object) {
    // An invalid schema was refused or is reported. Its kind is not served.
    let usable = is_definition(definition) && Kinds::default().register(definition).is_ok();
    if !usable || definition.is_being_deleted() {
        return;
    }
    let Some(live) = store.get(&definition.id()) else { return };
    let mut new = live.clone();
    if let Some(names) = live.at(&["spec", "names"]).cloned() {
        new.set_at_or_ignore(&["status", "acceptedNames"], names);
    }
    let versions = ["status", "storedVersions"];
    let mut stored = live.at(&versions).and_then(Value::as_array).cloned().unwrap_or_default();
    let all = live.at(&["spec", "versions"]).and_then(Value::as_array);
    for version in all.into_iter().flatten() {
        let name = version.get("name").cloned().unwrap_or_default();
        if version.get("storage") == Some(&Value::Bool(true)) && !stored.contains(&name) {
            stored.push(name);
        }
    }
    new.set_at_or_ignore(&versions, stored);
    let now = store.server.sources.now();
    let condition = |r#type, reason, message| Condition {
        last_transition_time: Some(now.clone()),
        ..Condition::new(r#type, "True", reason).with_message(message)
    };
    set_conditions(
        &mut new,
        [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        ],
    );
    if new == live {
        return;
    }
    let kind = store.server.kinds.of(&live);
    let mut new =
        field_manager(store, &kind, Part::Status, |fm| fm.update(Some(&live), &new, MANAGER));
    new.set_meta("resourceVersion", &store.server.next_revision());
    keep(store, &new);
}

/// The objects of the kind that a definition defines.
pub(super) fn instances(store: &Store, definition: &Object) -> Vec<ObjectId> {
    let gvk = Gvk {
        group: definition.str_at(&["spec", "group"]).to_owned(),
        version: String::new(),
        kind: definition.str_at(&["spec", "names", "kind"]).to_owned(),
    };
    store.objects.of(|stored| Server::is_of(stored, &gvk)).map(|(id, _)| id.clone()).collect()
}

/// Whether there is something to do for a definition that is being deleted.
pub(super) fn can_go_on(store: &Store, definition: &Object) -> bool {
    let all = instances(store, definition);
    let living = |id: &ObjectId| store.objects.get(id).is_some_and(|o| !o.is_being_deleted());
    all.is_empty() || all.iter().any(living)
}

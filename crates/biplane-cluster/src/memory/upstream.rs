//! Writes with the behaviour of the in-memory client of Crossplane's render engine: an apply
//! replaces the stored object, a status write replaces the status, and there are no versions or
//! checks.

use biplane_model::{Object, ObjectId};

use super::{Store, Verb, not_found};
use crate::cluster::WriteError;

pub(super) fn create(store: &mut Store, object: Object) -> Object {
    store.put(Verb::Create, &object, None);
    object
}

pub(super) fn update(store: &mut Store, object: &Object) -> Object {
    store.put(Verb::Update, object, Some(object.clone()));
    object.clone()
}

pub(super) fn apply(store: &mut Store, intent: &Object) -> Object {
    store.put(Verb::Apply, intent, Some(intent.clone()));
    intent.clone()
}

/// Replaces the status. If the caller's object has no status, the stored one is kept.
pub(super) fn status(store: &mut Store, from: &Object, verb: Verb) -> Object {
    let merged = match store.objects.get(&from.id()) {
        None => from.clone(),
        Some(stored) => {
            let mut merged = stored.clone();
            for key in ["status", "conditions"] {
                if let Some(value) = from.get(key) {
                    merged.make_mut().insert(key.to_owned(), value.clone());
                }
            }
            merged
        }
    };
    store.put(verb, &merged, Some(merged.clone()));
    merged
}

/// Returns the stored object: patches other than applies have no effect in Crossplane.
pub(super) fn patch(store: &Store, id: &ObjectId) -> Result<Object, WriteError> {
    store.objects.get(id).cloned().ok_or_else(|| WriteError::NotFound(not_found(id)))
}

//! Writes as the in-memory client of upstream's render engine does them: an apply replaces the
//! stored object, a status write replaces the status, nothing is versioned or checked.

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

/// A caller without any status leaves the stored one alone.
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

/// Patches that are not applies leave no trace upstream; the stored object is the answer.
pub(super) fn patch(store: &Store, id: &ObjectId) -> Result<Object, WriteError> {
    store.objects.get(id).cloned().ok_or_else(|| WriteError::NotFound(not_found(id)))
}

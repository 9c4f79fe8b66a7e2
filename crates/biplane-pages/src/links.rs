//! Finds the pages of objects and composed resources in a store.

use std::cell::RefCell;
use std::collections::BTreeMap;

use biplane_recorder::query::record::ObjectRef;
use biplane_recorder::query::stored::Stored;
use biplane_recorder::store::rows::ObjectRow;

use crate::ids;
use crate::parts::Links;

/// Looks up keys in a store, each once.
#[derive(Debug)]
pub struct StoreLinks<'a> {
    stored: &'a Stored,
    found: RefCell<BTreeMap<ObjectRef, Option<i64>>>,
}

impl<'a> StoreLinks<'a> {
    /// Links into a store.
    pub fn new(stored: &'a Stored) -> Self {
        Self { stored, found: RefCell::default() }
    }

    /// The key of an object. What cannot be read has none.
    pub fn key(&self, object: &ObjectRef) -> Option<i64> {
        if let Some(found) = self.found.borrow().get(object) {
            return *found;
        }
        let key = self.look_up(object);
        self.found.borrow_mut().insert(object.clone(), key);
        key
    }

    fn look_up(&self, object: &ObjectRef) -> Option<i64> {
        if object.name.is_empty() {
            return None;
        }
        let store = self.stored.store();
        let named = |row: &ObjectRow| row.name == object.name && row.kind == object.kind;
        if !object.uid.is_empty()
            && let Some(row) = store.object_by_uid(&object.uid).ok().flatten().filter(named)
        {
            return Some(row.id);
        }
        let group = (!object.api_version.is_empty()).then(|| object.group());
        let (kind, namespace) = (Some(object.kind.as_str()), Some(object.namespace.as_str()));
        let rows = store.objects(kind, group, namespace, Some(&object.name)).ok()?;
        rows.first().map(|row| row.id)
    }
}

impl Links for StoreLinks<'_> {
    fn object(&self, object: &ObjectRef) -> Option<String> {
        self.key(object).map(|key| format!("/x/{}", ids::text(key)))
    }

    fn slot(&self, owner: &ObjectRef, name: &str) -> Option<String> {
        let owner = self.key(owner)?;
        let slot = self.stored.store().slot_named(owner, name).ok()??;
        Some(ids::text(slot.id))
    }
}

/// An object of the store by name. The version is not known there.
pub fn object_ref(row: &ObjectRow) -> ObjectRef {
    let api_version = if row.group.is_empty() { String::new() } else { format!("{}/", row.group) };
    ObjectRef {
        api_version,
        kind: row.kind.clone(),
        namespace: row.namespace.clone(),
        name: row.name.clone(),
        uid: row.uid.clone(),
    }
}

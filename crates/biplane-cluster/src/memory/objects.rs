//! The objects of an in-memory cluster, by kind, so that a list does not look at other kinds.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use biplane_model::{Gvk, Object, ObjectId};

/// Objects by kind, and within a kind by name and namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects(BTreeMap<Gvk, BTreeMap<Place, Object>>);

/// The id of an object, ordered by name and namespace alone: it is compared within its kind.
#[derive(Clone, Debug)]
struct Place(ObjectId);

/// A name and a namespace, to look for an object without creating its [`Place`].
trait Named {
    fn named(&self) -> (&str, &str);
}

impl Named for Place {
    fn named(&self) -> (&str, &str) {
        (&self.0.name, &self.0.namespace)
    }
}

impl Named for (&str, &str) {
    fn named(&self) -> (&str, &str) {
        *self
    }
}

impl<'a> Borrow<dyn Named + 'a> for Place {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl Ord for dyn Named + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.named().cmp(&other.named())
    }
}

impl PartialOrd for dyn Named + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.named() == other.named()
    }
}

impl Eq for dyn Named + '_ {}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        self.named().cmp(&other.named())
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.named() == other.named()
    }
}

impl Eq for Place {}

impl Objects {
    /// Returns the object with this key.
    pub(super) fn get(&self, key: &ObjectId) -> Option<&Object> {
        self.named(&key.gvk, key)
    }

    /// Returns the object of a kind that has the name and the namespace of an id.
    pub(super) fn named(&self, kind: &Gvk, id: &ObjectId) -> Option<&Object> {
        let named: &dyn Named = &(id.name.as_str(), id.namespace.as_str());
        self.0.get(kind)?.get(named)
    }

    /// Stores an object and returns the one that it replaces.
    pub(super) fn insert(&mut self, key: ObjectId, object: Object) -> Option<Object> {
        if let Some(kind) = self.0.get_mut(&key.gvk) {
            return kind.insert(Place(key), object);
        }
        self.0.entry(key.gvk.clone()).or_default().insert(Place(key), object)
    }

    pub(super) fn remove(&mut self, key: &ObjectId) -> Option<Object> {
        let named: &dyn Named = &(key.name.as_str(), key.namespace.as_str());
        self.0.get_mut(&key.gvk)?.remove(named)
    }

    /// All objects, ordered by kind.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ObjectId, &Object)> {
        self.of(|_| true)
    }

    /// The objects of the kinds that match.
    pub(super) fn of(
        &self,
        is_of: impl Fn(&Gvk) -> bool,
    ) -> impl Iterator<Item = (&ObjectId, &Object)> {
        let kinds = self.0.iter().filter(move |(gvk, _)| is_of(gvk));
        kinds.flat_map(|(_, objects)| objects).map(|(place, object)| (&place.0, object))
    }
}

impl Extend<(ObjectId, Object)> for Objects {
    fn extend<T: IntoIterator<Item = (ObjectId, Object)>>(&mut self, objects: T) {
        for (key, object) in objects {
            self.insert(key, object);
        }
    }
}

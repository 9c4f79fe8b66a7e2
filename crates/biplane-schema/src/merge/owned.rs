//! Reads `metadata.managedFields` where it stands, without copying it.
//!
//! [`super::FieldSet`] is the form for computing with sets. This is the form for one look at them:
//! it borrows from the object, and parses the keys of list items only.

use std::cmp::Ordering;

use biplane_model::Object;
use serde_json::{Map, Value};

use crate::value::{compare, equal};

/// Who applies, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applying<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// A subresource such as `status`. `None` for the object itself.
    pub subresource: Option<&'a str>,
}

/// What a manager owns at one place of an object and below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a>(&'a Map<String, Value>);

impl<'a> Node<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    /// Whether the place itself is owned.
    pub(super) fn is_owned(self) -> bool {
        self.0.is_empty() || self.0.contains_key(".")
    }

    /// Whether nothing below the place is owned.
    pub(super) fn is_leaf(self) -> bool {
        self.0.keys().all(|element| element == ".")
    }

    /// The elements below, as written, in the order of their text.
    pub(super) fn below(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let elements = self.0.iter().filter(|(element, _)| *element != ".");
        elements.map(|(element, below)| (element.as_str(), below))
    }

    pub(super) fn get(self, element: &str) -> Option<Self> {
        self.0.get(element).and_then(Self::of)
    }

    fn has_field(self, name: &str) -> bool {
        self.below().any(|(element, _)| element.strip_prefix("f:") == Some(name))
    }

    fn names(self) -> impl Iterator<Item = &'a str> {
        self.below().map(|(element, _)| element)
    }

    /// The items of a list that are owned one by one. `None` for anything else.
    pub(super) fn items(self) -> Option<Items<'a>> {
        if self.names().all(|element| element.starts_with("v:")) {
            let values = self.names().map(|element| serde_json::from_str(element.get(2..)?).ok());
            let mut values: Vec<Value> = values.collect::<Option<_>>()?;
            values.sort_by(compare);
            return Some(Items::Values(values));
        }
        let keys = self.below().map(|(element, below)| {
            let key = serde_json::from_str(element.strip_prefix("k:")?).ok()?;
            Some(Keyed { element, key, owned: Self::of(below)? })
        });
        keys.collect::<Option<_>>().map(|keys| Items::Keys(Keys::new(keys)))
    }
}

/// The items of a list that a manager owns.
#[derive(Debug)]
pub(super) enum Items<'a> {
    /// The members of a set, sorted.
    Values(Vec<Value>),
    /// The items of a list with keys.
    Keys(Keys<'a>),
}

/// The items of a list with keys that a manager owns.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    items: Vec<Keyed<'a>>,
    /// Whether all keys have the same fields. The items are then sorted by their keys.
    uniform: bool,
}

impl<'a> Keys<'a> {
    fn new(mut items: Vec<Keyed<'a>>) -> Self {
        let uniform = items.windows(2).all(|pair| match pair {
            [a, b] => a.key.keys().eq(b.key.keys()),
            _ => true,
        });
        if uniform {
            items.sort_by(|a, b| a.compare(|name| b.key.get(name)));
        }
        Self { items, uniform }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The item with the key of a stored item, and its position here.
    pub(super) fn of_stored(&self, item: &Value) -> Option<(usize, &Keyed<'a>)> {
        let Value::Object(item) = item else { return None };
        let order = |key: &Keyed<'_>| key.compare(|name| item.get(name));
        let at = if self.uniform {
            self.items.binary_search_by(order).ok()
        } else {
            self.items.iter().position(|key| order(key).is_eq())
        }?;
        self.items.get(at).map(|key| (at, key))
    }

    /// Whether this is the only key that an applied item can have.
    pub(super) fn is_only_key(&self, key: &Keyed<'_>, item: &Map<String, Value>) -> bool {
        key.is_of_applied(item)
            && (key.key.keys().all(|name| item.contains_key(name))
                || self.items.iter().filter(|key| key.is_of_applied(item)).count() == 1)
    }
}

/// An item of a list with keys.
#[derive(Debug)]
pub(super) struct Keyed<'a> {
    /// The element as written.
    pub element: &'a str,
    key: Map<String, Value>,
    pub owned: Node<'a>,
}

impl Keyed<'_> {
    /// Whether this can be the ownership of an applied item.
    ///
    /// A key field that was left out of the item has its default. Such a field is part of the key,
    /// but is not owned.
    pub(super) fn is_of_applied(&self, item: &Map<String, Value>) -> bool {
        self.key.iter().all(|(name, value)| match item.get(name) {
            Some(given) => {
                equal(given, value) && (self.owned.is_leaf() || self.owned.has_field(name))
            }
            None => !self.owned.is_leaf() && !self.owned.has_field(name),
        })
    }

    /// Compares the key with the fields of an item. Stored items have their defaults.
    fn compare<'v>(&self, field: impl Fn(&str) -> Option<&'v Value>) -> Ordering {
        let orders = self.key.iter().map(|(name, value)| match field(name) {
            Some(given) => compare(value, given),
            None => Ordering::Greater,
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// All entries of `metadata.managedFields`.
pub(super) fn entries(object: &Object) -> &[Value] {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    entries.map_or(&[], Vec::as_slice)
}

pub(super) fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an entry is that of an applier.
pub(super) fn is_entry_of(entry: &Value, how: &Applying<'_>) -> bool {
    // The name that the server gives to those who give none.
    let manager = if how.manager.is_empty() { "unknown" } else { how.manager };
    text(entry, "operation") == "Apply"
        && text(entry, "manager") == manager
        && text(entry, "subresource") == how.subresource.unwrap_or_default()
}

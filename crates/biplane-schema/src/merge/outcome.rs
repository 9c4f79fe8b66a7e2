//! Decides without a schema whether an apply would change nothing.
//!
//! The API server records in `metadata.managedFields` what each manager owns. The shape of the
//! applier's own entry tells how the server merged each part of its last apply: `f:` is a field,
//! `k:` an item of a list with keys, `v:` a member of a set, and a leaf is one value. If the
//! intent covers exactly what the entry owns, and the object holds the same values in the same
//! order, then the server would merge it to the very same object and to the same entry: whoever
//! changes a value takes its ownership away.
//!
//! Every other case is [`Verdict::CannotTell`], even if most likely nothing changes. The
//! following cases look the same as a change:
//!
//! - Null, and an empty list that leaves no trace in the entry.
//! - Parts of the intent that are not owned, such as a status that the endpoint ignores.
//! - An object that is owned as one value. It may be an atomic object, or one that was applied
//!   empty and has defaults since. Only the former is merged as a whole. The owner references are
//!   known to be atomic.
//! - A list that is owned as one value, if others own items of it: it was empty when it was
//!   applied, and is merged item by item. The same goes for an object that others write in another
//!   version. A list may be one value there. Whoever replaces it takes all our items, and may leave
//!   items behind that nobody owns.
//! - Values that the server stores in another form.
//!
//! The verdict holds as long as the schema of the kind is the one under which the entry was
//! written. A kind whose definition has changed must be applied once.
//!
//! [`Verdict::Same`] does not mean that the server would accept the apply. Others may have written
//! in another version what the version of the intent does not allow, such as items with the same
//! key. The server then refuses every apply, and nothing changes either.

use biplane_model::Object;
use serde_json::{Map, Value};

use super::manager::BEFORE_FIRST_APPLY;
use super::owned::{Applying, Items, Keyed, Keys, Node, entries, is_entry_of, text};
use crate::value::{compare, equal};

/// Whether an apply would change the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing would change, neither in the object nor in who owns what.
    Same,
    /// Something may change.
    CannotTell,
}

/// Returns whether applying the intent would change the live object, forced or not.
///
/// `live` is the object as the server returned it in the version of the intent, with its managed
/// fields.
pub fn verdict(intent: &Object, live: &Object, how: &Applying<'_>) -> Verdict {
    let same = is_same_object(intent, live)
        && !is_about_to_go(live)
        && own_entry(live, how).is_some_and(|own| {
            let api_version = text(own, "apiVersion");
            let Some(owned) = own.get("fieldsV1").and_then(Node::of) else { return false };
            let mut walk = Walk { live, own, api_version, path: Vec::new() };
            api_version == intent.api_version() && walk.object(intent, owned)
        });
    if same { Verdict::Same } else { Verdict::CannotTell }
}

/// The metadata that nobody owns.
const IDENTITY: [&str; 8] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Whether the intent is for this object, in this version.
fn is_same_object(intent: &Object, live: &Object) -> bool {
    intent.api_version() == live.api_version()
        && intent.kind() == live.kind()
        && intent.name() == live.name()
        && intent.namespace() == live.namespace()
        && names_same_state(intent, live)
}

/// Whether the identity that the intent gives is that of the live object. The server refuses
/// others, or ignores them.
fn names_same_state(intent: &Object, live: &Object) -> bool {
    let given = intent.get("metadata").and_then(Value::as_object);
    given.into_iter().flatten().filter(|(name, _)| IDENTITY.contains(&name.as_str())).all(
        |(name, value)| match name.as_str() {
            "managedFields" => false,
            // Go's clients send this null with every object.
            "creationTimestamp" if value.is_null() => true,
            name => live.at(&["metadata", name]) == Some(value),
        },
    )
}

/// Whether the next write removes the object, whatever it writes.
fn is_about_to_go(live: &Object) -> bool {
    let finalizers = live.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    live.at(&["metadata", "deletionTimestamp"]).is_some() && finalizers.is_none_or(Vec::is_empty)
}

/// The entry of an applier, unless there is an entry that the next write replaces.
fn own_entry<'a>(live: &'a Object, how: &Applying<'_>) -> Option<&'a Value> {
    let mut own = None;
    for entry in entries(live) {
        let sound = matches!(text(entry, "operation"), "Apply" | "Update")
            && text(entry, "fieldsType") == "FieldsV1"
            && text(entry, "manager") != BEFORE_FIRST_APPLY
            && !text(entry, "apiVersion").is_empty();
        let known = is_entry_of(entry, how);
        if !sound || (known && own.replace(entry).is_some()) {
            return None;
        }
    }
    own
}

/// Compares an intent, the live object and what the applier owns, all three at the same place.
struct Walk<'a> {
    live: &'a Object,
    own: &'a Value,
    api_version: &'a str,
    /// The elements of the current place, as the entry spells them.
    path: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn object(&mut self, intent: &Object, owned: Node<'a>) -> bool {
        let live = self.live;
        let owners = |value: &Value| {
            let metadata = value.as_object();
            metadata.is_none_or(|map| map.keys().any(|name| !IDENTITY.contains(&name.as_str())))
        };
        let fields = intent.iter().filter(|(name, value)| match name.as_str() {
            "apiVersion" | "kind" => false,
            "metadata" => owners(value),
            _ => true,
        });
        self.fields(fields, live, owned)
    }

    /// Every field must be owned, and every owned field must be there.
    fn fields<'i>(
        &mut self,
        intent: impl Iterator<Item = (&'i String, &'i Value)>,
        live: &Map<String, Value>,
        owned: Node<'a>,
    ) -> bool {
        // Both are sorted by name.
        let mut owned = owned.below();
        for (name, value) in intent {
            let Some((element, below)) = owned.next() else { return false };
            let (Some(live), Some(below)) = (live.get(name), Node::of(below)) else {
                return false;
            };
            if element.strip_prefix("f:") != Some(name) || !self.below(element, value, live, below)
            {
                return false;
            }
        }
        owned.next().is_none()
    }

    fn below(&mut self, element: &'a str, intent: &Value, live: &Value, owned: Node<'a>) -> bool {
        self.path.push(element);
        let same = self.value(intent, live, owned);
        self.path.pop();
        same
    }

    fn value(&mut self, intent: &Value, live: &Value, owned: Node<'a>) -> bool {
        match (intent, live) {
            (Value::Null, _) => false,
            (Value::Object(fields), Value::Object(live)) if fields.is_empty() => {
                owned.is_leaf() && live.is_empty()
            }
            (Value::Object(fields), Value::Object(live)) => {
                let in_root_metadata = matches!(self.path[..], ["f:metadata"]);
                let fields = fields
                    .iter()
                    .filter(|(name, _)| !in_root_metadata || !IDENTITY.contains(&name.as_str()));
                !owned.is_leaf() && self.fields(fields, live, owned)
            }
            (Value::Array(items), Value::Array(live)) => self.list(items, live, owned),
            _ => owned.is_leaf() && equal(intent, live),
        }
    }

    fn list(&mut self, intent: &[Value], live: &[Value], owned: Node<'a>) -> bool {
        if owned.is_leaf() {
            return equal_lists(intent, live) && (intent.is_empty() || self.is_one_value());
        }
        match owned.items() {
            Some(Items::Values(members)) => same_members(intent, live, &members),
            Some(Items::Keys(keys)) => self.keyed(intent, live, &keys),
            None => false,
        }
    }

    /// Whether the list at this place is merged as a whole, if it is owned as a whole.
    fn is_one_value(&self) -> bool {
        // The finalizers and the owner references are merged item by item.
        !matches!(self.path[..], ["f:metadata", _])
            && !self.others().any(|entry| {
                let Some(fields) = entry.get("fieldsV1").and_then(Node::of) else { return true };
                if text(entry, "apiVersion") != self.api_version {
                    // The list may have another type and place in that version.
                    return text(entry, "subresource") == text(self.own, "subresource")
                        || self.path.first().is_none_or(|element| fields.get(element).is_some());
                }
                let there = self.path.iter().try_fold(fields, |node, element| node.get(element));
                there.is_some_and(|node| !node.is_leaf())
            })
    }

    fn others(&self) -> impl Iterator<Item = &'a Value> {
        let own = self.own;
        entries(self.live).iter().filter(move |entry| !std::ptr::eq(*entry, own))
    }

    /// Every item must be owned, every owned item must be there, and the order must be the same.
    fn keyed(&mut self, intent: &[Value], live: &[Value], keys: &Keys<'a>) -> bool {
        let mut owned = live.iter().filter_map(|item| Some((keys.of_stored(item)?, item)));
        let mut met = vec![false; keys.len()];
        intent.len() == keys.len()
            && intent.iter().all(|item| {
                let (Some(((at, key), stored)), Value::Object(fields)) = (owned.next(), item)
                else {
                    return false;
                };
                let first = met.get_mut(at).is_some_and(|met| !std::mem::replace(met, true));
                first && keys.is_only_key(key, fields) && self.item(item, stored, key)
            })
            && owned.next().is_none()
    }

    fn item(&mut self, intent: &Value, live: &Value, key: &Keyed<'a>) -> bool {
        if !key.owned.is_owned() {
            return false;
        }
        if matches!(self.path[..], ["f:metadata", "f:ownerReferences"]) {
            return key.owned.is_leaf() && equal(intent, live);
        }
        self.below(key.element, intent, live, key.owned)
    }
}

fn equal_lists(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
}

/// Whether a set has exactly the owned members, and the live one has them once and in this order.
fn same_members(intent: &[Value], live: &[Value], owned: &[Value]) -> bool {
    let mut sorted: Vec<&Value> = intent.iter().collect();
    sorted.sort_by(|a, b| compare(a, b));
    if sorted.len() != owned.len() || !sorted.iter().zip(owned).all(|(a, b)| equal(a, b)) {
        return false;
    }
    let is_owned = |item: &&Value| owned.binary_search_by(|member| compare(member, item)).is_ok();
    let mut live = live.iter().filter(is_owned);
    intent.iter().all(|item| live.next().is_some_and(|there| equal(item, there)))
        && live.next().is_none()
}

#[cfg(test)]
mod tests;

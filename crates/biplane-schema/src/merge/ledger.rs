//! Remembers what the last apply of each object came to.
//!
//! Some applies never look as if they changed nothing, because the server stores something else
//! than what was sent: defaults inside atomic lists, quantities in their short form, `stringData`,
//! zeros that typed kinds drop. Such an intent is applied once. If the intent, the managers of the
//! object and everything that the intent mentions are as they were in the answer, then applying it
//! again would have the same answer.
//!
//! A ledger belongs to one process and starts empty. It keeps hashes, no objects.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use biplane_model::Object;
use serde_json::{Map, Value};

use super::outcome::{Verdict, verdict};
use super::owned::{Applying, Items, Keyed, Node, entries, is_entry_of, text};
use super::updater::has_empty_item;
use crate::value::compare;

/// The number of managers and subresources of one object that are remembered. An object is applied
/// by one manager, and its status by another.
const NOTES_PER_OBJECT: usize = 4;

/// So many objects are remembered. Whoever deletes an object may not tell. What is forgotten is
/// applied once more.
const OBJECTS: usize = 1 << 18;

/// What the last applies came to.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The notes of each object by its UID, the oldest first.
    objects: BTreeMap<Box<str>, Vec<Note>>,
}

/// One apply and its outcome, as hashes.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// Manager and subresource.
    who: u64,
    intent: u64,
    /// Who owns what.
    managers: u64,
    /// The state of everything that the intent mentions.
    values: u64,
    /// Whether the intent has something empty or null in it, and only one answer was seen.
    ///
    /// Such an answer need not be what the next apply comes to. For example, an apply that gives
    /// up the last item of a list removes the list, and the next one creates it again, empty.
    doubtful: bool,
}

impl Ledger {
    /// Creates an empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the intent need not be applied: [`verdict`] says that nothing would change, or it
    /// was applied before and the object is still as the server left it then.
    pub fn can_skip(&self, intent: &Object, live: &Object, how: &Applying<'_>) -> bool {
        verdict(intent, live, how) == Verdict::Same || self.knows(intent, live, how)
    }

    /// Whether the intent was applied before and the object is still as the server left it then.
    pub fn knows(&self, intent: &Object, live: &Object, how: &Applying<'_>) -> bool {
        let Some(notes) = self.objects.get(live.uid()) else { return false };
        let who = who(how);
        let Some(note) = notes.iter().find(|note| note.who == who) else { return false };
        // Without any managers, the next apply records them.
        !entries(live).is_empty()
            && !note.doubtful
            && is_fenced_as(intent, live)
            && note.agrees(&Note::new(who, intent, live, how))
    }

    /// Remembers the answer to an apply that was stored, not to a dry run.
    pub fn remember(&mut self, intent: &Object, answer: &Object, how: &Applying<'_>) {
        let who = who(how);
        let uid = answer.uid();
        // An answer that looks like the intent needs no note. An empty list item comes and goes with
        // every other apply, so an answer tells nothing about the next one.
        let is_worth_it = !uid.is_empty()
            && verdict(intent, answer, how) == Verdict::CannotTell
            && !intent.iter().any(|(_, value)| has_empty_item(value));
        let mut note = is_worth_it.then(|| Note::new(who, intent, answer, how));
        if let Some(notes) = self.objects.get_mut(uid) {
            if let Some(note) = &mut note {
                note.doubtful &= !notes.iter().any(|before| before.agrees(note));
            }
            notes.retain(|note| note.who != who);
            notes.extend(note);
            if notes.len() > NOTES_PER_OBJECT {
                notes.remove(0);
            }
            if notes.is_empty() {
                self.objects.remove(uid);
            }
        } else if let Some(note) = note {
            if self.objects.len() >= OBJECTS {
                // Most of them are gone. Those that are not are applied once more.
                self.objects.clear();
            }
            self.objects.insert(uid.into(), vec![note]);
        }
    }

    /// Forgets an object that no longer exists.
    pub fn forget(&mut self, uid: &str) {
        self.objects.remove(uid);
    }

    /// Forgets everything, for example because the schema of a kind has changed.
    pub fn clear(&mut self) {
        self.objects.clear();
    }

    /// The number of objects with a note.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

fn who(how: &Applying<'_>) -> u64 {
    let mut digest = Digest::default();
    digest.text(how.manager);
    digest.text(how.subresource.unwrap_or_default());
    digest.finish()
}

/// Whether the intent names this state of the object, if it names one. The server refuses others.
fn is_fenced_as(intent: &Object, live: &Object) -> bool {
    ["resourceVersion", "uid"].into_iter().all(|field| {
        let given = intent.at(&["metadata", field]);
        given.is_none_or(|given| live.at(&["metadata", field]) == Some(given))
    })
}

impl Note {
    fn new(who: u64, intent: &Object, live: &Object, how: &Applying<'_>) -> Self {
        Self {
            who,
            intent: intent_digest(intent),
            managers: managers_digest(live, how),
            values: projected(intent, live, how),
            doubtful: has_hollow_content(intent),
        }
    }

    /// Whether two notes are about the same state.
    fn agrees(&self, other: &Self) -> bool {
        let state = |note: &Self| (note.who, note.intent, note.managers, note.values);
        state(self) == state(other)
    }
}

/// Everything but the state that the intent names, which is another one after every write.
fn intent_digest(intent: &Object) -> u64 {
    let mut digest = Digest::default();
    for (name, value) in intent.iter() {
        digest.text(name);
        match value {
            Value::Object(metadata) if name == "metadata" => {
                for (name, value) in metadata {
                    if !["resourceVersion", "uid"].contains(&name.as_str()) {
                        digest.text(name);
                        digest.value(value);
                    }
                }
            }
            value => digest.value(value),
        }
    }
    digest.finish()
}

/// Who owns what. The times of the entries do not matter, nor their order, which follows the times.
///
/// Others matter too: a value that the server made of ours is not ours again before the server has
/// made it, so the next apply takes it from everyone who shares it.
fn managers_digest(live: &Object, how: &Applying<'_>) -> u64 {
    let status = how.subresource == Some("status");
    let relevant = |entry: &&Value| (text(entry, "subresource") == "status") == status;
    let hashes = entries(live).iter().filter(relevant).map(|entry| {
        let mut digest = Digest::default();
        for field in ["manager", "operation", "apiVersion", "subresource"] {
            digest.text(text(entry, field));
        }
        digest.value(entry.get("fieldsV1").unwrap_or(&Value::Null));
        digest.finish()
    });
    let mut digest = Digest::default();
    digest.text(live.api_version());
    digest.0.write_u64(hashes.fold(0, u64::wrapping_add));
    digest.finish()
}

/// The live state of everything that the intent mentions.
fn projected(intent: &Object, live: &Object, how: &Applying<'_>) -> u64 {
    let own = entries(live).iter().find(|entry| is_entry_of(entry, how));
    let owned = own.and_then(|own| own.get("fieldsV1")).and_then(Node::of);
    let mut projection = Projection::default();
    for (name, value) in intent.iter() {
        match (name.as_str(), value) {
            ("apiVersion" | "kind", _) => {}
            ("metadata", Value::Object(fields)) => {
                let fields = fields.iter().filter(|(name, _)| !is_system_field(name));
                let live = live.get("metadata").and_then(Value::as_object);
                projection.fields(fields, live, below(owned, "metadata"));
            }
            _ => projection.field(name, value, live.get(name), below(owned, name)),
        }
    }
    if projection.moved {
        // The server stores something elsewhere, like the `stringData` of a Secret.
        let status = how.subresource == Some("status");
        for (name, value) in live.iter().filter(|(name, _)| match name.as_str() {
            "apiVersion" | "kind" | "metadata" => false,
            name => (name == "status") == status,
        }) {
            projection.digest.text(name);
            projection.digest.value(value);
        }
    }
    projection.digest.finish()
}

/// Metadata that the server changes with every write, and that nobody owns.
fn is_system_field(name: &str) -> bool {
    ["generation", "managedFields", "resourceVersion", "uid"].contains(&name)
}

fn below<'a>(owned: Option<Node<'a>>, name: &str) -> Option<Node<'a>> {
    let mut elements = owned?.below();
    elements.find(|(e, _)| e.strip_prefix("f:") == Some(name)).and_then(|(_, node)| Node::of(node))
}

/// Hashes the part of the live object that an intent can change.
#[derive(Default)]
struct Projection {
    digest: Digest,
    /// Whether something that the intent sets is not where the intent sets it.
    moved: bool,
}

impl Projection {
    fn fields<'i>(
        &mut self,
        intent: impl Iterator<Item = (&'i String, &'i Value)>,
        live: Option<&Map<String, Value>>,
        owned: Option<Node<'_>>,
    ) {
        self.digest.tag(b'{');
        for (name, value) in intent {
            self.field(name, value, live.and_then(|live| live.get(name)), below(owned, name));
        }
        self.digest.tag(b'}');
    }

    fn field(&mut self, name: &str, intent: &Value, live: Option<&Value>, owned: Option<Node<'_>>) {
        self.digest.text(name);
        if let Some(live) = live {
            self.value(intent, live, owned);
        } else {
            self.digest.tag(b'-');
            self.moved |= !is_zero(intent);
        }
    }

    fn value(&mut self, intent: &Value, live: &Value, owned: Option<Node<'_>>) {
        let is_leaf = owned.is_some_and(Node::is_leaf);
        match (intent, live) {
            (Value::Object(fields), Value::Object(live)) if !is_leaf && !fields.is_empty() => {
                self.fields(fields.iter(), Some(live), owned);
            }
            (Value::Array(items), Value::Array(live)) if !is_leaf => {
                self.items(items, live, owned.and_then(Node::items).as_ref());
            }
            _ => self.digest.value(live),
        }
    }

    /// The owned items, in the order of the live list. All of it if it is unknown which are.
    fn items(&mut self, intent: &[Value], live: &[Value], owned: Option<&Items<'_>>) {
        self.digest.tag(b'[');
        for item in live {
            match owned {
                None => self.digest.value(item),
                Some(Items::Values(members)) => {
                    if members.binary_search_by(|member| compare(member, item)).is_ok() {
                        self.digest.value(item);
                    }
                }
                Some(Items::Keys(keys)) => {
                    if let Some((_, key)) = keys.of_stored(item) {
                        self.keyed(intent, item, key);
                    }
                }
            }
        }
        self.digest.tag(b']');
    }

    fn keyed(&mut self, intent: &[Value], live: &Value, key: &Keyed<'_>) {
        self.digest.text(key.element);
        let is_applied = |item: &&Value| item.as_object().is_some_and(|i| key.is_of_applied(i));
        match intent.iter().find(is_applied) {
            Some(applied) => self.value(applied, live, Some(key.owned)),
            None => self.digest.value(live),
        }
    }
}

/// Whether a typed kind does not store the value.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_zero),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Whether an intent has something empty or null in it, besides what nobody owns.
fn has_hollow_content(intent: &Object) -> bool {
    intent.iter().any(|(name, value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            metadata.iter().any(|(name, value)| name != "creationTimestamp" && has_hollow(value))
        }
        value => has_hollow(value),
    })
}

/// Whether a value is empty or null, or holds such a value.
fn has_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty() || items.iter().any(has_hollow),
        Value::Object(fields) => fields.is_empty() || fields.values().any(has_hollow),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A hash of values that tells their structures apart.
#[derive(Default)]
struct Digest(DefaultHasher);

impl Digest {
    fn tag(&mut self, tag: u8) {
        self.0.write_u8(tag);
    }

    fn text(&mut self, text: &str) {
        self.0.write_usize(text.len());
        self.0.write(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.tag(b'0'),
            Value::Bool(flag) => self.tag(if *flag { b't' } else { b'f' }),
            Value::Number(number) => {
                if let Some(int) = number.as_i64() {
                    self.tag(b'i');
                    self.0.write_i64(int);
                } else {
                    self.tag(b'd');
                    self.0.write_u64(number.as_f64().unwrap_or_default().to_bits());
                }
            }
            Value::String(text) => {
                self.tag(b's');
                self.text(text);
            }
            Value::Array(items) => {
                self.tag(b'[');
                for item in items {
                    self.value(item);
                }
                self.tag(b']');
            }
            Value::Object(fields) => {
                self.tag(b'{');
                for (name, value) in fields {
                    self.text(name);
                    self.value(value);
                }
                self.tag(b'}');
            }
        }
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests;
